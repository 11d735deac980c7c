"""Zipf's law, by which the activity of markets is distributed."""

from __future__ import annotations


def drawn(chance: float, count: int, rank: int) -> int:
    """Return a place from 0 up to `count` for a number from 0 up to 1; `rank` is how many busier ones there are."""
    return min(int(rank * ((rank + count) / rank) ** chance) - rank, count - 1)
