"""The exchange's clock as a run estimates it; positions and gaps use it, so host clocks may differ."""

from collections import deque
from collections.abc import Callable
from statistics import median_low
from time import monotonic, time

_BEGAN_S = time() - monotonic()
MAX_SAMPLES = 1_000  # kept per second
MAX_SECONDS = 30  # medians kept; seconds in which nothing was received do not count
LEAST_MS = 3_600_000  # the least offset is that of this span and of the one before
MAX_LAG_MS = 600_000  # beyond it the exchange's timestamps have jumped: no connection holds back as much


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
        self._least: deque[tuple[int, int]] = deque(maxlen=2)  # number of the span, and the least offset in it

    @property
    def lag_ms(self) -> int:
        """How much later messages arrive now than they did at best within the last hour or two."""
        least_ms = min((least_ms for _, least_ms in self._least), default=self.ahead_ms)
        return min(self.ahead_ms - least_ms, MAX_LAG_MS)

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
            span, least_ms = local_ms // LEAST_MS, self.ahead_ms
            if self._least and self._least[-1][0] == span:
                least_ms = min(least_ms, self._least.pop()[1])
            self._least.append((span, least_ms))
