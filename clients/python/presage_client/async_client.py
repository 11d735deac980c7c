"""The client for asyncio."""

from __future__ import annotations

import asyncio
import itertools
import math
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeVar

import httpx

from presage_client._async_operations import AsyncOperations
from presage_client._download import Download
from presage_client._endpoints import EXPORT_FILE
from presage_client._transport import DEFAULT_TIMEOUT, MAX_RESPONSE_BYTES, Call, Endpoint, Page, Parameter, Transport
from presage_client.stream import AsyncStream
from presage_client.stream.opening import AsyncConnect, final_failures, options

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
    from contextlib import AbstractAsyncContextManager
    from datetime import date
    from ssl import SSLContext
    from types import TracebackType

    from presage_client import records
    from presage_client._transport import Failed, Instant
    from presage_client.stream import StreamGap, Type
    from presage_client.stream.opening import Proxy

T = TypeVar("T")


class AsyncClient(AsyncOperations):
    """A connection to the service, for one event loop.

    `base_url` is the service's address (`PRESAGE_URL`, then http://localhost:8080), `api_key` the key
    (`PRESAGE_API_KEY`), `debug_token` that of the debug operations (`PRESAGE_DEBUG_TOKEN`).

    A request that is refused with 429 is sent again after its Retry-After; so is a GET that is refused with 503 or
    loses its connection: `max_retries` times, and only if the wait is at most `max_wait_s`. A timeout is not retried.
    An answer of more than `max_response_bytes` (64 MiB) is an error, files excepted.
    `http` is an httpx.AsyncClient of your own (proxies, certificates), for all but streams; it is not closed here, and
    its timeout is used. Redirects are never followed: they would carry the key elsewhere.
    """

    def __init__(
        self,
        base_url: str | None = None,
        api_key: str | None = None,
        *,
        debug_token: str | None = None,
        timeout: float | httpx.Timeout | None = DEFAULT_TIMEOUT,
        max_retries: int = 3,
        max_wait_s: float = 60.0,
        max_response_bytes: int = MAX_RESPONSE_BYTES,
        http: httpx.AsyncClient | None = None,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._transport = Transport(
            base_url,
            api_key,
            debug_token=debug_token,
            max_retries=max_retries,
            max_wait_s=max_wait_s,
            max_response_bytes=max_response_bytes,
            clock=clock,
        )
        self._http, self._owned, self._sleep = http or httpx.AsyncClient(timeout=timeout), http is None, sleep

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._transport.base_url}>"

    @property
    def base_url(self) -> str:
        """The service's address, without a user and password."""
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
        on_gap: Callable[[StreamGap], object] | None = None,
        patience_s: float = math.inf,
        ssl: SSLContext | None = None,
        proxy: Proxy = True,
    ) -> AsyncStream:
        """Return the event stream, which reconnects and resumes by itself: see `AsyncStream`."""
        return AsyncStream(
            self._transport.address,
            self._transport.api_key,
            markets=markets,
            types=types,
            wallets=wallets,
            resume_from=resume_from,
            on_gap=on_gap,
            patience_s=patience_s,
            ssl=ssl,
            proxy=proxy,
        )

    def market_channel_replay(
        self,
        from_: Instant,
        *,
        to: Instant | None = None,
        speed: float | None = None,
        ssl: SSLContext | None = None,
        proxy: Proxy = True,
    ) -> AsyncConnect:
        """Open a WebSocket (`async with`) that replays the past in the exchange's own protocol."""
        url = self._transport.websocket_url("/replay/ws/market", {"from": from_, "to": to, "speed": speed})
        with final_failures(url):
            return AsyncConnect(url, **options(url, ssl, proxy))

    async def rotate_key(self) -> records.Rotation:
        """Replace the API key.

        The new key has the same tier, limits and usage; the key of this request becomes invalid. This client uses the
        new key from then on; streams opened before keep the old one.

        Credits: 0.
        """
        rotation = await super().rotate_key()
        self._transport.use_key(rotation.key)
        return rotation

    async def download_file(self, topic: str, day: str | date, file: str, to: str | Path) -> Path:
        """Download an exported file to `to`, a file or a directory, and return its path.

        A lost connection is resumed where it ended, up to `max_retries` times without progress. The file appears
        under its name only when it is whole.

        Credits: 1 for each request.
        """
        path = {"topic": topic, "day": day, "file": file}
        call = self._transport.call(EXPORT_FILE, path, {}, None)
        with Download(Path(to), file) as download:
            while True:
                failed: Failed | httpx.RequestError
                try:
                    async with self._send(call, **download.headers()) as response:
                        if response.is_success:
                            download.begin(response)
                            async for chunk in response.aiter_bytes():
                                download.write(chunk)
                            break
                        failed = response, await self._read(EXPORT_FILE, response)
                except httpx.RequestError as failure:
                    failed = failure
                await self._sleep(self._transport.pause(EXPORT_FILE, download.attempt(), failed))
        return download.target

    async def _call(
        self,
        endpoint: Endpoint[T],
        path: Mapping[str, Parameter],
        query: Mapping[str, Parameter],
        body: Mapping[str, Any] | None = None,
    ) -> T:
        call = self._transport.call(endpoint, path, query, body)
        for attempt in itertools.count():
            failed: Failed | httpx.RequestError
            try:
                async with self._send(call) as response:
                    content = await self._read(endpoint, response)
            except httpx.RequestError as failure:
                failed = failure
            else:
                if response.is_success:
                    return self._transport.answer(endpoint, response, content)
                failed = response, content
            await self._sleep(self._transport.pause(endpoint, attempt, failed))
        raise AssertionError

    def _send(self, call: Call, **headers: str) -> AbstractAsyncContextManager[httpx.Response]:
        return self._http.stream(
            call.method,
            call.url,
            headers={**call.headers, **headers},
            content=call.content,
            auth=self._transport.auth,
            follow_redirects=False,
        )

    async def _read(self, endpoint: Endpoint[Any], response: httpx.Response) -> bytes:
        body = self._transport.body(endpoint, response)
        async for chunk in response.aiter_bytes():
            body.add(chunk)
        return body.whole()

    async def _pages(
        self, endpoint: Endpoint[Page[T]], path: Mapping[str, Parameter], query: Mapping[str, Parameter]
    ) -> AsyncIterator[T]:
        while True:
            page = await self._call(endpoint, path, query)
            for record in page.data:
                yield record
            following = self._transport.next_query(query, page)
            if following is None:
                return
            query = following
