"""The stream for asyncio: an asynchronous iterator of events."""

from __future__ import annotations

import asyncio
import math
import time
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING, Self

from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidStatus

from presage_client.stream.errors import Interrupted, Lost, Unavailable
from presage_client.stream.events import Event, StreamGap
from presage_client.stream.opening import AsyncConnect, options
from presage_client.stream.session import IDLE_S, Session

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterable
    from ssl import SSLContext
    from types import TracebackType

    from websockets.asyncio.client import ClientConnection

    from presage_client.stream.events import Type
    from presage_client.stream.opening import Proxy


class AsyncStream:
    """Events as they happen, each once and in order, over any number of connections.

    `address` is the service's base URL. `markets` are ids or slugs, `types` event types; None is all. All markets are
    those of one `exchange`, Polymarket unless it is given. Activity of `wallets` is added to that. `resume_from` is the
    `seq` of the last event received earlier: save `last`, and nothing is missed over restarts. A gap raises `Lost`, or
    is passed to `on_gap` if that is given. `Unavailable` is raised after `patience_s` without a connection. `ssl` has
    the certificates, `proxy` is a proxy's address; True takes it from the environment.
    """

    def __init__(
        self,
        address: str,
        key: str,
        *,
        markets: Iterable[str] | None = None,
        types: Iterable[Type] | None = None,
        exchange: str | None = None,
        wallets: Iterable[str] = (),
        resume_from: int | None = None,
        on_gap: Callable[[StreamGap], object] | None = None,
        patience_s: float = math.inf,
        ssl: SSLContext | None = None,
        proxy: Proxy = True,
    ) -> None:
        self._session = Session(
            address, key, markets=markets, types=types, exchange=exchange, wallets=wallets, resume_from=resume_from
        )
        self._on_gap, self._patience_s = on_gap, patience_s
        self._options = options(self._session.url, ssl, proxy)
        self._socket: ClientConnection | None = None
        self._pending: deque[Event | StreamGap] = deque()
        self._last = resume_from
        self._closed = asyncio.Event()

    @property
    def last(self) -> int | None:
        """The `seq` to resume from after the events returned so far."""
        return self._last if self._pending else self._session.last

    def __repr__(self) -> str:
        state = "not connected" if self._socket is None else self._socket.state.name.lower()
        state = "closed" if self._closed.is_set() else state
        return f"<{type(self).__name__} past {self.last}, {state}, {self._session}>"

    def __aiter__(self) -> AsyncIterator[Event]:
        return self

    async def __anext__(self) -> Event:
        """Wait for the next event; only `close` ends the stream."""
        while not self._closed.is_set():
            while self._pending:
                item = self._pending.popleft()
                if isinstance(item, Event):
                    self._last = item.seq
                    return item
                if self._on_gap is None:
                    raise Lost(item)
                self._on_gap(item)
            try:
                await self._receive(self._socket or await self._connect())
            except Interrupted as why:
                await self._disconnect()
                await self._sleep(self._session.pause(why.wait_s))
        raise StopAsyncIteration

    async def close(self) -> None:
        """Close the stream."""
        self._closed.set()
        await self._disconnect()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def _connect(self) -> ClientConnection:
        began = time.monotonic()
        while not self._closed.is_set():
            try:
                socket = await AsyncConnect(self._session.url, **self._options)
            except InvalidStatus as answer:
                why = self._session.refused(answer.response, time.time())
            except (OSError, InvalidHandshake, EOFError) as error:
                why = Interrupted(str(error))
            else:
                self._socket = socket
                if not self._closed.is_set():
                    return socket
                await self._disconnect()  # close() found none to close
                break
            pause = self._session.pause(why.wait_s)
            if time.monotonic() + pause - began > self._patience_s:
                raise Unavailable(str(why))
            await self._sleep(pause)
        raise Interrupted("closed")

    async def _receive(self, socket: ClientConnection) -> None:
        try:
            try:
                async with asyncio.timeout(IDLE_S):
                    text = await socket.recv(decode=True)
            except TimeoutError:
                await socket.send(self._session.ping())
                return
            before = self._session.last
            events, answers = self._session.receive(text)
            if events:
                self._last = before
            self._pending += events
            for answer in answers:
                await socket.send(answer)
        except ConnectionClosed as closed:
            raise self._session.closed(closed) from None

    async def _sleep(self, seconds: float) -> None:
        """Wait; `close` ends it."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._closed.wait()

    async def _disconnect(self) -> None:
        socket, self._socket = self._socket, None
        if socket is not None:
            await socket.close()
