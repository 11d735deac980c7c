"""Credits that endpoints of several topics share. What a single endpoint costs is in its topic's routes."""

from __future__ import annotations

from typing import Protocol

PAST_COST = 5
"""Of a past order book, of a page of them, and of a replay: each reads stored book events."""


class Limited(Protocol):
    """Parameters with a limit."""

    @property
    def limit(self) -> int:
        """Return the maximum number of rows in the response."""


def cost_of_rows(given: Limited) -> int:
    """Return one credit for each started thousand rows."""
    return -(-given.limit // 1000)
