"""Everything of a request but the sending of it, shared by `Client` and `AsyncClient`."""

from __future__ import annotations

import os
import random
import time
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from functools import cached_property
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, Generic, Literal, Protocol, TypeVar, cast
from urllib.parse import quote, unquote, urlencode, urlsplit, urlunsplit

import httpx
import msgspec

from presage_client import errors
from presage_client._address import checked_secret, host_of, split_address
from presage_client._record import Records
from presage_client.errors import PresageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

DEFAULT_URL = "http://localhost:8080"
DEFAULT_TIMEOUT = httpx.Timeout(30.0, connect=5.0)
MAX_RESPONSE_BYTES = 64 << 20
MAX_BACKOFF_S = 8.0
JITTER_S = 0.5  # after a Retry-After: clients that were refused together do not come back together
USER_AGENT = f"presage-client/{version('presage-client')}"
Instant = str | int | datetime  # RFC 3339, Unix milliseconds, or a datetime with a time zone
Parameter = str | int | float | date | None

Failed = tuple[httpx.Response, bytes]  # an answer that is no success, and its body

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


@dataclass(frozen=True)
class Endpoint(Generic[T_co]):
    """One operation of the OpenAPI document."""

    method: Literal["GET", "POST", "PATCH", "DELETE"]
    path: str
    answers: Any  # a type of msgspec's, or str and bytes for bodies that are not JSON
    item: type | None = None  # of an answer that is an array
    auth: Literal["key", "none", "debug"] = "key"
    json: bool = True

    @cached_property
    def decoder(self) -> msgspec.json.Decoder[Any]:
        """The decoder of its answers, made when first needed."""
        return msgspec.json.Decoder(self.answers)


class Page(Protocol[T_co]):
    """An answer of a list with a cursor."""

    @property
    def data(self) -> Iterable[T_co]: ...
    @property
    def next_cursor(self) -> str: ...
    @property
    def has_more(self) -> bool: ...


@dataclass(frozen=True)
class Call:
    """What to send."""

    method: str
    url: httpx.URL
    headers: dict[str, str] = field(repr=False)  # with the key
    content: bytes | None


class Body:
    """Collects the chunks of a body, up to a limit."""

    def __init__(self, limit: int | None) -> None:
        self._limit, self._size = limit, 0
        self._chunks: list[bytes] = []

    def add(self, chunk: bytes) -> None:
        """Add a chunk, or raise `PresageError`."""
        self._chunks.append(chunk)
        self._size += len(chunk)
        if self._limit is not None and self._size > self._limit:
            raise PresageError("invalid_response", f"the answer is larger than max_response_bytes ({self._limit})")

    def whole(self) -> bytes:
        """Return the body."""
        return b"".join(self._chunks)


class Transport:
    """The settings of a client, and all of a request but its sending."""

    def __init__(
        self,
        base_url: str | None,
        api_key: str | None,
        *,
        debug_token: str | None,
        max_retries: int,
        max_wait_s: float,
        max_response_bytes: int = MAX_RESPONSE_BYTES,
        clock: Callable[[], float] = time.time,
    ) -> None:
        parts = split_address(base_url or os.environ.get("PRESAGE_URL") or DEFAULT_URL, {"http", "https"})
        self.base_url = urlunsplit(parts._replace(netloc=host_of(parts)))
        self.address = urlunsplit(parts)  # with a user and password: for WebSockets
        self.auth: httpx.Auth | Any = httpx.USE_CLIENT_DEFAULT
        if parts.username is not None:
            self.auth = httpx.BasicAuth(unquote(parts.username), unquote(parts.password or ""))
        self.api_key = checked_secret("the API key", api_key or os.environ.get("PRESAGE_API_KEY") or "")
        self._debug_token = checked_secret(
            "the debug token", debug_token or os.environ.get("PRESAGE_DEBUG_TOKEN") or ""
        )
        self._max_retries, self._max_wait_s, self._clock = max_retries, max_wait_s, clock
        self._max_response_bytes = max_response_bytes

    def use_key(self, key: str) -> None:
        """Send this API key, which the service answered, from now on."""
        try:
            self.api_key = checked_secret("the API key", key)
        except ValueError as error:
            raise PresageError("invalid_response", str(error)) from None

    def call(
        self,
        endpoint: Endpoint[Any],
        path: Mapping[str, Parameter],
        query: Mapping[str, Parameter],
        body: Mapping[str, Any] | None,
    ) -> Call:
        """Return the request of an operation. Parameters that are None are left out."""
        url = self.base_url + endpoint.path.format_map({name: _segment(name, value) for name, value in path.items()})
        if pairs := given(query):
            url += "?" + urlencode(pairs)
        try:
            address = httpx.URL(url)
        except httpx.InvalidURL as error:  # too long, for one
            raise ValueError(f"not a valid request: {error}") from None
        headers = {"User-Agent": USER_AGENT}
        if endpoint.auth == "key" and self.api_key:
            headers["X-API-Key"] = self.api_key
        elif endpoint.auth == "debug" and self._debug_token:
            headers["X-Debug-Token"] = self._debug_token
        if body is None:
            return Call(endpoint.method, address, headers, None)
        headers["Content-Type"] = "application/json"
        sent = {name: value for name, value in body.items() if value is not msgspec.UNSET}
        return Call(endpoint.method, address, headers, msgspec.json.encode(sent))

    def body(self, endpoint: Endpoint[Any], response: httpx.Response) -> Body:
        """Return the collector of a body; a file may be of any size."""
        whole_file = endpoint.answers is bytes and response.is_success
        return Body(None if whole_file else self._max_response_bytes)

    def answer(self, endpoint: Endpoint[T], response: httpx.Response, content: bytes) -> T:
        """Return what a successful response holds."""
        if not endpoint.json:
            return cast("T", content if endpoint.answers is bytes else content.decode("utf-8", "replace"))
        try:
            decoded = endpoint.decoder.decode(content)
        except errors.NOT_UNDERSTOOD as error:
            request_id = response.headers.get("X-Request-Id")
            raise PresageError(
                "invalid_response", str(error), status=response.status_code, request_id=request_id
            ) from error
        return cast("T", decoded if endpoint.item is None else Records(decoded, endpoint.item))

    def pause(self, endpoint: Endpoint[Any], attempt: int, failed: Failed | httpx.RequestError) -> float:
        """Return the seconds to wait before the next attempt (`attempt` counts from 0), or raise `PresageError`."""
        if isinstance(failed, tuple):
            error = errors.of_response(*failed, self._clock())
            # 429 comes before anything is done; after a 503 nobody knows.
            again = error.status == 429 or (error.status == 503 and endpoint.method == "GET")
        else:
            error = errors.of_failure(failed)
            error.__cause__ = failed
            lost = isinstance(failed, httpx.NetworkError | httpx.RemoteProtocolError)
            again = lost and endpoint.method == "GET"
        after = error.retry_after
        if not again or attempt >= self._max_retries or (after or 0) > self._max_wait_s:
            raise error
        backoff: float = min(MAX_BACKOFF_S, 0.25 * 2**attempt)
        if after is not None:  # 0 and times past are no reason to hurry
            return max(after, backoff / 2) + random.uniform(0, JITTER_S)  # noqa: S311 - no secret
        return random.uniform(backoff / 2, backoff)  # noqa: S311 - no secret

    def next_query(self, query: Mapping[str, Parameter], page: Page[Any]) -> Mapping[str, Parameter] | None:
        """Return the query of the page after this one; None after the last."""
        if not page.has_more or not page.next_cursor:
            return None
        if page.next_cursor == query.get("cursor"):
            raise PresageError("invalid_response", "the cursor of the next page is that of this page")
        return {**query, "cursor": page.next_cursor}

    def websocket_url(self, path: str, query: Mapping[str, Parameter]) -> str:
        """Return the address of a WebSocket endpoint, the key included."""
        parts = urlsplit(self.address)
        scheme = "wss" if parts.scheme == "https" else "ws"
        pairs = urlencode([*given(query), ("api_key", self.api_key)])
        return urlunsplit((scheme, parts.netloc, parts.path + path, pairs, ""))


def given(query: Mapping[str, Parameter]) -> list[tuple[str, str]]:
    """Return the parameters of a query that have a value, as text."""
    return [(name, _text(name, value)) for name, value in query.items() if value is not None]


def joined(values: str | Iterable[str]) -> str:
    """Return names separated by commas."""
    return values if isinstance(values, str) else ",".join(values)


def seconds(value: float | datetime | None) -> int | None:
    """Return a time as whole Unix seconds."""
    if isinstance(value, datetime):
        return int(_aware("a time", value).timestamp())
    return None if value is None else int(value)


def _segment(name: str, value: Parameter) -> str:
    text = _text(name, value)
    if text in {"", ".", ".."}:
        raise ValueError(f"{name} cannot be {text!r}")
    return quote(text, safe="")


def _text(name: str, value: Parameter) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, datetime):
        return _aware(name, value).astimezone(UTC).isoformat().replace("+00:00", "Z")
    return value.isoformat() if isinstance(value, date) else str(value)


def _aware(name: str, value: datetime) -> datetime:
    if value.tzinfo is None:
        raise ValueError(f"{name} has no time zone: datetime.now(UTC), or .replace(tzinfo=UTC)")
    return value
