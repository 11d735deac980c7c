"""The client for asyncio."""

from __future__ import annotations

import asyncio
import itertools
import math
import time
from typing import TYPE_CHECKING, Any, Self, TypeVar

import httpx
from websockets.asyncio.client import connect

from presage_client._async_operations import AsyncOperations
from presage_client._transport import DEFAULT_TIMEOUT, Endpoint, Page, Parameter, Transport
from presage_client.stream import AsyncStream
from presage_client.stream.session import MAX_FRAME_BYTES

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
    from types import TracebackType

    from presage_client._transport import Instant
    from presage_client.stream import Gap, Type

T = TypeVar("T")


class AsyncClient(AsyncOperations):
    """A connection to the service, for one event loop.

    `base_url` is the service's address (`PRESAGE_URL`, then http://localhost:8080), `api_key` the key
    (`PRESAGE_API_KEY`), `debug_token` that of the debug operations (`PRESAGE_DEBUG_TOKEN`).

    A request that is refused with 429 is sent again after its Retry-After; so is a GET that is refused with 503 or
    loses its connection: `max_retries` times, and only if the wait is at most `max_wait_s`. A timeout is not retried.
    `http` is an httpx.AsyncClient of your own (proxies, certificates); it is not closed here, and its timeout is used.
    """

    def __init__(
        self,
        base_url: str | None = None,
        api_key: str | None = None,
        *,
        debug_token: str | None = None,
        timeout: float | httpx.Timeout = DEFAULT_TIMEOUT,
        max_retries: int = 3,
        max_wait_s: float = 60.0,
        http: httpx.AsyncClient | None = None,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._transport = Transport(
            base_url, api_key, debug_token=debug_token, max_retries=max_retries, max_wait_s=max_wait_s, clock=clock
        )
        self._http, self._owned, self._sleep = http or httpx.AsyncClient(timeout=timeout), http is None, sleep

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._transport.shown_url}>"

    @property
    def base_url(self) -> str:
        """The service's address."""
        return self._transport.base_url

    async def close(self) -> None:
        """Close its connections."""
        if self._owned:
            await self._http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def stream(
        self,
        *,
        markets: Iterable[str] | None = None,
        types: Iterable[Type] | None = None,
        wallets: Iterable[str] = (),
        resume_from: int | None = None,
        on_gap: Callable[[Gap], object] | None = None,
        patience_s: float = math.inf,
    ) -> AsyncStream:
        """Return the event stream, which reconnects and resumes by itself: see `AsyncStream`."""
        return AsyncStream(
            self._transport.base_url,
            self._transport.api_key,
            markets=markets,
            types=types,
            wallets=wallets,
            resume_from=resume_from,
            on_gap=on_gap,
            patience_s=patience_s,
        )

    def market_channel_replay(
        self, from_: Instant, *, to: Instant | None = None, speed: float | None = None
    ) -> connect:
        """Open a WebSocket (`async with`) that replays the past in the exchange's own protocol."""
        url = self._transport.websocket_url("/replay/ws/market", {"from": from_, "to": to, "speed": speed})
        return connect(url, compression=None, max_size=MAX_FRAME_BYTES)

    async def _call(
        self,
        endpoint: Endpoint[T],
        path: Mapping[str, Parameter],
        query: Mapping[str, Parameter],
        body: Mapping[str, Any] | None = None,
    ) -> T:
        call = self._transport.call(endpoint, path, query, body)
        for attempt in itertools.count():
            failed: httpx.Response | httpx.RequestError
            try:
                response = await self._http.request(call.method, call.url, headers=call.headers, content=call.content)
            except httpx.RequestError as failure:
                failed = failure
            else:
                if response.is_success:
                    return self._transport.answer(endpoint, response)
                failed = response
            await self._sleep(self._transport.pause(endpoint, attempt, failed))
        raise AssertionError

    async def _pages(
        self, endpoint: Endpoint[Page[T]], path: Mapping[str, Parameter], query: Mapping[str, Parameter]
    ) -> AsyncIterator[T]:
        while True:
            page = await self._call(endpoint, path, query)
            for record in page.data:
                yield record
            if not page.has_more or not page.next_cursor:
                return
            query = {**query, "cursor": page.next_cursor}
