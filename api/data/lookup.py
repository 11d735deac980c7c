"""Finds the market of a request by its id, the exchange's numeric id, or slug."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cachetools import TTLCache

from api.errors import Problem
from config.exchanges import DEFAULT, EXCHANGES
from sql.queries import coverage
from sql.queries import markets as queries

if TYPE_CHECKING:
    from collections.abc import Callable

    from api.data.pool import Pool
    from api.data.replica import ReplicaReads

UNRECORDED_TTL_S = 30.0
CACHE_TTL_S = 30.0  # a slug may be reassigned to another market; a condition id never is
MAX_CACHED = 50_000
CONDITION = re.compile(r"0x[0-9a-fA-F]{64}\Z")


def normalized_id(given: str) -> str:
    """Return a market id as it is stored: condition ids in lower case."""
    return given.lower() if CONDITION.match(given) else given


@dataclass(frozen=True, slots=True)
class MarketRef:
    """The fields of a market that a request needs before it reads the market's data."""

    key: int
    market_id: str
    outcomes: list[str]
    token_ids: list[str]
    exchange: str = DEFAULT.name

    def outcome(self, given: str) -> int:
        """Return the index of an outcome given by index or name; raise a Problem if there is none."""
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

    def traded(self, outcome: int) -> tuple[int, bool]:
        """Return the outcome that an outcome's trades are listed as, and whether that is the other one."""
        is_other = outcome > 0 and EXCHANGES[self.exchange].has_complements
        return (0 if is_other else outcome), is_other

    def token(self, outcome: int) -> str:
        """Return the token id of an outcome, or an empty string."""
        return self.token_ids[outcome] if outcome < len(self.token_ids) else ""


class MarketLookup:
    """Market lookup with a cache of recently requested markets, one per process."""

    def __init__(self, pool: Pool | ReplicaReads, clock: Callable[[], float] = time.monotonic) -> None:
        self._pool = pool
        self._recorded = {DEFAULT.name}  # exchanges; one that was recorded once stays so
        self._unrecorded: TTLCache[str, bool, float] = TTLCache(MAX_CACHED, UNRECORDED_TTL_S, clock)
        self._known: TTLCache[str, MarketRef, float] = TTLCache(MAX_CACHED, CACHE_TTL_S, clock)

    def of(self, given: str) -> MarketRef:
        """Return the market; raise `not_found` if there is none."""
        try:
            return self._known[given]
        except KeyError:
            pass
        market = self._known[given] = self._find(normalized_id(given))
        return market

    def recorded(self, given: str) -> MarketRef:
        """Return the market; raise `not_found` if there is none, or if nothing of its exchange was ever recorded."""
        market = self.of(given)
        if market.exchange not in self._recorded:
            unknown = market.exchange not in self._unrecorded
            if unknown and self._pool.read(lambda conn: coverage.recorded_since(conn, exchange=market.exchange)):
                self._recorded.add(market.exchange)
            else:
                if unknown:
                    self._unrecorded[market.exchange] = True
                title = EXCHANGES[market.exchange].title
                raise Problem(
                    "not_found",
                    f"Prices, order books and trades of {title} are not recorded",
                    hint="GET /v1/markets/{id} has what the exchange lists",
                )
        return market

    def with_wallets(self, given: str) -> MarketRef:
        """Return the market; raise `not_found` if there is none, or if its exchange does not say who trades."""
        market = self.of(given)
        exchange = EXCHANGES[market.exchange]
        if not exchange.has_chain:
            raise Problem(
                "not_found",
                f"{exchange.title} does not say who holds or trades its markets",
                hint="GET /v1/markets/{id}/trades has its trades, without wallets",
            )
        return market

    def _find(self, text: str) -> MarketRef:
        found = None
        if 0 < len(text) <= 500 and "\0" not in text:
            found = self._pool.read(lambda conn: queries.found(conn, id=text))
        if found is None:
            raise Problem(
                "not_found",
                "The market does not exist",
                hint="Use a market_id, a slug or the exchange's numeric id; GET /v1/markets lists markets",
            )
        return MarketRef(*found)
