"""Follows a sandbox Kalshi with the client's feed, and compares their books at moments when nothing is under way."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any, Self

from tests.patience import PATIENCE_S
from tests.upstream.sandbox.kalshi.conftest import play
from upstream.kalshi.socket.feed import KalshiFeed
from upstream.kalshi.socket.subscriptions import BOOKS
from upstream.sandbox.common.book import BUY, SELL
from upstream.transport.micro import ONE

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from tests.upstream.kalshi.auditing import FeedRecord
    from upstream.kalshi.signing import Signer
    from upstream.sandbox.kalshi.server import KalshiSandbox

Levels = list[tuple[int, int]]
NUDGE_S = 1.2  # after a loss of the last message, which shows by the next one only


def sandbox_books(sandbox: KalshiSandbox, tickers: list[str]) -> dict[str, tuple[Levels, Levels]]:
    """Return books as the sandbox has them: bids for YES and for NO, best first."""

    def read() -> dict[str, tuple[Levels, Levels]]:
        found = {}
        for ticker in tickers:
            book = sandbox.exchange.markets[ticker].book
            yes, no = (zip(*book.side(side), strict=True) for side in (BUY, SELL))
            found[ticker] = sorted(yes, reverse=True), sorted(((ONE - price, size) for price, size in no), reverse=True)
        return found

    return sandbox.call(read)


class Follower:
    """A feed of some markets of a held sandbox, as an async context manager; its events go to a record."""

    def __init__(
        self,
        sandbox: KalshiSandbox,
        signer: Signer,
        tickers: list[str],
        record: FeedRecord,
        *,
        nudge: Callable[[], Awaitable[Any]] | None = None,
        **options: Any,
    ) -> None:
        self.sandbox, self.tickers, self.record = sandbox, tickers, record
        self.feed = KalshiFeed(signer, sandbox.socket_url, tickers, **options)
        self.compared = 0
        """Books found equal to the sandbox's."""
        self._nudge = nudge or (lambda: self.play(500))
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        self._task = asyncio.create_task(self._listen())
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._task is not None
        self._task.cancel()
        await asyncio.wait([self._task])
        await self.feed.close()

    async def _listen(self) -> None:
        async for _, events in self.feed:
            self.record.take(events)

    async def play(self, ms: int) -> None:
        """Let so much of the exchange's time pass."""
        await asyncio.to_thread(play, self.sandbox, ms)

    async def settle(self) -> None:
        """Wait until everything sent was received or is replaced by snapshots, and compare all books."""
        assert self._task is not None
        began = nudged = time.monotonic()
        while True:
            assert not self._task.done(), self._task.exception()
            place = await asyncio.to_thread(self.sandbox.call, self._place)
            own = await asyncio.to_thread(sandbox_books, self.sandbox, self.tickers)
            read = {ticker: self.feed.book(ticker) for ticker in self.tickers}
            if place == (*self.record.place, self.record.last_trade) and all(read.values()):
                break
            now = time.monotonic()
            assert now - began < 2 * PATIENCE_S, (place, self.record.place, self.record.last_trade)
            if now - nudged > NUDGE_S:
                nudged = now
                await self._nudge()
            await asyncio.sleep(0.02)
        for ticker, book in read.items():
            assert book is not None
            assert (book.yes, book.no) == own[ticker], ticker
        self.compared += len(read)

    def _place(self) -> tuple[int, int, str]:
        """Return sid and number of the newest connection's last message of a book, and the last trade's id.

        It is called in the sandbox.
        """
        trades = self.sandbox.exchange.trades.newest_first(None)
        followed = set(self.tickers)
        last = next((trade.id for trade in trades if trade.market.ticker in followed), "")
        for connection in reversed(self.sandbox.hub.connections.values()):
            subscription = connection.of_channel(BOOKS)
            return (0, -1, last) if subscription is None else (subscription.sid, subscription.seq, last)
        return (0, -1, last)
