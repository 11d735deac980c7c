"""Fixtures: a client with a handler function in place of the exchange, and a clock that advances only on sleep."""

from collections.abc import Callable, Iterator

import httpx
import pytest

from upstream.transport.http import Client

Handler = Callable[[httpx.Request], httpx.Response]


class FakeTime:
    """A clock that advances only by sleeping."""

    def __init__(self) -> None:
        self.now = 1_790_000_000.0
        self.slept: list[float] = []

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds


@pytest.fixture
def clock() -> FakeTime:
    return FakeTime()


@pytest.fixture
def client_of(clock: FakeTime) -> Iterator[Callable[..., Client]]:
    """`client_of(handler)`: requests are answered by `handler(request)`; full jitter is always its ceiling."""
    opened: list[Client] = []

    def make(handler: Handler, **options) -> Client:
        settings = {"clock": clock, "wall": clock, "sleep": clock.sleep, "uniform": lambda low, high: high} | options
        client = Client(transport=httpx.MockTransport(handler), **settings)
        opened.append(client)
        return client

    yield make
    for client in opened:
        client.close()
