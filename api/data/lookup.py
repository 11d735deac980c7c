"""Which market a request is about: by condition id, by the exchange's number, or by slug."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from api.errors import Problem
from sql.queries import markets as queries

if TYPE_CHECKING:
    from api.data.pool import Pool

KNOWN_S = 30.0  # a slug may come to mean another market; what a condition id means never changes
MOST = 50_000
CONDITION = re.compile(r"0x[0-9a-fA-F]{64}\Z")


def spelt(given: str) -> str:
    """Give the name of a market as it is stored: condition ids are in lower case."""
    return given.lower() if CONDITION.match(given) else given


@dataclass(frozen=True, slots=True)
class Market:
    """What a request needs to know of a market before it asks for its data."""

    key: int
    market_id: str
    outcomes: list[str]
    token_ids: list[str]

    def outcome(self, given: str) -> int:
        """Give the index of an outcome said by index or name."""
        if given.isascii() and given.isdigit() and len(given) < 4 and int(given) < len(self.outcomes):
            return int(given)
        for index, name in enumerate(self.outcomes):
            if name.casefold() == given.casefold():
                return index
        allowed = ", ".join(f"{index} ({name})" for index, name in enumerate(self.outcomes))
        raise Problem(
            "invalid_parameter",
            "`outcome`: the market has no such outcome",
            hint=f"Allowed: {allowed}",
            errors=[{"name": "outcome", "detail": "no such outcome", "allowed": allowed}],
        )

    def token(self, outcome: int) -> str:
        """Give the token of an outcome."""
        return self.token_ids[outcome] if outcome < len(self.token_ids) else ""


class Markets:
    """The markets that this process was asked for lately."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._known: dict[str, tuple[float, Market]] = {}

    def of(self, given: str) -> Market:
        """Give the market, or refuse."""
        now = time.monotonic()
        known = self._known.get(given)
        if known is not None and known[0] > now:
            return known[1]
        text = spelt(given)
        found = None
        if 0 < len(text) <= 500 and "\0" not in text:
            found = self._pool.read(lambda conn: queries.found(conn, id=text))
        if found is None:
            raise Problem(
                "not_found",
                "There is no such market",
                hint="Name it by market_id, slug or the exchange's numeric id; GET /v1/markets lists them",
            )
        if len(self._known) >= MOST:
            self._known.clear()
        market = Market(*found)
        self._known[given] = (now + KNOWN_S, market)
        return market
