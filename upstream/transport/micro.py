"""Micro-units (10⁻⁶) as decimals in the exchange's format, for what speaks as the exchange: the sandbox and replays.

The clients parse with `numbers`. The two share nothing, not even the constant: a fault in one would hide in the other.
"""

from __future__ import annotations

from decimal import Decimal, InvalidOperation, Overflow
from functools import lru_cache

ONE = 1_000_000
MAX_DIGITS = 27  # of micro-units


@lru_cache(maxsize=1 << 16)
def text(micro: int) -> str:
    """Format micro-units as the exchange does: `500000` is `"0.5"`."""
    whole, rest = divmod(micro, ONE)
    return f"{whole}.{rest:06d}".rstrip("0") if rest else str(whole)


def parse(value: str | float) -> int:
    """Parse a decimal as micro-units, rounded to the nearest; ValueError if it is not a number."""
    try:
        scaled = Decimal(str(value)).scaleb(6)
        if not scaled.is_finite():
            raise ValueError(f"not a finite number: {value!r}")
        if scaled.adjusted() > MAX_DIGITS:
            raise ValueError(f"too large a number: {value!r:.40}")
        return int(scaled.to_integral_value())
    except (InvalidOperation, Overflow) as error:
        raise ValueError(f"not a number: {value!r}") from error
