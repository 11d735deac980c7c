"""Kalshi's formats of prices, counts and times. Prices and counts are micro-units here, times milliseconds."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import lru_cache


@lru_cache(maxsize=1 << 16)
def dollars(micro: int) -> str:
    """Format a price: four decimals, six where they are needed."""
    whole, rest = divmod(micro, 1_000_000)
    return f"{whole}.{rest:06d}" if rest % 100 else f"{whole}.{rest // 100:04d}"


@lru_cache(maxsize=1 << 16)
def contracts(micro: int) -> str:
    """Format a count of contracts: two decimals, signed if negative."""
    whole, rest = divmod(abs(micro) // 10_000, 100)
    return f"{'-' if micro < 0 else ''}{whole}.{rest:02d}"


def rfc3339(ms: int) -> str:
    """Format a time with as many decimals as it needs."""
    at = datetime.fromtimestamp(ms // 1000, UTC)
    return f"{at:%Y-%m-%dT%H:%M:%S}.{ms % 1000:03d}Z" if ms % 1000 else f"{at:%Y-%m-%dT%H:%M:%SZ}"
