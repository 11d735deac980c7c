"""What a request costs, and whether its key can pay."""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from sql.queries import keys as queries

if TYPE_CHECKING:
    from api.keys import Key
    from api.pool import Pool

SEEN_S = 5.0  # how old the count of used credits in a header may be


@dataclass(slots=True)
class Grant:
    """Leave to answer one request: what it costs, and how the key's month stands with it."""

    key: Key
    cost: int
    used: int
    charged: bool = True

    def headers(self) -> dict[str, str]:
        """Say so to the client."""
        limit = self.key.credits_month
        shown = {
            "X-Credits-Limit": "unlimited" if limit is None else str(limit),
            "X-Credits-Remaining": "unlimited" if limit is None else str(max(0, limit - self.used)),
            "X-Credits-Used": str(self.used),
            "X-Credits-Reset": str(month_end()),
            "X-Request-Cost": str(self.cost if self.charged else 0),
        }
        if (burst := self.key.credits_burst) is not None:
            shown["RateLimit-Policy"] = f'"burst";q={burst};w=1'
        return shown


class Meter:
    """Counts credits. It does not yet refuse: it tells what the month's account says."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._seen: dict[int, tuple[float, int]] = {}

    def admit(self, key: Key, cost: int) -> Grant:
        """Take a request's cost from its key."""
        return Grant(key, cost, self._used(key))

    def refund(self, grant: Grant) -> None:
        """Give the cost back: the request failed, or there was nothing new to tell."""
        grant.charged = False

    def _used(self, key: Key) -> int:
        now = time.monotonic()
        seen = self._seen.get(key.key_id)
        if seen is None or seen[0] <= now:
            used = self._pool.read(lambda conn: queries.used(conn, key_id=key.key_id)) or 0
            if len(self._seen) > 10_000:
                self._seen.clear()
            self._seen[key.key_id] = seen = (now + SEEN_S, used)
        return seen[1]


_month: tuple[float, int] = (0.0, 0)


def month_end() -> int:
    """Give the first instant of the next month, UTC, in Unix seconds."""
    global _month  # noqa: PLW0603 (asked for by every answer)
    now = time.time()
    if now >= _month[1]:
        today = datetime.fromtimestamp(now, UTC)
        year, month = divmod(today.year * 12 + today.month, 12)
        _month = (now, int(datetime(year, month + 1, 1, tzinfo=UTC).timestamp()))
    return _month[1]


def nothing() -> dict[str, str]:
    """Give the headers of an answer that no key paid for."""
    return {
        "X-Credits-Limit": "0",
        "X-Credits-Remaining": "0",
        "X-Credits-Used": "0",
        "X-Credits-Reset": str(month_end()),
        "X-Request-Cost": "0",
    }
