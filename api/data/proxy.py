"""What is asked of the exchange while a client waits: bounded in time and size, kept for seconds, and given up soon."""

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

DEADLINE_S = 5.0  # whatever happens, a client waits no longer
KEPT_S = 3.0
MOST_BYTES = 16 << 20
CLIENT_FAULTS = {400, 404, 414, 422}  # of what a client had us ask


class OutOfTimeError(UpstreamError):
    """The exchange may be well, but our client has waited long enough."""


@dataclass
class Breaker:
    """Stops asking someone who failed several times in a row; after a while one question tries again."""

    patience: int = 5
    rest_s: float = 10.0
    clock: Callable[[], float] = time.monotonic
    failures: int = 0
    closed_until: float = 0.0
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def admit(self) -> float:
        """Give the seconds until it is worth asking, 0 for now."""
        with self._lock:
            if self.failures < self.patience:
                return 0.0
            now = self.clock()
            if now < self.closed_until:
                return self.closed_until - now
            self.closed_until = now + self.rest_s  # this one tries; nobody else until it is known how it went
            return 0.0

    def succeeded(self) -> None:
        """Trust again."""
        with self._lock:
            self.failures = 0

    def failed(self) -> None:
        """Count it; enough of them close the way for a while."""
        with self._lock:
            self.failures += 1
            self.closed_until = self.clock() + self.rest_s


class Exchange:
    """The exchange's own interfaces, for endpoints that pass on what they say."""

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
        self._kept = Cache()
        self.breakers = {"gamma": Breaker(), "data_api": Breaker()}

    @cached_property
    def client(self) -> Client:
        """HTTP, impatient: made when first needed."""
        return Client(
            transport=self._transport,
            connect_s=self.deadline_s * 0.3,
            read_s=self.deadline_s * 0.4,
            total_s=self.deadline_s * 0.8,
            attempts=2,
            first_backoff_s=0.05,
            max_body=MOST_BYTES,
            sleep=_briefly,
        )

    @cached_property
    def gamma(self) -> Gamma:
        """The catalogue."""
        return Gamma(self.client, self._urls[0])

    @cached_property
    def data_api(self) -> DataApi:
        """Trades and positions."""
        return DataApi(self.client, self._urls[1])

    def close(self) -> None:
        """Let go of connections."""
        if "client" in self.__dict__:
            self.client.close()

    def tell(self, question: Hashable, of: str, ask: Callable[[], bytes]) -> bytes:
        """Give what the exchange says, as heard a few seconds ago at most; trouble becomes a problem."""
        body, _ = self._kept.get((of, question), KEPT_S, lambda: (self._ask(of, ask), ""))
        return body

    def in_time(self, several: Iterable[T]) -> Iterator[T]:
        """Walk pages only as long as a client waits."""
        deadline = time.monotonic() + self.deadline_s * 0.8
        for each in several:
            yield each
            if time.monotonic() > deadline:
                raise OutOfTimeError("the walk takes too long")

    def _ask(self, of: str, ask: Callable[[], bytes]) -> bytes:
        breaker = self.breakers[of]
        if wait_s := breaker.admit():
            raise _problem("It has failed several times in a row and is left alone for a while", 502, wait_s)
        try:
            answer = self._within_deadline(ask)
        except UpstreamError as error:
            if isinstance(error, NotFound) or (isinstance(error, Rejected) and error.status in CLIENT_FAULTS):
                breaker.succeeded()  # it answers
                raise Problem(
                    "invalid_parameter",
                    "The exchange refuses what it was asked",
                    hint="Check the parameters that are passed on to it",
                ) from error
            breaker.failed()
            raise _told(error) from error
        breaker.succeeded()
        return answer

    def _within_deadline(self, ask: Callable[[], bytes]) -> bytes:
        deadline = Timeout.start_new(self.deadline_s)
        try:
            return ask()
        except Timeout as over:  # not an Exception: a client that tries again on errors lets it through
            if over is not deadline:
                raise
            raise OutOfTimeError(f"no answer within {self.deadline_s:g} s") from None
        finally:
            deadline.close()


def _told(error: UpstreamError) -> Problem:
    """Say what a failure of the exchange means to our client."""
    if isinstance(error, OutOfTimeError) or isinstance(error.__cause__, httpx.TimeoutException):
        return _problem("It has not answered in time", 504, 2)
    if isinstance(error, RateLimited):
        return _problem("It asks us to slow down", 502, error.retry_after_s or 5)
    if isinstance(error, Unavailable):
        return _problem("It cannot be reached, or fails", 502, error.retry_after_s or 2)
    return _problem("Its answer is not what it should be", 502, 2)


def _problem(detail: str, status: int, retry_s: float) -> Problem:
    seconds = max(1, min(60, round(retry_s + 0.5)))
    return Problem(
        "upstream_unavailable",
        f"The exchange is in trouble. {detail}",
        hint=f"Try again in {seconds} s; what is recorded here does not depend on it",
        status=status,
        headers={"Retry-After": str(seconds)},
    )


def _briefly(seconds: float) -> None:
    """Wait for the exchange's rate limit or for a second attempt, though not while a client loses patience."""
    if seconds > 1:
        raise RateLimited("too many requests for the exchange", seconds)
    time.sleep(seconds)
