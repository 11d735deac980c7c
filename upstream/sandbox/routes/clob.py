"""The order book API: books, prices, market pages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
from starlette.responses import PlainTextResponse

from upstream.sandbox.common.answers import RefusedError, route
from upstream.sandbox.exchange.catalogue import Gamma, SandboxMarket, words
from upstream.sandbox.routes.paging import END, cursor_of, offset_of
from upstream.transport.micro import ONE, text

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.routing import Route

    from upstream.polymarket.market_channel.outgoing import BookSummary
    from upstream.sandbox.exchange.exchange import SandboxExchange
    from upstream.sandbox.routes.price_history import History

MARKETS_PER_PAGE = 1000
MAX_BATCH_SIZE = 500


class Asked(msgspec.Struct):
    """One entry of a batch request."""

    token_id: str
    side: str = ""


class ClobApi:
    """Endpoints of the order book API."""

    def __init__(self, exchange: SandboxExchange, history: History) -> None:
        self._exchange = exchange
        self._catalogue = exchange.catalogue
        self._history = history
        self._batch = msgspec.json.Decoder(list[Asked]).decode

    def routes(self) -> list[Route]:
        """Return the routes."""
        one, many = self._one, self._many
        return [
            route("/ok", lambda _request: "OK"),
            route("/time", lambda _request: PlainTextResponse(str(self._exchange.now_ms // 1000))),
            route("/book", one(lambda market, outcome, _side: self._exchange.book_summary(market, outcome))),
            route("/books", self.books, ("POST",)),
            route(
                "/price", one(lambda market, outcome, side: {"price": text(_price(market, outcome, _known_side(side)))})
            ),
            route("/prices", self.prices, ("POST",)),
            route("/midpoint", one(lambda market, outcome, _side: {"mid": _middle(market, outcome)})),
            route("/midpoints", many(_middle), ("POST",)),
            route("/spread", one(lambda market, outcome, _side: {"spread": _spread(market, outcome)})),
            route("/spreads", many(_spread), ("POST",)),
            route("/last-trade-price", one(lambda market, outcome, _side: self._last(market, outcome))),
            route("/tick-size", one(lambda market, _outcome, _side: {"minimum_tick_size": market.tick / ONE})),
            route("/neg-risk", one(lambda market, _outcome, _side: {"neg_risk": market.neg_risk})),
            route("/fee-rate", one(lambda _market, _outcome, _side: {"base_fee": 0})),
            route("/prices-history", self.prices_history),
            route("/markets", lambda request: self._page(request, _whole)),
            route("/simplified-markets", lambda request: self._page(request, _simplified)),
            route("/sampling-markets", lambda request: self._page(request, _whole, sampling=True)),
            route("/sampling-simplified-markets", lambda request: self._page(request, _simplified, sampling=True)),
            route("/markets/{condition_id}", self.market),
            route(
                "/markets-by-token/{token}",
                lambda request: _whole(self._find(request.path_params["token"], closed_too=True)[0]),
            ),
        ]

    # --- Books and prices ---

    async def books(self, request: Request) -> list[BookSummary]:
        """Return the books that exist; unknown tokens are left out, as the exchange does."""
        found = [self._catalogue.find(asked.token_id) for asked in await self._asked(request)]
        return [
            self._exchange.book_summary(*at) for at in found if at is not None and at[0].has_book and not at[0].closed
        ]

    async def prices(self, request: Request) -> dict[str, dict[str, str]]:
        """Return the best price of each token and side asked for."""
        answer: dict[str, dict[str, str]] = {}
        for asked in await self._asked(request):
            at = self._catalogue.find(asked.token_id)
            if at is not None and at[0].has_book:
                sides = [_known_side(asked.side)] if asked.side else ["BUY", "SELL"]
                answer.setdefault(asked.token_id, {}).update({side: text(_price(*at, side)) for side in sides})
        return answer

    def prices_history(self, request: Request) -> dict[str, list[dict[str, float]]]:
        """Return points about `fidelity` minutes apart, of an interval or between two times."""
        query = request.query_params
        if not query.get("market"):
            raise RefusedError(400, {"error": "Invalid token id"})
        try:
            start, end = int(query.get("startTs") or 0), int(query.get("endTs") or self._exchange.now_ms // 1000)
            fidelity = max(int(query.get("fidelity") or 1), 1)
        except ValueError as error:
            raise RefusedError(400, {"error": "Invalid payload"}) from error
        return {"history": self._history.points(query["market"], query.get("interval"), start, end, fidelity)}

    # --- Market pages ---

    def market(self, request: Request) -> Gamma:
        """Return one market."""
        self._exchange.refresh()
        market = self._catalogue.condition(request.path_params["condition_id"])
        if market is None:
            raise RefusedError(404, {"error": "market not found"})
        return _whole(market)

    def _page(self, request: Request, shape: Any, *, sampling: bool = False) -> dict[str, Any]:
        self._exchange.refresh()
        cursor = None if getattr(request.state, "repeat", False) else request.query_params.get("next_cursor")
        found = [
            market
            for market in self._catalogue
            if market.condition_id and market.tokens and not (sampling and market.closed)
        ]
        quiet = self._catalogue.quiet
        first = 0 if quiet is None else len(quiet)  # quiet ones come first, as their number never changes
        start = offset_of(cursor)
        following = start + MARKETS_PER_PAGE
        page = []
        if start >= 0:
            if quiet is not None:
                page = [shape(quiet.market(number)) for number in range(start, min(following, first))]
            page += [shape(market) for market in found[max(start - first, 0) : max(following - first, 0)]]
        more = start >= 0 and following < first + len(found)
        return {
            "limit": MARKETS_PER_PAGE,
            "count": len(page),
            "next_cursor": cursor_of(following) if more else END,
            "data": page,
        }

    # --- Parts ---

    def _one(self, shape: Any) -> Any:
        def ask(request: Request) -> Any:
            market, outcome = self._find(request.query_params.get("token_id", ""))
            return shape(market, outcome, request.query_params.get("side", ""))

        return ask

    def _many(self, shape: Any) -> Any:
        async def ask(request: Request) -> dict[str, Any]:
            found = {asked.token_id: self._catalogue.find(asked.token_id) for asked in await self._asked(request)}
            return {token: shape(*at) for token, at in found.items() if at is not None and at[0].has_book}

        return ask

    async def _asked(self, request: Request) -> list[Asked]:
        try:
            asked = self._batch(await request.body())
        except msgspec.MsgspecError as error:
            raise RefusedError(400, {"error": "Invalid payload"}) from error
        if len(asked) > MAX_BATCH_SIZE:
            raise RefusedError(400, {"error": "Payload exceeds the limit"})
        return asked

    def _find(self, token: str, *, closed_too: bool = False) -> tuple[SandboxMarket, int]:
        if not token.isdecimal():
            raise RefusedError(400, {"error": "Invalid token id"})
        at = self._catalogue.find(token)
        if at is None or (not closed_too and (at[0].closed or not at[0].has_book)):
            raise RefusedError(404, {"error": "No orderbook exists for the requested token id"})
        return at

    def _last(self, market: SandboxMarket, outcome: int) -> dict[str, str]:
        last = market.last_price[outcome]
        token = market.tokens[outcome]
        newest = next(
            (trade for trade in self._exchange.trades.newest_first([market.condition_id]) if trade.token == token), None
        )
        return {"price": "" if last is None else text(last), "side": newest.side if newest else ""}


def _known_side(side: str) -> str:
    if side.upper() not in ("BUY", "SELL"):
        raise RefusedError(400, {"error": "Invalid side"})
    return side.upper()


def _price(market: SandboxMarket, outcome: int, side: str) -> int:
    """Return the best resting price of a side: BUY is the best bid."""
    bid, ask = market.best(outcome)
    return bid if side == "BUY" else ask


def _middle(market: SandboxMarket, outcome: int) -> str:
    return text(sum(market.best(outcome)) // 2)


def _spread(market: SandboxMarket, outcome: int) -> str:
    bid, ask = market.best(outcome)
    return text(ask - bid)


def _whole(market: SandboxMarket) -> Gamma:
    """Return a market as the order book API describes it: Gamma's data under other names."""
    gamma = market.gamma
    return _simplified(market, gamma) | {
        "enable_order_book": bool(gamma.get("enableOrderBook")),
        "accepting_order_timestamp": gamma.get("acceptingOrdersTimestamp"),
        "minimum_order_size": market.min_size,
        "minimum_tick_size": market.tick / ONE,
        "question_id": gamma.get("questionID", ""),
        "question": gamma.get("question", ""),
        "description": gamma.get("description", ""),
        "market_slug": gamma.get("slug", ""),
        "end_date_iso": gamma.get("endDate"),
        "game_start_time": gamma.get("gameStartTime"),
        "seconds_delay": gamma.get("secondsDelay", 0),
        "fpmm": "",
        "maker_base_fee": gamma.get("makerBaseFee", 0),
        "taker_base_fee": gamma.get("takerBaseFee", 0),
        "notifications_enabled": True,
        "neg_risk": market.neg_risk,
        "neg_risk_market_id": gamma.get("negRiskMarketID", ""),
        "neg_risk_request_id": gamma.get("negRiskRequestID", ""),
        "icon": gamma.get("icon", ""),
        "image": gamma.get("image", ""),
        "is_50_50_outcome": False,
    }


def _simplified(market: SandboxMarket, gamma: Gamma | None = None) -> Gamma:
    gamma = gamma or market.gamma
    prices = [float(price) for price in words(gamma.get("outcomePrices"))]
    resolved = market.closed and sorted(prices) == [0.0, 1.0]
    return {
        "condition_id": market.condition_id,
        "active": bool(gamma.get("active")),
        "closed": market.closed,
        "archived": bool(gamma.get("archived")),
        "accepting_orders": bool(gamma.get("acceptingOrders")),
        "rewards": {
            "rates": None,
            "min_size": gamma.get("rewardsMinSize", 0),
            "max_spread": gamma.get("rewardsMaxSpread", 0),
        },
        "tokens": [
            {"token_id": token, "outcome": outcome, "price": price, "winner": resolved and price == 1}
            for token, outcome, price in zip(
                market.tokens, words(gamma.get("outcomes")), prices or [0.0] * len(market.tokens), strict=False
            )
        ],
    }
