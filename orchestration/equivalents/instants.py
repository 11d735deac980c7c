"""Dates, times of day with their zone, and deadlines, read from words; None where anything is unsure."""

from __future__ import annotations

from calendar import monthrange
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

if TYPE_CHECKING:
    from collections.abc import Sequence

NEW_YORK = ZoneInfo("America/New_York")
MONTHS = {
    name: number
    for number, names in enumerate(
        (
            "january jan",
            "february feb",
            "march mar",
            "april apr",
            "may",
            "june jun",
            "july jul",
            "august aug",
            "september sep sept",
            "october oct",
            "november nov",
            "december dec",
        ),
        1,
    )
    for name in names.split()
}
ZONES: dict[str, str] = {
    "et": "America/New_York",
    "est": "EST",
    "edt": "-4",
    "pt": "America/Los_Angeles",
    "ct": "America/Chicago",
    "utc": "UTC",
    "gmt": "UTC",
}
FIRST_YEAR, LAST_YEAR = 2015, 2100


def year(word: str) -> int | None:
    """Return a year written in four digits."""
    if len(word) == 4 and word.isascii() and word.isdigit() and FIRST_YEAR <= int(word) <= LAST_YEAR:
        return int(word)
    return None


def day(words: Sequence[str], default_year: int | None = None) -> date | None:
    """Return the date of `January 5 2026` or `5 January 2026`; without a year, that of the default."""
    if not 2 <= len(words) <= 3:
        return None
    first, second = words[0], words[1]
    if first not in MONTHS:
        first, second = second, first
    if first not in MONTHS:
        return None
    number = second.removesuffix("st").removesuffix("nd").removesuffix("rd").removesuffix("th")
    at = year(words[2]) if len(words) == 3 else default_year
    if at is None or not (number.isascii() and number.isdigit() and len(number) <= 2):
        return None
    if not 1 <= int(number) <= monthrange(at, MONTHS[first])[1]:
        return None
    return date(at, MONTHS[first], int(number))


def clock(words: Sequence[str]) -> tuple[int, int] | None:
    """Return hour and minute of `11:59 pm`, `11:59pm`, `noon` or `4 pm`."""
    if list(words) == ["noon"]:
        return 12, 0
    joined = "".join(words).replace(".", "")
    half, digits = joined[-2:], joined[:-2]
    if half not in {"am", "pm"} or not 1 <= len(digits) <= 8:
        return None
    parts = digits.split(":")
    if not 1 <= len(parts) <= 3 or not all(p.isascii() and p.isdigit() and len(p) <= 2 for p in parts):
        return None
    hour, minute = int(parts[0]), int(parts[1]) if len(parts) > 1 else 0
    if not 1 <= hour <= 12 or minute > 59:
        return None
    return hour % 12 + (12 if half == "pm" else 0), minute


def moment(words: Sequence[str], default_year: int | None = None) -> datetime | None:
    """Return the instant of `May 15 2026 5 pm et` or `5 pm edt on May 15 2026`; a zone must be stated."""
    words = [w for w in words if w not in {"on", "at", "the", "time", "zone", "in", "timezone"}]
    if len(words) < 4:
        return None
    for split in range(1, len(words)):
        for left, right in ((words[:split], words[split:]), (words[split:], words[:split])):
            at = day(left, default_year)
            if at is None or right[-1] not in ZONES:
                continue
            time = clock(right[:-1])
            if time is not None:
                return _zoned(at, time, right[-1])
    return None


def _zoned(at: date, time: tuple[int, int], zone: str) -> datetime:
    name = ZONES[zone]
    local = datetime(at.year, at.month, at.day, *time)
    if name == "EST":
        return local.replace(tzinfo=UTC) + timedelta(hours=5)
    if name == "-4":
        return local.replace(tzinfo=UTC) + timedelta(hours=4)
    return local.replace(tzinfo=ZoneInfo(name)).astimezone(UTC)


def end_of(words: Sequence[str]) -> datetime | None:
    """Return the first instant after `December 31 2025 11:59 pm et`: the minute that is named still counts."""
    words = [w.replace("11:59:59", "11:59") for w in words]
    at = moment(words)
    return None if at is None else at + timedelta(minutes=1)


def start_of_day(at: date) -> datetime:
    """Return the first instant of a day in New York, the zone of both exchanges' days."""
    return datetime(at.year, at.month, at.day, tzinfo=NEW_YORK).astimezone(UTC)
