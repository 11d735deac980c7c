"""Market channel connection: yields messages until the connection is lost."""

import asyncio
import contextlib
import time
from collections.abc import Callable, Iterable
from typing import Self

from picows.websockets.asyncio.client import connect

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
from upstream.transport.websocket import CLOSE_S, FeedSocket, backoff

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
LARGE_FRAME = 256 << 10
"""Bytes: larger frames are parsed in pieces, so that the event loop is never blocked for long."""


class MarketSocket(FeedSocket):
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
        super().__init__(url, open_timeout_s=open_timeout_s, stale_after_s=stale_after_s, clock=clock)
        self.assets = list(dict.fromkeys(assets))
        self._ping_every_s = ping_every_s
        self._max_frame = max_frame
        self._max_queue = max_queue
        self._keep = keep

    async def _open(self) -> None:
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
        await self._send({"type": "market", "assets_ids": self.assets, "custom_feature_enabled": True})

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> tuple[float, list[ChannelMessage | RefusedObject]]:
        frame, received = await self._receive(self._keep)
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

    def request_books(self, assets: Iterable[str]) -> None:
        """Do nothing: the channel sends books by itself, and REST has them."""

    async def _operate(self, operation: str, assets: list[str]) -> None:
        await self._send({"operation": operation, "assets_ids": assets, "custom_feature_enabled": True})

    async def _beat(self) -> None:
        """Send PING at each interval, and abort a connection that has been silent for too long."""
        next_ping = self._clock() + self._ping_every_s
        while True:
            now = self._clock()
            stale_at = self._stale_at(now)
            if now >= stale_at:
                await self._die_of_silence()
                return
            if now >= next_ping:
                next_ping = now + self._ping_every_s
                with contextlib.suppress(SocketLost, TimeoutError):
                    # A peer that reads nothing would block the send, and with it the silence check.
                    async with asyncio.timeout(max(0.01, stale_at - now)):
                        await self._send("PING")
            await asyncio.sleep(max(0.01, min(next_ping, stale_at) - self._clock()))
