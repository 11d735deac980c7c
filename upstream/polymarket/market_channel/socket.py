"""Market channel connection: yields messages until the connection is lost."""

import asyncio
import contextlib
import random
import time
from collections.abc import Callable, Iterable, Iterator
from types import TracebackType
from typing import Self, cast

import msgspec
from picows import WSError
from picows.websockets.asyncio.client import ClientConnection, connect
from picows.websockets.exceptions import ConnectionClosed, WebSocketException
from python_socks import ProxyError

from upstream.polymarket.book import Book, Level
from upstream.polymarket.market_channel.frames import parse, parse_incrementally
from upstream.polymarket.market_channel.messages import (
    BestBidAsk,
    ChannelMessage,
    LastTrade,
    LevelChange,
    NewMarket,
    Pong,
    Resolved,
    TickSize,
    Unknown,
)
from upstream.transport.errors import RefusedObject, SocketLost
from upstream.transport.http import USER_AGENT

__all__ = [
    "BestBidAsk",
    "Book",
    "ChannelMessage",
    "LastTrade",
    "Level",
    "LevelChange",
    "MarketSocket",
    "NewMarket",
    "Pong",
    "RefusedObject",
    "Resolved",
    "SocketLost",
    "TickSize",
    "Unknown",
    "backoff",
    "parse",
]

MAX_FRAME = 32 << 20
"""Bytes: 500 deep books in one array are well below."""
CLOSE_S = 1.0
"""Seconds that a peer has to answer the closing handshake."""
LARGE_FRAME = 256 << 10
"""Bytes: larger frames are parsed in pieces, so that the event loop is never blocked for long."""


class MarketSocket:
    """One connection to the market channel: an async context manager, and an iterator of (received, messages).

    `received` is `time.monotonic()` when the frame arrived. Any end of the connection raises `SocketLost`; reconnecting
    is up to the caller. A frame of which `keep` returns True is the caller's: it is not parsed, and yields nothing.
    """

    def __init__(
        self,
        url: str,
        assets: Iterable[str] = (),
        *,
        open_timeout_s: float = 10.0,
        ping_every_s: float = 10.0,
        stale_after_s: float = 30.0,
        max_frame: int = MAX_FRAME,
        max_queue: int = 256,
        clock: Callable[[], float] = time.monotonic,
        keep: Callable[[bytes, float], bool] | None = None,
    ) -> None:
        self.url = url
        self.assets = list(dict.fromkeys(assets))
        self.frames = 0
        self.bytes = 0
        self._open_timeout_s = open_timeout_s
        self._ping_every_s = ping_every_s
        self._stale_after_s = stale_after_s
        self._max_frame = max_frame
        self._max_queue = max_queue
        self._clock = clock
        self._keep = keep
        self._lost: str | None = None
        self._heard_at = 0.0
        self._busy_since = 0.0
        self._listening = False
        self._connection: ClientConnection | None = None
        self._heart: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        try:
            async with asyncio.timeout(self._open_timeout_s + CLOSE_S):  # TCP: the handshake has its own
                self._connection = await connect(
                    self.url,
                    user_agent_header=USER_AGENT,
                    open_timeout=self._open_timeout_s,
                    ping_interval=None,  # the exchange expects PING as text; protocol pings would prove nothing
                    close_timeout=CLOSE_S,
                    max_size=self._max_frame,
                    max_queue=self._max_queue,
                    compression=None,  # short frames gain little, and it costs event loop time
                )
                await self._send(
                    {"type": "market", "assets_ids": self.assets, "custom_feature_enabled": True},
                )
        except TimeoutError:
            await self._abort()
            raise SocketLost(f"not open within {self._open_timeout_s:g} s") from None
        except (OSError, WSError, WebSocketException, ProxyError, EOFError) as fault:
            await self._abort()
            raise SocketLost(f"cannot be opened: {fault or type(fault).__name__}") from fault
        except BaseException:
            await self._abort()
            raise
        self._heard_at = self._busy_since = self._clock()
        self._heart = asyncio.create_task(self._beat(), name="market socket heartbeat")
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

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> tuple[float, list[ChannelMessage | RefusedObject]]:
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
                if self._keep is None or not self._keep(frame, received):
                    break
        except ConnectionClosed as closed:
            raise SocketLost(self._lost or _reason(closed)) from closed
        finally:
            self._listening = False
            self._busy_since = self._clock()
        if len(frame) > LARGE_FRAME:
            return received, await parse_incrementally(frame)
        return received, parse(frame)

    async def subscribe(self, assets: Iterable[str]) -> None:
        """Subscribe to more tokens; those already subscribed are not requested again."""
        more = [asset for asset in dict.fromkeys(assets) if asset not in set(self.assets)]
        if more:
            self.assets += more
            await self._operate("subscribe", more)

    async def unsubscribe(self, assets: Iterable[str]) -> None:
        """Unsubscribe from tokens; messages in flight may still arrive."""
        followed = set(self.assets)
        fewer = [asset for asset in dict.fromkeys(assets) if asset in followed]
        if fewer:
            gone = set(fewer)
            self.assets = [asset for asset in self.assets if asset not in gone]
            await self._operate("unsubscribe", fewer)

    async def _operate(self, operation: str, assets: list[str]) -> None:
        await self._send({"operation": operation, "assets_ids": assets, "custom_feature_enabled": True})

    async def _send(self, what: dict[str, object] | str) -> None:
        if self._connection is None:
            raise SocketLost(self._lost or "not open")
        text = what if isinstance(what, str) else msgspec.json.encode(what).decode()
        try:
            await self._connection.send(text)
        except ConnectionClosed as closed:
            raise SocketLost(self._lost or _reason(closed)) from closed

    async def _beat(self) -> None:
        """Send PING at each interval, and abort a connection that has been silent for too long."""
        next_ping = self._clock() + self._ping_every_s
        while True:
            now = self._clock()
            # Silence is the exchange's only while someone reads: a busy caller leaves frames queued.
            stale_at = (self._heard_at if self._listening else now) + self._stale_after_s
            if now >= stale_at:
                self._lost = f"silent for {self._stale_after_s:g} s"
                await self._abort()
                return
            if now >= next_ping:
                next_ping = now + self._ping_every_s
                with contextlib.suppress(SocketLost, TimeoutError):
                    # A peer that reads nothing would block the send, and with it the silence check.
                    async with asyncio.timeout(max(0.01, stale_at - now)):
                        await self._send("PING")
            await asyncio.sleep(max(0.01, min(next_ping, stale_at) - self._clock()))

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
