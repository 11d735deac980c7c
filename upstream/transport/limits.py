"""Client-side rate limits: token buckets that keep the exchange's documented limits."""

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

WINDOW_S = 10.0
"""The exchange states its limits as requests in ten seconds."""
SHARE = 0.8
"""Share of a documented limit that one process uses steadily."""


@dataclass
class Bucket:
    """A token bucket that never admits more than the documented limit in any one window.

    A window sees at most a full bucket plus the refill: with a share of the limit as refill, the bucket may hold
    the rest of it.
    """

    limit: float
    share: float = SHARE
    tokens: float = field(init=False)
    at: float = field(init=False, default=0.0)

    def __post_init__(self) -> None:
        self.tokens = self.size

    @property
    def size(self) -> float:
        """The capacity in tokens."""
        return max(1.0, self.limit * (1 - self.share))

    @property
    def rate(self) -> float:
        """The refill rate in tokens per second."""
        return self.limit * self.share / WINDOW_S

    def take(self, now: float) -> float:
        """Take one token, into debt if need be; return the seconds to wait before using it."""
        self.tokens = min(self.size, self.tokens + max(0.0, now - self.at) * self.rate) - 1
        self.at = now
        return -self.tokens / self.rate if self.tokens < -1e-9 else 0.0  # anything less is rounding


class RateLimits:
    """Buckets by URL prefix: one for a whole upstream, more for its stricter paths; thread-safe."""

    def __init__(self, *, share: float = SHARE, clock: Callable[[], float] = time.monotonic) -> None:
        self._share = share
        self._clock = clock
        self._lock = threading.Lock()
        self._buckets: dict[str, Bucket] = {}

    def declare(self, base_url: str, per_window: Mapping[str, float]) -> None:
        """Declare the limits of an upstream by path ("" for all of it); repeating a declaration changes nothing."""
        with self._lock:
            for path, limit in per_window.items():
                bucket = Bucket(limit, self._share)
                bucket.at = self._clock()
                self._buckets.setdefault(base_url.rstrip("/") + path, bucket)

    def take(self, url: str) -> float:
        """Reserve a slot and return the seconds to wait before this request may be sent."""
        with self._lock:
            now = self._clock()
            return max(
                (bucket.take(now) for start, bucket in self._buckets.items() if _within(url, start)), default=0.0
            )


def _within(url: str, start: str) -> bool:
    return url.startswith(start) and (len(url) == len(start) or url[len(start)] in "/?")
