"""Block ranges of one size, by name: the partitions of the backfill."""

from __future__ import annotations

BLOCK_S = 1.5  # Polygon's, since 2026-07; with slower blocks more ranges are listed than are kept


def listed(finalized: int, size: int, days: int) -> list[str]:
    """List the names of ranges that are entirely final and within the retention time.

    >>> listed(260_000, 100_000, 2)
    ['000100000-000199999']
    """
    lowest = max(finalized - round(days * 86_400 / BLOCK_S), 0)
    return [f"{n * size:09d}-{(n + 1) * size - 1:09d}" for n in range(lowest // size, (finalized + 1) // size)]


def bounds(key: str) -> tuple[int, int]:
    """Return the first and the last block of a range."""
    low, high = key.split("-")
    return int(low), int(high)
