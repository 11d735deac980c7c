"""Block ranges of one size, by name: what a back-fill is started for."""

from __future__ import annotations

BLOCK_S = 1.5  # Polygon's, since 2026-07; with slower ones more is listed than is kept


def listed(finalized: int, size: int, days: int) -> list[str]:
    """Name every range that is final to its end, and of which something would be kept.

    >>> listed(260_000, 100_000, 2)
    ['000100000-000199999']
    """
    lowest = max(finalized - round(days * 86_400 / BLOCK_S), 0)
    return [f"{n * size:09d}-{(n + 1) * size - 1:09d}" for n in range(lowest // size, (finalized + 1) // size)]


def bounds(key: str) -> tuple[int, int]:
    """Give the first and the last block of a range."""
    low, high = key.split("-")
    return int(low), int(high)
