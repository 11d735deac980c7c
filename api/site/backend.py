"""Our own API, asked by the site: answers kept for a moment, and many who ask the same at once are one request."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import OrderedDict
from typing import TYPE_CHECKING, Any, NamedTuple, Self
from urllib.parse import urlencode

import httpx
import msgspec
import psycopg

from api import errors

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import TracebackType

    from api.site.credentials import Credentials

log = logging.getLogger(__name__)

FRESH_S = 1.0  # how long an answer is given again, unless told otherwise
STALE_S = 120.0  # how much longer, while the API does not answer
MOST_BYTES = 64 << 20
LONGEST_QUESTION = (
    8000  # bytes: the prices of 100 markets, which every visitor of a list asks for; longer ones are rare
)
WITHIN = {"timeout": httpx.Timeout(10.0, connect=2.0, pool=5.0).as_dict()}
LIMITS = httpx.Limits(max_connections=32, max_keepalive_connections=16)

Params = dict[str, str]


class Answer(NamedTuple):
    """What the API said."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def ok(self) -> bool:
        """Whether it is what was asked for."""
        return 200 <= self.status < 300

    @property
    def data(self) -> Any:
        """Read the JSON."""
        return msgspec.json.decode(self.body)


class Backend:
    """Our own API. It never raises: an API that is away is an answer of 503."""

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
        # Without a client, whose cookies, redirects and merged addresses cost as much again, for nothing here.
        self._transport = transport or httpx.AsyncHTTPTransport(limits=LIMITS, trust_env=False)
        self._kept: OrderedDict[tuple[str, ...], tuple[float, Answer]] = OrderedDict()
        self._bytes = 0
        self._asking: dict[tuple[str, ...], asyncio.Task[Answer]] = {}

    async def get(
        self, path: str, params: Mapping[str, Any] | None = None, *, key: str | None = None, fresh_s: float = FRESH_S
    ) -> Answer:
        """Ask for a path: by the site's own key, and then perhaps as answered a moment ago; or by a user's."""
        sent = {name: str(value) for name, value in (params or {}).items() if value is not None}
        if key is not None:
            return await self.request("GET", path, sent, key=key)
        question = (path, *(part for item in sorted(sent.items()) for part in item))
        until, kept = self._kept.get(question, (0.0, None))
        if kept is not None and until > self._clock():
            return kept
        asking = self._asking.get(question)
        if asking is None:
            asking = self._asking[question] = asyncio.create_task(self._ask(question, path, sent, fresh_s))
            asking.add_done_callback(lambda _: self._asking.pop(question, None))
        return await asyncio.shield(asking)  # one who goes away takes nothing from the others

    async def own_key(self) -> str:
        """Give the site's own key."""
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
    ) -> Answer:
        """Ask once, nothing kept; without a key as anyone."""
        sent = {**(headers or {})}
        if key is not None:
            sent["X-API-Key"] = key
        if body is not None:
            sent["Content-Type"] = "application/json"
        as_given = httpx.Headers(sent, encoding="utf-8")  # whatever a browser said
        url = f"{self.url}{path}" + (f"?{urlencode(params, errors='replace')}" if params else "")
        try:
            asked = httpx.Request(method, url, content=body, headers=as_given, extensions=WITHIN)
            response = await self._transport.handle_async_request(asked)
            try:
                content = await response.aread()
            finally:
                await response.aclose()
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            log.warning("the API does not answer %s: %r", path, error)
            return unavailable("The API does not answer")
        return Answer(response.status_code, response.headers, content)

    async def _ask(self, question: tuple[str, ...], path: str, params: Params, fresh_s: float) -> Answer:
        answer = await self._with_own_key(path, params)
        if answer.status >= 500 and (kept := self._kept.get(question)) and kept[0] + STALE_S > self._clock():
            return kept[1]
        if (answer.ok or answer.status == 404) and _length(question) <= LONGEST_QUESTION:
            self._keep(question, self._clock() + fresh_s, answer)
        return answer

    async def _with_own_key(self, path: str, params: Params) -> Answer:
        try:
            key = await self.own_key()
            answer = await self.request("GET", path, params, key=key)
            if answer.status == 401 and self._credentials.refused(key):
                answer = await self.request("GET", path, params, key=await self.own_key())
        except psycopg.Error as error:
            log.warning("no key to ask the API with: %s", error)
            return unavailable("The database does not answer")
        return answer

    def _keep(self, question: tuple[str, ...], until: float, answer: Answer) -> None:
        self._drop(question)
        self._kept[question] = until, answer
        self._bytes += _weight(question, answer)
        while self._bytes > MOST_BYTES:
            self._drop(next(iter(self._kept)))

    def _drop(self, question: tuple[str, ...]) -> None:
        if (old := self._kept.pop(question, None)) is not None:
            self._bytes -= _weight(question, old[1])

    async def aclose(self) -> None:
        """Let the connections go."""
        for asking in list(self._asking.values()):
            asking.cancel()
        await self._transport.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()


def _length(question: tuple[str, ...]) -> int:
    return sum(len(part.encode(errors="replace")) for part in question)


def _weight(question: tuple[str, ...], answer: Answer) -> int:
    return len(answer.body) + _length(question) + 1000  # headers


def unavailable(detail: str) -> Answer:
    """Say in the API's own words that it cannot be asked."""
    body = errors.document("overloaded", detail, None, hint="Ask again in a moment")
    return Answer(503, {"content-type": errors.MEDIA_TYPE, "retry-after": "2"}, body)
