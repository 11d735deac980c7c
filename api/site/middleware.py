"""ASGI middleware for every request: rate limit, request id, security headers, the `.md` suffix, misplaced keys."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING
from urllib.parse import quote

from cachetools import LRUCache
from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse

from api.errors import new_id, without_secrets
from api.server.middleware import REQUEST_ID
from config.logging import request_id

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from api.server.address import Proxies

NON_PAGE_PREFIXES = ("/api/", "/static/", "/udf/", "/live", "/sse", "/messages", "/health")
ASCII = bytes(range(0x80))
MAX_ADDRESSES = 50_000
BURST_S = 5  # seconds of unused rate that an address may save up


def content_security_policy(api_url: str, *, inline_styles: bool = False) -> str:
    """Return the policy of a page: nothing but our own files; inline styles only where a diagram is drawn."""
    directives = (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self' 'unsafe-inline'" if inline_styles else "style-src 'self'",
        "img-src 'self' data:",
        f"connect-src 'self' {api_url}",
        "form-action 'self'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
    )
    return "; ".join(directives)


class SecretsHidden:
    """Redacts API keys in a page's URL, where none belongs: pages repeat their URL, and look up what it names."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Redact path and query in the scope itself: the page of an internal error is made outside of this."""
        if scope["type"] == "http" and not scope["path"].startswith(NON_PAGE_PREFIXES):
            scope["path"] = without_secrets(scope["path"], parts=False)
            scope["query_string"] = without_secrets(scope["query_string"].decode("ascii"), parts=False).encode()
        await self._app(scope, receive, send)


class MarkdownSuffix:
    """Serves each page as Markdown at its URL with the suffix `.md`."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Strip the suffix and mark the request as Markdown."""
        path = scope.get("path", "")
        if scope["type"] == "http" and path.endswith(".md") and not path.startswith(NON_PAGE_PREFIXES):
            bare = path.removesuffix(".md")
            path = "/" if bare == "/index" else bare
            scope = {**scope, "path": path, "raw_path": path.encode(), "markdown": True}
        await self._app(scope, receive, send)


class RequestId:
    """Assigns each request an id, the client's own if it sent a valid one; it is in the response and in log lines.

    It is the outermost layer, so it also escapes non-ASCII query strings for all others.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Set the request id."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        if not scope["query_string"].isascii():  # raw bytes: routes and the server's log read ASCII
            scope["query_string"] = quote(scope["query_string"], safe=ASCII).encode()
        given = Headers(scope=scope).get("x-request-id")
        name = given if given and REQUEST_ID.match(given) else new_id()
        request_id.set(name)

        async def with_name(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message)["X-Request-Id"] = name
            await send(message)

        await self._app(scope, receive, with_name)


class SecurityHeaders:
    """Adds security headers: pages may only load our own content."""

    def __init__(self, app: ASGIApp, api_url: str) -> None:
        self._app = app
        self._headers = {
            "Content-Security-Policy": content_security_policy(api_url),
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


class RateLimit:
    """Limits the request rate of each client address by a token bucket."""

    def __init__(
        self, app: ASGIApp, proxies: Proxies, a_second: int, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._app, self._proxies, self._a_second, self._clock = app, proxies, a_second, clock
        self._buckets: LRUCache[str, tuple[float, float]] = LRUCache(MAX_ADDRESSES)  # credit and when, by address

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or answer 429 with `Retry-After`."""
        if scope["type"] == "http" and not scope["path"].startswith("/static/"):
            forwarded = Headers(scope=scope).get("x-forwarded-for")
            wait = self.take(self._proxies.origin((scope["client"] or ("", 0))[0], forwarded))
            if wait > 0:
                error = {
                    "code": "too_many_requests",
                    "message": f"More than {self._a_second} requests a second from one address",
                    "hint": "Slow down, or use the API with a key",
                }
                refused = JSONResponse({"error": error}, 429, {"Retry-After": str(int(wait) + 1)})
                await refused(scope, receive, send)
                return
        await self._app(scope, receive, send)

    def take(self, address: str) -> float:
        """Count a request; return the seconds until one is allowed, 0 if it is allowed now."""
        now, most = self._clock(), float(self._a_second * BURST_S)
        left, then = self._buckets.get(address, (most, now))
        left = min(most, left + (now - then) * self._a_second)
        wait = 0.0 if left >= 1 else (1 - left) / self._a_second
        self._buckets[address] = (left - 1 if left >= 1 else left, now)
        return wait
