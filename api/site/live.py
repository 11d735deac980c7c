"""Live prices for browsers: one subscription of our own stream, shared out as server-sent events."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections import Counter, deque
from typing import TYPE_CHECKING, Any, get_args

import msgspec
import psycopg

from presage.client import AsyncStream, Refused
from presage.client.events import Type

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable

    from api.site.backend import Backend
    from api.site.credentials import Credentials
    from presage.client import Event, Gap

log = logging.getLogger(__name__)

TYPES: tuple[Type, ...] = ("price", "trade", "signal", "market", "orderbook")
assert set(TYPES) <= set(get_args(Type))
GATHER_S = 0.2  # between two frames to a browser: of prices, only the last one in that time
QUIET_S = 15.0  # after which a comment keeps the connection known to be there
LONGEST_S = 3600.0  # then the browser connects again
MOST_KEPT = 50  # trades or signals that wait for a slow browser; the oldest go
MOST_NAMED = 4500  # markets by name in one subscription: the stream takes 5000; beyond that all are subscribed to
KEY_REFUSED = {"forbidden", "invalid_api_key", "401", "403", "1008"}  # before the upgrade, and after it
SETTLE_S = 0.3  # to see what else is wanted, before subscribing anew
TURN_S = 1.0  # between two subscriptions
GLANCE_S, BEGIN_S = 0.05, 5.0  # how often one looks whether the first has begun, and how long browsers wait for it
BOOK_FRESH_S = 0.4
LEVELS = 25  # of each side of a book


class Listener:
    """One browser: what it wants, and what waits for it."""

    def __init__(self, markets: Iterable[str], types: Iterable[str], outcome: int = 0) -> None:
        self.markets, self.types, self.outcome = frozenset(markets), frozenset(types), outcome
        self.behind = True  # it has not been told how things stand
        self._prices: dict[tuple[str, int], dict[str, Any]] = {}
        self._news: deque[tuple[str, dict[str, Any]]] = deque(maxlen=MOST_KEPT)
        self._books: set[str] = set()
        self._something = asyncio.Event()

    def hear(self, event: Event) -> None:
        """Take an event that is wanted."""
        market = event.market_id or ""
        if event.type == "price":
            self._prices[market, event.data["outcome"]] = event.data
        elif event.type != "orderbook":
            self._news.append((event.type, {"market_id": market, **event.data}))
        elif event.data["outcome"] == self.outcome:
            self._books.add(market)
        else:
            return
        self._something.set()

    def fall_behind(self) -> None:
        """Something was missed: it has to be told anew how things stand."""
        self.behind = True
        self._something.set()

    async def wait(self) -> bool:
        """Wait until there is something, or for long enough; whether there is."""
        try:
            async with asyncio.timeout(QUIET_S):
                await self._something.wait()
        except TimeoutError:
            return False
        self._something.clear()
        return True

    def take(self) -> tuple[list[tuple[str, dict[str, Any]]], list[str]]:
        """Take what waits: events, and the markets whose book has changed."""
        events = [("price", price) for price in self._prices.values()] + list(self._news)
        books = sorted(self._books)
        self._prices.clear()
        self._news.clear()
        self._books.clear()
        return events, books


class Hub:
    """Subscribes to what the browsers want together, and tells each what it wants."""

    def __init__(self, backend: Backend, credentials: Credentials) -> None:
        self._backend, self._credentials = backend, credentials
        self._listeners: dict[str, set[Listener]] = {}
        self._wanted: Counter[str] = Counter()
        self._more = asyncio.Event()
        self._begun = asyncio.Event()  # the stream has said where it stands: from there on nothing is missed
        self._stream: AsyncStream | None = None
        self._last: int | None = None  # where the stream stood when it was left
        self._from: int | None = None  # where it stood when the first of the markets came that are not subscribed to
        self._heard: dict[str, int] = {}  # of each market, the last event: going back for one repeats the others'
        self.subscriptions = 0

    @property
    def listeners(self) -> int:
        """How many browsers listen."""
        return len({listener for group in self._listeners.values() for listener in group})

    async def events(self, listener: Listener) -> AsyncIterator[bytes]:
        """Give server-sent events until the browser has gone, or has stayed for long."""
        self._join(listener)
        try:
            yield b"retry: 2000\n\n"
            until = time.monotonic() + LONGEST_S
            while time.monotonic() < until:
                if listener.behind:
                    listener.behind = False
                    yield await self._standing(listener)
                elif await listener.wait():
                    events, books = listener.take()
                    frames = [frame(kind, data) for kind, data in events]
                    frames += [frame("book", await self._book(market, listener.outcome)) for market in books]
                    yield b"".join(frames)
                else:
                    yield b":\n\n"
                await asyncio.sleep(GATHER_S)
        finally:
            self._leave(listener)

    async def run(self) -> None:
        """Keep subscribed for as long as the site runs."""
        while True:
            try:
                await self._subscribe()
            except Refused as why:
                if why.code in KEY_REFUSED:  # its time is over
                    self._credentials.refused(await self._key())
                log.warning("the stream refuses us: %s", why)
            except psycopg.Error as error:
                log.warning("no key for the stream: %s", error)
            except Exception:
                log.exception("following the stream failed")
            await asyncio.sleep(TURN_S)

    async def _key(self) -> str:
        return await asyncio.to_thread(self._credentials.key)

    async def _subscribe(self) -> None:
        """Follow the stream until other markets are wanted; those no longer wanted stay as long as they are few."""
        key = await self._key()
        wanted, since = frozenset(self._wanted), self._last if self._from is None else self._from
        self._from = None
        self._heard = {market: seq for market, seq in self._heard.items() if market in wanted}
        self._more.clear()
        self.subscriptions += 1
        self._stream = stream = AsyncStream(
            self._backend.url,
            key,
            markets=wanted if len(wanted) <= MOST_NAMED else None,
            types=TYPES,
            resume_from=since,
            on_gap=self._missed,
        )
        async with stream:
            reading = asyncio.create_task(self._read(stream))
            changing = asyncio.create_task(self._until_others_than(wanted, stream))
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
            if event.seq <= self._heard.get(market, 0):
                continue
            self._heard[market] = event.seq
            for listener in self._listeners.get(market, ()):
                if event.type in listener.types or (event.type == "orderbook" and "book" in listener.types):
                    listener.hear(event)

    async def _until_others_than(self, wanted: frozenset[str], stream: AsyncStream) -> None:
        while stream.last is None:  # noqa: ASYNC110 (the client tells of events, not of its greeting)
            await asyncio.sleep(GLANCE_S)
        self._begun.set()
        while True:
            await self._more.wait()
            self._more.clear()
            await asyncio.sleep(SETTLE_S)
            now = frozenset(self._wanted)
            all_are = len(wanted) > MOST_NAMED
            if all_are:
                self._from = None  # whoever came since is told by this subscription
            if (now - wanted and not all_are) or len(wanted) > 2 * len(now) + 100:
                return

    def _missed(self, gap: Gap) -> None:
        log.warning("events %s to %s of the stream were missed", gap.after, gap.upto)
        for listener in {each for group in self._listeners.values() for each in group}:
            listener.fall_behind()

    def _join(self, listener: Listener) -> None:
        if self._from is None and listener.markets - self._wanted.keys():
            self._from = self._last if self._stream is None else self._stream.last
        for market in listener.markets:
            self._listeners.setdefault(market, set()).add(listener)
            self._wanted[market] += 1
        self._more.set()

    def _leave(self, listener: Listener) -> None:
        for market in listener.markets:
            self._wanted[market] -= 1
            if self._wanted[market] == 0:
                del self._wanted[market]
            group = self._listeners[market]
            group.discard(listener)
            if not group:
                del self._listeners[market]
        self._more.set()

    async def _standing(self, listener: Listener) -> bytes:
        """Say how things stand: what happened while the page was on its way is in it."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(BEGIN_S):
                await self._begun.wait()
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
        """Give a book as it stands; without levels while none can be relied on."""
        answer = await self._backend.get(f"/v1/markets/{market}/orderbook", {"outcome": outcome}, fresh_s=BOOK_FRESH_S)
        if not answer.ok:
            return {"market_id": market, "outcome": outcome, "bids": [], "asks": []}
        book: dict[str, Any] = answer.data
        return book | {"bids": book["bids"][:LEVELS], "asks": book["asks"][:LEVELS]}


def unpriced(market: str) -> dict[str, Any]:
    """Give the price of a market that has none, so that a page does not go on showing an old one."""
    return {"market_id": market, "outcome": 0, **dict.fromkeys(("mid", "bid", "ask", "spread", "last"))}


def frame(kind: str, data: Any) -> bytes:
    """Write one server-sent event."""
    return b"event: %s\ndata: %s\n\n" % (kind.encode(), msgspec.json.encode(data))
