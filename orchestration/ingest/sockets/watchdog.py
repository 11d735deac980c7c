"""Watchdog for silent sockets: quiet or dead? A socket may freeze without closing, and still answer every PING.

No rule about time or usual rates can decide: a busy market may fall quiet. So a silent socket's books are compared with
the exchange's over REST: equal books mean there was nothing to send, different ones mean that it did not send it.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from itertools import islice
from time import monotonic
from typing import TYPE_CHECKING

from upstream.polymarket.book import Book
from upstream.transport.errors import UpstreamError

if TYPE_CHECKING:
    from orchestration.ingest.normalizer import Normalizer
    from orchestration.ingest.sockets.listener import SocketListener

PUSH_DELAY_S = 1.0  # a change that REST shows already may take this long to be pushed
MAX_SILENCE_S = 15.0  # when REST does not answer either
NEWEST_BOOKS_COMPARED = 50  # books that changed last,
OTHER_BOOKS_COMPARED = 50  # and some of the others, in rotation
MAX_CONCURRENT_CHECKS = 4  # sockets checked at the same time
MAX_CHECKS_A_SECOND = 5  # by all shards together, and as many by the standbys: the exchange allows 50 requests a second
NUMBERED_CHECKS_A_SECOND = 0.2
MAX_SAVED_S = 1.0  # in which no check was due

Fetch = Callable[[list[str]], Awaitable[list[Book]]]


class Watchdog:
    """Compares silent sockets' books with the exchange's, and disconnects sockets that missed changes."""

    def __init__(self, normalizer: "Normalizer", fetch: Fetch, limit_s: float, *, shards: int = 1) -> None:
        self._normalizer = normalizer
        self._fetch = fetch
        self._limit_s = limit_s
        # Numbered messages show their losses by themselves, and pings that a connection is alive.
        self._pause_s = shards / (NUMBERED_CHECKS_A_SECOND if normalizer.sequenced else MAX_CHECKS_A_SECOND)
        self._next_at = 0.0
        self._offsets: dict[SocketListener, int] = {}
        self._slots = asyncio.Semaphore(MAX_CONCURRENT_CHECKS)
        self._checks: set[asyncio.Task[None]] = set()

    def watch(self, listeners: "Iterable[SocketListener]", now: float) -> None:
        """Start checks of sockets that have been silent for too long: first of those that usually had sent the most.

        Many quiet sockets are each checked less often, and none never.
        """
        doubtful = [listener for listener in listeners if listener.pulse.doubtful(now, self._limit_s)]
        doubtful.sort(key=lambda listener: listener.pulse.expected(now), reverse=True)
        self._next_at = max(self._next_at, now - MAX_SAVED_S)
        for listener in doubtful:
            if self._next_at > now:
                break
            self._next_at += self._pause_s
            listener.pulse.checked_at = now
            task = asyncio.create_task(self._check(listener), name=f"check socket {listener.number}")
            self._checks.add(task)
            task.add_done_callback(self._checks.discard)

    async def _check(self, listener: "SocketListener") -> None:
        began = monotonic()
        async with self._slots:
            try:
                self._normalizer.catch_up(listener.tokens)
                books = await self._fetch(self._token_sample(listener))
            except UpstreamError:
                if not self._normalizer.sequenced and listener.pulse.silent_s(monotonic()) >= MAX_SILENCE_S:
                    listener.disconnect("silent")
                return
        if not any(self._differs(book) for book in books):
            return
        await asyncio.sleep(PUSH_DELAY_S)
        if listener.pulse.received_at < began and any(self._differs(book) for book in books):
            listener.disconnect("silent")

    def _token_sample(self, listener: "SocketListener") -> list[str]:
        states = self._normalizer.states
        held = [token_id for token_id in listener.tokens if token_id in states]
        newest = sorted(held, key=lambda token_id: states[token_id].book.ts_ms, reverse=True)[:NEWEST_BOOKS_COMPARED]
        begin = self._offsets.get(listener, 0)
        self._offsets[listener] = begin + OTHER_BOOKS_COMPARED if begin + OTHER_BOOKS_COMPARED < len(held) else 0
        return list(dict.fromkeys([*newest, *islice(held, begin, begin + OTHER_BOOKS_COMPARED)]))

    def _differs(self, snapshot: Book) -> bool:
        state = self._normalizer.states.get(snapshot.asset_id)
        return state is not None and state.book.state == "verified" and state.book.behind(snapshot)
