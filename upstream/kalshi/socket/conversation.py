"""What is said on one connection: frames in, commands out."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterable

    from upstream.kalshi.socket.connection import KalshiSocket
    from upstream.kalshi.socket.events import FeedEvent
    from upstream.kalshi.socket.session import KalshiSession

TICK_S = 1.0
"""Seconds between two looks at what is overdue."""


class Conversation:
    """Applies a socket's frames to a session, and sends the commands that follow from them."""

    def __init__(
        self, socket: KalshiSocket, session: KalshiSession, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.socket = socket
        self.session = session
        self._clock = clock
        self._sending = asyncio.Lock()
        self._held_s = 0.0

    async def events(self) -> AsyncIterator[tuple[float, list[FeedEvent]]]:
        """Yield when each frame came and what it says, which may be nothing, until `SocketLost` is raised."""
        looked = self._listened_s()
        self.session.begin(looked)
        while True:
            await self._flush()
            try:
                async with asyncio.timeout(TICK_S):
                    received, frame = await self.socket.receive()
                now = received - self._held_s
                events = self.session.apply(frame, now)
            except TimeoutError:
                received, now, events = self._clock(), self._listened_s(), None
            if events is not None:
                began = self._clock()
                yield received, events
                self._held_s += self._clock() - began
            if now - looked >= TICK_S:
                looked = now
                if due := self.session.tick(now):
                    began = self._clock()
                    yield received, due
                    self._held_s += self._clock() - began

    async def want(self, tickers: Iterable[str]) -> None:
        """Follow these markets and no others."""
        self.session.subscriptions.wanted = dict.fromkeys(tickers)
        self.session.begin(self._listened_s())
        await self._flush()

    def request(self, tickers: Iterable[str]) -> None:
        """Ask for these markets' books anew, within `TICK_S`."""
        self.session.request(tickers, self._listened_s())

    def _listened_s(self) -> float:
        """Return the time without that in which the caller was busy: answers may have been queued meanwhile."""
        return self._clock() - self._held_s

    async def _flush(self) -> None:
        async with self._sending:  # a market deleted and added again has to be so in this order
            for command in self.session.commands():
                await self.socket.command(command)
