"""Everything of a request but the sending of it, shared by `Client` and `AsyncClient`."""

from __future__ import annotations

import os
import random
import time
from dataclasses import dataclass
from datetime import UTC, date, datetime
from functools import cached_property
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, Generic, Literal, NamedTuple, Protocol, TypeVar, cast
from urllib.parse import quote, urlencode, urlsplit, urlunsplit

import httpx
import msgspec

from presage_client import errors
from presage_client._record import Records
from presage_client.errors import PresageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

DEFAULT_URL = "http://localhost:8080"
DEFAULT_TIMEOUT = httpx.Timeout(30.0, connect=5.0)
MAX_BACKOFF_S = 8.0
JITTER_S = 0.5  # after a Retry-After: clients that were refused together do not come back together
USER_AGENT = f"presage-client/{version('presage-client')}"
Instant = str | int | datetime  # RFC 3339, Unix milliseconds, or a datetime with a time zone
Parameter = str | int | float | date | None

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


class Call(NamedTuple):
    """What to send."""

    method: str
    url: str
    headers: dict[str, str]
    content: bytes | None


class Transport:
    """The settings of a client: where the service is, who asks, and how patiently."""

    def __init__(
        self,
        base_url: str | None,
        api_key: str | None,
        *,
        debug_token: str | None,
        max_retries: int,
        max_wait_s: float,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.base_url = (base_url or os.environ.get("PRESAGE_URL") or DEFAULT_URL).rstrip("/")
        if urlsplit(self.base_url).scheme not in {"http", "https"}:
            raise ValueError(f"not an http or https address: {self.shown_url}")
        self.api_key = api_key or os.environ.get("PRESAGE_API_KEY") or ""
        self._debug_token = debug_token or os.environ.get("PRESAGE_DEBUG_TOKEN") or ""
        self._max_retries, self._max_wait_s, self._clock = max_retries, max_wait_s, clock

    @property
    def shown_url(self) -> str:
        """The address without a user and password."""
        parts = urlsplit(self.base_url)
        return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))

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
        headers = {"User-Agent": USER_AGENT}
        if endpoint.auth == "key" and self.api_key:
            headers["X-API-Key"] = self.api_key
        elif endpoint.auth == "debug" and self._debug_token:
            headers["X-Debug-Token"] = self._debug_token
        if body is None:
            return Call(endpoint.method, url, headers, None)
        headers["Content-Type"] = "application/json"
        sent = {name: value for name, value in body.items() if value is not msgspec.UNSET}
        return Call(endpoint.method, url, headers, msgspec.json.encode(sent))

    def answer(self, endpoint: Endpoint[T], response: httpx.Response) -> T:
        """Return what a successful response holds."""
        if not endpoint.json:
            return cast("T", response.content if endpoint.answers is bytes else response.text)
        try:
            told = endpoint.decoder.decode(response.content)
        except msgspec.DecodeError as error:
            request_id = response.headers.get("X-Request-Id")
            raise PresageError(
                "invalid_response", str(error), status=response.status_code, request_id=request_id
            ) from error
        return cast("T", told if endpoint.item is None else Records(told, endpoint.item))

    def pause(self, endpoint: Endpoint[Any], attempt: int, failed: httpx.Response | httpx.RequestError) -> float:
        """Return the seconds to wait before the next attempt (`attempt` counts from 0), or raise `PresageError`."""
        if isinstance(failed, httpx.Response):
            error = errors.of_response(failed, self._clock())
            # 429 comes before anything is done; after a 503 nobody knows.
            again = error.status == 429 or (error.status == 503 and endpoint.method == "GET")
        else:
            error = errors.of_failure(failed)
            error.__cause__ = failed
            lost = isinstance(failed, httpx.NetworkError | httpx.ConnectTimeout | httpx.RemoteProtocolError)
            again = lost and endpoint.method == "GET"
        after = error.retry_after
        if not again or attempt >= self._max_retries or (after or 0) > self._max_wait_s:
            raise error
        if after is not None:
            return after + random.uniform(0, JITTER_S)  # noqa: S311 - no secret
        backoff: float = min(MAX_BACKOFF_S, 0.25 * 2**attempt)
        return random.uniform(backoff / 2, backoff)  # noqa: S311 - no secret

    def websocket_url(self, path: str, query: Mapping[str, Parameter]) -> str:
        """Return the address of a WebSocket endpoint, the key included."""
        parts = urlsplit(self.base_url)
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
