"""Event loop of the feed: reads its sockets every few milliseconds, with everything that arrived meanwhile."""

import asyncio
import selectors
import time

GATHER_S = 0.05  # little beside the flush; a turn of the loop costs as much as several messages
DEFERRING_GATHER_S = 0.1  # while a standby leaves frames unparsed: reading them is most of what it does


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


def gather(seconds: float) -> None:
    """Let events of the running loop gather for so long, if it gathers them at all."""
    loop = asyncio.get_running_loop()
    if isinstance(loop, GatheringLoop):
        loop.selector.gather_s = seconds
