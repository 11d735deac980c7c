"""Lag histogram: from exchange timestamp to committed row, mergeable across runs and intervals."""

from collections.abc import Iterable, Sequence
from typing import Self

import numpy as np
import numpy.typing as npt

RATIO = 1.05  # of neighbouring edges: a quantile is at most 5 % off
FIRST_MS = 1.0
EDGES_MS: npt.NDArray[np.float64] = np.geomspace(FIRST_MS, FIRST_MS * RATIO**273, 274)  # 1 ms … 10 min
BUCKETS = len(EDGES_MS) + 1  # bucket 0: under 1 ms, bucket i: edge i-1 ≤ lag < edge i, the last: beyond


class Lag:
    """Histogram of lags with fixed bucket edges."""

    __slots__ = ("counts", "max_ms")

    def __init__(self) -> None:
        self.counts: npt.NDArray[np.int64] = np.zeros(BUCKETS, dtype=np.int64)
        self.max_ms = 0

    def add(self, now_ms: float, instants_ms: Sequence[int]) -> None:
        """Count rows committed at `now_ms` by their exchange timestamps."""
        if not instants_ms:
            return
        lags = now_ms - np.fromiter(instants_ms, dtype=np.float64, count=len(instants_ms))
        buckets = np.searchsorted(EDGES_MS, lags, side="right")
        self.counts += np.bincount(buckets, minlength=BUCKETS)
        self.max_ms = max(self.max_ms, int(lags.max()))

    def merge(self, other: Self) -> None:
        """Add the counts of another histogram."""
        self.counts += other.counts
        self.max_ms = max(self.max_ms, other.max_ms)

    def trimmed(self) -> list[int]:
        """Return the counts without the empty tail, as they are stored."""
        filled = np.flatnonzero(self.counts)
        return [int(count) for count in self.counts[: filled[-1] + 1]] if len(filled) else []

    def quantile(self, q: float) -> int | None:
        """Return the `q` quantile of the lag in ms; None when nothing was counted."""
        return quantile(self.trimmed(), q)

    def __len__(self) -> int:
        return int(self.counts.sum())


def merged(rows: Iterable[Sequence[int]]) -> list[int]:
    """Add up stored counts (`feed_stats.lag_counts`) of any lengths."""
    total = np.zeros(BUCKETS, dtype=np.int64)
    for counts in rows:
        total[: len(counts)] += np.asarray(counts, dtype=np.int64)
    return [int(count) for count in total]


def quantile(counts: Sequence[int], q: float) -> int | None:
    """Return the upper edge, in ms, of the bucket that holds the `q` quantile of stored counts."""
    running = np.cumsum(np.asarray(counts, dtype=np.int64))
    if not len(running) or not running[-1]:
        return None
    bucket = int(np.searchsorted(running, q * running[-1], side="left"))
    return round(float(EDGES_MS[min(bucket, len(EDGES_MS) - 1)]))
