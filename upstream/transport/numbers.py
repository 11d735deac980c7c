"""Parsing of the exchange's numbers and times: decimals to micro-units, dates to UTC; both refuse impossible values.

For the clients alone: the sandbox, on which they are tried, has its own in `micro`.
"""

from __future__ import annotations

import re
import time
from datetime import UTC, datetime
from decimal import ROUND_HALF_EVEN, Context, Decimal, InvalidOperation
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

Number = str | int | float
"""Amounts are strings by the exchanges' protocols; plain numbers are accepted too."""

MICRO = 1_000_000
MAX_AMOUNT = 10**18
"""Micro-units: 10¹² shares or dollars, more than exist, and well within a bigint."""

_EXACT = Context(prec=60, rounding=ROUND_HALF_EVEN)
_SHIFTS = (1_000_000, 100_000, 10_000, 1_000, 100, 10, 1)
_SIXTH = Decimal("0.000001")
_DECIMAL = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,4})?")

EARLIEST_MS = 1_577_836_800_000
"""2020-01-01: before the exchange existed."""
DAY_MS = 86_400_000


def micro(value: str | float | Decimal) -> int:
    """Convert to micro-units, rounded half to even; ValueError if not an amount: NaN, negative, absurdly large."""
    if type(value) is str:
        whole, _, fraction = value.partition(".")
        digits = whole + fraction
        if len(fraction) <= 6 and len(whole) <= 12 and digits.isdecimal() and digits.isascii():
            return int(digits) * _SHIFTS[len(fraction)]  # the common formats, without Decimal
        if len(value) <= 120 and _DECIMAL.fullmatch(value):
            return _of_decimal(Decimal(value))
        raise ValueError(f"not an amount: {value!r:.80}")
    if type(value) is int:
        if 0 <= value <= MAX_AMOUNT // MICRO:
            return value * MICRO
        raise ValueError(f"not an amount: {value}")
    if isinstance(value, float):
        # repr is the shortest decimal that is this float, so 0.1 + 0.2 rounds as the sender's decimal would.
        return _of_decimal(Decimal(repr(value)))
    if isinstance(value, Decimal):
        return _of_decimal(value)
    raise ValueError(f"not an amount: {value!r:.80}")


def _of_decimal(value: Decimal) -> int:
    if not value.is_finite() or value < 0 or value > MAX_AMOUNT // MICRO:
        raise ValueError(f"not an amount: {value!s:.80}")
    try:
        return int(value.quantize(_SIXTH, context=_EXACT).scaleb(6, context=_EXACT))
    except InvalidOperation:
        raise ValueError(f"not an amount: {value!s:.80}") from None


def price(value: str | float | Decimal) -> int:
    """Convert a price, which is a probability between 0 and 1."""
    amount = micro(value)
    if amount > MICRO:
        raise ValueError(f"not a price: {value!r:.80}")
    return amount


class Converted(dict[Number, int]):
    """Amounts by the text they were sent as, converted once; all are forgotten when there are too many.

    Looking a text up costs half of a call, so parsers of what comes most often do it by themselves.
    """

    def __init__(self, convert: Callable[[Number], int], most: int) -> None:
        self._convert = convert
        self._most = most

    def __missing__(self, value: Number) -> int:
        amount = self._convert(value)
        if len(self) >= self._most:
            self.clear()
        self[value] = amount
        return amount


def milliseconds(value: str | int) -> int:
    """Parse the exchange's timestamp in ms; ValueError before 2020 or more than a day ahead of our clock."""
    if type(value) is str and len(value) <= 16 and value.isdecimal() and value.isascii():
        instant_ms = int(value)
    elif type(value) is int:
        instant_ms = value
    else:
        raise ValueError(f"not milliseconds: {value!r:.80}")
    if EARLIEST_MS <= instant_ms <= time.time() * 1000 + DAY_MS:
        return instant_ms
    raise ValueError(f"not a time of this exchange: {value!r:.80}")


def of_seconds(value: str | float) -> datetime:
    """Parse a unix time in seconds as UTC; ValueError outside the same range."""
    try:
        seconds = float(value)
        instant_ms = int(seconds * 1000)
    except (ValueError, OverflowError):
        raise ValueError(f"not a time: {value!r:.80}") from None
    milliseconds(instant_ms)
    return datetime.fromtimestamp(seconds, UTC)


def instant(text: str | None) -> datetime | None:
    """Parse any of the exchange's date formats as UTC; None when missing or invalid.

    Seen: `2026-01-23T18:30:00Z`, `2026-01-22T00:01:27.770446Z`, `2026-01-23 20:56:36+00`, `2026-01-23` and
    `April 11, 2022`.
    """
    if not text:
        return None
    text = text.strip()
    try:
        parsed = datetime.fromisoformat(text) if text[:1].isdigit() else datetime.strptime(text, "%B %d, %Y")
        parsed = parsed.replace(tzinfo=UTC) if parsed.tzinfo is None else parsed.astimezone(UTC)
    except (ValueError, OverflowError):
        return None
    # Go's zero time, 0001-01-01, means "none" where an empty field is sent anyway.
    return parsed if parsed.year >= 1970 else None
