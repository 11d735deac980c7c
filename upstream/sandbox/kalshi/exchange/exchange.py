"""State of the sandbox Kalshi: each event changes it, is written to the truth log and sent to the sockets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from upstream.sandbox.common.book import BUY, SELL
from upstream.sandbox.common.trades import RecentTrades
from upstream.sandbox.common.truth_log import TruthLog
from upstream.sandbox.kalshi.exchange.entries import Delta, KalshiTrade, Notice, Ticker
from upstream.sandbox.kalshi.formats import dollars
from upstream.transport.micro import ONE

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from upstream.sandbox.common.book import Levels
    from upstream.sandbox.common.orderflow import Change
    from upstream.sandbox.kalshi.exchange.entries import Body, KalshiEntry
    from upstream.sandbox.kalshi.exchange.grid import Grid
    from upstream.sandbox.kalshi.exchange.listings import KalshiEvent, KalshiMarket, KalshiSeries, Status

LISTED_AFTER_MS = 1_500  # from the socket's `created` until REST knows a market
LIFECYCLE, COMBO_LIFECYCLE = "market_lifecycle_v2", "multivariate_market_lifecycle"


class KalshiAudience(Protocol):
    """Receivers of messages: the sockets, or none."""

    def publish(self, channel: str, ticker: str, entry: KalshiEntry) -> int:
        """Queue a message for all subscriptions of a channel that follow a market, and return their number."""


class NobodyListens:
    """An audience without receivers."""

    def publish(self, channel: str, ticker: str, entry: KalshiEntry) -> int:  # noqa: ARG002 - the protocol's
        """Send nothing."""
        return 0


class KalshiExchange:
    """State of the exchange and its transitions; it never waits, and has neither clock nor network."""

    def __init__(self, log: TruthLog | None = None, audience: KalshiAudience | None = None) -> None:
        self.log = log or TruthLog()
        self.audience = audience or NobodyListens()
        self.now_ms = 0
        self.cutoff_ms = 0  # what was settled or traded before is historical
        self.series: dict[str, KalshiSeries] = {}
        self.events: dict[str, KalshiEvent] = {}
        self.markets: dict[str, KalshiMarket] = {}
        self.by_id: dict[str, KalshiMarket] = {}
        self.trades: RecentTrades[KalshiTrade] = RecentTrades(lambda trade: trade.market.ticker)
        self.paused: frozenset[int] = frozenset()  # shards
        self.figures_follow = True  # whether a change of a book or a trade sends a ticker; a tape sends those it has

    # --- Listing ---

    def add_series(self, series: KalshiSeries) -> None:
        """List a series."""
        self.series[series.ticker] = series

    def add_event(self, event: KalshiEvent) -> None:
        """List an event, without a message."""
        self.add_series(event.series)
        event.number = len(self.events)
        self.events[event.ticker] = event

    def add_market(self, market: KalshiMarket) -> None:
        """List a market of an event, without a message."""
        market.number = len(self.markets)
        market.event.markets.append(market)
        self.markets[market.ticker] = market
        self.by_id[market.id] = market
        market.top = market.best_quote()

    def announce_event(self, event: KalshiEvent) -> None:
        """Publish a new event."""
        msg: Body = {
            "event_ticker": event.ticker,
            "exchange_index": event.series.shard,
            "title": event.title,
            "subtitle": event.sub_title,
            "collateral_return_type": event.collateral,
            "series_ticker": event.series.ticker,
        }
        if event.strike_ms is not None:
            msg["strike_date"] = event.strike_ms // 1000
        else:
            msg["strike_period"] = event.sub_title
        self.notify(event, "event_lifecycle", msg)

    def announce(self, market: KalshiMarket) -> None:
        """Publish a new market, which REST lists a moment later."""
        market.listed_ms = self.now_ms + LISTED_AFTER_MS
        extra = {name: market.extra[name] for name in STRIKES if name in market.extra}
        metadata = {
            "name": market.yes_sub_title,
            "title": market.title,
            "yes_sub_title": market.yes_sub_title,
            "no_sub_title": market.yes_sub_title,
            "rules_primary": f"Simulated market. {market.title}",
            "rules_secondary": "",
            "can_close_early": market.can_close_early,
            "event_ticker": market.event.ticker,
            "expected_expiration_ts": market.expected_ms // 1000,
            **extra,
        }
        self._lifecycle(
            market,
            "created",
            exchange_index=market.shard,
            open_ts=market.open_ms // 1000,
            close_ts=market.close_ms // 1000,
            price_level_structure=market.grid.structure,
            price_ranges=market.grid.ranges,
            additional_metadata=metadata,
        )

    # --- Trading ---

    def change(self, market: KalshiMarket, ts_ms: int, changes: Iterable[Change]) -> None:
        """Set levels, given as side, YES price and new size."""
        for side, price, size in changes:
            before = market.book.size(side, price)
            if size == before:
                continue
            market.book.set(side, price, size)
            self._publish(
                "orderbook_delta",
                market,
                Delta(ts_ms=ts_ms, market=market, side=side, price=price, delta=size - before, size=size),
            )
        self._publish_quote(market, ts_ms)

    def trade(
        self, market: KalshiMarket, ts_ms: int, fills: Sequence[tuple[int, int]], ids: Sequence[str], *, takes_yes: bool
    ) -> None:
        """Take levels, given by YES price and size: a trade and a changed level for each."""
        side = SELL if takes_yes else BUY
        for (price, size), trade_id in zip(fills, ids, strict=True):
            self.print(market, ts_ms, price, size, trade_id, takes_yes=takes_yes)
            left = market.book.size(side, price) - size
            market.book.set(side, price, left)
            self._publish(
                "orderbook_delta",
                market,
                Delta(ts_ms=ts_ms, market=market, side=side, price=price, delta=-size, size=left),
            )
        self._publish_quote(market, ts_ms, traded=True)

    def print(
        self,
        market: KalshiMarket,
        ts_ms: int,
        price: int,
        size: int,
        trade_id: str,
        *,
        takes_yes: bool,
        block: bool = False,
    ) -> None:
        """Publish a trade without a change of the book."""
        trade = KalshiTrade(
            ts_ms=ts_ms, market=market, id=trade_id, price=price, size=size, takes_yes=takes_yes, block=block
        )
        self.record(trade)
        self._publish("trade", market, trade)

    def record(self, trade: KalshiTrade) -> None:
        """Record a trade, without a message; every second one opens a position."""
        market, price, size = trade.market, trade.price, trade.size
        trade.number = self.trades.total
        if not trade.block:
            market.previous_price, market.last_price, market.last_size = market.last_price, price, size
        market.volume += size
        market.dollar_volume += price * size // ONE
        market.open_interest += size if trade.number % 2 else 0
        market.candles.traded(trade.ts_ms, price, size, market.open_interest)
        self.trades.add(trade)

    def tick(self, market: KalshiMarket, ts_ms: int) -> None:
        """Publish a market's figures."""
        self._publish("ticker", market, Ticker.of(market, ts_ms))

    def _publish_quote(self, market: KalshiMarket, ts_ms: int, *, traded: bool = False) -> None:
        top = market.best_quote()
        if top != market.top:
            if (top[0], top[2]) != (market.top[0], market.top[2]):
                market.candles.quoted(ts_ms, top[0], top[2])
            market.top = top
        elif not traded:
            return
        if self.figures_follow:
            self.tick(market, ts_ms)

    def replace_book(self, market: KalshiMarket, ts_ms: int, bids: Levels, asks: Levels) -> None:
        """Make the book what was seen of it, by changes of the levels that differ."""
        changes: list[Change] = []
        for side, levels in ((BUY, dict(bids)), (SELL, dict(asks))):
            changes += [(side, price, 0) for price in market.book.side(side)[0] if price not in levels]
            changes += [(side, price, size) for price, size in levels.items()]
        self.change(market, ts_ms, changes)

    def cancel_orders(self, market: KalshiMarket) -> None:
        """Cancel all resting orders."""
        self.replace_book(market, self.now_ms, [], [])

    # --- Lives of markets ---

    def set_status(self, market: KalshiMarket, status: Status) -> None:
        """Change a market's status without a message, as when it opens or closes; only the log tells."""
        market.status = status
        self.log.write(Notice(ts_ms=self.now_ms, type="status", msg={"market_ticker": market.ticker, "status": status}))

    def pause(self, market: KalshiMarket) -> None:
        """Pause a market."""
        market.status = "inactive"
        self._lifecycle(market, "deactivated", is_deactivated=True)

    def activate(self, market: KalshiMarket) -> None:
        """Open a paused or closed market; its resting orders are cancelled."""
        market.status = "active"
        self._lifecycle(market, "activated", is_deactivated=False)
        self.cancel_orders(market)

    def move_close(self, market: KalshiMarket, close_ms: int) -> None:
        """Move the time at which a market closes."""
        market.close_ms = close_ms
        self._lifecycle(market, "close_date_updated", close_ts=close_ms // 1000)

    def regrid(self, market: KalshiMarket, grid: Grid) -> None:
        """Change a market's grid of prices."""
        market.grid = grid
        self._lifecycle(
            market,
            "price_level_structure_updated",
            price_level_structure=grid.structure,
            price_ranges=grid.ranges,
        )

    def redescribe(self, market: KalshiMarket, yes_sub_title: str) -> None:
        """Change a market's description."""
        market.yes_sub_title = yes_sub_title
        extra = {name: market.extra[name] for name in STRIKES if name in market.extra}
        self._lifecycle(market, "metadata_updated", yes_sub_title=yes_sub_title, **extra)

    def determine(self, market: KalshiMarket, result: str, value: int | None) -> None:
        """Set a market's result, which may still be disputed; the settlement value is missing of a void market."""
        market.status, market.result, market.settlement = "determined", result, value
        msg: Body = {"result": result, "determination_ts": self.now_ms // 1000}
        if value is not None:
            msg["settlement_value"] = dollars(value)
        self._lifecycle(market, "determined", **msg)

    def settle(self, market: KalshiMarket) -> None:
        """Pay a market's holders."""
        market.status, market.settled_ms = "finalized", self.now_ms
        self._lifecycle(market, "settled", settled_ts=self.now_ms // 1000)

    def change_fee(self, event: KalshiEvent, kind: str | None, multiplier: float | None) -> None:
        """Set or clear an event's own fee."""
        event.fee_override = kind, multiplier
        msg = {"event_ticker": event.ticker, "fee_type_override": kind, "fee_multiplier_override": multiplier}
        self.notify(event, "event_fee_update", msg)

    # --- Publishing ---

    def _lifecycle(self, market: KalshiMarket, event_type: str, **msg: object) -> None:
        market.updated_ms = self.now_ms
        kind = COMBO_LIFECYCLE if market.combo else LIFECYCLE
        self.notify(market.event, kind, {"market_ticker": market.ticker, "event_type": event_type, **msg})

    def notify(self, event: KalshiEvent, kind: str, msg: Body) -> None:
        """Send a message of a lifecycle channel."""
        event.updated_ms = self.now_ms
        entry = Notice(ts_ms=self.now_ms, type=kind, msg=msg)
        self.log.write(entry)
        entry.sent = self.audience.publish(COMBO_LIFECYCLE if event.combo else LIFECYCLE, "", entry)

    def _publish(self, channel: str, market: KalshiMarket, entry: KalshiEntry) -> None:
        self.log.write(entry)
        entry.sent = self.audience.publish(channel, market.ticker, entry)


STRIKES = ("strike_type", "floor_strike", "cap_strike", "functional_strike", "custom_strike")
