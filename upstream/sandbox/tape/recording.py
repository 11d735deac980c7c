"""Recordings, and the events in them with their times."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

from upstream.sandbox.common.book import Levels, Side
from upstream.transport.micro import text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from upstream.sandbox.exchange.catalogue import Gamma
    from upstream.sandbox.tape.files import File

Change: TypeAlias = tuple[Side, int, int]


@dataclass(slots=True)
class LevelsChanged:
    """Levels of one token got new totals: a `price_change` in the shape of 2024-25, with the exchange's own hash."""

    at_ms: int
    token: str
    hash: str
    changes: Sequence[Change]

    def message(self, condition_id: str, ts_ms: int) -> dict[str, Any]:
        """Return the socket message."""
        return {
            "event_type": "price_change",
            "asset_id": self.token,
            "market": condition_id,
            "timestamp": str(ts_ms),
            "hash": self.hash,
            "changes": [{"price": text(price), "side": side, "size": text(size)} for side, price, size in self.changes],
        }


@dataclass(slots=True)
class BookSeen:
    """The whole book of one token; `read` returns bids and asks, worst first, and is called when the book is due."""

    at_ms: int
    token: str
    hash: str
    read: Callable[[], tuple[Levels, Levels]]

    def message(self, condition_id: str, ts_ms: int) -> dict[str, Any]:
        """Return the socket message."""
        bids, asks = self.read()
        return {
            "event_type": "book",
            "asset_id": self.token,
            "market": condition_id,
            "timestamp": str(ts_ms),
            "hash": self.hash,
            "bids": [{"price": text(price), "size": text(size)} for price, size in bids],
            "asks": [{"price": text(price), "size": text(size)} for price, size in asks],
        }


@dataclass(slots=True)
class Printed:
    """A trade."""

    at_ms: int
    token: str
    side: Side
    price: int
    size: int
    tx: str
    wallet: str = ""

    def message(self, condition_id: str, ts_ms: int) -> dict[str, Any]:
        """Return the socket message."""
        return {
            "event_type": "last_trade_price",
            "asset_id": self.token,
            "market": condition_id,
            "price": text(self.price),
            "size": text(self.size),
            "side": self.side,
            "fee_rate_bps": "0",
            "timestamp": str(ts_ms),
            "transaction_hash": self.tx,
        }


@dataclass(slots=True)
class Won:
    """The market of a token is resolved, and this token won."""

    at_ms: int
    token: str


TapeEvent: TypeAlias = LevelsChanged | BookSeen | Printed | Won


@dataclass
class TapeListing:
    """A market of a tape: its Gamma object, its origin, and its tags."""

    gamma: Gamma
    source: str
    tags: list[Gamma] = field(default_factory=list)
    played: bool = False
    file: File | None = None  # the file of its row, if it is from one
    row: int = 0
    moments_ms: dict[str, int] = field(default_factory=dict)


@dataclass
class Recording:
    """One capture, in the order recorded. Captures of one `group` keep their distance in time."""

    name: str
    kind: str
    tape_events: list[TapeEvent]
    listings: list[TapeListing]
    file: File
    group: str = ""

    @property
    def first_ms(self) -> int:
        """The time of the first event."""
        return min(one.at_ms for one in self.tape_events)

    @property
    def last_ms(self) -> int:
        """The time of the last event."""
        return max(one.at_ms for one in self.tape_events)

    def tokens(self) -> Iterator[str]:
        """Yield the token of each event."""
        return iter(dict.fromkeys(one.token for one in self.tape_events))
