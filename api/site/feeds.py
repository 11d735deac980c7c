"""Routes for scripts: live events, the chart's data feed, and the two public routes of figures."""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING, Any

import msgspec
from starlette.responses import JSONResponse, Response, StreamingResponse

from api.errors import without_secrets
from api.site.live import LiveListener

if TYPE_CHECKING:
    from starlette.requests import Request

    from api.site.backend import ApiResponse
    from api.site.passes import Allowance
    from api.site.site import Site

CONDITION = re.compile(r"0x[0-9a-f]{64}\Z")
LIVE_TYPES = frozenset({"price", "trade", "signal", "market", "book"})
MAX_MARKETS, MAX_BOOKS = 100, 4
MAX_LISTENERS, MAX_LISTENERS_PER_ADDRESS = 2000, 30
# Routes that a page's chart requests, and how long a response may be cached, in seconds.
CHART_ROUTES = {
    "config": 3600.0,
    "symbols": 60.0,
    "history": 1.0,
    "time": 0.2,
    "marks": 10.0,
    "timescale_marks": 10.0,
}
ROUTES_WITHOUT_PASS = {"config", "time"}
MAX_BARS = 500  # in one response: what a chart shows at once
LIVE_UNITS = 100  # a live connection's cost against the allowance, in bars
HINT_KEY = "Use the API with a key: get one at /register"
CORS_HEADERS = {"Access-Control-Allow-Origin": "*"}
KNOWN_ENDPOINTS = ["GET /api/platform-stats", "GET /api/ticker", "POST /api/mcp"]
TICKER_LENGTH = 20


class DataRoutes:
    """The routes that are not pages."""

    def __init__(self, site: Site, allowance: Allowance) -> None:
        self._site, self._allowance = site, allowance
        self._open: dict[str, int] = {}

    async def health(self, request: Request) -> Response:
        """Return the process's health and the number of live connections."""
        health = {"status": "ok", "service": "presage-site", "live": sum(self._open.values())}
        return JSONResponse(health, headers={"Cache-Control": "no-store"})

    async def live(self, request: Request) -> Response:
        """Stream the events of up to MAX_MARKETS markets as server-sent events."""
        query = request.query_params
        markets = [each for each in query.get("markets", "").lower().split(",") if each]
        types = {each for each in query.get("types", "price").split(",") if each}
        outcome = query.get("outcome", "0")
        if wrong := _invalid_live_request(markets, types, outcome):
            return error_response(400, "invalid_parameter", wrong)
        if not self._site.passes.allows(query.get("pass", ""), markets):
            return _pass_refused()
        address = self._address_of(request)
        if self._open.get(address, 0) >= MAX_LISTENERS_PER_ADDRESS or sum(self._open.values()) >= MAX_LISTENERS:
            return error_response(
                429, "too_many_requests", "Too many live pages are open", headers={"Retry-After": "10"}
            )
        if over := self._over_allowance(address, LIVE_UNITS):
            return over
        listener = LiveListener(markets, types, int(outcome))
        return StreamingResponse(
            self._count_open(address, listener),
            media_type="text/event-stream",
            headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"},
        )

    async def _count_open(self, address: str, listener: LiveListener) -> Any:
        self._open[address] = self._open.get(address, 0) + 1
        events = self._site.hub.events(listener)
        try:
            async for frames in events:
                yield frames
        finally:
            await events.aclose()  # type: ignore[attr-defined]  # it is a generator
            self._open[address] -= 1
            if not self._open[address]:
                del self._open[address]

    def _address_of(self, request: Request) -> str:
        client = request.client.host if request.client else ""
        return self._site.proxies.origin(client, request.headers.get("X-Forwarded-For"))

    def _over_allowance(self, address: str, units: int) -> Response | None:
        """Charge units to an address; return a 429 once its daily allowance is used up, else None."""
        wait = self._allowance.take(address, units)
        if not wait:
            return None
        message = "This address has used up its daily allowance"
        return error_response(429, "too_many_requests", message, hint=HINT_KEY, headers={"Retry-After": f"{wait:.0f}"})

    async def chart(self, request: Request) -> Response:
        """Proxy a chart's request to the API's data feed, for the market that the page shows."""
        name = request.path_params["name"]
        if name not in CHART_ROUTES:
            return error_response(404, "not_found", "There is no such route of the data feed", hint=HINT_KEY)
        params = {key: value for key, value in request.query_params.items() if key not in {"api_key", "pass"}}
        if name not in ROUTES_WITHOUT_PASS:
            shown = params.get("symbol", "")
            if not self._site.passes.allows(request.query_params.get("pass", ""), [shown]):
                return _pass_refused()
        if name == "history":
            bars = params.get("countback", str(MAX_BARS))
            count = min(int(bars), MAX_BARS) if bars.isdecimal() else 0
            if over := self._over_allowance(self._address_of(request), count):
                return over
            params["countback"] = str(count) if count else bars
        answer = await self._site.backend.get(f"/v1/udf/{name}", params, max_age_s=CHART_ROUTES[name])
        if not answer.ok:
            return api_error(answer)
        keep = f"public, max-age={CHART_ROUTES[name]:.0f}" if CHART_ROUTES[name] >= 10 else "no-cache"
        media = answer.headers.get("content-type", "application/json")
        return Response(answer.body, headers=CORS_HEADERS | {"Content-Type": media, "Cache-Control": keep})

    async def platform_stats(self, request: Request) -> Response:
        """Return the totals of markets and trades."""
        answer = await self._site.backend.get("/v1/stats", max_age_s=10)
        if not answer.ok:
            return api_error(answer)
        return _cacheable(answer.data | {"source": self._site.source}, 10)

    async def ticker(self, request: Request) -> Response:
        """Return the markets with the largest volume of the last 24 hours, with their prices."""
        backend = self._site.backend
        question = {"by": "volume", "period": "24h", "limit": TICKER_LENGTH}
        answer = await backend.get("/v1/markets/top", question, max_age_s=5)
        if not answer.ok:
            return api_error(answer)
        markets = answer.data
        ids = ",".join(market["market_id"] for market in markets)
        answers = await asyncio.gather(*([backend.get("/v1/prices", {"ids": ids})] if ids else []))
        prices = answers[0].data if answers and answers[0].ok else {}
        rows = [
            {
                "market_id": market["market_id"],
                "slug": market["slug"],
                "question": market["question"],
                "outcome": (market["outcomes"] or [None])[0],
                "price": (prices.get(market["market_id"]) or {}).get("mid"),
                "volume_24h_usd": market["period_volume_usd"],
                "trades_24h": market["period_trades"],
                "url": f"/markets/{market['slug'] or market['market_id']}",
            }
            for market in markets
        ]
        return _cacheable({"data": rows, "count": len(rows), "source": self._site.source}, 5)

    async def unknown(self, request: Request) -> Response:
        """Return a 404 that lists the known routes."""
        return error_response(
            404,
            "not_found",
            f"There is nothing at {request.url.path[:200]}",
            hint="Data endpoints are on the API's own host; see /reference",
            known_endpoints=KNOWN_ENDPOINTS,
        )


def _invalid_live_request(markets: list[str], types: set[str], outcome: str) -> str:
    """Return why a live request is invalid; empty if it is valid."""
    if not 1 <= len(markets) <= MAX_MARKETS or not all(map(CONDITION.match, markets)):
        return f"`markets`: 1 to {MAX_MARKETS} condition ids (0x…)"
    if not types <= LIVE_TYPES or not types:
        return f"`types`: of {', '.join(sorted(LIVE_TYPES))}"
    if "book" in types and len(set(markets)) > MAX_BOOKS:
        return f"`types`: books of up to {MAX_BOOKS} markets at once"
    if not (outcome.isascii() and outcome.isdigit() and len(outcome) < 4):
        return "`outcome`: its index, from 0"
    return ""


def _pass_refused() -> Response:
    return error_response(403, "forbidden", "The page pass is missing, expired or for other data", hint=HINT_KEY)


def error_response(
    status: int,
    code: str,
    message: str,
    *,
    hint: str = "See /reference",
    headers: dict[str, str] | None = None,
    **more: Any,
) -> Response:
    """Return an error in the format of all the site's routes that are not pages; it repeats no API key."""
    error = {"code": code, "message": without_secrets(message), "hint": hint, **more}
    return JSONResponse({"error": error}, status, CORS_HEADERS | {"Cache-Control": "no-store"} | (headers or {}))


def api_error(answer: ApiResponse) -> Response:
    """Return an error of the API in the site's error format."""
    try:
        problem = answer.data
        code, message, hint = problem["code"], problem["detail"], problem["hint"]
    except (msgspec.DecodeError, KeyError, TypeError):
        code, message, hint = "unavailable", "The service is unavailable right now", None
    status = answer.status if answer.status in {400, 404} else 503
    headers = {"Retry-After": "2"} if status == 503 else {}
    if status == 503:
        code = "unavailable"
    return error_response(status, code, message, hint=hint or "Try again in a moment", headers=headers)


def _cacheable(data: Any, seconds: int) -> Response:
    headers = CORS_HEADERS | {"Content-Type": "application/json", "Cache-Control": f"public, max-age={seconds}"}
    return Response(msgspec.json.encode(data), headers=headers)
