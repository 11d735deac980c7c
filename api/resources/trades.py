"""Trades of a market."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from api.errors import Problem
from api.resource import AboutOutcome, Reading
from api.resources import exchange
from api.resources.prices import newest
from sql.queries import trades as queries

if TYPE_CHECKING:
    from api.parameters import HistoryOf, TradesOf
    from api.parameters_lists import Recent

WINDOW = timedelta(days=1)
LATELY = timedelta(hours=1)  # what all markets' newest trades are first looked for in


def cost_of_rows(given: HistoryOf | TradesOf) -> int:
    """One credit for each started thousand."""
    return -(-given.limit // 1000)


def cost_of_trades(given: TradesOf) -> int:
    """Give the same; what is asked of the exchange costs 2 at least."""
    return max(cost_of_rows(given), 1 if given.source == "local" else 2)


class Trades(AboutOutcome):
    """Trades of an outcome, newest first."""

    def answer(self, given: TradesOf, **path: str) -> bytes:
        """Give the newest trades of the range."""
        if given.wallet is not None and given.source != "data-api":
            raise Problem(
                "invalid_parameter",
                "`wallet` needs `source=data-api`",
                hint="The exchange's own tape does not say who traded",
                errors=[{"name": "wallet", "detail": "needs source=data-api"}],
            )
        market, outcome = self.outcome(given, path)
        if given.source == "data-api":
            return exchange.traded(self.service.exchange, market, outcome, given)
        until = given.to or datetime.now(UTC) + timedelta(minutes=1)  # the exchange's clock may be ahead of ours
        return newest(
            lambda since: self.read(
                market_key=market.key,
                outcome=outcome,
                market_id=market.market_id,
                token_id=market.token(outcome),
                since=since,
                until=until,
                limit=given.limit,
            ),
            given.from_,
            until,
            WINDOW,
            given.limit,
        )


class RecentTrades(Reading):
    """The newest trades of all markets, or of one."""

    def answer(self, given: Recent, **path: str) -> bytes:
        """Give them."""
        until = datetime.now(UTC) + timedelta(minutes=1)
        if given.market_id is None:
            return newest(
                lambda since: self.read(since=since, until=until, limit=given.limit), None, until, LATELY, given.limit
            )
        key = self.service.markets.of(given.market_id).key
        return newest(
            lambda since: self.read(
                queries.recent_of_market, market_key=key, since=since, until=until, limit=given.limit
            ),
            None,
            until,
            WINDOW,
            given.limit,
        )
