"""One client of the stream: what it wants, and where it stands."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

from msgspec import Struct

from api.stream.frames import frame

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from api.stream.socket import Socket

MOST_FRAME = 256 << 10  # bytes of messages in one frame: clients refuse frames beyond a megabyte
Packed = list[tuple[bytes, int]]  # frames, each with the last event it holds


class Event(Struct, frozen=True, order=True, gc=False):
    """One event, as stored; `watchers` are the accounts that watched its wallet then.

    Many are kept: none refers back to itself, so the collector need not walk over them.
    """

    seq: int
    type: str
    market_id: str | None
    wallet: bytes | None
    watchers: list[int] | None
    message: str


@dataclass(frozen=True)
class Filter:
    """What a client wants of what is told to everyone; None is all."""

    markets: frozenset[str] | None = None
    types: frozenset[str] | None = None

    @property
    def everything(self) -> bool:
        """Whether nothing is left out."""
        return self.markets is None and self.types is None

    def passes(self, event: Event) -> bool:
        """Tell whether an event is wanted."""
        return (self.markets is None or event.market_id in self.markets) and (
            self.types is None or event.type in self.types
        )

    def more(self, markets: Iterable[str] | None, types: Iterable[str] | None) -> Filter:
        """Give what is wanted after a further subscription: named markets add up, types replace."""
        wanted = None if markets is None else frozenset(markets) | (self.markets or frozenset())
        return Filter(wanted, self.types if types is None else frozenset(types))

    def less(self, markets: Iterable[str] | None) -> Filter:
        """Give what is left after markets, or all, were given up."""
        left = frozenset() if markets is None else (self.markets or frozenset()) - frozenset(markets)
        return replace(self, markets=left)


class Resuming(NamedTuple):
    """A replay that was asked for: after which event, which of the hub's looks ends it, and whether all is kept."""

    after: int
    look: int
    complete: bool


class Subscriber:
    """A client's socket, what it wants, and the last event that it was past."""

    def __init__(self, socket: Socket, position: int, account_id: int, allowed: Callable[[], bool]) -> None:
        self.socket, self.position, self.account_id, self.allowed = socket, position, account_id, allowed
        self.wants = Filter()
        self.wallets: frozenset[bytes] = frozenset()  # beside those that the account watches
        self.live = False  # fed by the hub; otherwise it is catching up
        self.held = True  # waits a moment for a first wish, so that it need not hear what it does not want
        self.resuming: Resuming | None = None
        self.turn = 0  # changes as it joins and leaves: what was begun for an earlier turn is dropped

    def tell(self, text: bytes) -> None:
        """Send a message that is not an event."""
        self.socket.push(frame(text))

    def passes(self, event: Event) -> bool:
        """Tell whether an event is wanted, and for this client to know."""
        if event.wallet is None:
            return self.wants.passes(event)
        if event.wallet in self.wallets:  # asked for by name, whatever the market
            return True
        return event.watchers is not None and self.account_id in event.watchers and self.wants.passes(event)


def frames(events: Iterable[Event]) -> Packed:
    """Pack events into frames, one message a line."""
    packed: Packed = []
    lines: list[str] = []
    size = last = 0
    for event in events:
        if size and size + len(event.message) > MOST_FRAME:
            packed.append((frame("\n".join(lines).encode()), last))
            lines, size = [], 0
        lines.append(event.message)
        size += len(event.message) + 1
        last = event.seq
    if lines:
        packed.append((frame("\n".join(lines).encode()), last))
    return packed
