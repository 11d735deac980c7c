"""HTTP client for all upstreams: bounded in time and size, with retries of transient faults."""

import contextlib
import functools
import random
import ssl
import threading
import time
import zlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from importlib import metadata
from types import TracebackType
from typing import Any, Self, TypeVar

import httpx
import msgspec

from upstream.transport.errors import (
    FAULTS,
    Malformed,
    NotFound,
    RateLimited,
    Rejected,
    TooLarge,
    Unavailable,
    UpstreamError,
)
from upstream.transport.limits import RateLimits

T = TypeVar("T")
Value = str | int | float | bool | datetime | None | Sequence[str | int]

MAX_BODY = 32 << 20
"""Bytes after decompression: ten times the largest page."""
MAX_ERROR_BODY = 4096
"""Bytes kept of an error's body."""
MAX_WAIT_S = 60.0
"""Upper bound of any wait, whatever Retry-After says."""


def _version() -> str:
    try:
        return metadata.version("presage")
    except metadata.PackageNotFoundError:  # running from a checkout that is not installed
        return "0"


USER_AGENT = f"presage/{_version()}"


@functools.cache
def tls_context() -> ssl.SSLContext:
    """Return the TLS settings of all clients of this process: loading the certificates takes 20 ms of CPU."""
    return httpx.create_ssl_context()


@dataclass
class RequestCounts:
    """Counters of a client since it was created, for metrics."""

    requests: int = 0
    retries: int = 0
    failures: int = 0
    bytes: int = 0
    waited_s: float = 0.0


class Client:
    """HTTP client that returns decoded JSON; thread-safe.

    Retried: no connection, no response, 429, 5xx, and invalid bodies (a CDN's HTML page, cut-off JSON),
    as these are transient. Not retried: any other 4xx. Redirects are not followed: the exchange has none.
    """

    def __init__(
        self,
        *,
        transport: httpx.BaseTransport | None = None,
        limits: RateLimits | None = None,
        connect_s: float = 5.0,
        read_s: float = 15.0,
        total_s: float = 60.0,
        attempts: int = 5,
        initial_backoff_s: float = 0.5,
        max_backoff_s: float = 20.0,
        max_body: int = MAX_BODY,
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
        sleep: Callable[[float], None] = time.sleep,
        uniform: Callable[[float, float], float] = random.uniform,
    ) -> None:
        self.limits = limits or RateLimits(clock=clock)
        self.counts = RequestCounts()
        self._total_s = total_s
        self._attempts = attempts
        self._initial_backoff_s = initial_backoff_s
        self._max_backoff_s = max_backoff_s
        self._max_body = max_body
        self._clock = clock
        self._wall = wall
        self._sleep = sleep
        self._uniform = uniform
        self._counting = threading.Lock()
        self._http = httpx.Client(
            transport=transport,
            verify=tls_context(),
            timeout=httpx.Timeout(read_s, connect=connect_s),
            headers={"User-Agent": USER_AGENT, "Accept": "application/json", "Accept-Encoding": "gzip"},
            limits=httpx.Limits(max_connections=16, max_keepalive_connections=16, keepalive_expiry=30.0),
            follow_redirects=False,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def get(
        self,
        url: str,
        decoder: msgspec.json.Decoder[T],
        params: Mapping[str, Value] | None = None,
        *,
        tokens: float = 1,
        answers: Collection[int] = (),
        **how: Any,
    ) -> T:
        """GET `url`; list parameters become repeated keys, booleans `true`/`false`, None is left out.

        `tokens` is what the request costs of the rate limit, `answers` has statuses whose body answers it as a 200's
        would, and `how` (`headers`, `auth`) goes to httpx.
        """
        return self._request("GET", url, decoder, tokens, answers, params=query(params or {}), **how)

    def post(self, url: str, decoder: msgspec.json.Decoder[T], body: Any) -> T:
        """POST `body` as JSON; only for calls that read, as they are retried."""
        return self._request(
            "POST", url, decoder, content=msgspec.json.encode(body), headers={"Content-Type": "application/json"}
        )

    def _request(
        self,
        method: str,
        url: str,
        decoder: msgspec.json.Decoder[T],
        tokens: float = 1,
        answers: Collection[int] = (),
        **how: Any,
    ) -> T:
        ceiling = self._initial_backoff_s
        for attempt in range(1, self._attempts + 1):
            self._wait(self.limits.take(url, tokens))
            self._count(requests=1, retries=int(attempt > 1))
            try:
                return _decoded(decoder, self._body(method, url, answers, **how), url)
            except NotFound:
                raise
            except (Rejected, TooLarge):
                self._count(failures=1)
                raise
            except UpstreamError as fault:
                if attempt == self._attempts:
                    self._count(failures=1)
                    raise
                told_s = fault.retry_after_s if isinstance(fault, RateLimited | Unavailable) else None
            self._wait(self._uniform(0, ceiling) if told_s is None else min(told_s, MAX_WAIT_S))
            ceiling = min(ceiling * 2, self._max_backoff_s)
        raise Unavailable(f"{url}: no attempt was allowed")

    def _body(self, method: str, url: str, answers: Collection[int], **how: Any) -> bytes:
        started = self._clock()
        try:
            with self._http.stream(method, url, **how) as response:
                if response.status_code not in answers:
                    self._judge(response, url)
                body = bytearray()
                for piece in _unpacked(response, self._max_body):
                    body += piece
                    if len(body) > self._max_body:
                        raise TooLarge(f"{url}: more than {self._max_body} bytes")
                    if self._clock() - started > self._total_s:
                        raise Unavailable(f"{url}: not whole within {self._total_s:g} s")
        except httpx.InvalidURL as fault:
            raise Rejected(f"{url}: {fault}", 0) from fault
        except httpx.HTTPError as fault:
            raise Unavailable(f"{url}: {type(fault).__name__} {fault}".rstrip()) from fault
        self._count(bytes=len(body))
        return bytes(body)

    def _judge(self, response: httpx.Response, url: str) -> None:
        status = response.status_code
        if 200 <= status < 300:
            return
        beginning = b""
        with contextlib.suppress(UpstreamError):
            beginning = next(_unpacked(response, self._max_body), b"")[:MAX_ERROR_BODY]
        said = f"{url}: {status} {beginning[:200].decode('utf-8', 'replace')}".rstrip()
        told_s = retry_after(response.headers.get("retry-after"), self._wall())
        fault: UpstreamError
        if status == 404:
            fault = NotFound(said)
        elif status == 429:
            fault = RateLimited(said, told_s)
        elif status >= 500:
            fault = Unavailable(said, told_s)
        else:
            fault = Rejected(said, status)
        fault.body = beginning
        raise fault

    def _wait(self, seconds: float) -> None:
        if seconds > 0:
            self._count(waited_s=seconds)
            self._sleep(seconds)

    def _count(self, **more: float) -> None:
        with self._counting:
            for name, value in more.items():
                setattr(self.counts, name, getattr(self.counts, name) + value)


def query(params: Mapping[str, Value]) -> list[tuple[str, str]]:
    """Encode query parameters in the exchange's format."""
    pairs: list[tuple[str, str]] = []
    for name, value in params.items():
        if value is None:
            continue
        values = [value] if isinstance(value, str | int | float | datetime) else list(value)
        pairs += [(name, _written(each)) for each in values]
    return pairs


def _written(value: str | float | datetime) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, datetime):
        return value.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return str(value)


def retry_after(text: str | None, now: float) -> float | None:
    """Parse Retry-After, in seconds or as a date; None when missing or invalid."""
    if not text:
        return None
    try:
        return max(0.0, float(int(text)))
    except ValueError:
        pass
    try:
        return max(0.0, parsedate_to_datetime(text).timestamp() - now)
    except (ValueError, OverflowError):
        return None


def _decoded(decoder: msgspec.json.Decoder[T], body: bytes, url: str) -> T:
    try:
        return decoder.decode(body)
    except FAULTS as fault:
        what = "HTML" if body.lstrip()[:1] == b"<" else str(fault)
        raise Malformed(f"{url}: {what}: {body[:120].decode('utf-8', 'replace')}") from fault


def _unpacked(response: httpx.Response, most: int) -> Iterator[bytes]:
    """Yield the decompressed body in pieces, never more at once than the limit: a small gzip can hold gigabytes."""
    encoding = response.headers.get("content-encoding", "identity").strip().lower()
    if response.is_stream_consumed:  # built in memory, as by a mock: already decompressed
        yield response.content
    elif encoding in {"identity", ""}:
        yield from response.iter_raw()
    elif encoding in {"gzip", "x-gzip"}:
        unpacker = zlib.decompressobj(wbits=31)
        try:
            for piece in response.iter_raw():
                yield unpacker.decompress(piece, most + 1)
                if unpacker.unconsumed_tail:
                    raise TooLarge(f"{response.url}: more than {most} bytes")
        except zlib.error as fault:
            raise Malformed(f"{response.url}: bad gzip: {fault}") from fault
        if not unpacker.eof:
            raise Malformed(f"{response.url}: gzip cut off")
    else:
        raise Malformed(f"{response.url}: unasked-for encoding {encoding!r:.40}")
