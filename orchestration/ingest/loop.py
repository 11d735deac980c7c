"""Event loop of the feed: reads its sockets every few milliseconds, with everything that arrived meanwhile."""

import asyncio
import selectors
import time

GATHER_S = 0.01  # little beside the flush; a turn of the loop costs as much as several messages


class GatheringSelector(selectors.DefaultSelector):
    """Lets events gather for GATHER_S before it looks for them, unless the loop has work at hand."""

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """Return the events that are there, or the first ones within `timeout` (seconds)."""
        if timeout is None or timeout > 0:
            gather_s = GATHER_S if timeout is None else min(GATHER_S, timeout)
            time.sleep(gather_s)
            timeout = None if timeout is None else timeout - gather_s
        return super().select(timeout)


def new_event_loop() -> asyncio.AbstractEventLoop:
    """Return a loop that gathers events."""
    return asyncio.SelectorEventLoop(GatheringSelector())
