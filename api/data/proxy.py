"""Requests forwarded to the exchange while a client waits: bounded in time and size, cached, circuit-broken."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, TypeVar

import httpx
from gevent import Timeout

from api.data.cache import Cache
from api.errors import Problem
from upstream.polymarket.data_api import client as data_api
from upstream.polymarket.data_api.client import DataApi
from upstream.polymarket.gamma import client as gamma
from upstream.polymarket.gamma.client import Gamma
from upstream.transport.errors import NotFound, RateLimited, Rejected, Unavailable, UpstreamError
from upstream.transport.http import Client

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Iterator

T = TypeVar("T")

DEADLINE_S = 5.0  # the longest that a client waits
CACHE_TTL_S = 3.0
MAX_BODY_BYTES = 16 << 20
CLIENT_FAULTS = {400, 404, 414, 422}  # upstream statuses caused by the client's own parameters


class DeadlineExceededError(UpstreamError):
    """The deadline passed; the exchange itself may be healthy."""


@dataclass
class CircuitBreaker:
    """A circuit breaker: opens after consecutive failures, then lets one request probe after a cooldown."""

    threshold: int = 5
    cooldown_s: float = 10.0
    clock: Callable[[], float] = time.monotonic
    failures: int = 0
    open_until: float = 0.0
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def admit(self) -> float:
        """Return the seconds until the next request is allowed; 0 means now."""
        with self._lock:
            if self.failures < self.threshold:
                return 0.0
            now = self.clock()
            if now < self.open_until:
                return self.open_until - now
            self.open_until = now + self.cooldown_s  # this request probes; others wait for its result
            return 0.0

    def succeeded(self) -> None:
        """Close the circuit."""
        with self._lock:
            self.failures = 0

    def failed(self) -> None:
        """Count a failure; enough of them open the circuit."""
        with self._lock:
            self.failures += 1
            self.open_until = self.clock() + self.cooldown_s


class ExchangeProxy:
    """The exchange's own APIs, for endpoints that forward their responses."""

    def __init__(
        self,
        gamma_url: str = gamma.URL,
        data_api_url: str = data_api.URL,
        *,
        source: str = "exchange",
        transport: httpx.BaseTransport | None = None,
        deadline_s: float = DEADLINE_S,
    ) -> None:
        self.source, self.deadline_s = source, deadline_s
        self._urls = gamma_url, data_api_url
        self._transport = transport
        self._cache = Cache()
        self.breakers = {"gamma": CircuitBreaker(), "data_api": CircuitBreaker()}

    @cached_property
    def client(self) -> Client:
        """The HTTP client, with short timeouts; created on first use."""
        return Client(
            transport=self._transport,
            connect_s=self.deadline_s * 0.3,
            read_s=self.deadline_s * 0.4,
            total_s=self.deadline_s * 0.8,
            attempts=2,
            initial_backoff_s=0.05,
            max_body=MAX_BODY_BYTES,
            sleep=_short_sleep,
        )

    @cached_property
    def gamma(self) -> Gamma:
        """The Gamma API: the market catalogue."""
        return Gamma(self.client, self._urls[0])

    @cached_property
    def data_api(self) -> DataApi:
        """The Data API: trades and positions."""
        return DataApi(self.client, self._urls[1])

    def close(self) -> None:
        """Close the HTTP connections."""
        if "client" in self.__dict__:
            self.client.close()

    def fetch(self, question: Hashable, of: str, ask: Callable[[], bytes]) -> bytes:
        """Return the exchange's response, at most a few seconds old; raise a Problem on failure."""
        body, _ = self._cache.get((of, question), CACHE_TTL_S, lambda: (self._ask(of, ask), ""))
        return body

    def until_deadline(self, several: Iterable[T]) -> Iterator[T]:
        """Iterate over items until the deadline; then raise."""
        deadline = time.monotonic() + self.deadline_s * 0.8
        for each in several:
            yield each
            if time.monotonic() > deadline:
                raise DeadlineExceededError("pagination took too long")

    def _ask(self, of: str, ask: Callable[[], bytes]) -> bytes:
        breaker = self.breakers[of]
        if wait_s := breaker.admit():
            raise _problem("It failed several times in a row, so requests to it are paused", 502, wait_s)
        try:
            answer = self._within_deadline(ask)
        except UpstreamError as error:
            if isinstance(error, NotFound) or (isinstance(error, Rejected) and error.status in CLIENT_FAULTS):
                breaker.succeeded()  # it is up
                raise Problem(
                    "invalid_parameter",
                    "The exchange rejected the request",
                    hint="Check the parameters that are forwarded to it",
                ) from error
            breaker.failed()
            raise _problem_for(error) from error
        breaker.succeeded()
        return answer

    def _within_deadline(self, ask: Callable[[], bytes]) -> bytes:
        deadline = Timeout.start_new(self.deadline_s)
        try:
            return ask()
        except Timeout as over:  # not an Exception, so the client's retries let it through
            if over is not deadline:
                raise
            raise DeadlineExceededError(f"no answer within {self.deadline_s:g} s") from None
        finally:
            deadline.close()


def _problem_for(error: UpstreamError) -> Problem:
    """Return the Problem for a failure of the exchange."""
    if isinstance(error, DeadlineExceededError) or isinstance(error.__cause__, httpx.TimeoutException):
        return _problem("It did not respond in time", 504, 2)
    if isinstance(error, RateLimited):
        return _problem("It is rate limiting us", 502, error.retry_after_s or 5)
    if isinstance(error, Unavailable):
        return _problem("It is unreachable or failing", 502, error.retry_after_s or 2)
    return _problem("Its response is not valid", 502, 2)


def _problem(detail: str, status: int, retry_s: float) -> Problem:
    seconds = max(1, min(60, round(retry_s + 0.5)))
    return Problem(
        "upstream_unavailable",
        f"The exchange is unavailable. {detail}",
        hint=f"Retry in {seconds} s; data recorded here does not depend on it",
        status=status,
        headers={"Retry-After": str(seconds)},
    )


def _short_sleep(seconds: float) -> None:
    """Sleep for a rate limit or a retry; raise instead if that takes more than a second."""
    if seconds > 1:
        raise RateLimited("too many requests for the exchange", seconds)
    time.sleep(seconds)
