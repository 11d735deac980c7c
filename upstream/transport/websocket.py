"""WebSocket connection to an exchange, bounded in time and size: any end of it raises `SocketLost`."""

import asyncio
import random
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import TYPE_CHECKING, Self, cast

import msgspec
from picows import WSError
from picows.websockets.exceptions import ConnectionClosed, WebSocketException
from python_socks import ProxyError

from upstream.transport.errors import SocketLost

if TYPE_CHECKING:
    from picows.websockets.asyncio.client import ClientConnection

CLOSE_S = 1.0
"""Seconds that a peer has to answer the closing handshake."""
OPEN_FAULTS = (OSError, WSError, WebSocketException, ProxyError, EOFError)


class FeedSocket(ABC):
    """One connection, as an async context manager; reconnecting is up to the caller.

    It is dead after `stale_after_s` without a frame, as far as somebody waits for one: a busy caller leaves them
    queued.
    """

    def __init__(self, url: str, *, open_timeout_s: float, stale_after_s: float, clock: Callable[[], float]) -> None:
        self.url = url
        self.frames = 0
        self.bytes = 0
        self._open_timeout_s = open_timeout_s
        self._stale_after_s = stale_after_s
        self._clock = clock
        self._lost: str | None = None
        self._heard_at = 0.0
        self._busy_since = 0.0
        self._listening = False
        self._connection: ClientConnection | None = None
        self._heart: asyncio.Task[None] | None = None

    @abstractmethod
    async def _open(self) -> None:
        """Set `_connection`, and send what belongs to the opening; `OPEN_FAULTS` become `SocketLost`."""

    @abstractmethod
    async def _beat(self) -> None:
        """Watch over the connection until it ends."""

    async def __aenter__(self) -> Self:
        try:
            async with asyncio.timeout(self._open_timeout_s + CLOSE_S):  # TCP: the handshake has its own
                await self._open()
        except TimeoutError:
            await self._abort()
            raise SocketLost(f"not open within {self._open_timeout_s:g} s") from None
        except OPEN_FAULTS as fault:
            await self._abort()
            raise SocketLost(f"cannot be opened: {fault or type(fault).__name__}") from fault
        except BaseException:
            await self._abort()
            raise
        self._heard_at = self._busy_since = self._clock()
        self._heart = asyncio.create_task(self._beat(), name=f"{type(self).__name__} heartbeat")
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connection with a handshake; safe to call at any time, more than once."""
        if self._heart is not None:
            self._heart.cancel()
            await asyncio.wait([self._heart])
            self._heart = None
        if self._connection is not None:
            await self._connection.close()
            self._connection = None

    async def _receive(self, keep: Callable[[bytes, float], bool] | None = None) -> tuple[bytes, float]:
        """Return the next frame that `keep` does not take, and when it was received."""
        self._heard_at += self._clock() - self._busy_since
        self._listening = True
        try:
            while True:
                if self._connection is None:
                    raise SocketLost(self._lost or "not open")
                frame = cast("bytes", await self._connection.recv(decode=False))
                received = self._heard_at = self._clock()
                self.frames += 1
                self.bytes += len(frame)
                if keep is None or not keep(frame, received):
                    return frame, received
        except ConnectionClosed as closed:
            raise SocketLost(self._lost or _reason(closed)) from closed
        finally:
            self._listening = False
            self._busy_since = self._clock()

    async def _send(self, what: dict[str, object] | str) -> None:
        if self._connection is None:
            raise SocketLost(self._lost or "not open")
        text = what if isinstance(what, str) else msgspec.json.encode(what).decode()
        try:
            await self._connection.send(text)
        except ConnectionClosed as closed:
            raise SocketLost(self._lost or _reason(closed)) from closed

    def _stale_at(self, now: float) -> float:
        """Return when silence will have lasted too long; it is the exchange's only while someone reads."""
        return (self._heard_at if self._listening else now) + self._stale_after_s

    async def _die_of_silence(self) -> None:
        self._lost = f"silent for {self._stale_after_s:g} s"
        await self._abort()

    async def _abort(self) -> None:
        """Abort the connection after CLOSE_S, in which a dead peer does not answer the closing handshake."""
        if self._connection is not None:
            await self._connection.close()


def _reason(closed: ConnectionClosed) -> str:
    if closed.rcvd is not None:
        return f"closed by the exchange: {closed.rcvd.code} {closed.rcvd.reason or ''}".rstrip()
    if closed.sent is not None:
        return f"closed by us: {closed.sent.code} {closed.sent.reason or ''}".rstrip()
    return "connection broken off"


def backoff(
    *,
    first_s: float = 0.25,
    most_s: float = 30.0,
    uniform: Callable[[float, float], float] = random.uniform,
) -> Iterator[float]:
    """Yield the seconds to wait before each further attempt: doubling, with full jitter, without end."""
    ceiling = first_s
    while True:
        yield uniform(0, ceiling)
        ceiling = min(ceiling * 2, most_s)
