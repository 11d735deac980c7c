"""Messages of the socket in our units (micro-units), one struct per kind."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec

from upstream.kalshi.book import Level
from upstream.kalshi.fields import OUTCOMES, complement, token_id
from upstream.kalshi.trades import KalshiTrade
from upstream.transport.errors import RefusedObject

UNKNOWN_SUBSCRIPTION = 7
CHANNEL_ERROR = 10
BUFFER_OVERFLOW = 25
ENDING = frozenset({UNKNOWN_SUBSCRIPTION, CHANNEL_ERROR, BUFFER_OVERFLOW})
"""Codes of errors after which a subscription is no more."""
TIMEOUT = 18
COMMAND_RATE = 27
MOMENTARY = ENDING | {TIMEOUT, COMMAND_RATE}
"""Codes of errors that are not about what a command asks for."""


class BookSnapshot(msgspec.Struct, frozen=True, gc=False):
    """A market's whole book: bids for YES and for NO, highest first."""

    ticker: str
    yes: list[Level]
    no: list[Level]


class BookDelta(msgspec.Struct, frozen=True, gc=False):
    """A change of one level's size."""

    ticker: str
    ts_ms: int
    side: int
    """0: bids for YES; 1: bids for NO."""
    price: int
    """Of that outcome."""
    change: int


class TickerUpdate(msgspec.Struct, frozen=True, gc=False):
    """A market's best prices and figures, in terms of YES; None for an empty side and for what was not sent."""

    ticker: str
    ts_ms: int
    price: int | None
    bid: int | None
    bid_size: int | None
    ask: int | None
    ask_size: int | None
    last_size: int | None
    volume: int | None
    """Micro-contracts."""
    open_interest: int | None
    """Micro-contracts."""

    def quote(self, outcome: int) -> tuple[int | None, int | None, int | None, int | None]:
        """Return bid, its size, ask and its size of an outcome: the bid for NO is 1 less the ask for YES."""
        if outcome == 0:
            return self.bid, self.bid_size, self.ask, self.ask_size
        return complement(self.ask), self.ask_size, complement(self.bid), self.bid_size


class MarketLifecycle(msgspec.Struct, frozen=True):
    """Something has happened to a market; that its opening or closing time has passed is not told."""

    ticker: str
    kind: str
    """created, activated, deactivated, close_date_updated, determined, settled, price_level_structure_updated,
    metadata_updated, or one that is not known yet."""
    open_at: datetime | None = None
    close_at: datetime | None = None
    determined_at: datetime | None = None
    settled_at: datetime | None = None
    result: str | None = None
    """yes, no or scalar, when determined; it can still be amended."""
    payout: int | None = None
    """What YES will pay, when determined."""
    paused: bool | None = None
    tick_sizes: list[tuple[int, int, int]] | None = None
    """From price, to price, step."""
    event_ticker: str | None = None
    title: str | None = None
    yes_sub_title: str | None = None
    rules: str | None = None

    def row(self, source: str = "exchange") -> dict[str, Any]:
        """Return a row keyed like `sql.tables.markets`; missing fields are not known yet, or have not changed.

        Who won is said before it is final, and not when it is: the catalogue says both.
        """
        row: dict[str, Any] = {"market_id": self.ticker, "exchange": "kalshi", "source": source}
        if self.kind == "created":
            row |= {
                "slug": self.ticker.lower(),
                "question": self.title or self.ticker,
                "description": self.rules,
                "status": "ACTIVE",
                "event_id": self.event_ticker,
                "outcomes": ["Yes", "No"],
                "token_ids": [token_id(self.ticker, outcome) for outcome in range(len(OUTCOMES))],
                "tick_size": self.tick_sizes[0][2] if self.tick_sizes else None,
                "start_time": self.open_at,
            }
        elif self.kind == "determined":
            row |= {"status": "CLOSED"}
        elif self.kind == "settled":
            row |= {"status": "RESOLVED", "resolved_at": self.settled_at}
        return row | ({"end_time": self.close_at} if self.close_at else {})


class EventLifecycle(msgspec.Struct, frozen=True):
    """An event was listed."""

    event_ticker: str
    series_ticker: str | None
    title: str | None
    subtitle: str | None


class EventFees(msgspec.Struct, frozen=True):
    """An event's fees have changed; None where they are its series' again."""

    event_ticker: str
    fee_type: str | None
    multiplier: int | None


class Subscribed(msgspec.Struct, frozen=True):
    """A channel was subscribed to, and has the number `sid` from now on."""

    channel: str
    sid: int


class Updated(msgspec.Struct, frozen=True):
    """A command was carried out; `tickers` has all markets of its subscription, None if it does not say."""

    tickers: list[str] | None


class SubscriptionList(msgspec.Struct, frozen=True):
    """All subscriptions of the connection."""

    listed: list[Subscribed]


class Unsubscribed(msgspec.Struct, frozen=True):
    """A subscription has ended."""


class SocketError(msgspec.Struct, frozen=True):
    """The exchange refuses a command, or ends a subscription.

    1 unprocessable, 2 to 4 and 14, 15 a parameter is missing, 5 unknown command, 7 unknown subscription, 8 unknown
    channel, 9 authentication, 10 channel error, 11 invalid parameter, 12 exactly one sid, 13 unsupported action,
    18 timeout, 19 to 22 shards, 23 match ids, 24 index ids, 25 buffer overflow, 26 market limit, 27 command rate,
    28 underlyings.
    """

    code: int
    text: str
    tickers: list[str]


class UnknownKind(msgspec.Struct, frozen=True):
    """A kind of message that this version does not know: counted, not an error."""

    kind: str


Message = (
    BookSnapshot
    | BookDelta
    | TickerUpdate
    | KalshiTrade
    | MarketLifecycle
    | EventLifecycle
    | EventFees
    | Subscribed
    | Updated
    | SubscriptionList
    | Unsubscribed
    | SocketError
    | UnknownKind
)


class SocketFrame(msgspec.Struct, frozen=True):
    """One frame: its message, or why it is none, and its place in the subscription."""

    message: Message | RefusedObject
    sid: int = 0
    """The subscription; 0 if it belongs to none."""
    seq: int = 0
    """Its number in the subscription, from 1; 0 if it has none."""
    id: int = 0
    """The command that it answers; 0 if none."""
    sent_ms: int | None = None
    ticker: str = ""
    """The market of a refused message, as far as it can be read."""
    kind: str = ""
    """The kind of a refused message."""
