"""Calendar months, the accounting period of credits."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import NamedTuple


class Month(NamedTuple):
    """A calendar month, UTC."""

    number: int  # months since year 0
    first: int  # its first second
    end: int  # the next month's first second

    @classmethod
    def of(cls, now: float) -> Month:
        """Return the month of a moment in Unix seconds."""
        today = datetime.fromtimestamp(now, UTC)
        number = today.year * 12 + today.month - 1
        first, end = (datetime(each // 12, each % 12 + 1, 1, tzinfo=UTC) for each in (number, number + 1))
        return cls(number, int(first.timestamp()), int(end.timestamp()))


def unpaid(month: Month) -> dict[str, str]:
    """Return the credit headers of a response without a key, with lower-case names."""
    return {
        "x-credits-limit": "0",
        "x-credits-remaining": "0",
        "x-credits-used": "0",
        "x-credits-reset": str(month.end),
        "x-request-cost": "0",
    }
