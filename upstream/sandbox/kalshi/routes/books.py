"""Books over REST: bids of both sides, worst first, up to 15 seconds old, without number and time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from upstream.sandbox.common.answers import answer, route
from upstream.sandbox.common.book import BUY, SELL
from upstream.sandbox.kalshi.formats import contracts, dollars
from upstream.sandbox.kalshi.routes.query import Json, invalid, whole
from upstream.transport.micro import ONE

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import Route

    from upstream.sandbox.kalshi.exchange.exchange import KalshiExchange
    from upstream.sandbox.kalshi.exchange.listings import KalshiMarket
    from upstream.sandbox.kalshi.routes.markets import MarketRoutes

CACHED_MS = 15_000  # by the exchange's CDN
CACHE = {"cache-control": "public, max-age=15"}
MAX_CACHED = 1_000
MAX_DEPTH, MAX_TICKERS = 100, 100


class BookRoutes:
    """Endpoints of books, with the cache of the CDN before them."""

    def __init__(self, exchange: KalshiExchange, markets: MarketRoutes) -> None:
        self._exchange = exchange
        self._markets = markets
        self._cached: dict[str, tuple[int, Response]] = {}

    def routes(self) -> list[Route]:
        """Return the routes."""
        return [
            route("/markets/orderbooks", lambda request: self._cache(request, self._many(request))),
            route("/markets/{ticker}/orderbook", lambda request: self._cache(request, self._one(request))),
        ]

    def _cache(self, request: Request, fresh: Json) -> Response:
        key, now_ms = str(request.url), self._exchange.now_ms
        cached = self._cached.get(key)
        if cached is not None and now_ms - cached[0] < CACHED_MS:
            return cached[1]
        if len(self._cached) >= MAX_CACHED:
            self._cached.clear()
        response = answer(fresh, 200, CACHE)
        self._cached[key] = now_ms, response
        return response

    def _one(self, request: Request) -> Json:
        depth = whole(request.query_params, "depth", 0) or 0
        if not 0 <= depth <= MAX_DEPTH:
            raise invalid("invalid depth", f"depth is 0 to {MAX_DEPTH}")
        return {"orderbook_fp": book(self._markets.find(request.path_params["ticker"]), depth)}

    def _many(self, request: Request) -> Json:
        """Return a book for each repeated `tickers`: a list with commas is one ticker, of a market without orders."""
        tickers = request.query_params.getlist("tickers")
        if not 1 <= len(tickers) <= MAX_TICKERS:
            raise invalid("invalid tickers", f"1 to {MAX_TICKERS} tickers")
        markets = self._exchange.markets
        return {
            "orderbooks": [
                {"ticker": ticker, "orderbook_fp": book(markets.get(ticker), 0)} for ticker in dict.fromkeys(tickers)
            ]
        }


def book(market: KalshiMarket | None, depth: int) -> Json:
    """Return the bids of both sides, at most `depth` of each, 0 for all."""
    if market is None:
        return {"yes_dollars": [], "no_dollars": []}
    yes, no = market.book.side(BUY), market.book.side(SELL)
    bids = [[dollars(price), contracts(size)] for price, size in zip(*yes, strict=True)]
    others = [[dollars(ONE - price), contracts(size)] for price, size in zip(*no, strict=True)][::-1]
    return {"yes_dollars": bids[-depth:], "no_dollars": others[-depth:]}
