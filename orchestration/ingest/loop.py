"""Event loop of the feed: reads its sockets every few milliseconds, with everything that arrived meanwhile."""

import asyncio
import selectors
import time

GATHER_S = 0.05  # until the run knows better; a turn of the loop costs as much as several messages
OPENING_GATHER_S = 0.005  # until every book is synced: a connection opens in several turns, and there may be 800
MAX_GATHER_S = 0.15
GATHER_PER_SOCKET_S = 0.001  # a turn reads each socket that has something, which costs more than a short frame does
GATHERS_PER_FLUSH = 3
DEFERRING_GATHER_S = 0.1  # at least, while a standby leaves frames unparsed: reading them is most of what it does


class GatheringSelector(selectors.DefaultSelector):
    """Lets events gather for `gather_s` before it looks for them, unless the loop has work at hand."""

    gather_s = GATHER_S

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """Return the events that are there, or the first ones within `timeout` (seconds)."""
        if timeout is None or timeout > 0:
            gather_s = self.gather_s if timeout is None else min(self.gather_s, timeout)
            time.sleep(gather_s)
            timeout = None if timeout is None else timeout - gather_s
        return super().select(timeout)


class GatheringLoop(asyncio.SelectorEventLoop):
    """An event loop that gathers events."""

    def __init__(self) -> None:
        self.selector = GatheringSelector()
        super().__init__(self.selector)


def new_event_loop() -> asyncio.AbstractEventLoop:
    """Return a loop that gathers events."""
    return GatheringLoop()


def gather_s(flush_s: float, sockets: int, *, ready: bool, deferring: bool) -> float:
    """Return how many seconds events are to gather: little beside the flush, longer over many sockets."""
    if not ready:
        return OPENING_GATHER_S
    least_s = max(flush_s / GATHERS_PER_FLUSH, sockets * GATHER_PER_SOCKET_S, DEFERRING_GATHER_S if deferring else 0)
    return min(least_s, MAX_GATHER_S)


def gather(seconds: float) -> None:
    """Let events of the running loop gather for so long, if it gathers them at all."""
    loop = asyncio.get_running_loop()
    if isinstance(loop, GatheringLoop):
        loop.selector.gather_s = seconds
