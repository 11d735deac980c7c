"""Months, for which credits are given."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import NamedTuple


class Month(NamedTuple):
    """A calendar month, UTC."""

    number: int  # months since year 0
    first: int  # second of it
    end: int  # the next one's first second

    @classmethod
    def of(cls, now: float) -> Month:
        """Give the month of a moment."""
        today = datetime.fromtimestamp(now, UTC)
        number = today.year * 12 + today.month - 1
        first, end = (datetime(each // 12, each % 12 + 1, 1, tzinfo=UTC) for each in (number, number + 1))
        return cls(number, int(first.timestamp()), int(end.timestamp()))


def unpaid(month: Month) -> dict[str, str]:
    """Give the headers of an answer that no key paid for, names in lower case."""
    return {
        "x-credits-limit": "0",
        "x-credits-remaining": "0",
        "x-credits-used": "0",
        "x-credits-reset": str(month.end),
        "x-request-cost": "0",
    }
