"""The exchange's time as a run hears it: positions and gaps are given in it, whatever the clocks of the hosts say."""

from collections import deque
from collections.abc import Callable
from statistics import median_low
from time import monotonic, time

_BEGAN_S = time() - monotonic()
MAX_SAMPLES = 1_000  # of one second
MEMORY = 30  # seconds in which something was heard


def steady() -> float:
    """Give Unix seconds by the clock of this host as it stood at the start, whoever sets it since."""
    return _BEGAN_S + monotonic()


class ExchangeClock:
    """Our own steady clock, and how far it is ahead of the instants that the exchange gives, as they arrive.

    That is the median of the last seconds' medians: an instant from the future, a stall or a burst do not move it. Two
    runs that hear the same agree on the exchange's time up to the difference of their delays, whatever their clocks.
    """

    def __init__(self, our_s: Callable[[], float] = steady) -> None:
        self.ahead_ms = 0
        self._our_s = our_s
        self._samples: list[int] = []
        self._seconds: deque[int] = deque(maxlen=MEMORY)
        self._settled_ms = 0

    def our_ms(self) -> int:
        """Give our own time."""
        return int(self._our_s() * 1000)

    def now_ms(self) -> int:
        """Give the exchange's time: what arrives now was mostly said at this instant, or before."""
        return self.our_ms() - self.ahead_ms

    def theirs(self, our_ms: int) -> int:
        """Give the exchange's time at an instant of ours."""
        return our_ms - self.ahead_ms

    def ours(self, their_ms: int) -> int:
        """Give our time when what the exchange said at an instant arrived."""
        return their_ms + self.ahead_ms

    def hear(self, their_ms: int, our_ms: int) -> None:
        """Take an instant that came with a message, and when it came."""
        if len(self._samples) < MAX_SAMPLES:
            self._samples.append(our_ms - their_ms)

    def assume(self, ahead_ms: int) -> None:
        """Take another clock for the exchange's, until something is heard."""
        if not self._seconds:
            self.ahead_ms = ahead_ms

    def settle(self, our_ms: int) -> None:
        """Make up its mind, once a second; called at each tick."""
        if self._samples and (our_ms - self._settled_ms >= 1000 or not self._seconds):
            self._seconds.append(median_low(self._samples))
            self._samples = []
            self._settled_ms = our_ms
            self.ahead_ms = median_low(self._seconds)
