"""A feed of some markets and of the whole exchange, over one connection after the other, without end."""

from __future__ import annotations

import asyncio
import contextlib
import random
import time
from typing import TYPE_CHECKING, Self

from upstream.kalshi.socket.connection import URL, KalshiSocket
from upstream.kalshi.socket.conversation import Conversation
from upstream.kalshi.socket.events import Connected, Disconnected, FeedEvent
from upstream.kalshi.socket.session import KalshiSession
from upstream.kalshi.socket.subscriptions import BOOKS, LIFECYCLE, TRADES
from upstream.transport.errors import SocketLost
from upstream.transport.websocket import backoff

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence

    from upstream.kalshi.book import KalshiBook
    from upstream.kalshi.signing import Signer

LASTING_S = 60.0
"""Seconds that a connection has to last for the next one to be tried as soon as a first."""


class KalshiFeed:
    """An async iterator of (received, events): messages with their place, and everything that is missing.

    `channels` are followed for `tickers` and those of later calls of `follow`, `everywhere` for the whole exchange.
    Each connection is signed anew; after a lost one, or one that cannot be opened, the next is tried later each time.
    Without a key it raises Unauthenticated. A cancelled wait for the next events (`asyncio.wait_for`) ends the feed:
    `async for` stops.
    """

    def __init__(
        self,
        signer: Signer | None,
        url: str = URL,
        tickers: Iterable[str] = (),
        *,
        channels: Sequence[str] = (BOOKS, TRADES),
        everywhere: Sequence[str] = (LIFECYCLE,),
        open_timeout_s: float = 10.0,
        stale_after_s: float = 30.0,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        uniform: Callable[[float, float], float] = random.uniform,
    ) -> None:
        self.connections = 0
        self._signer = signer
        self._url = url
        self._tickers = dict.fromkeys(tickers)
        self._channels = channels
        self._everywhere = everywhere
        self._open_timeout_s = open_timeout_s
        self._stale_after_s = stale_after_s
        self._clock = clock
        self._sleep = sleep
        self._uniform = uniform
        self._conversation: Conversation | None = None
        self._events = self._run()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> tuple[float, list[FeedEvent]]:
        return await anext(self._events)

    async def close(self) -> None:
        """Close the connection, between two events; nothing more is yielded."""
        await self._events.aclose()  # type: ignore[attr-defined]  # an async generator

    async def follow(self, tickers: Iterable[str]) -> None:
        """Follow more markets, from now on and on every later connection."""
        self._tickers.update(dict.fromkeys(tickers))
        await self._wants_changed()

    async def unfollow(self, tickers: Iterable[str]) -> None:
        """Stop following some markets; trades and tickers under way are still yielded, book changes as dropped."""
        for ticker in tickers:
            self._tickers.pop(ticker, None)
        await self._wants_changed()

    def book(self, ticker: str) -> KalshiBook | None:
        """Return a market's book as of the last events; None while it is not valid."""
        conversation = self._conversation
        book = conversation.session.books.get(ticker) if conversation is not None else None
        return None if book is None else book.whole(ticker)

    async def _wants_changed(self) -> None:
        if self._conversation is not None:
            with contextlib.suppress(SocketLost):  # whoever iterates is told
                await self._conversation.want(self._tickers)

    async def _run(self) -> AsyncIterator[tuple[float, list[FeedEvent]]]:
        waits = backoff(uniform=self._uniform)
        while True:
            self.connections += 1
            began = self._clock()
            session: KalshiSession | None = None
            try:
                async with KalshiSocket(
                    self._signer,
                    self._url,
                    open_timeout_s=self._open_timeout_s,
                    stale_after_s=self._stale_after_s,
                    clock=self._clock,
                ) as socket:
                    session = KalshiSession(self._tickers, self._channels, self._everywhere)
                    self._conversation = Conversation(socket, session, self._clock)
                    yield self._clock(), [Connected(self.connections)]
                    async for received, events in self._conversation.events():
                        if events:
                            yield received, events
            except SocketLost as lost:
                reason = lost.reason
            finally:
                self._conversation = None
            valid = [] if session is None else [*session.books]
            gaps = [] if session is None else session.lose_all(reason)
            yield self._clock(), [Disconnected(self.connections, reason, valid, gaps)]
            if self._clock() - began >= LASTING_S:
                waits = backoff(uniform=self._uniform)
            await self._sleep(next(waits))
