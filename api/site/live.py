"""Live prices for browsers: one subscription of our own stream, fanned out as server-sent events."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections import Counter, deque
from typing import TYPE_CHECKING, Any, get_args

import msgspec
import psycopg

from presage_client import AsyncStream, Refused, Type

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable

    from api.site.backend import Backend
    from api.site.credentials import Credentials
    from presage_client import Event, StreamGap

log = logging.getLogger(__name__)

TYPES: tuple[Type, ...] = ("price", "trade", "signal", "market", "orderbook")
assert set(TYPES) <= set(get_args(Type))
FRAME_INTERVAL_S = 0.2  # between two frames to a browser: of prices, only the last one in that time
KEEPALIVE_S = 15.0  # idle time after which a comment keeps the connection alive
MAX_CONNECTION_S = 3600.0  # then the browser reconnects
MAX_QUEUED = 50  # trades and signals queued for a slow browser; the oldest are dropped
MAX_NAMED_MARKETS = 4500  # in one subscription: the stream accepts 5000; beyond that all markets are subscribed
KEY_REFUSED = {"forbidden", "invalid_api_key", "401", "403", "1008"}  # before the upgrade, and after it
DEBOUNCE_S = 0.3  # wait for further changes before resubscribing
RESUBSCRIBE_S = 1.0  # between two subscriptions
POLL_S, START_TIMEOUT_S = 0.05, 5.0  # poll interval until the first subscription is ready; how long browsers wait
BOOK_MAX_AGE_S = 0.4
RESTART = b"retry: 200\nevent: restart\ndata: {}\n\n"  # the site restarts: connect again soon, to another process
MAX_LEVELS = 25  # of each side of a book


class LiveListener:
    """One browser's connection: its filter and its queued events."""

    def __init__(self, markets: Iterable[str], types: Iterable[str], outcome: int = 0) -> None:
        self.markets, self.types, self.outcome = frozenset(markets), frozenset(types), outcome
        self.needs_snapshot = True  # no current state has been sent
        self._prices: dict[tuple[str, int], dict[str, Any]] = {}
        self._events: deque[tuple[str, dict[str, Any]]] = deque(maxlen=MAX_QUEUED)
        self._books: set[str] = set()
        self._ready = asyncio.Event()

    def wake(self) -> None:
        """End `wait`."""
        self._ready.set()

    def enqueue(self, event: Event) -> None:
        """Queue an event that matches the filter."""
        market = event.market_id or ""
        if event.type == "price":
            self._prices[market, event.data["outcome"]] = event.data
        elif event.type != "orderbook":
            self._events.append((event.type, {"market_id": market, **event.data}))
        elif event.data["outcome"] == self.outcome:
            self._books.add(market)
        else:
            return
        self._ready.set()

    def request_snapshot(self) -> None:
        """Request a new snapshot because events were missed."""
        self.needs_snapshot = True
        self.wake()

    async def wait(self) -> bool:
        """Wait up to KEEPALIVE_S for an event; return whether there is one."""
        try:
            async with asyncio.timeout(KEEPALIVE_S):
                await self._ready.wait()
        except TimeoutError:
            return False
        self._ready.clear()
        return True

    def take(self) -> tuple[list[tuple[str, dict[str, Any]]], list[str]]:
        """Return and clear the queue: events, and the markets whose book has changed."""
        events = [("price", price) for price in self._prices.values()] + list(self._events)
        books = sorted(self._books)
        self._prices.clear()
        self._events.clear()
        self._books.clear()
        return events, books


class LiveHub:
    """Subscribes to the union of the browsers' markets and dispatches events to each browser."""

    def __init__(self, backend: Backend, credentials: Credentials) -> None:
        self._backend, self._credentials = backend, credentials
        self._listeners: dict[str, set[LiveListener]] = {}
        self._wanted: Counter[str] = Counter()
        self._changed = asyncio.Event()
        self._started = asyncio.Event()  # the stream has sent its position: from there on nothing is missed
        self._stream: AsyncStream | None = None
        self._last: int | None = None  # stream position when the subscription ended
        self._resume_from: int | None = None  # position when the first market not yet subscribed was added
        self._last_seq: dict[str, int] = {}  # by market, the last event: resuming for one repeats the others'
        self.subscriptions = 0
        self._draining = False

    @property
    def listeners(self) -> int:
        """Return the number of connected browsers."""
        return len(self._connected())

    def drain(self) -> None:
        """End all browsers' connections; they connect anew, and begin with a snapshot."""
        self._draining = True
        for listener in self._connected():
            listener.wake()

    def _connected(self) -> set[LiveListener]:
        return {listener for group in self._listeners.values() for listener in group}

    async def events(self, listener: LiveListener) -> AsyncIterator[bytes]:
        """Yield server-sent events until the browser disconnects, or for MAX_CONNECTION_S."""
        self._join(listener)
        try:
            yield b"retry: 2000\n\n"
            until = time.monotonic() + MAX_CONNECTION_S
            while time.monotonic() < until and not self._draining:
                if listener.needs_snapshot:
                    listener.needs_snapshot = False
                    yield await self._snapshot(listener)
                elif await listener.wait():
                    events, books = listener.take()
                    frames = [frame(kind, data) for kind, data in events]
                    frames += [frame("book", await self._book(market, listener.outcome)) for market in books]
                    yield b"".join(frames)
                else:
                    yield b":\n\n"
                await asyncio.sleep(FRAME_INTERVAL_S)
            if self._draining:
                yield RESTART
        finally:
            self._leave(listener)

    async def run(self) -> None:
        """Keep the subscription open for as long as the site runs."""
        while True:
            try:
                await self._subscribe()
            except Refused as why:
                if why.code in KEY_REFUSED:  # it has expired
                    self._credentials.mark_refused(await self._key())
                log.warning("the stream refused the subscription: %s", why)
            except psycopg.Error as error:
                log.warning("no key for the stream: %s", error)
            except Exception:
                log.exception("the stream subscription failed")
            await asyncio.sleep(RESUBSCRIBE_S)

    async def _key(self) -> str:
        return await asyncio.to_thread(self._credentials.key)

    async def _subscribe(self) -> None:
        """Read the stream until other markets are requested; markets no longer requested stay while they are few."""
        key = await self._key()
        wanted, since = frozenset(self._wanted), self._last if self._resume_from is None else self._resume_from
        self._resume_from = None
        self._last_seq = {market: seq for market, seq in self._last_seq.items() if market in wanted}
        self._changed.clear()
        self.subscriptions += 1
        self._stream = stream = AsyncStream(
            self._backend.url,
            key,
            markets=wanted if len(wanted) <= MAX_NAMED_MARKETS else None,
            types=TYPES,
            resume_from=since,
            on_gap=self._on_gap,
        )
        async with stream:
            reading = asyncio.create_task(self._read(stream))
            changing = asyncio.create_task(self._wait_for_new_markets(wanted, stream))
            try:
                done, _ = await asyncio.wait({reading, changing}, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for task in (reading, changing):
                    task.cancel()
                await asyncio.gather(reading, changing, return_exceptions=True)
                self._last, self._stream = stream.last, None
            for task in done:
                task.result()

    async def _read(self, stream: AsyncStream) -> None:
        async for event in stream:
            market = event.market_id or ""
            if event.seq <= self._last_seq.get(market, 0):
                continue
            self._last_seq[market] = event.seq
            for listener in self._listeners.get(market, ()):
                if event.type in listener.types or (event.type == "orderbook" and "book" in listener.types):
                    listener.enqueue(event)

    async def _wait_for_new_markets(self, wanted: frozenset[str], stream: AsyncStream) -> None:
        while stream.last is None:  # noqa: ASYNC110 (the client reports events, not its greeting)
            await asyncio.sleep(POLL_S)
        self._started.set()
        while True:
            await self._changed.wait()
            self._changed.clear()
            await asyncio.sleep(DEBOUNCE_S)
            now = frozenset(self._wanted)
            all_are = len(wanted) > MAX_NAMED_MARKETS
            if all_are:
                self._resume_from = None  # this subscription covers markets added since
            if (now - wanted and not all_are) or len(wanted) > 2 * len(now) + 100:
                return

    def _on_gap(self, gap: StreamGap) -> None:
        log.warning("events %s to %s of the stream were missed", gap.after, gap.upto)
        for listener in self._connected():
            listener.request_snapshot()

    def _join(self, listener: LiveListener) -> None:
        if self._resume_from is None and listener.markets - self._wanted.keys():
            self._resume_from = self._last if self._stream is None else self._stream.last
        for market in listener.markets:
            self._listeners.setdefault(market, set()).add(listener)
            self._wanted[market] += 1
        self._changed.set()

    def _leave(self, listener: LiveListener) -> None:
        for market in listener.markets:
            self._wanted[market] -= 1
            if self._wanted[market] == 0:
                del self._wanted[market]
            group = self._listeners[market]
            group.discard(listener)
            if not group:
                del self._listeners[market]
        self._changed.set()

    async def _snapshot(self, listener: LiveListener) -> bytes:
        """Return a snapshot; it includes what happened while the page was loading."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(START_TIMEOUT_S):
                await self._started.wait()
        frames = [frame("hello", {"markets": len(listener.markets)})]
        if "price" in listener.types:
            ids = ",".join(sorted(listener.markets))
            answer = await self._backend.get("/v1/prices", {"ids": ids})
            if answer.ok:
                frames += [frame("price", price or unpriced(market)) for market, price in answer.data.items()]
        if "book" in listener.types:
            frames += [frame("book", await self._book(market, listener.outcome)) for market in listener.markets]
        return b"".join(frames)

    async def _book(self, market: str, outcome: int) -> dict[str, Any]:
        """Return the current book; without levels while none is reliable."""
        answer = await self._backend.get(
            f"/v1/markets/{market}/orderbook", {"outcome": outcome}, max_age_s=BOOK_MAX_AGE_S
        )
        if not answer.ok:
            return {"market_id": market, "outcome": outcome, "bids": [], "asks": []}
        book: dict[str, Any] = answer.data
        return book | {"bids": book["bids"][:MAX_LEVELS], "asks": book["asks"][:MAX_LEVELS]}


def unpriced(market: str) -> dict[str, Any]:
    """Return the null price of a market without one, so that a page does not keep showing an old price."""
    return {"market_id": market, "outcome": 0, **dict.fromkeys(("mid", "bid", "ask", "spread", "last"))}


def frame(kind: str, data: Any) -> bytes:
    """Encode one server-sent event."""
    return b"event: %s\ndata: %s\n\n" % (kind.encode(), msgspec.json.encode(data))
