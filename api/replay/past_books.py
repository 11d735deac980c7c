"""Rebuilds past order books from the last full book before a moment and the level changes since.

On the Apache licence the events of past days are stored in packs, each starting with a full book (`sql/packs.py`).
"""

from __future__ import annotations

from collections import defaultdict
from datetime import UTC, datetime, timedelta
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from api.schemas.books import BookAt, BookHistory
from api.schemas.records import BookGap, Integrity, Level, Orderbook
from sql.database import MICRO
from sql.packs import BookEvent, Levels, unpack
from sql.queries import books

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Literal

    from api.data.lookup import MarketRef

MAX_PACKS = 100_000  # per day; more than any outcome has


class BookSides:
    """Both sides of a book: sizes by price, in micro-units."""

    def __init__(self) -> None:
        self.bids: dict[int, int] = {}
        self.asks: dict[int, int] = {}

    def replace(self, bid_prices: list[int], bid_sizes: list[int], ask_prices: list[int], ask_sizes: list[int]) -> None:
        """Set a full book."""
        self.bids = dict(zip(bid_prices, bid_sizes, strict=True))
        self.asks = dict(zip(ask_prices, ask_sizes, strict=True))

    def take(self, levels: Levels) -> None:
        """Set a full book from a pack."""
        self.bids = {key >> 1: size for key, size in levels.items() if not key & 1}
        self.asks = {key >> 1: size for key, size in levels.items() if key & 1}

    def apply(self, event: BookEvent) -> None:
        """Apply an event; events must be applied in order."""
        if event.side is None:
            whole = (event.bid_prices, event.bid_sizes, event.ask_prices, event.ask_sizes)
            self.replace(*(list(column or ()) for column in whole))
        else:
            assert event.price is not None
            self.change(event.side, event.price, event.size or 0)

    def change(self, side: int, price: int, size: int) -> None:
        """Set a level to its new total; 0 removes it."""
        levels = self.bids if side > 0 else self.asks
        if size:
            levels[price] = size
        else:
            levels.pop(price, None)

    @property
    def best(self) -> tuple[int | None, int | None]:
        """The best bid and the best ask."""
        return max(self.bids, default=None), min(self.asks, default=None)

    @property
    def value(self) -> int:
        """Price times size over both sides, in micro-units squared."""
        return _value(self.bids) + _value(self.asks)

    def levels(self, most: int | None = None) -> tuple[list[Level], list[Level]]:
        """Return bids and asks, best first."""
        bids = sorted(self.bids.items(), reverse=True)[:most]
        asks = sorted(self.asks.items())[:most]
        return _levels(bids), _levels(asks)


class PastBooks:
    """Past order books of one outcome.

    `rows` runs a query and returns its rows. Rows are read before packs, so that events packed meanwhile are read twice
    rather than missed.
    """

    def __init__(self, rows: Callable[..., list[tuple[Any, ...]]], market: MarketRef, outcome: int) -> None:
        self._rows = rows
        self._market = market
        self._outcome = outcome

    def book(self, at: datetime) -> Orderbook | None:
        """Return the book at a moment; None if no full book is stored before it."""
        sides = BookSides()
        found = self.build(sides, at)
        if found is None:
            return None
        (ts, seq, hash_), anchor_ts, changed = found
        bid, ask = sides.best
        bids, asks = sides.levels()
        gap = next(iter(self._gaps(at, at)), None)
        status = _status(gap, sides.best, self._published_best([at]).get(1))
        return Orderbook(
            self._market.market_id,
            self._outcome,
            self._market.token(self._outcome),
            bids,
            asks,
            number(bid),
            number(ask),
            mid(bid, ask),
            spread(bid, ask),
            sides.value // MICRO / MICRO,
            None,
            hash_.hex() if hash_ else None,
            str(seq),
            _ms(ts),
            Integrity(status, _ms(anchor_ts), changed, gap),
        )

    def history(self, since: datetime, until: datetime, *, step_s: int, depth: int) -> BookHistory:
        """Return the book at even steps from `since` on; steps before the first full book are omitted."""
        step = timedelta(seconds=step_s)
        instants = [since + n * step for n in range(int((until - since) / step) + 1)]
        sides = BookSides()
        known = self.build(sides, since) is not None
        span = {"since": since, "until": instants[-1], "step_ms": step_s * 1000}
        whole = {row[0]: row[1:] for row in self._of(books.snapshots, **span)}
        changes: dict[int, list[Sequence[Any]]] = defaultdict(list)
        for n, *change in self._of(books.steps, **span):
            changes[n].append(change)
        packed = self._packed_steps(since, instants[-1], step_s * 1_000_000, changes)
        gaps = self._gaps(since, instants[-1])
        published = self._published_best(instants)
        data = []
        for n, instant in enumerate(instants):
            known = _advance(sides, whole.get(n), changes.get(n, ())) or n in packed or known
            if known:
                gap = _gap_at(gaps, _ms(instant))
                data.append(_point(sides, instant, depth, _status(gap, sides.best, published.get(n + 1))))
        return BookHistory(
            self._market.market_id,
            self._outcome,
            self._market.token(self._outcome),
            step_s,
            depth,
            data,
            len(data),
            gaps,
        )

    def build(self, sides: BookSides, at: datetime) -> tuple[tuple[datetime, int, bytes | None], datetime, int] | None:
        """Build a book; return its last event (instant, seq, hash), the anchor's instant, and the number of changes."""
        anchors = self._of(books.anchor, at=at)
        since, after_seq = anchors[0][-2:] if anchors else (None, -1)
        changes = self._of(books.changes, since=since, after_seq=after_seq, until=at) if anchors else []
        if packed := self._of(books.packed, at=at, since=since):
            return self._unpack(sides, at, packed)
        if not anchors:
            return None
        ts, seq, *levels, hash_, _, _ = anchors[0]
        sides.replace(*levels)
        last = (ts, seq, hash_)
        for side, price, size, changed_ts, changed_seq, changed_hash in changes:
            sides.change(side, price, size)
            if (changed_ts, changed_seq) > last[:2]:
                last = (changed_ts, changed_seq, changed_hash)
        return last, ts, len(changes)

    def _unpack(
        self, sides: BookSides, at: datetime, packed: list[tuple[Any, ...]]
    ) -> tuple[tuple[datetime, int, bytes | None], datetime, int] | None:
        """Build a book from a pack and additional rows; return the same as `build`. The pack's start is the anchor."""
        pack = unpack(packed[0][0])
        count = pack.upto(_us(at))
        rows = [BookEvent(*row[1:]) for row in packed[1:]]
        if not (pack.known_at(count) or any(event.side is None for event in rows)):
            return None
        last = (int(pack.ts[count - 1]), int(pack.seq[count - 1]), pack.hash(count - 1))
        if rows:  # few and rare: late rows, and the last snapshot of an outcome that is quiet since
            sides.take(pack.base)
            for event in sorted([*pack.events(upto=count), *rows], key=lambda event: (event.ts, event.seq)):
                sides.apply(event)
                last = max(last, (event.ts, event.seq, event.hash), key=lambda known: known[:2])
        else:
            sides.take(pack.book(count))
        ts, seq, hash_ = last
        return (_instant(ts), seq, hash_), _instant(int(pack.ts[0])), count + len(rows)

    def _packed_steps(
        self, since: datetime, until: datetime, step_us: int, changes: dict[int, list[Sequence[Any]]]
    ) -> set[int]:
        """Add the level changes from packs to each step; return the steps that contain a full book."""
        place = {"market_keys": [self._market.key], "outcomes": [self._outcome]}
        begin, end = _us(since), _us(until)
        wholes: set[int] = set()
        for _, _, data in self._rows(books.packs, **place, since=since, until=until, most=MAX_PACKS):
            pack = unpack(data)
            first, last = pack.upto(begin), pack.upto(end)
            steps = -((begin - pack.ts[first:last]) // step_us)  # rounded up
            wholes.update(steps[pack.counts[first:last] >= 0].tolist())
            start, stop = (int(pack.ends[n - 1]) if n else 0 for n in (first, last))
            of = np.repeat(np.arange(first, last), np.where(pack.counts < 0, 1, pack.counts)[first:last])
            levels = zip(
                steps[of - first].tolist(),
                pack.keys[start:stop].tolist(),
                pack.sizes[start:stop].tolist(),
                pack.ts[of].tolist(),
                pack.seq[of].tolist(),
                strict=True,
            )
            for (step, key), (size, ts, seq) in {(step, key): tuple(word) for step, key, *word in levels}.items():
                changes[step].append((-1 if key & 1 else 1, key >> 1, size, _instant(ts), seq))
        for brought in changes.values():
            brought.sort(key=itemgetter(3, 4))
        return wholes

    def _of(self, query: Callable[..., Any], **asked: Any) -> list[tuple[Any, ...]]:
        return self._rows(query, market_key=self._market.key, outcome=self._outcome, **asked)

    def _published_best(self, instants: Sequence[datetime]) -> dict[int, tuple[int | None, int | None]]:
        """Return the exchange's best prices at each instant, by its number from 1."""
        return {n: (bid, ask) for n, bid, ask in self._of(books.best_at, instants=list(instants))}

    def _gaps(self, since: datetime, until: datetime) -> list[BookGap]:
        rows = self._rows(books.gaps, market_key=self._market.key, since=since, until=until)
        return [BookGap(*row) for row in rows]


def _advance(sides: BookSides, whole: tuple[Any, ...] | None, changes: Iterable[Sequence[Any]]) -> bool:
    """Apply a step's changes; return whether it contained a full book."""
    since = None
    if whole is not None:
        ts, seq, *levels = whole
        since = (ts, seq)
        sides.replace(*levels)
    for side, price, size, ts, seq in changes:
        if since is None or (ts >= since[0] and seq > since[1]):
            sides.change(side, price, size)
    return whole is not None


def _point(sides: BookSides, instant: datetime, depth: int, status: Literal["verified", "unverified", "gap"]) -> BookAt:
    bid, ask = sides.best
    micro = None
    if bid is not None and ask is not None:
        bid_size, ask_size = sides.bids[bid], sides.asks[ask]
        micro = (bid * ask_size + ask * bid_size) / (bid_size + ask_size) / MICRO
    bids, asks = sides.levels(depth) if depth else ([], [])
    bid_shares, ask_shares = sum(sides.bids.values()), sum(sides.asks.values())
    shares = bid_shares + ask_shares
    return BookAt(
        _ms(instant),
        bids,
        asks,
        number(bid),
        number(ask),
        mid(bid, ask),
        spread(bid, ask),
        micro,
        _value(sides.bids) // MICRO / MICRO,
        _value(sides.asks) // MICRO / MICRO,
        (bid_shares - ask_shares) / shares if shares else None,
        status,
    )


def _status(
    gap: BookGap | None, best: tuple[int | None, int | None], published: tuple[int | None, int | None] | None
) -> Literal["verified", "unverified", "gap"]:
    if gap is not None:
        return "gap"
    return "verified" if published == best else "unverified"


def _gap_at(gaps: Iterable[BookGap], ms: int) -> BookGap | None:
    return next((gap for gap in gaps if gap.from_ts <= ms and (gap.to_ts is None or ms < gap.to_ts)), None)


def _levels(levels: Iterable[tuple[int, int]]) -> list[Level]:
    return [Level(price / MICRO, size / MICRO) for price, size in levels]


def _value(levels: dict[int, int]) -> int:
    return sum(price * size for price, size in levels.items())


def number(micro: int | None) -> float | None:
    """Convert micro-units to a float."""
    return None if micro is None else micro / MICRO


def mid(bid: int | None, ask: int | None) -> float | None:
    """Return the midpoint of the best prices; None while a side is empty."""
    return None if bid is None or ask is None else (bid + ask) / 2 / MICRO


def spread(bid: int | None, ask: int | None) -> float | None:
    """Return the spread of the best prices; None while a side is empty."""
    return None if bid is None or ask is None else (ask - bid) / MICRO


def _ms(instant: datetime) -> int:
    return round(instant.timestamp() * 1000)


def _us(instant: datetime) -> int:
    return round(instant.timestamp() * 1_000_000)


def _instant(us: int) -> datetime:
    return datetime.fromtimestamp(us // 1_000_000, UTC) + timedelta(microseconds=us % 1_000_000)
