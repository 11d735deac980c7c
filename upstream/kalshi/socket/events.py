"""What a feed yields: the exchange's messages with their place, and all that was lost, dropped or refused."""

from __future__ import annotations

import msgspec

from upstream.kalshi.book import Level
from upstream.kalshi.socket.messages import EventFees, EventLifecycle, MarketLifecycle, TickerUpdate, UnknownKind
from upstream.kalshi.trades import KalshiTrade
from upstream.transport.errors import RefusedObject


class Connected(msgspec.Struct, frozen=True):
    """A connection is open; sids and sequence numbers begin anew."""

    connection: int
    """1, 2, …: of this feed."""


class BookAnchored(msgspec.Struct, frozen=True, gc=False):
    """A market's book is valid from here on."""

    ticker: str
    yes: list[Level]
    no: list[Level]
    sid: int
    seq: int
    sent_ms: int | None
    """None where the exchange does not say; a snapshot has no time of its own."""


class BookChange(msgspec.Struct, frozen=True, gc=False):
    """A level of a valid book has a new size; 0 removes it."""

    ticker: str
    ts_ms: int
    side: int
    """0: bids for YES; 1: bids for NO."""
    price: int
    """Of that outcome."""
    size: int
    change: int
    sid: int
    seq: int

    def levels(self) -> tuple[tuple[int, int, int], tuple[int, int, int]]:
        """Return (outcome, 1 bid or -1 ask, price) of the same level in both outcomes' books."""
        return (self.side, 1, self.price), (1 - self.side, -1, 1_000_000 - self.price)


class SequenceGap(msgspec.Struct, frozen=True):
    """Something of a subscription is missing, and which of its markets' is not known.

    Books in `tickers` were valid and are no more, until a snapshot; trades and life cycles have to be asked for over
    REST, from `since_ms` on.
    """

    sid: int
    channel: str
    reason: str
    tickers: list[str]
    seq: int
    """The last number before the gap."""
    next_seq: int
    """The first after it; 0 if none came."""
    since_ms: int | None
    """Time of the subscription's last message before the gap; None if there was none."""


class Disconnected(msgspec.Struct, frozen=True):
    """A connection is lost, or could not be opened: no book is valid, and everything may have been missed."""

    connection: int
    reason: str
    tickers: list[str]
    """Markets whose books were valid until now."""
    gaps: list[SequenceGap] = []
    """Of each subscription, since when something of it may be missing."""


class Dropped(msgspec.Struct, frozen=True):
    """A message that was not used, and why."""

    sid: int
    seq: int
    channel: str
    ticker: str
    reason: str


class SnapshotsRequested(msgspec.Struct, frozen=True):
    """Snapshots of books without one were asked for, by the socket."""

    sid: int
    tickers: list[str]


class CommandRefused(msgspec.Struct, frozen=True):
    """The exchange refuses a command: these channels or markets are not subscribed to.

    After an error of `messages.MOMENTARY` they are asked for again, else not on this connection.
    """

    code: int
    text: str
    channels: list[str]
    tickers: list[str]


FeedEvent = (
    Connected
    | Disconnected
    | BookAnchored
    | BookChange
    | TickerUpdate
    | KalshiTrade
    | MarketLifecycle
    | EventLifecycle
    | EventFees
    | SequenceGap
    | Dropped
    | SnapshotsRequested
    | CommandRefused
    | UnknownKind
    | RefusedObject
)
