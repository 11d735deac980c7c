"""A client of the stream: its filter and position. `hub.py` sends to it, or lets it catch up if it reads slowly."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

from api.stream.frames import frame
from config.exchanges import DEFAULT, exchange_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from api.stream.socket import Socket
    from sql.stream_reader import StreamEvent

MAX_FRAME = 256 << 10  # bytes of messages per frame: clients refuse frames beyond a megabyte
Packed = list[tuple[bytes, int]]  # frames, each with its last event's seq


@dataclass(frozen=True)
class SubscriptionFilter:
    """A client's filter of public events; None means all, but of `markets` those of one exchange."""

    markets: frozenset[str] | None = None
    types: frozenset[str] | None = None
    exchange: str = DEFAULT.name

    def passes(self, event: StreamEvent) -> bool:
        """Return whether the filter matches an event; one without a market is every exchange's."""
        if self.types is not None and event.type not in self.types:
            return False
        if self.markets is not None:
            return event.market_id in self.markets
        return event.market_id is None or exchange_of(event.market_id) == self.exchange

    def more(
        self, markets: Iterable[str] | None, types: Iterable[str] | None, exchange: str | None = None
    ) -> SubscriptionFilter:
        """Return the filter after another subscription: markets are added, types and the exchange replaced."""
        wanted = None if markets is None else frozenset(markets) | (self.markets or frozenset())
        return SubscriptionFilter(wanted, self.types if types is None else frozenset(types), exchange or DEFAULT.name)

    def less(self, markets: Iterable[str] | None) -> SubscriptionFilter:
        """Return the filter without some markets, or without all."""
        left = frozenset() if markets is None else (self.markets or frozenset()) - frozenset(markets)
        return replace(self, markets=left)


class Resuming(NamedTuple):
    """A requested replay: the seq to start after, the hub's poll that completes it, and whether all is stored."""

    after: int
    poll: int
    complete: bool


class Subscriber:
    """A client's socket, filter and position (the seq of the last event passed)."""

    def __init__(self, socket: Socket, position: int, account_id: int, allowed: Callable[[], bool]) -> None:
        self.socket, self.position, self.account_id, self.allowed = socket, position, account_id, allowed
        self.wants = SubscriptionFilter()
        self.wallets: frozenset[bytes] = frozenset()  # in addition to those that the account watches
        self.live = False  # served by the hub; otherwise catching up
        self.held = True  # waits briefly for a first command, so that it does not receive unwanted events
        self.resuming: Resuming | None = None
        self.behind_since: float | None = None  # when it fell behind the live events, by the monotonic clock
        self.turn = 0  # incremented on join and leave: work of an earlier turn is dropped

    def send(self, text: bytes) -> None:
        """Send a message that is not an event."""
        self.socket.push(frame(text))

    def passes(self, event: StreamEvent) -> bool:
        """Return whether this client wants an event and may receive it."""
        if event.wallet is None:
            return self.wants.passes(event)
        if event.wallet in self.wallets:  # explicitly followed, in all markets
            return True
        return event.watchers is not None and self.account_id in event.watchers and self.wants.passes(event)


def frames(events: Iterable[StreamEvent]) -> Packed:
    """Encode events into frames, one message per line."""
    packed: Packed = []
    lines: list[bytes] = []
    size = last = 0
    for event in events:
        if size and size + len(event.message) > MAX_FRAME:
            packed.append((frame(b"\n".join(lines)), last))
            lines, size = [], 0
        lines.append(event.message)
        size += len(event.message) + 1
        last = event.seq
    if lines:
        packed.append((frame(b"\n".join(lines)), last))
    return packed
