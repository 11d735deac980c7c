"""What scripts ask the site for: live events, the chart's data feed, and the two open routes of figures."""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING, Any

import msgspec
from starlette.responses import JSONResponse, Response, StreamingResponse

from api.site.live import Listener

if TYPE_CHECKING:
    from starlette.requests import Request

    from api.site.backend import Answer
    from api.site.passes import Allowance
    from api.site.site import Site

CONDITION = re.compile(r"0x[0-9a-f]{64}\Z")
LIVE_TYPES = frozenset({"price", "trade", "signal", "market", "book"})
MOST_MARKETS, MOST_BOOKS = 100, 4
MOST_LISTENERS, MOST_OF_ONE = 2000, 30
# What a page's chart asks for, and for how long an answer may be given again.
CHART_ROUTES = {
    "config": 3600.0,
    "symbols": 60.0,
    "history": 1.0,
    "time": 0.2,
    "marks": 10.0,
    "timescale_marks": 10.0,
}
OF_ANY_PAGE = {"config", "time"}
MAX_BARS = 500  # of one answer: what a chart shows at once
LIVE_UNITS = 100  # what a live connection counts as, in bars
HINT_KEY = "Ask the API with a key: /register gives one"
OPEN = {"Access-Control-Allow-Origin": "*"}
KNOWN_ENDPOINTS = ["GET /api/platform-stats", "GET /api/ticker", "POST /api/mcp"]
TICKER_LENGTH = 20


class Feeds:
    """The routes that are not pages."""

    def __init__(self, site: Site, allowance: Allowance) -> None:
        self._site, self._allowance = site, allowance
        self._open: dict[str, int] = {}

    async def health(self, request: Request) -> Response:
        """Say that this process answers, and how many browsers follow live prices."""
        told = {"status": "ok", "service": "presage-site", "live": sum(self._open.values())}
        return JSONResponse(told, headers={"Cache-Control": "no-store"})

    async def live(self, request: Request) -> Response:
        """Tell what happens in a few markets, as server-sent events."""
        query = request.query_params
        markets = [each for each in query.get("markets", "").lower().split(",") if each]
        types = {each for each in query.get("types", "price").split(",") if each}
        outcome = query.get("outcome", "0")
        if wrong := _not_followed(markets, types, outcome):
            return failure(400, "invalid_parameter", wrong)
        if not self._site.passes.allows(query.get("pass", ""), markets):
            return _no_pass()
        guest = self._guest(request)
        if self._open.get(guest, 0) >= MOST_OF_ONE or sum(self._open.values()) >= MOST_LISTENERS:
            return failure(429, "too_many_requests", "Too many live pages are open", headers={"Retry-After": "10"})
        if over := self._over(guest, LIVE_UNITS):
            return over
        listener = Listener(markets, types, int(outcome))
        return StreamingResponse(
            self._counted(guest, listener),
            media_type="text/event-stream",
            headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"},
        )

    async def _counted(self, guest: str, listener: Listener) -> Any:
        self._open[guest] = self._open.get(guest, 0) + 1
        events = self._site.hub.events(listener)
        try:
            async for frames in events:
                yield frames
        finally:
            await events.aclose()  # type: ignore[attr-defined]  # it is a generator
            self._open[guest] -= 1
            if not self._open[guest]:
                del self._open[guest]

    def _guest(self, request: Request) -> str:
        client = request.client.host if request.client else ""
        return self._site.proxies.origin(client, request.headers.get("X-Forwarded-For"))

    def _over(self, guest: str, units: int) -> Response | None:
        """Count what an address is given, and refuse beyond a day's allowance."""
        wait = self._allowance.take(guest, units)
        if not wait:
            return None
        said = "The day's allowance of this address is used up"
        return failure(429, "too_many_requests", said, hint=HINT_KEY, headers={"Retry-After": f"{wait:.0f}"})

    async def chart(self, request: Request) -> Response:
        """Pass the chart's questions on to the API's data feed: about the market that the page shows."""
        name = request.path_params["name"]
        if name not in CHART_ROUTES:
            return failure(404, "not_found", "There is no such route of the data feed", hint=HINT_KEY)
        params = {key: value for key, value in request.query_params.items() if key not in {"api_key", "pass"}}
        if name not in OF_ANY_PAGE:
            shown = params.get("symbol", "")
            if not self._site.passes.allows(request.query_params.get("pass", ""), [shown]):
                return _no_pass()
        if name == "history":
            bars = params.get("countback", str(MAX_BARS))
            count = min(int(bars), MAX_BARS) if bars.isdecimal() else 0
            if over := self._over(self._guest(request), count):
                return over
            params["countback"] = str(count) if count else bars
        answer = await self._site.backend.get(f"/v1/udf/{name}", params, fresh_s=CHART_ROUTES[name])
        if not answer.ok:
            return passed(answer)
        keep = f"public, max-age={CHART_ROUTES[name]:.0f}" if CHART_ROUTES[name] >= 10 else "no-cache"
        media = answer.headers.get("content-type", "application/json")
        return Response(answer.body, headers=OPEN | {"Content-Type": media, "Cache-Control": keep})

    async def platform_stats(self, request: Request) -> Response:
        """Tell how many markets there are, and how much is traded."""
        answer = await self._site.backend.get("/v1/stats", fresh_s=10)
        if not answer.ok:
            return passed(answer)
        return _kept(answer.data | {"source": self._site.source}, 10)

    async def ticker(self, request: Request) -> Response:
        """Tell the markets with the largest volume of the last 24 hours, and what they cost."""
        backend = self._site.backend
        question = {"by": "volume", "period": "24h", "limit": TICKER_LENGTH}
        answer = await backend.get("/v1/markets/top", question, fresh_s=5)
        if not answer.ok:
            return passed(answer)
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
        return _kept({"data": rows, "count": len(rows), "source": self._site.source}, 5)

    async def unknown(self, request: Request) -> Response:
        """Say which routes there are."""
        return failure(
            404,
            "not_found",
            f"There is nothing at {request.url.path[:200]}",
            hint="The data itself is at the API's own address; see /reference",
            known_endpoints=KNOWN_ENDPOINTS,
        )


def _not_followed(markets: list[str], types: set[str], outcome: str) -> str:
    """Say why what is asked cannot be followed; empty where it can."""
    if not 1 <= len(markets) <= MOST_MARKETS or not all(map(CONDITION.match, markets)):
        return f"`markets`: 1 to {MOST_MARKETS} condition ids (0x…)"
    if not types <= LIVE_TYPES or not types:
        return f"`types`: of {', '.join(sorted(LIVE_TYPES))}"
    if "book" in types and len(set(markets)) > MOST_BOOKS:
        return f"`types`: books of up to {MOST_BOOKS} markets at once"
    if not (outcome.isascii() and outcome.isdigit() and len(outcome) < 4):
        return "`outcome`: its index, from 0"
    return ""


def _no_pass() -> Response:
    return failure(403, "forbidden", "Not of a page that shows this, or of one of long ago", hint=HINT_KEY)


def failure(
    status: int,
    code: str,
    message: str,
    *,
    hint: str = "See /reference",
    headers: dict[str, str] | None = None,
    **more: Any,
) -> Response:
    """Say what went wrong, in the shape of all the site's routes that are not pages."""
    error = {"code": code, "message": message, "hint": hint, **more}
    return JSONResponse({"error": error}, status, OPEN | {"Cache-Control": "no-store"} | (headers or {}))


def passed(answer: Answer) -> Response:
    """Say what the API refused."""
    try:
        problem = answer.data
        code, message, hint = problem["code"], problem["detail"], problem["hint"]
    except (msgspec.DecodeError, KeyError, TypeError):
        code, message, hint = "unavailable", "The service cannot answer right now", None
    status = answer.status if answer.status in {400, 404} else 503
    headers = {"Retry-After": "2"} if status == 503 else {}
    if status == 503:
        code = "unavailable"
    return failure(status, code, message, hint=hint or "Ask again in a moment", headers=headers)


def _kept(data: Any, seconds: int) -> Response:
    headers = OPEN | {"Content-Type": "application/json", "Cache-Control": f"public, max-age={seconds}"}
    return Response(msgspec.json.encode(data), headers=headers)
