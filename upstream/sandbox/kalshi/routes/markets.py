"""Markets: lists and single ones, live and historical."""

from __future__ import annotations

from typing import TYPE_CHECKING

from upstream.sandbox.common.answers import route
from upstream.sandbox.kalshi.routes.query import (
    Json,
    flag,
    invalid,
    limit_of,
    not_found,
    page,
    several,
    time_filters,
    within,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from starlette.datastructures import QueryParams
    from starlette.requests import Request
    from starlette.routing import Route

    from upstream.sandbox.kalshi.exchange.exchange import KalshiExchange
    from upstream.sandbox.kalshi.exchange.listings import KalshiMarket

MAX_MARKETS = 1_000
STATUSES = {
    "unopened": ("initialized",),
    "open": ("active",),
    "paused": ("inactive",),
    "closed": ("closed", "determined", "disputed", "amended"),
    "settled": ("finalized",),
}
TIMES: dict[str, tuple[Callable[[KalshiMarket], int], tuple[str, ...]]] = {
    "created": (lambda market: market.created_ms, ("", "unopened", "open")),
    "close": (lambda market: market.close_ms, ("", "closed")),
    "settled": (lambda market: market.settled_ms, ("", "settled")),
    "updated": (lambda market: market.updated_ms, ("",)),
}
"""The moment that a time filter is about, and the status filters that it goes with."""


class MarketRoutes:
    """Endpoints of markets."""

    def __init__(self, exchange: KalshiExchange) -> None:
        self._exchange = exchange

    def routes(self) -> list[Route]:
        """Return the routes."""
        return [
            route("/markets", self.listed),
            route("/markets/{ticker}", self.one),
            route("/historical/markets", self.historical),
            route("/historical/markets/{ticker}", self.historical_one),
        ]

    def find(self, ticker: str, *, historical: bool = False) -> KalshiMarket:
        """Return a market that REST knows on one side of the cutoff."""
        market = self._exchange.markets.get(ticker)
        if market is None or not self.is_shown(market, historical=historical):
            raise not_found()
        return market

    def is_shown(self, market: KalshiMarket, *, historical: bool = False) -> bool:
        """Return whether REST knows a market on one side of the cutoff."""
        exchange = self._exchange
        is_old = 0 < market.settled_ms < exchange.cutoff_ms
        return market.listed_ms <= exchange.now_ms and is_old == historical

    def one(self, request: Request) -> Json:
        """Return a market."""
        return {"market": self.find(request.path_params["ticker"]).json()}

    def historical_one(self, request: Request) -> Json:
        """Return a market settled before the cutoff."""
        return {"market": self.find(request.path_params["ticker"], historical=True).json()}

    def listed(self, request: Request) -> Json:
        """Return a page of markets."""
        query = request.query_params
        return self._page(request, market_filter(query), historical=False)

    def historical(self, request: Request) -> Json:
        """Return a page of markets settled before the cutoff; one filter at most."""
        query = request.query_params
        if sum(bool(query.get(name)) for name in ("tickers", "event_ticker", "series_ticker")) > 1:
            raise invalid("filters exclude each other")
        return self._page(request, market_filter(query), historical=True)

    def _page(self, request: Request, wanted: Callable[[KalshiMarket], bool], *, historical: bool) -> Json:
        query = request.query_params
        found, cursor = page(
            request,
            self._candidates(query),
            limit_of(query, 100, MAX_MARKETS),
            lambda market: self.is_shown(market, historical=historical) and wanted(market),
        )
        return {"markets": [market.json() for market in found], "cursor": cursor}

    def _candidates(self, query: QueryParams) -> Iterable[KalshiMarket]:
        """Return the markets that may be found, newest first."""
        exchange = self._exchange
        if tickers := several(query, "tickers"):
            named = {ticker: exchange.markets[ticker] for ticker in tickers if ticker in exchange.markets}
            return sorted(named.values(), key=lambda market: -market.number)
        if event_ticker := query.get("event_ticker"):
            event = exchange.events.get(event_ticker)
            return [] if event is None else sorted(event.markets, key=lambda market: -market.number)
        return reversed(exchange.markets.values())


def market_filter(query: QueryParams) -> Callable[[KalshiMarket], bool]:
    """Return the predicate that a query describes; refused if its filters exclude each other."""
    status = query.get("status", "")
    if status not in ("", *STATUSES):
        raise invalid("invalid status filter", f"status is one of {', '.join(STATUSES)}")
    times = time_filters(query)
    if len(times) > 1:
        raise invalid("timestamp filters are mutually exclusive")
    for name in times:
        if status not in TIMES[name][1]:
            raise invalid("timestamp filter does not go with the status filter", f"{name} and {status}")
    combos, event = query.get("mve_filter", ""), query.get("event_ticker", "")
    if combos not in ("", "only", "exclude"):
        raise invalid("invalid mve_filter")
    if "updated" in times and (combos == "only" or event or query.get("tickers")):
        raise invalid("min_updated_ts goes with mve_filter=exclude and series_ticker alone")
    series = query.get("series_ticker", "")
    statuses = STATUSES.get(status)

    def wanted(market: KalshiMarket) -> bool:
        return (
            (statuses is None or market.status in statuses)
            and (not combos or market.combo == (combos == "only"))
            and (not event or market.event.ticker == event)
            and (not series or market.event.series.ticker == series)
            and all(within(TIMES[name][0](market), bounds) for name, bounds in times.items())
        )

    return wanted


def nested(query: QueryParams) -> bool:
    """Return whether markets are wanted inside events."""
    return flag(query, "with_nested_markets")
