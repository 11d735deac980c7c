"""Number, price and time formatting for pages; `static/words.js` formats identically in the browser."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Any

NOTHING = "–"  # noqa: RUF001 (a dash is meant)
STEPS = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))


def cents(price: float | None) -> str:
    """Format a price, a probability from 0 to 1, as cents of a dollar."""
    return NOTHING if price is None else f"{price * 100:.1f}¢"


def percent(share: float | None, *, sign: bool = False) -> str:
    """Format a percentage."""
    if share is None:
        return NOTHING
    return f"{share:+.1f} %" if sign else f"{share:.1f} %"


def chance(price: float | None) -> str:
    """Format a price as a probability in percent."""
    if price is None:
        return NOTHING
    return "<1 %" if 0 < price < 0.01 else ">99 %" if 0.99 < price < 1 else f"{int(price * 100 + 0.5)} %"


def usd(amount: float | None, *, sign: bool = False) -> str:
    """Format US dollars; large sums are abbreviated."""
    if amount is None:
        return NOTHING
    size = abs(amount)
    before = "-" if amount < 0 else "+" if sign and amount > 0 else ""
    for unit, letter in ((1e9, "B"), (1e6, "M"), (1e4, "k")):
        if size >= unit:
            return f"{before}${size / (1000 if letter == 'k' else unit):,.{0 if letter == 'k' else 2}f}{letter}"
    return f"{before}${size:,.2f}"


def number(value: float | None, digits: int = 0) -> str:
    """Format a number with thousands separators."""
    return NOTHING if value is None else f"{value:,.{digits}f}"


def duration(seconds: float | None) -> str:
    """Format a duration in seconds by its largest unit."""
    if seconds is None:
        return NOTHING
    if 0 < seconds < 1:
        return "<1 s"
    for size, unit in STEPS:
        if seconds >= size:
            return f"{seconds // size:.0f} {unit}"
    return "0 s"


def moment(value: float | None) -> datetime | None:
    """Return the UTC datetime of Unix seconds or milliseconds."""
    return None if value is None else datetime.fromtimestamp(value / 1000 if value > 1e11 else value, UTC)


def instant(value: float | None) -> str:
    """Format a timestamp to the second."""
    at = moment(value)
    return NOTHING if at is None else f"{at:%Y-%m-%d %H:%M:%S} UTC"


def day(value: float | None) -> str:
    """Format a timestamp's day."""
    at = moment(value)
    return NOTHING if at is None else f"{at:%d %b %Y}"


def iso(value: float | None) -> str:
    """Format a timestamp as ISO 8601 with milliseconds."""
    at = moment(value)
    return "" if at is None else at.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def ago(value: float | None) -> str:
    """Format a timestamp relative to now, past or future."""
    at = moment(value)
    if at is None:
        return NOTHING
    passed = time.time() - at.timestamp()
    return f"{duration(passed)} ago" if passed >= 0 else f"in {duration(-passed)}"


def short(address: str | None) -> str:
    """Abbreviate an address or a hash to its ends."""
    if not address:
        return NOTHING
    return address if len(address) <= 13 else f"{address[:6]}…{address[-4:]}"


def cell(text: Any) -> str:
    """Escape external text for Markdown, including table cells."""
    plain = " ".join(str(text).split())
    for mark in "\\`*_[]<>|#":
        plain = plain.replace(mark, f"\\{mark}")
    return plain


FILTERS = {
    each.__name__: each for each in (cents, percent, chance, usd, number, duration, instant, day, iso, ago, short, cell)
}
