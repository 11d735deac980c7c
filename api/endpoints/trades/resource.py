"""Trades of a market."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from api.endpoints.base.resource import Reading
from api.endpoints.exchange import resource as exchange
from api.endpoints.prices.resource import cost_of_rows, newest
from api.errors import Problem, invalid
from api.schemas.requests import ALL
from sql.queries import trades as queries

if TYPE_CHECKING:
    from api.data.lookup import Market
    from api.endpoints.trades.requests import Recent
    from api.schemas.requests import TradesOf

WINDOW = timedelta(days=1)
LATELY = timedelta(hours=1)  # what all markets' newest trades are first looked for in


def cost_of_trades(given: TradesOf) -> int:
    """Give the same; what is asked of the exchange costs 2 at least."""
    return max(cost_of_rows(given), 1 if given.source == "local" else 2)


def asked_for(market: Market, outcome: str) -> int | None:
    """Give the index of an outcome said by index or name; None for all of them."""
    return None if outcome.casefold() == ALL else market.outcome(outcome)


class Trades(Reading):
    """Trades of an outcome or of all, newest first."""

    def answer(self, given: TradesOf, **path: str) -> bytes:
        """Give the newest trades of the range."""
        if given.wallet is not None and given.source != "data-api":
            raise Problem(
                "invalid_parameter",
                "`wallet` needs `source=data-api`",
                hint="The exchange's own tape does not say who traded",
                errors=[{"name": "wallet", "detail": "needs source=data-api"}],
            )
        market = self.service.markets.of(path["id"])
        outcome = asked_for(market, given.outcome or ("0" if given.wallet is None else ALL))
        if given.source == "data-api":
            return exchange.traded(self.service.exchange, market, outcome, given)
        until = given.to or datetime.now(UTC) + timedelta(minutes=1)  # the exchange's clock may be ahead of ours

        def excerpt(since: datetime) -> tuple[str, int]:
            stretch: dict[str, Any] = {"market_key": market.key, "since": since, "until": until, "limit": given.limit}
            if outcome is None:
                found: tuple[str, int] = self.read(queries.of_market, **stretch)
            else:
                token_id = market.token(outcome)
                found = self.read(outcome=outcome, market_id=market.market_id, token_id=token_id, **stretch)
            return found

        return newest(excerpt, given.from_, until, WINDOW, given.limit)


class RecentTrades(Reading):
    """The newest trades of all markets, or of one."""

    def answer(self, given: Recent, **path: str) -> bytes:
        """Give them."""
        until = datetime.now(UTC) + timedelta(minutes=1)
        if given.market_id is None:
            if given.outcome.casefold() != ALL:
                raise invalid("outcome", "needs `market_id`", f"`{ALL}`, or an outcome of the market named")
            return newest(
                lambda since: self.read(since=since, until=until, limit=given.limit), None, until, LATELY, given.limit
            )
        market = self.service.markets.of(given.market_id)
        of = {"market_key": market.key, "outcome": asked_for(market, given.outcome)}
        return newest(
            lambda since: self.read(queries.recent_of_market, since=since, until=until, limit=given.limit, **of),
            None,
            until,
            WINDOW,
            given.limit,
        )
