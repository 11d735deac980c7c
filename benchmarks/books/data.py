"""Books benchmark data: a day of books as the exchange sends them, changes of both outcomes, books after trades.

Market activity follows Zipf's law; hashes are computed as the exchange computes them. Besides the rows there are a
recorder's gzipped messages of the first events, and the books at some moments, to compare responses with.
"""

from __future__ import annotations

import gzip
import random
from array import array
from datetime import timedelta
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import numpy as np
from psycopg import sql

from orchestration import binary_copy
from orchestration.maintenance.anchors import ANCHOR_INTERVAL
from sql.book_hashes import BookText, book_hash, head
from sql.packs import key
from upstream.polymarket.market_channel.outgoing import BookMessage, LevelChange, OutgoingLevel, PriceChange
from upstream.transport.micro import text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from datetime import datetime
    from pathlib import Path

    import psycopg
    from numpy.typing import NDArray

HOURS = 24
WHOLE_EACH = 20  # average changes of an outcome between two whole books: as in captures of 2026
TICK, ONE = 10_000, 1_000_000
DEEP, MAX_DISTANCE = 39, 14  # levels per side; distance in ticks from the middle where they change
FIELDS = ',"min_order_size":"5","tick_size":"0.01","neg_risk":false'
GZIPPED_EVENTS = 300_000  # events whose messages are gzipped: the size per event does not depend on their number
BOOKS_PER_COPY = 10_000  # whole books buffered per COPY

Sides = tuple[dict[int, int], dict[int, int]]


def _array(width: int) -> np.dtype[Any]:
    """Return the dtype of an array in COPY's binary format, with all levels of a side present."""
    element = np.dtype([("length", ">i4"), ("value", f">i{width}")])
    head = [(name, ">i4") for name in ("dimensions", "nulls", "type", "count", "first")]
    return np.dtype([*head, ("levels", element, (DEEP,))])


def _row(**columns: Any) -> np.dtype[Any]:
    """Return the dtype of a row in COPY's binary format: each value after its length."""
    parts = [part for name, type_ in columns.items() for part in ((f"{name}_length", ">i4"), (name, type_))]
    return np.dtype([("fields", ">i2"), *parts])


PLACE = {"ts": ">i8", "market_key": ">i4", "outcome": ">i2", "seq": ">i8"}
EVENT = {"event_id": ">i8", "hash": "V20"}
LEVELS = {"bid_prices": _array(4), "bid_sizes": _array(8), "ask_prices": _array(4), "ask_sizes": _array(8)}
CHANGE = _row(**PLACE, **EVENT, side=">i2", price=">i4", size=">i8")
WHOLE = _row(**PLACE, **EVENT, **LEVELS)
ANCHOR = _row(**PLACE, **LEVELS)
INT4, INT8 = 23, 20  # object ids of the types, as arrays name them


class Probe(NamedTuple):
    """The expected book of a moment, bids and asks by price."""

    market_key: int
    outcome: int
    ms: int
    sides: Sides


class BookSnapshots:
    """Whole books as they were after some changes of an hour, with the hashes of both outcomes."""

    def __init__(self) -> None:
        self.after: list[int] = []
        self.sizes = bytearray()
        self.hashes = bytearray()

    def add(self, n: int, sizes: array[int], hashes: bytes = b"") -> None:
        """Add a book."""
        self.after.append(n)
        self.sizes += sizes.tobytes()
        self.hashes += hashes


class MarketTexts:
    """A market's books as the exchange writes them, to compute their hashes."""

    def __init__(self, condition: str, tokens: tuple[str, str], mid: int, sizes: array[int]) -> None:
        self._mid = mid
        self._heads = [head(condition, token) for token in tokens]
        self._texts = BookText({}), BookText({})
        self._last = mid
        for level, size in enumerate(sizes):
            if size:
                self.set(level, size)

    def set(self, level: int, size: int) -> None:
        """Set a level by its position: bids first, by distance from the middle."""
        bid, distance = level < DEEP, level % DEEP + 1
        price = (self._mid - distance if bid else self._mid + distance) * TICK
        self._texts[0].set(key(1 if bid else -1, price), size)
        self._texts[1].set(key(-1 if bid else 1, ONE - price), size)

    def trade(self, away: int) -> None:
        """Set the last trade's price."""
        self._last = self._mid + away

    def hashes(self, ms: int) -> bytes:
        """Compute the hashes of both outcomes."""
        fields = f'{FIELDS},"last_trade_price":"{text(self._last * TICK)}"}}'
        both = zip(self._texts, self._heads, strict=True)
        return b"".join(book_hash(book, begin, ms, fields) for book, begin in both)


class Day:
    """Generator and loader of a day."""

    def __init__(self, day: datetime, events: int, markets: int, probes: int) -> None:
        self.since, self.markets = day, markets
        self.probes: list[Probe] = []
        self.events = self.written = 0
        self._changes = events // 2 // HOURS  # per hour; each is one row per outcome
        self._probes = probes
        self._dice = np.random.default_rng(1)
        self._few = random.Random(1)  # noqa: S311 - test data
        weights = 1 / np.arange(1, markets + 1) ** 1.05
        self._shares = weights / weights.sum()
        self._mids = self._dice.integers(15, 85, markets)
        self._books = [self._begin(int(mid)) for mid in self._mids]
        self._texts = [
            MarketTexts(self.condition(n), self._tokens(n), int(self._mids[n]), book)
            for n, book in enumerate(self._books)
        ]
        self._anchored = [int(day.timestamp() * 1000)] * markets
        self._changed_ms = self._anchored.copy()

    def load(self, conn: psycopg.Connection[Any], messages: Path, report: Callable[[float], None]) -> None:
        """Load hour by hour, after the feed's initial books; write the first messages."""
        greetings = BookSnapshots()
        for book, texts in zip(self._books, self._texts, strict=True):
            greetings.add(-1, book, texts.hashes(self._anchored[0]))
        every = np.arange(self.markets)
        self._copy_wholes(conn, "book_events", WHOLE, greetings, np.full(self.markets, self._anchored[0]), every)
        with gzip.open(messages, "wb", compresslevel=6) as file:
            for hour in range(HOURS):
                self._hour(conn, hour, file)
                report((hour + 1) / HOURS)

    def _begin(self, mid: int) -> array[int]:
        """Return sizes by distance from the middle, bids first; 0 where there is no level."""
        there = [n < min(DEEP + 1, most) for most in (mid, 100 - mid) for n in range(1, DEEP + 1)]
        return array("q", [self._few.randrange(1, 10**6) * TICK if level else 0 for level in there])

    def _hour(self, conn: psycopg.Connection[Any], hour: int, file: Any) -> None:
        count, dice = self._changes, self._dice
        start_ms = int((self.since + timedelta(hours=hour)).timestamp() * 1000)
        ms = start_ms + np.sort(dice.integers(0, 3_600_000, count))
        market = dice.choice(self.markets, count, p=self._shares)
        bids = dice.random(count) < 0.5
        away = np.minimum(dice.geometric(0.15, count), MAX_DISTANCE)
        size = np.where(
            dice.random(count) < 0.35, 0, np.round(dice.lognormal(5, 1.5, count) * 100).astype(np.int64) * TICK
        )
        snapshots, kept, hashes = self._follow(ms, market, np.where(bids, 0, DEEP) + away - 1, size, file)
        both = np.repeat(np.arange(count), 2)
        second = np.tile([False, True], count)
        price = (self._mids[market] + np.where(bids, -away, away)) * TICK
        rows = _rows(CHANGE, ms[both], market[both], second, 2 * both + 1)
        rows["event_id"] = dice.integers(-(2**63), 2**63 - 1, count * 2)
        rows["side"] = np.where(bids[both] ^ second, 1, -1)
        rows["price"] = np.where(second, ONE - price[both], price[both])
        rows["size"] = size[both]
        rows["hash"] = np.frombuffer(hashes, "V20")
        _copy(conn, "book_events", CHANGE, [rows.tobytes()])
        self.events += count * 2
        self._copy_wholes(conn, "book_events", WHOLE, snapshots, ms, market)
        self._copy_wholes(conn, "book_anchors", ANCHOR, kept, ms, market)

    def _follow(
        self, ms: Any, market: Any, level: Any, size: Any, file: Any
    ) -> tuple[BookSnapshots, BookSnapshots, bytes]:
        """Apply changes to the books; return whole books after some, anchors and all hashes, and collect probes."""
        snapshots, kept, hashes = BookSnapshots(), BookSnapshots(), bytearray()
        count = self._changes
        sent = self._dice.random(count) < 1 / WHOLE_EACH
        probed = self._dice.random(count) < self._probes / (count * HOURS)
        apart_ms = int(ANCHOR_INTERVAL.total_seconds() * 1000)
        books, anchored, changed_ms = self._books, self._anchored, self._changed_ms
        columns = (column.tolist() for column in (ms, market, level, size, sent, probed))
        for n, (at, which, place, total, sends, probes) in enumerate(zip(*columns, strict=True)):
            book = books[which]
            if probes and changed_ms[which] < at:
                outcome = self._few.randrange(2)
                self.probes.append(Probe(which + 1, outcome, at - 1, self._sides(which, outcome)))
            changed_ms[which] = at
            book[place] = total
            texts = self._texts[which]
            texts.set(place, total)
            hashes += texts.hashes(at)
            writes = self.written < GZIPPED_EVENTS
            if writes:
                file.write(self._said(at, which, place, total, bytes(hashes[-40:])))
            if at - anchored[which] > apart_ms:
                anchored[which] = at
                kept.add(n, book)
            if sends:
                anchored[which] = at
                texts.trade(self._few.choice((-1, 1)))
                both = texts.hashes(at)
                snapshots.add(n, book, both)
                if writes:
                    file.write(self._said_whole(at, which, both))
        return snapshots, kept, bytes(hashes)

    def _copy_wholes(  # noqa: PLR0917 (columns of the hour's changes)
        self, conn: psycopg.Connection[Any], table: str, row: np.dtype[Any], wholes: BookSnapshots, ms: Any, market: Any
    ) -> None:
        """Copy whole books, for both outcomes, with the times and markets of the preceding changes."""
        after = np.array(wholes.after, np.int64)
        sizes = np.frombuffer(wholes.sizes, np.int64).reshape(-1, 2, DEEP)
        hashes = np.frombuffer(wholes.hashes, "V20").reshape(-1, 2)
        if not len(after):
            return
        greetings = after[0] < 0
        places = np.arange(len(after)) if greetings else after

        def parts() -> Iterator[bytes]:
            for begin in range(0, len(after), BOOKS_PER_COPY):
                part = slice(begin, begin + BOOKS_PER_COPY)
                for outcome in (0, 1):
                    place = places[part]
                    rows = _rows(row, ms[place], market[place], np.full(len(place), outcome), 2 * after[part] + 2)
                    if "hash" in (row.names or ()):
                        rows["event_id"] = self._dice.integers(-(2**63), 2**63 - 1, len(rows))
                        rows["hash"] = hashes[part, outcome]
                    yield self._levels(rows, self._mids[market[place]], sizes[part], outcome)

        _copy(conn, table, row, parts())
        if table == "book_events":
            self.events += len(after) * 2

    @staticmethod
    def _levels(rows: Any, mids: Any, sizes: Any, outcome: int) -> bytes:
        """Set the levels of whole books, best first, and return the rows without missing ones."""
        there = np.ones((len(rows), rows.dtype.itemsize), bool)
        distance = np.arange(1, DEEP + 1)
        for n, side in enumerate(("bid", "ask")):
            of = n ^ outcome  # a bid for one is an ask for the other
            price = (mids[:, None] + (distance if of else -distance)) * TICK
            values = {"prices": ONE - price if outcome else price, "sizes": sizes[:, of]}
            present = sizes[:, of] > 0
            for what, width, oid in (("prices", 4, INT4), ("sizes", 8, INT8)):
                name = f"{side}_{what}"
                column = rows[name]
                count = present.sum(axis=1)
                column["dimensions"], column["nulls"], column["type"], column["first"] = 1, 0, oid, 1
                column["count"] = count
                column["levels"]["length"] = width
                column["levels"]["value"] = values[what]
                rows[f"{name}_length"] = 20 + (4 + width) * count
                end = rows.dtype.fields[name][1] + column.dtype.itemsize
                there[:, end - DEEP * (4 + width) : end] = np.repeat(present, 4 + width, axis=1)
        sent: bytes = rows.view(np.uint8).reshape(there.shape)[there].tobytes()
        return sent

    def _sides(self, market: int, outcome: int) -> Sides:
        """Return a book from one outcome's side: a bid for one is an ask for the other."""
        mid, book = int(self._mids[market]), self._books[market]
        bids = {(mid - n) * TICK: size for n, size in enumerate(book[:DEEP], 1) if size}
        asks = {(mid + n) * TICK: size for n, size in enumerate(book[DEEP:], 1) if size}
        if not outcome:
            return bids, asks
        return {ONE - price: size for price, size in asks.items()}, {ONE - price: size for price, size in bids.items()}

    def _said(self, ms: int, market: int, level: int, size: int, hashes: bytes) -> bytes:
        mid, book = int(self._mids[market]), self._books[market]
        bid, distance = level < DEEP, level % DEEP + 1
        price = (mid - distance if bid else mid + distance) * TICK
        best_bid = next(((mid - n) * TICK for n, there in enumerate(book[:DEEP], 1) if there), 0)
        best_ask = next(((mid + n) * TICK for n, there in enumerate(book[DEEP:], 1) if there), ONE)
        yes, no = self._tokens(market)
        first, second = "BUY" if bid else "SELL", "SELL" if bid else "BUY"
        changes = [
            LevelChange(yes, text(price), text(size), first, hashes[:20].hex(), text(best_bid), text(best_ask)),
            LevelChange(
                *(no, text(ONE - price), text(size), second, hashes[20:].hex()),
                *(text(ONE - best_ask), text(ONE - best_bid)),
            ),
        ]
        self.written += 2
        return msgspec.json.encode(PriceChange(self.condition(market), changes, str(ms))) + b"\n"

    def _said_whole(self, ms: int, market: int, hashes: bytes) -> bytes:
        lines = []
        for outcome, token in enumerate(self._tokens(market)):
            bids, asks = self._sides(market, outcome)
            message = BookMessage(
                market=self.condition(market),
                asset_id=token,
                timestamp=str(ms),
                hash=hashes[20 * outcome :][:20].hex(),
                bids=[OutgoingLevel(text(price), text(size)) for price, size in sorted(bids.items())],
                asks=[OutgoingLevel(text(price), text(size)) for price, size in sorted(asks.items(), reverse=True)],
                min_order_size="5",
                tick_size="0.01",
                neg_risk=False,
            )
            lines.append(msgspec.json.encode(message) + b"\n")
            self.written += 1
        return b"".join(lines)

    @staticmethod
    @cache
    def condition(market: int) -> str:
        """Return a market's id."""
        return "0x" + random.Random(market).randbytes(32).hex()  # noqa: S311 - test data

    @staticmethod
    @cache
    def _tokens(market: int) -> tuple[str, str]:
        dice = random.Random(-market - 1)  # noqa: S311 - test data
        return str(dice.getrandbits(255)), str(dice.getrandbits(255))

    def catalogue(self, conn: psycopg.Connection[Any]) -> None:
        """Insert the markets."""
        with conn.transaction(), conn.cursor() as cursor:
            cursor.executemany(
                "insert into markets (market_key, market_id, question, status, outcomes, token_ids)"
                " overriding system value values (%s, %s, 'Rain?', 'ACTIVE', '{Yes,No}', %s)",
                [(market + 1, self.condition(market), list(self._tokens(market))) for market in range(self.markets)],
            )
        conn.execute(
            "insert into tokens (token_id, market_key, outcome) select token_id, market_key, n - 1"
            " from markets, unnest(token_ids) with ordinality as t (token_id, n)"
        )


def _rows(row: np.dtype[Any], ms: NDArray[np.int64], market: Any, outcome: Any, order: Any) -> Any:
    """Return rows with their keys and value lengths set."""
    rows = np.empty(len(ms), row)
    names = [name for name in row.names or () if f"{name}_length" in (row.names or ())]
    rows["fields"] = len(names)
    for name in names:
        rows[f"{name}_length"] = row[name].itemsize
    rows["ts"] = (ms - binary_copy.PG_EPOCH_S * 1000) * 1000
    rows["market_key"], rows["outcome"] = market + 1, outcome
    rows["seq"] = (ms << 20) + order % (1 << 20)
    return rows


def _copy(conn: psycopg.Connection[Any], table: str, row: np.dtype[Any], parts: Iterable[bytes]) -> None:
    names = [name for name in row.names or () if f"{name}_length" in (row.names or ())]
    statement = sql.SQL("copy {} ({}) from stdin (format binary)").format(
        sql.Identifier(table), sql.SQL(", ").join(map(sql.Identifier, names))
    )
    with conn.cursor() as cursor, cursor.copy(statement) as copy:
        copy.write(binary_copy.HEADER)
        for part in parts:
            for at in range(0, len(part), 1 << 20):
                copy.write(part[at : at + (1 << 20)])
        copy.write(binary_copy.TRAILER)
