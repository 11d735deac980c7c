"""Trades and candles, live and historical."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from upstream.sandbox.common.answers import route
from upstream.sandbox.kalshi.exchange.candles import candle
from upstream.sandbox.kalshi.routes.query import (
    Json,
    flag,
    invalid,
    limit_of,
    needed,
    not_found,
    page,
    several,
    whole,
    within,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from starlette.datastructures import QueryParams
    from starlette.requests import Request
    from starlette.routing import Route

    from upstream.sandbox.kalshi.exchange.entries import KalshiTrade
    from upstream.sandbox.kalshi.exchange.exchange import KalshiExchange
    from upstream.sandbox.kalshi.exchange.listings import KalshiMarket
    from upstream.sandbox.kalshi.routes.markets import MarketRoutes

MAX_PAGE = 1_000
PERIODS = (1, 60, 1440)
MAX_CANDLES, MAX_CANDLE_MARKETS = 10_000, 100


class Asked(NamedTuple):
    """The candles that a query asks for; `before`: also the last one before the start."""

    start_s: int
    end_s: int
    minutes: int
    before: bool

    @classmethod
    def of(cls, query: QueryParams) -> Asked:
        """Return what a query asks for."""
        start_s, end_s, minutes = (needed(query, name) for name in ("start_ts", "end_ts", "period_interval"))
        if minutes not in PERIODS:
            raise invalid("invalid period_interval", "period_interval is 1, 60 or 1440")
        if end_s < start_s:
            raise invalid("end_ts is before start_ts")
        return cls(start_s, end_s, minutes, flag(query, "include_latest_before_start"))


class TradeRoutes:
    """Endpoints of trades and candles."""

    def __init__(self, exchange: KalshiExchange, markets: MarketRoutes) -> None:
        self._exchange = exchange
        self._markets = markets

    def routes(self) -> list[Route]:
        """Return the routes."""
        return [
            route("/markets/trades", lambda request: self._page(request, historical=False)),
            route("/historical/trades", lambda request: self._page(request, historical=True)),
            route("/series/{series}/markets/{ticker}/candlesticks", self.candles),
            route("/series/{series}/events/{ticker}/candlesticks", self.event_candles),
            route("/markets/candlesticks", self.many_candles),
            route("/historical/markets/{ticker}/candlesticks", self.historical_candles),
        ]

    def _page(self, request: Request, *, historical: bool) -> Json:
        query = request.query_params
        times = whole(query, "min_ts"), whole(query, "max_ts")
        blocks = flag(query, "is_block_trade") if query.get("is_block_trade") else None
        ticker = query.get("ticker")
        trades: Iterable[KalshiTrade] = self._exchange.trades.newest_first([ticker] if ticker else None)
        cutoff_ms = self._exchange.cutoff_ms

        def wanted(trade: KalshiTrade) -> bool:
            return (
                (trade.ts_ms < cutoff_ms) == historical
                and within(trade.ts_ms, times)
                and (blocks is None or trade.block == blocks)
            )

        found, cursor = page(request, trades, limit_of(query, 100, MAX_PAGE), wanted)
        return {"trades": [trade.rest() for trade in found], "cursor": cursor}

    # --- Candles ---

    def candles(self, request: Request) -> Json:
        """Return a market's candles."""
        market = self._markets.find(request.path_params["ticker"])
        if market.event.series.ticker != request.path_params["series"]:
            raise not_found()
        return {"ticker": market.ticker, "candlesticks": self._candles(market, Asked.of(request.query_params))}

    def historical_candles(self, request: Request) -> Json:
        """Return candles of a market settled before the cutoff, whose fields have shorter names."""
        market = self._markets.find(request.path_params["ticker"], historical=True)
        return {"ticker": market.ticker, "candlesticks": self._candles(market, Asked.of(request.query_params), "", "")}

    def event_candles(self, request: Request) -> Json:
        """Return the candles of an event's markets."""
        event = self._exchange.events.get(request.path_params["ticker"])
        if event is None or event.series.ticker != request.path_params["series"]:
            raise not_found()
        asked = Asked.of(request.query_params)
        markets = [market for market in event.markets if self._markets.is_shown(market)]
        return {
            "market_tickers": [market.ticker for market in markets],
            "market_candlesticks": [self._candles(market, asked) for market in markets],
            "adjusted_end_ts": asked.end_s,
        }

    def many_candles(self, request: Request) -> Json:
        """Return candles of up to 100 markets, 10,000 at most."""
        query = request.query_params
        tickers = several(query, "market_tickers")
        if not 1 <= len(tickers) <= MAX_CANDLE_MARKETS:
            raise invalid("invalid market_tickers", f"1 to {MAX_CANDLE_MARKETS} tickers")
        listed = [self._exchange.markets[ticker] for ticker in tickers if ticker in self._exchange.markets]
        markets = [market for market in listed if self._markets.is_shown(market)]
        asked = Asked.of(query)
        found = [(market, self._candles(market, asked)) for market in markets]
        if sum(len(candles) for _, candles in found) > MAX_CANDLES:
            raise invalid("too many candlesticks", f"at most {MAX_CANDLES}")
        return {"markets": [{"market_ticker": market.ticker, "candlesticks": candles} for market, candles in found]}

    def _candles(self, market: KalshiMarket, asked: Asked, suffix: str = "_dollars", counts: str = "_fp") -> list[Json]:
        bars = market.candles.periods(
            asked.minutes, asked.start_s, asked.end_s, self._exchange.now_ms, before=asked.before
        )
        return [candle(bar, asked.minutes, suffix, counts) for bar in bars]
