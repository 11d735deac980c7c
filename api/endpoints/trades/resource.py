"""Resources of trades."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from api.endpoints.base.credits import cost_of_rows
from api.endpoints.base.resource import ReadResource
from api.endpoints.prices.resource import newest
from api.endpoints.trades import from_exchange as exchange
from api.endpoints.trades.requests import ALL
from api.errors import Problem, invalid
from api.schemas.requests import EARLIEST
from config.exchanges import DEFAULT
from sql.queries import coverage
from sql.queries import trades as queries

if TYPE_CHECKING:
    from api.data.lookup import MarketRef
    from api.endpoints.trades.requests import RecentTradeParameters, TradeParameters

WINDOW = timedelta(days=1)
LATELY = timedelta(hours=1)  # the first window in which the newest trades of all markets are searched


def cost_of_trades(given: TradeParameters) -> int:
    """Return the credits by rows; at least 2 if requested from the exchange."""
    return max(cost_of_rows(given), 1 if given.source == "local" else 2)


def asked_for(market: MarketRef, outcome: str) -> int | None:
    """Return the index of an outcome given by index or name; None for all."""
    return None if outcome.casefold() == ALL else market.outcome(outcome)


class Trades(ReadResource):
    """Trades of an outcome or of all, newest first."""

    def answer(self, given: TradeParameters, **path: str) -> bytes:
        """Return the newest trades of the range."""
        if given.wallet is not None and given.source != "data-api":
            raise Problem(
                "invalid_parameter",
                "`wallet` needs `source=data-api`",
                hint="The exchange's trade feed does not include wallets",
                errors=[{"name": "wallet", "detail": "needs source=data-api"}],
            )
        find = self.service.markets.with_wallets if given.source == "data-api" else self.service.markets.recorded
        market = find(path["id"])
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

        def past(since: datetime) -> tuple[str, int] | None:
            query, of = queries.of_market, dict[str, Any]()
            if outcome is not None:
                query, of = queries.of_outcome, {"market_id": market.market_id, "token_id": market.token(outcome)}
            stretch: dict[str, Any] = {"since": since, "until": until, "limit": given.limit, "most": given.limit}
            return self.service.expired_trades.newest(query, market, outcome, **stretch, **of)

        return newest(excerpt, given.from_, until, WINDOW, given.limit, past)


class RecentTrades(ReadResource):
    """The newest trades of all markets, or of one."""

    def _recorded(self, exchange: str, until: datetime) -> tuple[datetime, datetime] | None:
        """Return from when on, and until when, to look for an exchange's trades; None: there are none.

        Polymarket's are everywhere. Another's may be few beside them, and long ago.
        """
        if exchange == DEFAULT.name:
            return EARLIEST, until
        since, ended = self.read(coverage.recorded_span, exchange=exchange)
        return None if since is None else (since, min(until, ended + timedelta(minutes=1) if ended else until))

    def answer(self, given: RecentTradeParameters, **path: str) -> bytes:
        """Return the trades."""
        until = datetime.now(UTC) + timedelta(minutes=1)
        if given.market_id is None:
            if given.outcome.casefold() != ALL:
                raise invalid("outcome", "needs `market_id`", f"`{ALL}`, or an outcome of the given market")
            recorded = self._recorded(given.exchange, until)
            if recorded is None:
                return b"[]"
            began, last = recorded
            return newest(
                lambda since: self.read(exchange=given.exchange, since=since, until=last, limit=given.limit),
                None,
                last,
                LATELY,
                given.limit,
                began=began,
            )
        market = self.service.markets.recorded(given.market_id)
        outcome = asked_for(market, given.outcome)
        asked: dict[str, Any] = {"until": until, "limit": given.limit}
        query, past = queries.recent_of_market, self.service.expired_trades
        return newest(
            lambda since: self.read(query, market_key=market.key, outcome=outcome, since=since, **asked),
            None,
            until,
            WINDOW,
            given.limit,
            lambda since: past.newest(query, market, outcome, since=since, most=given.limit, **asked),
        )
