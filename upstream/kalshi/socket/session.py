"""What one connection's frames mean: sequence numbers, order books, and the commands that follow from them.

Without any input or output: frames and times come in, events and commands go out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from upstream.kalshi.fields import COMBO
from upstream.kalshi.socket.events import (
    BookAnchored,
    BookChange,
    CommandRefused,
    Dropped,
    FeedEvent,
    SequenceGap,
    SnapshotsRequested,
)
from upstream.kalshi.socket.market_book import MarketBook
from upstream.kalshi.socket.messages import (
    ENDING,
    BookDelta,
    BookSnapshot,
    SocketError,
    SocketFrame,
    Subscribed,
    SubscriptionList,
    UnknownKind,
    Unsubscribed,
    Updated,
)
from upstream.kalshi.socket.subscriptions import (
    BOOKS,
    INFINITE,
    UNSEQUENCED,
    SessionSubscriptions,
    SocketSubscription,
)
from upstream.transport.errors import RefusedObject, SocketLost

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

ABOUT_COMMANDS = (Subscribed, Updated, Unsubscribed, SocketError, SubscriptionList)
ENDS = frozenset({"error", "unsubscribed"})
"""Kinds that may end a subscription."""
NO_SUBSCRIPTION = "no such subscription"
NO_SNAPSHOT = "no snapshot yet"
REPEATED = "its number came before"


class KalshiSession:
    """Books and subscriptions of one connection.

    A number that is not the next one means that something of its subscription was lost, of whichever market: all its
    books are dropped, reported and asked for again over the socket. Until a market's snapshot its changes are dropped.
    A message whose number came before is never used, be it a snapshot: it may be older than what came since.
    """

    def __init__(self, tickers: Iterable[str], channels: Sequence[str], everywhere: Sequence[str]) -> None:
        self.books: dict[str, MarketBook] = {}
        """Valid books only."""
        self.subscriptions = SessionSubscriptions(channels, everywhere)
        self.subscriptions.wanted.update(dict.fromkeys(tickers))

    def begin(self, now: float) -> None:
        """Subscribe to what is wanted and not subscribed to."""
        self.subscriptions.begin(now)
        for ticker in [ticker for ticker in self.books if ticker not in self.subscriptions.wanted]:
            del self.books[ticker]

    def commands(self) -> list[dict[str, object]]:
        """Take the commands that have to be sent."""
        commands, self.subscriptions.commands = self.subscriptions.commands, []
        return commands

    def tick(self, now: float) -> list[FeedEvent]:
        """Do what is due; SocketLost if the exchange does not answer a command."""
        if self.subscriptions.overdue(now):
            raise SocketLost("a command was not answered")
        if self.subscriptions.unsettled:
            self.begin(now)
        return self._request_snapshots(now)

    def request(self, tickers: Iterable[str], now: float) -> None:
        """Drop these markets' books, and ask for them anew at the next tick."""
        wanted = set(tickers)
        for subscription in self.subscriptions.by_sid.values():
            if subscription.channel == BOOKS:
                again = [ticker for ticker in subscription.tickers or () if ticker in wanted]
                subscription.unanchor(again, now)
                for ticker in again:
                    self.books.pop(ticker, None)

    def lose_all(self, reason: str) -> list[SequenceGap]:
        """Return a gap for each subscription: the connection is lost, and with it all books."""
        events: list[FeedEvent] = []
        for subscription in self.subscriptions.by_sid.values():
            self._lose(subscription, reason, 0, events)
        return [event for event in events if isinstance(event, SequenceGap)]

    def apply(self, frame: SocketFrame, now: float) -> list[FeedEvent]:
        """Apply one frame; SocketLost if the connection is of no use after it."""
        if isinstance(frame.message, RefusedObject) and frame.kind in ENDS:
            raise SocketLost(f"an unreadable message of kind {frame.kind}: {frame.message.reason}")
        events: list[FeedEvent] = []
        subscription = self.subscriptions.by_sid.get(frame.sid)
        if subscription is not None:
            if self._count(subscription, frame, events):
                self._handle(frame, subscription, events, now)
        elif not isinstance(frame.message, (*ABOUT_COMMANDS, RefusedObject, UnknownKind)):
            return [_dropped(frame, "", NO_SUBSCRIPTION)]
        elif isinstance(frame.message, ABOUT_COMMANDS):
            self._answer(frame, None, events, now)
        else:
            return [frame.message]
        return events + self._request_snapshots(now)

    def _count(self, subscription: SocketSubscription, frame: SocketFrame, events: list[FeedEvent]) -> bool:
        """Count a frame's number; return whether to go on with it."""
        if not frame.seq:
            if subscription.channel in UNSEQUENCED or isinstance(frame.message, ABOUT_COMMANDS):
                return True
            self._lose(subscription, "a message without a number", 0, events)
            events.append(_dropped(frame, subscription.channel, "it has no number"))
            return False
        if frame.seq <= subscription.seq:
            answers = isinstance(frame.message, ABOUT_COMMANDS)
            if answers and frame.seq == subscription.seq:
                return True  # whether answers count is not documented: one that does not is still an answer
            # Sent twice, it is known. Anything else was not received in its place, and may be older than the books are.
            if frame.seq < subscription.seq or frame.message != subscription.last:
                self._lose(subscription, "sequence", frame.seq, events)
                if answers:  # its end, for instance
                    return True
            events.append(_dropped(frame, subscription.channel, REPEATED))
            return False
        if frame.seq != subscription.seq + 1:
            self._lose(subscription, "sequence", frame.seq, events)
        subscription.seq, subscription.last = frame.seq, frame.message
        return True

    def _handle(
        self, frame: SocketFrame, subscription: SocketSubscription, events: list[FeedEvent], now: float
    ) -> None:
        message = frame.message
        if isinstance(message, BookDelta):
            self._change(message, frame, subscription, events)
        elif isinstance(message, BookSnapshot):
            self._anchor(message, frame, subscription, events)
        elif isinstance(message, ABOUT_COMMANDS):
            self._answer(frame, subscription, events, now)
        elif isinstance(message, RefusedObject):
            # It may have been a change: of its market, or of any.
            events.append(message)
            followed = frame.ticker in (subscription.tickers or ())
            self._lose(subscription, "unreadable", frame.seq, events, [frame.ticker] if followed else None)
        elif getattr(message, "ticker", "").startswith(COMBO):
            events.append(_dropped(frame, subscription.channel, "a combo"))
        else:
            subscription.since_ms = getattr(message, "ts_ms", None) or frame.sent_ms or subscription.since_ms
            events.append(message)

    def _answer(
        self, frame: SocketFrame, subscription: SocketSubscription | None, events: list[FeedEvent], now: float
    ) -> None:
        message = frame.message
        if isinstance(message, Subscribed):
            if not self.subscriptions.acknowledge(frame.id, message.channel, message.sid, now):
                events.append(_dropped(frame, message.channel, "not asked for"))
        elif isinstance(message, Updated):
            if missing := self.subscriptions.confirm(frame.id, message.tickers):
                events.append(CommandRefused(0, "not listed after they were added", [], missing))
        elif isinstance(message, SocketError):
            self._fail(message, frame, subscription, events, now)
        elif isinstance(message, Unsubscribed):
            self.subscriptions.pending.pop(frame.id, None)
            if subscription is not None:
                self._end(subscription, "unsubscribed by the exchange", events, now)

    def _anchor(
        self,
        snapshot: BookSnapshot,
        frame: SocketFrame,
        subscription: SocketSubscription,
        events: list[FeedEvent],
    ) -> None:
        if subscription.channel != BOOKS or snapshot.ticker not in (subscription.tickers or ()):
            events.append(_dropped(frame, subscription.channel, "not followed"))
            return
        subscription.anchor(snapshot.ticker)
        subscription.since_ms = frame.sent_ms or subscription.since_ms
        self.books[snapshot.ticker] = MarketBook(snapshot.yes, snapshot.no)
        events.append(BookAnchored(snapshot.ticker, snapshot.yes, snapshot.no, frame.sid, frame.seq, frame.sent_ms))

    def _change(
        self, delta: BookDelta, frame: SocketFrame, subscription: SocketSubscription, events: list[FeedEvent]
    ) -> None:
        book = self.books.get(delta.ticker)
        if book is None or subscription.channel != BOOKS:
            events.append(_dropped(frame, subscription.channel, NO_SNAPSHOT))
            return
        try:
            size = book.change(delta.side, delta.price, delta.change)
        except ValueError as fault:
            self._lose(subscription, str(fault), frame.seq, events, [delta.ticker])
            events.append(_dropped(frame, BOOKS, str(fault)))
            return
        subscription.since_ms = delta.ts_ms
        events.append(
            BookChange(delta.ticker, delta.ts_ms, delta.side, delta.price, size, delta.change, frame.sid, frame.seq)
        )

    def _lose(
        self,
        subscription: SocketSubscription,
        reason: str,
        next_seq: int,
        events: list[FeedEvent],
        tickers: list[str] | None = None,
    ) -> None:
        """Record a gap: books of the subscription, or of some of its markets, are valid no more."""
        lost: list[str] = []
        if subscription.channel == BOOKS:
            affected = [*(subscription.tickers or ())] if tickers is None else tickers
            subscription.unanchor(affected, -INFINITE)
            lost = [ticker for ticker in affected if self.books.pop(ticker, None) is not None]
        before = next_seq - 1 if next_seq and next_seq == subscription.seq else subscription.seq
        events.append(
            SequenceGap(subscription.sid, subscription.channel, reason, lost, before, next_seq, subscription.since_ms)
        )

    def _fail(
        self,
        error: SocketError,
        frame: SocketFrame,
        subscription: SocketSubscription | None,
        events: list[FeedEvent],
        now: float,
    ) -> None:
        pending, tickers = self.subscriptions.fail(frame.id, error.code, error.tickers, now)
        if subscription is None and pending is not None:
            subscription = self.subscriptions.by_sid.get(pending.sid)
        channels = [*pending.channels] if pending is not None else []
        if pending is not None or subscription is None or error.code not in ENDING:
            events.append(CommandRefused(error.code, error.text, channels, tickers))
        if error.code not in ENDING:
            return
        if subscription is not None:
            self._end(subscription, f"error {error.code}: {error.text}", events, now)
        elif pending is None and not frame.sid:
            raise SocketLost(f"error {error.code} of no subscription that is known: {error.text}")

    def _end(self, subscription: SocketSubscription, reason: str, events: list[FeedEvent], now: float) -> None:
        self._lose(subscription, reason, 0, events)
        self.subscriptions.remove(subscription)
        self.subscriptions.retry(subscription.channel, now)

    def _request_snapshots(self, now: float) -> list[FeedEvent]:
        events: list[FeedEvent] = []
        for subscription in self.subscriptions.by_sid.values():
            if now >= subscription.snapshots_at:
                tickers = self.subscriptions.request_snapshots(subscription, now)
                if tickers:
                    events.append(SnapshotsRequested(subscription.sid, tickers))
        return events


def _dropped(frame: SocketFrame, channel: str, reason: str) -> Dropped:
    message = frame.message
    return Dropped(frame.sid, frame.seq, channel, getattr(message, "ticker", "") or frame.ticker, reason)
