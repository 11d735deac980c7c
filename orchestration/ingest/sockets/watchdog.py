"""Is a socket that says nothing quiet or dead? It may freeze without closing, and answer every PING meanwhile.

No rule about time or usual rates can tell: a lively market may fall quiet. So a silent socket is held against the
exchange's books over REST: the same ones mean that there was nothing to say, others mean that it did not say it.
"""

import asyncio
from collections.abc import Awaitable, Callable
from itertools import islice
from time import monotonic
from typing import TYPE_CHECKING

from upstream.polymarket.book import Book
from upstream.transport.errors import UpstreamError

if TYPE_CHECKING:
    from orchestration.ingest.normalizer import Tracker
    from orchestration.ingest.sockets.listener import Listener

ON_ITS_WAY_S = 1.0  # a change that REST shows already may take so long to be pushed
UNANSWERED_S = 15.0  # silence, when REST does not answer either
NEWEST = 50  # books compared: those that moved last,
IN_TURN = 50  # and some of the others
AT_ONCE = 4  # sockets

Fetch = Callable[[list[str]], Awaitable[list[Book]]]


class Watchdog:
    """Holds silent sockets against the exchange's books, and cuts those that kept something to themselves."""

    def __init__(self, tracker: "Tracker", fetch: Fetch, limit_s: float) -> None:
        self._tracker = tracker
        self._fetch = fetch
        self._limit_s = limit_s
        self._turns: dict[Listener, int] = {}
        self._places = asyncio.Semaphore(AT_ONCE)
        self._asking: set[asyncio.Task[None]] = set()

    def watch(self, listener: "Listener", now: float) -> None:
        """Doubt a socket that has been silent for too long."""
        if listener.pulse.doubtful(now, self._limit_s):
            listener.pulse.asked_at = now
            task = asyncio.create_task(self._ask(listener), name=f"doubt socket {listener.number}")
            self._asking.add(task)
            task.add_done_callback(self._asking.discard)

    async def _ask(self, listener: "Listener") -> None:
        began = monotonic()
        async with self._places:
            try:
                books = await self._fetch(self._some(listener))
            except UpstreamError:
                if listener.pulse.silent_s(monotonic()) >= UNANSWERED_S:
                    listener.cut("silent")
                return
        if not any(self._differs(book) for book in books):
            return
        await asyncio.sleep(ON_ITS_WAY_S)
        if listener.pulse.heard_at < began and any(self._differs(book) for book in books):
            listener.cut("silent")

    def _some(self, listener: "Listener") -> list[str]:
        tracks = self._tracker.tracks
        held = [token_id for token_id in listener.tokens if token_id in tracks]
        newest = sorted(held, key=lambda token_id: tracks[token_id].book.ts_ms, reverse=True)[:NEWEST]
        begin = self._turns.get(listener, 0)
        self._turns[listener] = begin + IN_TURN if begin + IN_TURN < len(held) else 0
        return list(dict.fromkeys([*newest, *islice(held, begin, begin + IN_TURN)]))

    def _differs(self, told: Book) -> bool:
        track = self._tracker.tracks.get(told.asset_id)
        return track is not None and track.book.state == "verified" and track.book.behind(told)
