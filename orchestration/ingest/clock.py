"""The exchange's clock as a run estimates it; positions and gaps use it, so host clocks may differ."""

from collections import deque
from collections.abc import Callable
from statistics import median_low
from time import monotonic, time

_BEGAN_S = time() - monotonic()
MAX_SAMPLES = 1_000  # kept per second
MAX_SECONDS = 30  # medians kept; seconds in which nothing was received do not count


def steady_s() -> float:
    """Return Unix seconds by this host's clock as it was at start, unaffected by later adjustments."""
    return _BEGAN_S + monotonic()


class ExchangeClock:
    """Our steady clock, and how far it is ahead of the exchange's timestamps as they arrive.

    The offset is the median of the last seconds' medians: a timestamp from the future, a stall or a burst do not move
    it. Two runs that receive the same agree on the exchange's time up to the difference of their delays, whatever their
    clocks.
    """

    def __init__(self, local_s: Callable[[], float] = steady_s) -> None:
        self.ahead_ms = 0
        self._local_s = local_s
        self._samples: list[int] = []
        self._seconds: deque[int] = deque(maxlen=MAX_SECONDS)
        self._settled_ms = 0

    def local_ms(self) -> int:
        """Return our steady time."""
        return int(self._local_s() * 1000)

    def now_ms(self) -> int:
        """Return the exchange's time: most messages arriving now carry this timestamp or an earlier one."""
        return self.local_ms() - self.ahead_ms

    def to_exchange_ms(self, local_ms: int) -> int:
        """Convert an instant of our clock to the exchange's time."""
        return local_ms - self.ahead_ms

    def to_local_ms(self, exchange_ms: int) -> int:
        """Convert an exchange timestamp to the time it arrived by our clock."""
        return exchange_ms + self.ahead_ms

    def observe(self, exchange_ms: int, local_ms: int) -> None:
        """Record a message's timestamp and when it arrived."""
        if len(self._samples) < MAX_SAMPLES:
            self._samples.append(local_ms - exchange_ms)

    def assume(self, ahead_ms: int) -> None:
        """Use another clock's offset until something is received."""
        if not self._seconds:
            self.ahead_ms = ahead_ms

    def update(self, local_ms: int) -> None:
        """Recompute the offset once a second; called at each tick."""
        if self._samples and (local_ms - self._settled_ms >= 1000 or not self._seconds):
            self._seconds.append(median_low(self._samples))
            self._samples = []
            self._settled_ms = local_ms
            self.ahead_ms = median_low(self._seconds)
