"""Instants at which tests run: after midnight, around full hours, at noon, and at ends of days, months and years."""

from __future__ import annotations

import datetime as dt

HOURS = ("00:05", "00:55", "01:40", "12:00", "23:58")
DAY = dt.timedelta(days=1)


def moments(today: dt.date) -> dict[str, dt.datetime]:
    """Return the instants by name: hours of today, and the last minutes of three days that end a month or year.

    None is on a day that is over: recordings in the tests would be of the future, which is refused.
    """
    found = {f"today {hour}": _at(today, hour) for hour in HOURS}
    february = today.replace(month=2, day=28)
    if february < today:
        february = february.replace(year=today.year + 1)
    year = today.replace(month=12, day=31)
    month = (today.replace(day=1) + 31 * DAY).replace(day=1) - DAY
    if month == year:  # of December: another month's last day, one of thirty
        month = today.replace(year=today.year + 1, month=4, day=30)
    return found | {f"{day} 23:58": _at(day, "23:58") for day in (february, month, year)}


def _at(day: dt.date, hour: str) -> dt.datetime:
    return dt.datetime.combine(day, dt.time.fromisoformat(hour), dt.UTC)
