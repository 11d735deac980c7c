"""Client of our own API: responses are cached briefly, and concurrent identical requests are sent once."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from typing import TYPE_CHECKING, Any, NamedTuple, Self
from urllib.parse import urlencode

import httpx
import msgspec
import psycopg
from cachetools import TLRUCache

from api import errors

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import TracebackType

    from api.site.credentials import Credentials

log = logging.getLogger(__name__)

DEFAULT_MAX_AGE_S = 1.0  # how long a response is served from the cache by default
MAX_STALE_S = 120.0  # how much longer while the API does not respond
MAX_CACHE_BYTES = 64 << 20
HEADERS_BYTES = 1000  # about what a cached response takes besides its body
MAX_CACHED_QUERY_BYTES = 8000  # the prices of 100 markets, which every visitor of a list requests; longer ones are rare
REQUEST_EXTENSIONS = {"timeout": httpx.Timeout(10.0, connect=2.0, pool=5.0).as_dict()}
LIMITS = httpx.Limits(max_connections=32, max_keepalive_connections=16)

Params = dict[str, str]


class ApiResponse(NamedTuple):
    """A response of the API: status, headers and body."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def ok(self) -> bool:
        """Return whether the status is 2xx."""
        return 200 <= self.status < 300

    @property
    def data(self) -> Any:
        """Return the decoded JSON body."""
        return msgspec.json.decode(self.body)


class CachedResponse(NamedTuple):
    """A cached response, until when it is fresh, and its size in bytes."""

    answer: ApiResponse
    fresh_until: float
    size: int


class Backend:
    """Client of our own API. It never raises: an unreachable API is a response of 503."""

    def __init__(
        self,
        api_url: str,
        credentials: Credentials,
        *,
        transport: httpx.AsyncBaseTransport | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.url = api_url.rstrip("/")
        self._credentials, self._clock = credentials, clock
        # A bare transport: httpx.Client's cookies, redirects and URL merging would double the cost, for nothing here.
        self._transport = transport or httpx.AsyncHTTPTransport(limits=LIMITS, trust_env=False)
        self._cache: TLRUCache[tuple[str, ...], CachedResponse, float] = TLRUCache(
            MAX_CACHE_BYTES, _expiry, clock, _size
        )
        self._in_flight: dict[tuple[str, ...], asyncio.Task[ApiResponse]] = {}

    async def get(
        self,
        path: str,
        params: Mapping[str, Any] | None = None,
        *,
        key: str | None = None,
        max_age_s: float = DEFAULT_MAX_AGE_S,
    ) -> ApiResponse:
        """Request a path with the site's own key, possibly from the cache; or with a user's key, uncached."""
        sent = {name: str(value) for name, value in (params or {}).items() if value is not None}
        if key is not None:
            return await self.request("GET", path, sent, key=key)
        query = (path, *(part for item in sorted(sent.items()) for part in item))
        cached = self._cache.get(query)
        if cached is not None and cached.fresh_until > self._clock():
            return cached.answer
        task = self._in_flight.get(query)
        if task is None:
            task = self._in_flight[query] = asyncio.create_task(self._fetch(query, path, sent, max_age_s))
            task.add_done_callback(lambda _: self._in_flight.pop(query, None))
        return await asyncio.shield(task)  # a caller that is cancelled does not cancel the others

    async def own_key(self) -> str:
        """Return the site's own key."""
        return await asyncio.to_thread(self._credentials.key)

    async def request(
        self,
        method: str,
        path: str,
        params: Mapping[str, str] | None = None,
        *,
        key: str | None = None,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> ApiResponse:
        """Send one request, uncached; without a key it is anonymous."""
        sent = {**(headers or {})}
        if key is not None:
            sent["X-API-Key"] = key
        if body is not None:
            sent["Content-Type"] = "application/json"
        as_given = httpx.Headers(sent, encoding="utf-8")  # any bytes that a browser sent
        url = f"{self.url}{path}" + (f"?{urlencode(params, errors='replace')}" if params else "")
        try:
            asked = httpx.Request(method, url, content=body, headers=as_given, extensions=REQUEST_EXTENSIONS)
            response = await self._transport.handle_async_request(asked)
            try:
                content = await response.aread()
            finally:
                await response.aclose()
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            log.warning("the API does not answer %s: %r", path, error)
            return unavailable("The API does not answer")
        return ApiResponse(response.status_code, response.headers, content)

    async def _fetch(self, query: tuple[str, ...], path: str, params: Params, max_age_s: float) -> ApiResponse:
        answer = await self._with_own_key(path, params)
        if answer.status >= 500 and (cached := self._cache.get(query)):
            return cached.answer
        length = sum(len(part.encode(errors="replace")) for part in query)
        if (answer.ok or answer.status == 404) and length <= MAX_CACHED_QUERY_BYTES:
            size = len(answer.body) + length + HEADERS_BYTES
            with contextlib.suppress(ValueError):  # larger than the whole cache
                self._cache[query] = CachedResponse(answer, self._clock() + max_age_s, size)
        return answer

    async def _with_own_key(self, path: str, params: Params) -> ApiResponse:
        try:
            key = await self.own_key()
            answer = await self.request("GET", path, params, key=key)
            if answer.status == 401 and self._credentials.mark_refused(key):
                answer = await self.request("GET", path, params, key=await self.own_key())
        except psycopg.Error as error:
            log.warning("no key for requests to the API: %s", error)
            return unavailable("The database does not answer")
        return answer

    async def aclose(self) -> None:
        """Cancel requests in flight and close the connections."""
        for task in list(self._in_flight.values()):
            task.cancel()
        await self._transport.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()


def _expiry(_query: tuple[str, ...], entry: CachedResponse, _now: float) -> float:
    return entry.fresh_until + MAX_STALE_S


def _size(entry: CachedResponse) -> int:
    return entry.size


def unavailable(detail: str) -> ApiResponse:
    """Return a 503 in the API's own error format."""
    body = errors.document("overloaded", detail, None, hint="Try again in a moment")
    return ApiResponse(503, {"content-type": errors.MEDIA_TYPE, "retry-after": "2"}, body)
