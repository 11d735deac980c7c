"""A connection to Kalshi's WebSocket API that yields both outcomes' messages, as Polymarket sends them.

A market's book counts from its snapshot on, but not before the exchange has confirmed that it sends its trades: from
then on nothing of the market is missing unless `on_missed` says so.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Self

from orchestration.ingest.exchanges.base import Missed
from orchestration.ingest.plausible import instant_fault
from orchestration.ingest.storage import ids
from orchestration.ingest.storage.rows import KINDS
from upstream.kalshi.book import KalshiBook
from upstream.kalshi.fields import OUTCOMES, token_id
from upstream.kalshi.socket.connection import KalshiSocket
from upstream.kalshi.socket.conversation import Conversation
from upstream.kalshi.socket.events import BookAnchored, BookChange, CommandRefused, SequenceGap
from upstream.kalshi.socket.frames import SOURCE
from upstream.kalshi.socket.messages import MOMENTARY, MarketLifecycle, UnknownKind
from upstream.kalshi.socket.session import KalshiSession
from upstream.kalshi.socket.subscriptions import BOOKS, LIFECYCLE, TRADES
from upstream.kalshi.trades import KalshiTrade
from upstream.polymarket.book import Book
from upstream.polymarket.market_channel.messages import LastTrade, LevelChange, NewMarket, Resolved, Unknown
from upstream.transport.errors import RefusedObject, SocketLost, SubscriptionRefused, Unauthenticated, refused

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Collection, Iterable

    from orchestration.ingest.exchanges.base import Messages
    from upstream.kalshi.signing import Signer
    from upstream.kalshi.socket.events import FeedEvent

MAX_OFF_MS = 60_000
"""A snapshot's time is not believed if it is further from ours: its market's messages would seem older for long."""
MAX_EARLY_MS = 10_000
"""A message's time may be ahead of ours by so much: gaps begin at the newest one."""
MARGIN_MS = 1_000
"""Times of two markets' messages may differ from their order by so much."""
ENDED = frozenset({"determined", "settled"})


class KalshiConnection:
    """One connection. `now_ms` is the exchange's time; with `news` it hears of new and settled markets, too."""

    def __init__(
        self,
        signer: Signer | None,
        url: str,
        assets: Iterable[str],
        *,
        news: bool,
        on_missed: Callable[[Missed], None],
        now_ms: Callable[[], int],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._tickers: dict[str, list[str]] = {}
        self._add(assets)
        self._on_missed, self._now_ms = on_missed, now_ms
        self._held: dict[str, None] = {}  # markets whose books wait until their trades are sent as well
        self._newest_ms: dict[str, int] = {}  # by channel, as far as times are possible
        self._opened_ms = 0
        self._confirmations = 0  # of the exchange, when books were last looked through for what they wait for
        self._socket = KalshiSocket(signer, url, clock=clock)
        # Trades first: of what the exchange confirms in order, books come last.
        self._session = KalshiSession(self._tickers, (TRADES, BOOKS), (LIFECYCLE,) if news else ())
        self._conversation = Conversation(self._socket, self._session, clock)

    @property
    def assets(self) -> Collection[str]:
        """Tokens that are followed."""
        return [each for tokens in self._tickers.values() for each in tokens]

    async def __aenter__(self) -> Self:
        try:
            await self._socket.__aenter__()
        except Unauthenticated as fault:
            raise SocketLost(f"cannot be opened: {fault}") from None
        self._opened_ms = self._now_ms()
        return self

    async def close(self) -> None:
        """Close the connection."""
        await self._socket.close()

    async def subscribe(self, assets: Iterable[str]) -> None:
        """Follow more tokens' markets."""
        self._add(assets)
        await self._conversation.want(self._tickers)

    async def unsubscribe(self, assets: Iterable[str]) -> None:
        """Follow some tokens' markets no more."""
        for each in assets:
            ticker = each.rpartition(":")[0]
            self._tickers.pop(ticker, None)
            self._held.pop(ticker, None)
        await self._conversation.want(self._tickers)

    def request_books(self, assets: Iterable[str]) -> None:
        """Ask for books anew; those that are valid here begin with the next frame."""
        tickers = {each.rpartition(":")[0] for each in assets}
        valid = tickers.intersection(self._session.books)
        self._held.update(dict.fromkeys(valid))
        self._confirmations = -1
        self._conversation.request(tickers - valid)

    def __aiter__(self) -> AsyncIterator[tuple[float, Messages]]:
        return self._messages()

    async def _messages(self) -> AsyncIterator[tuple[float, Messages]]:
        async for received, events in self._conversation.events():
            messages: Messages = []
            try:
                for event in events:
                    self._convert(event, messages)
                if self._held and self._confirmations != self._session.subscriptions.confirmations:
                    self._release(messages)
            except SocketLost:
                raise
            except Exception as fault:  # one bad message must not end the feed
                raise SocketLost(f"a message could not be converted: {type(fault).__name__}: {fault}") from fault
            yield received, messages

    def _add(self, assets: Iterable[str]) -> None:
        for each in assets:
            ticker = each.rpartition(":")[0]
            if ticker not in self._tickers:
                self._tickers[ticker] = [token_id(ticker, outcome) for outcome in range(len(OUTCOMES))]

    def _convert(self, event: FeedEvent, messages: Messages) -> None:
        if isinstance(event, BookChange):
            self._change(event, messages)
        elif isinstance(event, KalshiTrade):
            self._trade(event, messages)
        elif isinstance(event, BookAnchored):
            self._held[event.ticker] = None
            if self._session.subscriptions.has(TRADES, event.ticker):
                self._anchor(KalshiBook(event.ticker, event.yes, event.no), event.sent_ms, messages)
        elif isinstance(event, SequenceGap):
            self._miss(event)
        elif isinstance(event, CommandRefused):
            self._refuse(event, messages)
        elif isinstance(event, MarketLifecycle):
            messages += _news(event)
        elif isinstance(event, RefusedObject):
            messages.append(event)
        elif isinstance(event, UnknownKind):
            messages.append(Unknown(event.kind))

    def _change(self, change: BookChange, messages: Messages) -> None:
        tokens = self._tickers.get(change.ticker)
        if tokens is None or change.ticker in self._held:
            return
        if fault := self._fault(change.ts_ms):
            messages.append(refused(SOURCE, fault, repr(change)))
            self._lose([change.ticker], BOOKS, ("books",))
            self._conversation.request([change.ticker])
            return
        self._newest_ms[BOOKS] = max(change.ts_ms, self._newest_ms.get(BOOKS, 0))
        for outcome, side, price in change.levels():
            messages.append(LevelChange(tokens[outcome], change.ticker, change.ts_ms, "", side, price, change.size))

    def _fault(self, ts_ms: int) -> str:
        now_ms = self._now_ms()
        return instant_fault(ts_ms, now_ms) or (f"an instant ahead: {ts_ms}" if ts_ms > now_ms + MAX_EARLY_MS else "")

    def _trade(self, trade: KalshiTrade, messages: Messages) -> None:
        tokens = self._tickers.get(trade.ticker)
        if tokens is None:
            return
        if not self._fault(trade.ts_ms):
            self._newest_ms[TRADES] = max(trade.ts_ms, self._newest_ms.get(TRADES, 0))
        messages.append(
            LastTrade(
                tokens[0],
                trade.ticker,
                trade.ts_ms,
                trade.side,
                trade.price,
                trade.size,
                trade_id=ids.trade_id(trade.trade_id),
                is_block=trade.block,
            )
        )

    def _anchor(self, book: KalshiBook, sent_ms: int | None, messages: Messages) -> None:
        """Begin both outcomes' books. A snapshot has no time but that at which it was sent, if the exchange says it."""
        ticker = book.ticker
        self._held.pop(ticker, None)
        now_ms = self._now_ms()
        ts_ms = sent_ms if sent_ms is not None and abs(sent_ms - now_ms) < MAX_OFF_MS else now_ms
        for outcome, token in enumerate(self._tickers.get(ticker, ())):
            messages.append(Book(token, ticker, ts_ms, "", *book.outcome(outcome)))

    def _release(self, messages: Messages) -> None:
        """Begin the books of markets whose trades have been confirmed since."""
        self._confirmations = self._session.subscriptions.confirmations
        for ticker in [each for each in self._held if self._session.subscriptions.has(TRADES, each)]:
            book = self._session.books.get(ticker)
            if book is None:
                del self._held[ticker]
            else:
                self._anchor(book.whole(ticker), None, messages)

    def _miss(self, gap: SequenceGap) -> None:
        if gap.channel == BOOKS:
            self._lose(gap.tickers, BOOKS, ("books",))
        elif gap.channel == TRADES:
            if gap.sid in self._session.subscriptions.by_sid:
                self._lose(self._tickers, TRADES, ("trades",), books=False)
            else:  # the subscription has ended: trades are missing until it is there again
                self._lose(self._tickers, TRADES, KINDS)
                self._conversation.request(self._tickers)

    def _refuse(self, event: CommandRefused, messages: Messages) -> None:
        """Report what the exchange does not send; books of which it does not send the trades are not complete."""
        text = f"the exchange refuses a command: {event.code} {event.text}"
        if event.channels and event.code not in MOMENTARY:
            raise SubscriptionRefused(f"{text} ({', '.join(event.channels)})")
        messages.append(refused(SOURCE, text, repr((event.channels, event.tickers))))
        has = self._session.subscriptions.has
        tickers = [each for each in event.tickers if each in self._session.books and not has(TRADES, each)]
        self._lose(tickers, TRADES, KINDS)
        self._conversation.request(tickers)

    def _lose(self, tickers: Iterable[str], channel: str, kinds: tuple[str, ...], *, books: bool = True) -> None:
        tokens = [each for ticker in tickers for each in self._tickers.get(ticker, ())]
        if tokens:
            since_ms = min(self._newest_ms.get(channel, self._opened_ms), self._now_ms())
            self._on_missed(Missed("sequence", tokens, since_ms - MARGIN_MS, kinds, books))


def _news(life: MarketLifecycle) -> Messages:
    if life.kind == "created":
        tokens = [token_id(life.ticker, outcome) for outcome in range(len(OUTCOMES))]
        return [
            NewMarket(
                market=life.ticker,
                ts_ms=0,  # it is not said
                id="",
                question=life.title or life.ticker,
                slug=life.ticker.lower(),
                description=life.rules,
                token_ids=tokens,
                outcomes=["Yes", "No"],
                tags=[],
                event_id=life.event_ticker,
                event_slug=None,
                event_title=None,
                tick_size=life.tick_sizes[0][2] if life.tick_sizes else None,
                active=True,
            )
        ]
    if life.kind in ENDED:
        return [
            Resolved(
                market=life.ticker,
                ts_ms=0,
                id="",
                token_ids=[],
                outcomes=[],
                winning_asset_id=None,
                winning_outcome=None,
            )
        ]
    return []
