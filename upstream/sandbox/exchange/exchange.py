"""State of the exchange: each event changes a book, is written to the truth log and sent to the sockets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import msgspec

from upstream.polymarket.market_channel import outgoing
from upstream.sandbox.common.book import BUY, SELL, Side
from upstream.sandbox.common.trades import RecentTrades
from upstream.sandbox.common.truth_log import TruthLog
from upstream.sandbox.exchange import wire
from upstream.sandbox.exchange.catalogue import Catalogue, Gamma, SandboxMarket, listed
from upstream.sandbox.exchange.trades import SandboxTrade
from upstream.transport.micro import ONE, text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from upstream.sandbox.common.orderflow import Change

Fill: TypeAlias = tuple[int, int, str]  # of the first outcome's book: price, size, maker


class Audience(Protocol):
    """Receivers of messages: the sockets, or none."""

    def is_followed(self, tokens: Sequence[str]) -> bool:
        """Return whether anybody subscribed to one of the tokens: messages to nobody are not encoded."""

    def send_to_followers(self, message: bytes, tokens: Sequence[str], n: int, *, custom: bool) -> int:
        """Queue a message for all subscribers of one of the tokens, and return their number."""

    def send_to_all(self, message: bytes, n: int) -> int:
        """Queue a message for all subscribers that enabled the custom features."""


class NoAudience:
    """An audience without receivers."""

    def is_followed(self, tokens: Sequence[str]) -> bool:  # noqa: ARG002 - the protocol's
        """Return that nobody subscribed."""
        return False

    def send_to_followers(self, message: bytes, tokens: Sequence[str], n: int, *, custom: bool) -> int:  # noqa: ARG002 - the protocol's
        """Send nothing."""
        return 0

    def send_to_all(self, message: bytes, n: int) -> int:  # noqa: ARG002 - the protocol's
        """Send nothing."""
        return 0


class SandboxExchange:
    """State of the exchange and its transitions; it never waits, and has neither clock nor network."""

    def __init__(self, log: TruthLog | None = None, audience: Audience | None = None) -> None:
        self.catalogue = Catalogue()
        self.trades: RecentTrades[SandboxTrade] = RecentTrades(lambda trade: trade.condition_id)
        self.log = log or TruthLog()
        self.audience: Audience = audience or NoAudience()
        self.messages: dict[str, int] = {}
        self.on_trade: list[Callable[[SandboxTrade], None]] = []
        self.on_listing: list[Callable[[SandboxMarket], None]] = []
        self.on_resolution: list[Callable[[SandboxMarket, int], None]] = []
        self.refreshers: list[Callable[[], None]] = []
        self.now_ms = 0
        self._encode = msgspec.json.Encoder().encode

    # --- Publishing ---

    def publish(
        self, message: Any, kind: str, tokens: Sequence[str], facts: Iterable[wire.Fact], *, custom: bool = False
    ) -> None:
        """Send a message to the subscribers of some tokens, and write its facts to the truth log."""
        self._count(kind)
        sent = 0
        if self.audience.is_followed(tokens):
            sent = self.audience.send_to_followers(self._encode(message), tokens, self.log.n + 1, custom=custom)
        self._record(facts, sent)

    def _announce(self, message: Any, kind: str, fact: wire.Fact) -> None:
        self._count(kind)
        sent = self.audience.send_to_all(self._encode(message), self.log.n + 1)
        self._record((fact,), sent)

    def _count(self, kind: str) -> None:
        self.messages[kind] = self.messages.get(kind, 0) + 1

    def _record(self, facts: Iterable[wire.Fact], sent: int) -> None:
        for fact in facts:
            fact.sent = sent
            self.log.write(fact)

    # --- Orders and trades of a market with one book ---

    def change(self, market: SandboxMarket, ts_ms: int, changes: Sequence[Change]) -> None:
        """Set levels of a book: one message with an entry per outcome, and the best prices if they moved."""
        book = market.books[0][0]
        before = (book.best_bid, book.best_ask)
        for side, price, size in changes:
            book.set(side, price, size)
        book.ts_ms = ts_ms
        self._publish_levels(market, ts_ms, changes)
        if before != (book.best_bid, book.best_ask):
            self._publish_best(market, ts_ms)

    def trade(
        self, market: SandboxMarket, ts_ms: int, *, outcome: int, side: Side, fills: Sequence[Fill], tx: str, taker: str
    ) -> None:
        """Execute a taker's order against resting levels: send prints, then the books, then the levels' new totals."""
        book = market.books[0][0]
        before = (book.best_bid, book.best_ask)
        hit: Side = SELL if (side == BUY) == (outcome == 0) else BUY
        changes: list[Change] = [(hit, price, book.size(hit, price) - size) for price, size, _ in fills]
        for change in changes:
            book.set(*change)
        book.ts_ms = ts_ms
        token = market.tokens[outcome]
        bid, ask = book.best(outcome)
        for price_of_first, size, maker in fills:
            price = price_of_first if outcome == 0 else ONE - price_of_first
            market.printed(outcome, price)
            market.traded += price * size // ONE
            message = outgoing.LastTradePrice(market.condition_id, token, text(price), text(size), side, str(ts_ms), tx)
            fact = wire.Fact(
                0,
                "trade",
                token,
                market.condition_id,
                ts_ms,
                side,
                message.price,
                message.size,
                tx,
                "",
                text(bid),
                text(ask),
            )
            self.publish(message, "last_trade_price", (token,), (fact,))
            self.remember(
                SandboxTrade(
                    fact.n, market.condition_id, token, outcome, side, price, size, ts_ms, tx, taker=taker, maker=maker
                )
            )
        self.show_books(market, ts_ms)
        self._publish_levels(market, ts_ms, changes)
        if before != (book.best_bid, book.best_ask):
            self._publish_best(market, ts_ms)

    def remember(self, trade: SandboxTrade) -> None:
        """Store a trade for the Data API, and settle it."""
        self.trades.add(trade)
        for listener in self.on_trade:
            listener(trade)

    def show_books(self, market: SandboxMarket, ts_ms: int) -> None:
        """Send the whole book of every outcome."""
        for outcome, token in enumerate(market.tokens):
            message = self.book_message(market, outcome) if self.audience.is_followed((token,)) else None
            digest = market.books[outcome][0].hash(token)
            bid, ask = market.best(outcome)
            fact = wire.Fact(
                0, "book", token, market.condition_id, ts_ms, hash=digest, best_bid=text(bid), best_ask=text(ask)
            )
            self.publish(message, "book", (token,), (fact,))

    def change_tick(self, market: SandboxMarket, ts_ms: int, tick: int) -> None:
        """Change a market's price step."""
        old, market.tick = market.tick, tick
        market.gamma["orderPriceMinTickSize"] = tick / ONE
        for token in market.tokens:
            message = outgoing.TickSizeChange(market.condition_id, token, text(old), text(tick), str(ts_ms))
            fact = wire.Fact(0, "tick_size", token, market.condition_id, ts_ms, size=text(tick))
            self.publish(message, "tick_size_change", (token,), (fact,))

    def _publish_levels(self, market: SandboxMarket, ts_ms: int, changes: Sequence[Change]) -> None:
        book, tokens = market.books[0][0], market.tokens
        best = book.best_bid, book.best_ask
        levels = wire.LevelFacts(0, tokens, market.condition_id, ts_ms, tuple(changes), *best, book.digest)
        self._count("price_change")
        if self.audience.is_followed(tokens):
            message = self._encode(levels.message())
            levels.sent = self.audience.send_to_followers(message, tokens, self.log.n + 1, custom=False)
        self.log.write(levels)

    def _publish_best(self, market: SandboxMarket, ts_ms: int) -> None:
        for outcome, token in enumerate(market.tokens):
            bid, ask = market.best(outcome)
            message = outgoing.BestBidAsk(market.condition_id, token, text(bid), text(ask), text(ask - bid), str(ts_ms))
            fact = wire.Fact(
                0,
                "best_bid_ask",
                token,
                market.condition_id,
                ts_ms,
                best_bid=message.best_bid,
                best_ask=message.best_ask,
            )
            self.publish(message, "best_bid_ask", (token,), (fact,), custom=True)

    # --- Listing and resolving ---

    def announce(self, market: SandboxMarket, ts_ms: int) -> None:
        """Announce a listed market to subscribers with custom features; it must be in the catalogue."""
        gamma = market.gamma
        message = outgoing.NewMarket(
            **self._described(market),
            description=gamma.get("description", ""),
            timestamp=str(ts_ms),
            condition_id=market.condition_id,
            active=bool(gamma.get("active")),
            clob_token_ids=list(market.tokens),
            order_price_min_tick_size=text(market.tick),
            group_item_title=gamma.get("groupItemTitle", ""),
            fees_enabled=bool(gamma.get("feesEnabled")),
        )
        fact = wire.Fact(0, "new_market", "", market.condition_id, ts_ms, detail={"tokens": list(market.tokens)})
        self._announce(message, "new_market", fact)
        for listener in self.on_listing:
            listener(market)

    def resolve(self, market: SandboxMarket, ts_ms: int, winner: int, closed_time: str) -> None:
        """Resolve a market: its winner pays 1 and the other outcome 0."""
        market.gamma.update(
            closed=True,
            acceptingOrders=False,
            closedTime=closed_time,
            umaResolutionStatus="resolved",
            outcomePrices=listed("1" if outcome == winner else "0" for outcome, _ in enumerate(market.tokens)),
        )
        message = outgoing.MarketResolved(
            **self._described(market),
            winning_asset_id=market.tokens[winner],
            winning_outcome=market.outcomes[winner],
            timestamp=str(ts_ms),
        )
        fact = wire.Fact(0, "resolved", market.tokens[winner], market.condition_id, ts_ms, detail={"outcome": winner})
        self._announce(message, "market_resolved", fact)
        for listener in self.on_resolution:
            listener(market, winner)

    def _described(self, market: SandboxMarket) -> Gamma:
        gamma = market.gamma
        event: Gamma = next(iter(gamma.get("events") or ()), {})
        return {
            "id": market.id,
            "question": gamma.get("question", ""),
            "market": market.condition_id,
            "slug": gamma.get("slug", ""),
            "assets_ids": list(market.tokens),
            "outcomes": market.outcomes,
            "event_message": outgoing.EventMessage(
                *(str(event.get(field, "")) for field in ("id", "ticker", "slug", "title", "description"))
            ),
            "tags": [str(tag.get("slug", "")) for tag in self.catalogue.tags_of(market)],
        }

    # --- Reading ---

    def book_message(self, market: SandboxMarket, outcome: int) -> outgoing.BookMessage:
        """Return the book of an outcome as a socket message."""
        return outgoing.BookMessage(**self._book(market, outcome))

    def book_summary(self, market: SandboxMarket, outcome: int) -> outgoing.BookSummary:
        """Return the book of an outcome as REST sends it."""
        return outgoing.BookSummary(**self._book(market, outcome))

    def _book(self, market: SandboxMarket, outcome: int) -> dict[str, Any]:
        book, seen_from = market.books[outcome]
        bids, asks = book.levels(seen_from)
        last = market.last_price[outcome]
        token = market.tokens[outcome]
        return {
            "market": market.condition_id,
            "asset_id": token,
            "timestamp": str(book.ts_ms or self.now_ms),
            "hash": book.hash(token),
            "bids": outgoing.levels(bids),
            "asks": outgoing.levels(asks),
            "min_order_size": str(market.min_size),
            "tick_size": text(market.tick),
            "neg_risk": market.neg_risk,
            "last_trade_price": msgspec.UNSET if last is None else text(last),
        }

    def initial_books(self, tokens: Iterable[str]) -> list[outgoing.BookMessage]:
        """Return the books sent to a new subscriber: those of open markets that have one."""
        found = []
        for token in tokens:
            at = self.catalogue.find(token)
            if at is not None and at[0].has_book and not at[0].closed:
                found.append(self.book_message(*at))
        return found

    def refresh(self) -> None:
        """Update figures of the Gamma objects; called before they are shown."""
        for refresh in self.refreshers:
            refresh()
