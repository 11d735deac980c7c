"""What holds for every request: how often one may ask, what a browser may do with a page, `.md` at an address's end."""

from __future__ import annotations

import time
from collections import OrderedDict
from typing import TYPE_CHECKING
from urllib.parse import quote

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse

from api.errors import new_id
from api.server.middleware import SANE
from config import logging as logs

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from api.server.address import Proxies

OTHER_THAN_PAGES = ("/api/", "/static/", "/udf/", "/live", "/sse", "/messages", "/health")
ASCII = bytes(range(0x80))
MOST_GUESTS = 50_000
SECONDS_SAVED = 5  # of what one did not ask


class Siblings:
    """Serves each page also under its address with `.md`, as Markdown."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Take the ending away, and remember it."""
        path = scope.get("path", "")
        if scope["type"] == "http" and path.endswith(".md") and not path.startswith(OTHER_THAN_PAGES):
            bare = path.removesuffix(".md")
            path = "/" if bare == "/index" else bare
            scope = {**scope, "path": path, "raw_path": path.encode(), "markdown": True}
        await self._app(scope, receive, send)


class Named:
    """Gives each request a name, its client's own if it has one: the answer says it, and lines of the log.

    It is the outermost layer, and so what makes a query readable for all others.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Name a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        if not scope["query_string"].isascii():  # as bytes came, unescaped: routes, and the server's log, read ASCII
            scope["query_string"] = quote(scope["query_string"], safe=ASCII).encode()
        given = Headers(scope=scope).get("x-request-id")
        name = given if given and SANE.match(given) else new_id()
        logs.request_id.set(name)

        async def with_name(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message)["X-Request-Id"] = name
            await send(message)

        await self._app(scope, receive, with_name)


class Safety:
    """Says to browsers what pages may do: nothing but what is ours."""

    def __init__(self, app: ASGIApp, api_url: str) -> None:
        self._app = app
        policy = (
            "default-src 'none'",
            "script-src 'self'",
            "style-src 'self'",
            "img-src 'self' data:",
            f"connect-src 'self' {api_url}",
            "form-action 'self'",
            "base-uri 'none'",
            "frame-ancestors 'none'",
        )
        self._headers = {
            "Content-Security-Policy": "; ".join(policy),
            "X-Content-Type-Options": "nosniff",
            "Referrer-Policy": "same-origin",
            "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Add the headers."""

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in self._headers.items():
                    headers.setdefault(name, value)
            await send(message)

        await self._app(scope, receive, with_headers if scope["type"] == "http" else send)


class Pace:
    """Keeps one address from asking so much that others wait: a bucket of requests for each, filled steadily."""

    def __init__(
        self, app: ASGIApp, proxies: Proxies, a_second: int, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._app, self._proxies, self._a_second, self._clock = app, proxies, a_second, clock
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request through, or say when to come back."""
        if scope["type"] == "http" and not scope["path"].startswith("/static/"):
            forwarded = Headers(scope=scope).get("x-forwarded-for")
            wait = self.take(self._proxies.origin((scope["client"] or ("", 0))[0], forwarded))
            if wait > 0:
                error = {
                    "code": "too_many_requests",
                    "message": f"More than {self._a_second} requests a second from one address",
                    "hint": "Slow down, or get a key and ask the API",
                }
                refused = JSONResponse({"error": error}, 429, {"Retry-After": str(int(wait) + 1)})
                await refused(scope, receive, send)
                return
        await self._app(scope, receive, send)

    def take(self, address: str) -> float:
        """Count a request; the seconds until there is room for one, 0 when there is now."""
        now, most = self._clock(), float(self._a_second * SECONDS_SAVED)
        left, then = self._left.pop(address, (most, now))
        left = min(most, left + (now - then) * self._a_second)
        wait = 0.0 if left >= 1 else (1 - left) / self._a_second
        self._left[address] = (left - 1 if left >= 1 else left, now)
        if len(self._left) > MOST_GUESTS:
            self._left.popitem(last=False)
        return wait
