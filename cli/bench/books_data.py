"""A day of order books as the exchange sends them: changes of both outcomes at once, whole books after trades.

Markets are busy by Zipf's law. Beside the rows goes what a recorder would have written of the first of them, gzipped,
and the books of some moments, to compare answers with.
"""

from __future__ import annotations

import gzip
import random
from datetime import timedelta
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import numpy as np

from orchestration.anchors import APART
from orchestration.live import packing
from upstream.sandbox.micro import text
from upstream.sandbox.wire import BookMessage, Level, LevelChange, PriceChange

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from datetime import datetime
    from pathlib import Path

    import psycopg

HOURS = 24
WHOLE_EACH = 20  # changes of an outcome between two whole books, about: as in captures of 2026
TICK, ONE = 10_000, 1_000_000
WRITTEN = 1_000_000  # events whose messages are gzipped
CHANGE = np.dtype(
    [
        ("fields", ">i2"),
        *(part for name, type_ in (
            ("ts", ">i8"), ("market_key", ">i4"), ("outcome", ">i2"), ("event_id", ">i8"), ("seq", ">i8"),
            ("side", ">i2"), ("price", ">i4"), ("size", ">i8"), ("hash", "V20"),
        ) for part in ((f"{name}_length", ">i4"), (name, type_))),
    ]
)  # fmt: skip
CHANGES = (
    "copy book_events (ts, market_key, outcome, event_id, seq, side, price, size, hash) from stdin (format binary)"
)
WHOLES = "copy book_events (ts, market_key, outcome, event_id, seq, bid_prices, bid_sizes, ask_prices, ask_sizes, hash) from stdin"  # fmt: skip  # noqa: E501
ANCHORS = "copy book_anchors (ts, market_key, outcome, seq, bid_prices, bid_sizes, ask_prices, ask_sizes) from stdin"
Sides = tuple[dict[int, int], dict[int, int]]


class Probe(NamedTuple):
    """The book of a moment, bids and asks by price."""

    market_key: int
    outcome: int
    ms: int
    sides: Sides


class Day:
    """Makes a day, and loads it."""

    def __init__(self, day: datetime, events: int, markets: int, probes: int) -> None:
        self.since, self.markets = day, markets
        self.probes: list[Probe] = []
        self.events = self.written = 0
        self._changes = events // 2 // HOURS  # of an hour; each is one row of either outcome
        self._probes = probes
        self._dice = np.random.default_rng(1)
        self._few = random.Random(1)  # noqa: S311 - test data
        weights = 1 / np.arange(1, markets + 1) ** 1.05
        self._shares = weights / weights.sum()
        self._mids = self._dice.integers(15, 85, markets)
        self._books: list[Sides] = [self._begin(int(mid)) for mid in self._mids]
        self._anchored = np.full(markets, int(day.timestamp() * 1000))
        self._heard = self._anchored.copy()

    def load(self, conn: psycopg.Connection[Any], messages: Path, report: Callable[[str], None]) -> None:
        """Load hour after hour, after the books that a feed is greeted with; write the first messages."""
        ms = int(self.since.timestamp() * 1000)
        self._copy(conn, WHOLES, [row for market in range(self.markets) for row in self._sent(ms, market)])
        with gzip.open(messages, "wb", compresslevel=6) as file:
            for hour in range(HOURS):
                self._hour(conn, hour, file if hour * self._changes * 2 < WRITTEN else None)
                report(f"hour {hour + 1} of {HOURS}: {self.events:,} events")

    def _begin(self, mid: int) -> Sides:
        bids = {(mid - n) * TICK: self._few.randrange(1, 10**6) * TICK for n in range(1, min(40, mid))}
        asks = {(mid + n) * TICK: self._few.randrange(1, 10**6) * TICK for n in range(1, min(40, 100 - mid))}
        return bids, asks

    def _hour(self, conn: psycopg.Connection[Any], hour: int, file: Any) -> None:
        count, dice = self._changes, self._dice
        start_ms = int((self.since + timedelta(hours=hour)).timestamp() * 1000)
        ms = start_ms + np.sort(dice.integers(0, 3_600_000, count))
        market = dice.choice(self.markets, count, p=self._shares)
        bids = dice.random(count) < 0.5
        away = np.minimum(dice.geometric(0.15, count), 14)
        price = (self._mids[market] + np.where(bids, -away, away)) * TICK
        size = np.where(
            dice.random(count) < 0.35, 0, np.round(dice.lognormal(5, 1.5, count) * 100).astype(np.int64) * TICK
        )
        hashes = dice.bytes(40 * count)
        rows = np.empty(count * 2, CHANGE)
        rows["fields"] = 9
        for name in CHANGE.names or ():
            if name.endswith("_length"):
                rows[name] = CHANGE[name.removesuffix("_length")].itemsize
        both = np.repeat(np.arange(count), 2)
        second = np.tile([False, True], count)
        rows["ts"] = (ms[both] - packing.PG_EPOCH_MS) * 1000
        rows["market_key"], rows["outcome"] = market[both] + 1, second
        rows["event_id"] = dice.integers(-(2**63), 2**63 - 1, count * 2)
        rows["seq"] = (ms[both] << 20) + 2 * both % (1 << 20)
        rows["side"] = np.where(bids[both] ^ second, 1, -1)
        rows["price"] = np.where(second, ONE - price[both], price[both])
        rows["size"] = size[both]
        rows["hash"] = np.frombuffer(hashes, "V20")
        with conn.cursor() as cursor, cursor.copy(CHANGES) as copy:
            copy.write(packing.HEADER)
            data = rows.tobytes()
            for at in range(0, len(data), 1 << 20):
                copy.write(data[at : at + (1 << 20)])
            copy.write(packing.TRAILER)
        self.events += count * 2
        self._wholes(
            conn, zip(*(column.tolist() for column in (ms, market, bids, price, size)), strict=True), hashes, file
        )

    def _wholes(
        self,
        conn: psycopg.Connection[Any],
        changes: Iterator[tuple[int, int, bool, int, int]],
        hashes: bytes,
        file: Any,
    ) -> None:
        """Follow the books: whole ones after some changes, anchors as they are kept, probes."""
        wholes: list[tuple[Any, ...]] = []
        anchors: list[tuple[Any, ...]] = []
        apart_ms = int(APART.total_seconds() * 1000)
        chance, probing = self._few.random, self._probes / (self._changes * HOURS)
        for n, (ms, market, bid, price, size) in enumerate(changes):
            if chance() < probing and self._heard[market] < ms:
                outcome = self._few.randrange(2)
                self.probes.append(Probe(market + 1, outcome, ms - 1, self._sides(market, outcome)))
            self._heard[market] = ms
            levels = self._books[market][0 if bid else 1]
            if size:
                levels[price] = size
            else:
                levels.pop(price, None)
            if file is not None:
                file.write(self._said((ms, market, bid, price, size), hashes[n * 40 : n * 40 + 40]))
            if ms - self._anchored[market] > apart_ms:
                self._anchored[market] = ms
                anchors += [(*place, *whole) for *place, whole in self._whole(ms, market, n)]
            if chance() < 1 / WHOLE_EACH:
                wholes += self._sent(ms, market, n)
                self._anchored[market] = ms
                if file is not None:
                    file.write(self._said_whole(ms, market))
        self._copy(conn, WHOLES, wholes)
        self._copy(conn, ANCHORS, anchors)

    def _copy(self, conn: psycopg.Connection[Any], statement: Any, rows: list[tuple[Any, ...]]) -> None:
        with conn.cursor() as cursor, cursor.copy(statement) as copy:
            for row in rows:
                copy.write_row(row)
        self.events += len(rows) if statement == WHOLES else 0

    def _sides(self, market: int, outcome: int) -> Sides:
        """Give a book as one of the outcomes has it: what bids for the one asks for the other."""
        bids, asks = self._books[market]
        if not outcome:
            return dict(bids), dict(asks)
        return {ONE - price: size for price, size in asks.items()}, {ONE - price: size for price, size in bids.items()}

    def _whole(self, ms: int, market: int, n: int) -> Iterator[tuple[Any, ...]]:
        """Give the books of both outcomes after the change `n` of an hour: instant, place, seq, levels."""
        ts = self.since + timedelta(milliseconds=ms - int(self.since.timestamp() * 1000))
        for outcome in (0, 1):
            bids, asks = (sorted(side.items()) for side in self._sides(market, outcome))
            # Written as PostgreSQL reads them: psycopg takes ten times as long over a list.
            levels = [
                f"{{{','.join([str(level[n]) for level in side])}}}" for side in (bids[::-1], asks) for n in (0, 1)
            ]
            yield ts, market + 1, outcome, (ms << 20) + (2 * n + 1) % (1 << 20), levels

    def _sent(self, ms: int, market: int, n: int = -1) -> Iterator[tuple[Any, ...]]:
        """Give them as the exchange sent them."""
        for ts, key, outcome, seq, levels in self._whole(ms, market, n):
            yield ts, key, outcome, self._few.getrandbits(63), seq, *levels, self._few.randbytes(20)

    def _said(self, change: tuple[int, int, bool, int, int], hashes: bytes) -> bytes:
        ms, market, bid, price, size = change
        bids, asks = self._books[market]
        best_bid, best_ask = max(bids, default=0), min(asks, default=ONE)
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

    def _said_whole(self, ms: int, market: int) -> bytes:
        lines = []
        for outcome, token in enumerate(self._tokens(market)):
            bids, asks = self._sides(market, outcome)
            message = BookMessage(
                market=self.condition(market),
                asset_id=token,
                timestamp=str(ms),
                hash=self._few.randbytes(20).hex(),
                bids=[Level(text(price), text(size)) for price, size in sorted(bids.items())],
                asks=[Level(text(price), text(size)) for price, size in sorted(asks.items(), reverse=True)],
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
        """Give a market's id."""
        return "0x" + random.Random(market).randbytes(32).hex()  # noqa: S311 - test data

    @staticmethod
    @cache
    def _tokens(market: int) -> tuple[str, str]:
        dice = random.Random(-market - 1)  # noqa: S311 - test data
        return str(dice.getrandbits(255)), str(dice.getrandbits(255))

    def catalogue(self, conn: psycopg.Connection[Any]) -> None:
        """Name the markets."""
        with conn.transaction():
            for market in range(self.markets):
                conn.execute(
                    "insert into markets (market_key, market_id, question, status, outcomes, token_ids)"
                    " overriding system value values (%s, %s, 'Rain?', 'ACTIVE', '{Yes,No}', %s)",
                    [market + 1, self.condition(market), list(self._tokens(market))],
                )
        conn.execute(
            "insert into tokens (token_id, market_key, outcome) select token_id, market_key, n - 1"
            " from markets, unnest(token_ids) with ordinality as t (token_id, n)"
        )
