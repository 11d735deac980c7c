"""Client-side rate limits: token buckets that keep the exchange's documented limits."""

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Self

WINDOW_S = 10.0
"""The exchange states its limits as requests in ten seconds."""
SHARE = 0.8
"""Share of a documented limit that one process uses steadily."""


@dataclass
class Bucket:
    """A token bucket of `size` tokens, refilled at `rate` a second."""

    size: float
    rate: float
    tokens: float = field(init=False)
    at: float = field(init=False, default=0.0)

    def __post_init__(self) -> None:
        self.tokens = self.size

    @classmethod
    def of_window(cls, limit: float, share: float = SHARE) -> Self:
        """Return a bucket that never admits more than a documented limit in any one window.

        A window sees at most a full bucket plus the refill: with a share of the limit as refill, the bucket may hold
        the rest of it.
        """
        return cls(max(1.0, limit * (1 - share)), limit * share / WINDOW_S)

    def take(self, now: float, tokens: float = 1) -> float:
        """Take tokens, into debt if need be; return the seconds to wait before using them."""
        self.tokens = min(self.size, self.tokens + max(0.0, now - self.at) * self.rate) - tokens
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
                bucket = Bucket.of_window(limit, self._share)
                bucket.at = self._clock()
                self._buckets.setdefault(base_url.rstrip("/") + path, bucket)

    def replace(self, base_url: str, bucket: Bucket) -> None:
        """Replace the limit of a whole upstream by what it says about itself; the new bucket begins empty."""
        with self._lock:
            bucket.at, bucket.tokens = self._clock(), 0.0
            self._buckets[base_url.rstrip("/")] = bucket

    def take(self, url: str, tokens: float = 1) -> float:
        """Reserve tokens for a request; return the seconds to wait before it may be sent."""
        with self._lock:
            now = self._clock()
            return max(
                (bucket.take(now, tokens) for start, bucket in self._buckets.items() if _within(url, start)),
                default=0.0,
            )


def _within(url: str, start: str) -> bool:
    return url.startswith(start) and (len(url) == len(start) or url[len(start)] in "/?")
