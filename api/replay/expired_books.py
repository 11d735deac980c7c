"""Books of moments that have expired in the database, rebuilt by the same queries: they read the lake's rows too."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import partial
from typing import TYPE_CHECKING, Any

from api.data import expired
from api.data.expired import beside, too_many
from api.data.lake import array, micro
from sql.queries import books

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence
    from datetime import date

    import pyarrow as pa

    from api.data.expired import Expired
    from api.data.lookup import MarketRef

LATE = timedelta(seconds=5)  # `books.anchor`: changes around a stored book may be older than it
LOOK_BACK = timedelta(days=90)  # for the full book that a quiet outcome's is built upon
HOURS_OF_QUOTES = 6  # in a file
DAY = timedelta(days=1)
MICRO = 1_000_000

EVENTS = ("ts", "outcome", "seq", "side", "price", "size", "bids", "asks", "hash")
COLUMNS = {  # of the lake's tables that are read as they are in the database
    "book_anchors": ("ts", "outcome", "seq", "bids", "asks"),
    "book_packs": ("ts", "outcome", "until_ts", "whole_from", "data"),
    "book_rows": EVENTS,
    "quotes": ("ts", "outcome", "bid", "ask"),
}
# In place of the tables. Rows may be in both for a while: of events none may be doubled, as they are counted.
TABLES = {
    "book_events": """
    select ts, market_key, outcome, seq, side, price, size, bid_prices, bid_sizes, ask_prices, ask_sizes, hash
    from public.book_events
    union all
    select
        'epoch'::timestamptz + e.us * interval '1 microsecond', %(market_key)s::integer, %(outcome)s::smallint, e.seq,
        e.side, e.price, e.size, e.bid_prices::integer[], e.bid_sizes::bigint[], e.ask_prices::integer[],
        e.ask_sizes::bigint[], decode(e.hash, 'hex')
    from unnest(
        %(event_us)s::bigint[], %(event_seq)s::bigint[], %(event_side)s::smallint[], %(event_price)s::integer[],
        %(event_size)s::bigint[], %(event_bid_prices)s::text[], %(event_bid_sizes)s::text[],
        %(event_ask_prices)s::text[], %(event_ask_sizes)s::text[], %(event_hash)s::text[]
    ) as e (us, seq, side, price, size, bid_prices, bid_sizes, ask_prices, ask_sizes, hash)
    where not exists (
        select from public.book_events stored
        where stored.market_key = %(market_key)s and stored.outcome = %(outcome)s
            and stored.ts < %(lake_until)s::timestamptz and stored.seq = e.seq
            and stored.side is not distinct from e.side and stored.price is not distinct from e.price
    )""",
    "book_anchors": """
    select ts, market_key, outcome, seq, bid_prices, bid_sizes, ask_prices, ask_sizes from public.book_anchors
    union all
    select
        'epoch'::timestamptz + a.us * interval '1 microsecond', %(market_key)s::integer, %(outcome)s::smallint, a.seq,
        a.bid_prices::integer[], a.bid_sizes::bigint[], a.ask_prices::integer[], a.ask_sizes::bigint[]
    from unnest(
        %(anchor_us)s::bigint[], %(anchor_seq)s::bigint[], %(anchor_bid_prices)s::text[],
        %(anchor_bid_sizes)s::text[], %(anchor_ask_prices)s::text[], %(anchor_ask_sizes)s::text[]
    ) as a (us, seq, bid_prices, bid_sizes, ask_prices, ask_sizes)""",
    "book_packs": """
    select ts, market_key, outcome, until_ts, whole_from, data from public.book_packs
    union all
    select
        'epoch'::timestamptz + p.us * interval '1 microsecond', %(market_key)s::integer, %(outcome)s::smallint,
        'epoch'::timestamptz + p.until_us * interval '1 microsecond',
        'epoch'::timestamptz + p.whole_us * interval '1 microsecond', decode(p.data, 'base64')
    from unnest(%(pack_us)s::bigint[], %(pack_until_us)s::bigint[], %(pack_whole_us)s::bigint[], %(pack_data)s::text[])
        as p (us, until_us, whole_us, data)""",
    "quotes": """
    select ts, market_key, outcome, bid, ask from public.quotes
    union all
    select
        'epoch'::timestamptz + q.us * interval '1 microsecond', %(market_key)s::integer, %(outcome)s::smallint,
        q.bid, q.ask
    from unnest(%(quote_us)s::bigint[], %(quote_bid)s::bigint[], %(quote_ask)s::bigint[]) as q (us, bid, ask)""",
}
NAMES = {
    "event": ("us", "seq", "side", "price", "size", "bid_prices", "bid_sizes", "ask_prices", "ask_sizes", "hash"),
    "anchor": ("us", "seq", "bid_prices", "bid_sizes", "ask_prices", "ask_sizes"),
    "pack": ("us", "until_us", "whole_us", "data"),
    "quote": ("us", "bid", "ask"),
}


class ExpiredBooks:
    """Past books of an outcome, as far back as the lake has them."""

    def __init__(self, source: Expired) -> None:
        self._expired = source

    def reader(
        self, market: MarketRef, outcome: int, since: datetime, until: datetime
    ) -> Callable[..., list[tuple[Any, ...]]] | None:
        """Return a function that runs queries of past books over the database's rows and those of the lake.

        None: the database has all that the books of this range take. Problem: a file cannot be read, or the range has
        more than MAX_ROWS events.
        """
        hot_from = self._expired.hot_from("books")
        if hot_from is None:
            return None
        place = {"market_key": market.key, "outcome": outcome}
        if since >= hot_from and self._is_hot(place, since, hot_from):
            return None
        with self._expired.turns:
            rows = _Rows(outcome, since, until)
            self._load(rows, market)
            asked = {**place, "lake_until": hot_from, **rows.arguments()}
        return partial(self._read, asked)

    def _is_hot(self, place: dict[str, int], at: datetime, hot_from: datetime) -> bool:
        """Return whether the database has the full book that a moment's is built upon, and all changes since."""
        if anchors := self._expired.run(books.anchor, {**place, "at": at}):
            *_, changes_from, _ = anchors[0]
            return bool(changes_from >= hot_from)
        first = self._expired.run(books.first_event, place)  # of a pack
        return first is not None and first <= at

    def _read(self, place: dict[str, Any], query: Any, **arguments: Any) -> Any:
        tables = {name: rows for name, rows in TABLES.items() if name in query.sql}
        if not tables:
            return self._expired.run(query, arguments)
        return self._expired.run(beside(query, tables), {**place, **arguments})

    def _load(self, rows: _Rows, market: MarketRef) -> None:
        """Load the range's days, and those before it until there is a full book and a quote."""
        first, last = rows.since.date(), rows.until.date()
        paths = self._expired.paths(("book_events", *COLUMNS), first - LOOK_BACK, last)
        for day in sorted({day for _, day in paths}, reverse=True):
            if day < first and rows.is_quoted and rows.is_based_after(_hour(day, 0) + DAY):
                return
            self._load_day(rows, market, day, {name: paths.get((name, day), []) for name in ("book_events", *COLUMNS)})

    def _load_day(self, rows: _Rows, market: MarketRef, day: date, paths: dict[str, list[str]]) -> None:
        midnight, within = _hour(day, 0), day >= rows.since.date()

        def read(name: str, hours: Collection[int] | None = None) -> pa.Table | None:
            of_hours = [path for path in paths[name] if hours is None or _hour_of(path, day) in hours]
            return self._expired.rows(of_hours, market, COLUMNS.get(name, EVENTS))

        for hour in reversed(range(0, 24, HOURS_OF_QUOTES)):
            begin = midnight + timedelta(hours=hour)
            end = begin + timedelta(hours=HOURS_OF_QUOTES)
            if begin <= rows.until and (end > rows.since or not rows.is_quoted):
                rows.add_quotes(read("quotes", {hour}))
        if not within and rows.is_based_after(midnight + DAY):
            return
        if paths["book_packs"]:
            rows.add_packs(read("book_packs"))
            rows.add_events(read("book_rows"), midnight)
            return
        rows.add_anchors(read("book_anchors"))
        begin = max(midnight, min(rows.anchored_at - LATE, rows.since)) if rows.anchored_at else midnight
        end = min(rows.until, midnight + DAY - timedelta(microseconds=1))
        rows.add_events(read("book_events", range(begin.hour, end.hour + 1)), begin)


class _Rows:
    """Rows of one outcome, by kind, as `TABLES` takes them."""

    def __init__(self, outcome: int, since: datetime, until: datetime) -> None:
        self.since, self.until = since, until
        self.is_quoted = False  # there is a quote of the range's start or before
        self.anchored_at: datetime | None = None  # the newest stored book of the range's start or before
        self._based_from: datetime | None = None  # from when on rows are read, built upon a full book of then
        self._outcome = outcome
        self._columns: dict[str, list[list[Any]]] = {kind: [[] for _ in names] for kind, names in NAMES.items()}

    def is_based_after(self, instant: datetime) -> bool:
        """Return whether the range's first book is built from rows of an instant or later alone."""
        return self._based_from is not None and self._based_from >= instant

    def add_events(self, table: pa.Table | None, begin: datetime) -> None:
        """Add events from an instant on."""
        if table is None:
            return
        table = self._within(table, begin)
        if len(self._columns["event"][0]) + len(table) > expired.MAX_ROWS:
            raise too_many("from", "a moment closer to the end of the range")
        sides = [None if side is None else 1 if side == "bid" else -1 for side in table["side"].to_pylist()]
        bids, asks = ([*map(_levels, table[name].to_pylist())] for name in ("bids", "asks"))
        us = table["ts"].cast("int64").to_pylist()
        for instant, side in zip(table["ts"].to_pylist(), sides, strict=True):
            if side is None and instant <= self.since:
                self._base(instant)
        self._add(
            "event",
            us,
            table["seq"].to_pylist(),
            sides,
            micro(table["price"]),
            micro(table["size"]),
            *(column for levels in (bids, asks) for column in _columns(levels)),
            table["hash"].to_pylist(),
        )

    def add_anchors(self, table: pa.Table | None) -> None:
        """Add stored books: the last one of the range's start or before, and those within it."""
        if table is None:
            return
        table = self._last_and_within(table)
        bids, asks = ([*map(_levels, table[name].to_pylist())] for name in ("bids", "asks"))
        first = min(table["ts"].to_pylist(), default=None)
        if first is not None and first <= self.since:
            self.anchored_at = self.anchored_at or first
            self._base(first - LATE)
        columns = (column for levels in (bids, asks) for column in _columns(levels))
        self._add("anchor", table["ts"].cast("int64").to_pylist(), table["seq"].to_pylist(), *columns)

    def add_packs(self, table: pa.Table | None) -> None:
        """Add packs: the last one that begins at the range's start or before, and those that begin within it."""
        if table is None:
            return
        table = self._last_and_within(table)
        us = table["ts"].cast("int64").to_pylist()
        if us and us[0] <= _us(self.since):
            self._base(table["ts"][0].as_py())
        ends = (table[name].cast("int64").to_pylist() for name in ("until_ts", "whole_from"))
        self._add("pack", us, *ends, table["data"].to_pylist())

    def add_quotes(self, table: pa.Table | None) -> None:
        """Add quotes: the last one of the range's start or before, and those within it."""
        if table is None:
            return
        table = self._last_and_within(table)
        us = table["ts"].cast("int64").to_pylist()
        if us and us[0] <= _us(self.since):
            self.is_quoted = True
        self._add("quote", us, micro(table["bid"]), micro(table["ask"]))

    def arguments(self) -> dict[str, str]:
        """Return the queries' parameters."""
        return {
            f"{kind}_{name}": array(column)
            for kind, names in NAMES.items()
            for name, column in zip(names, self._columns[kind], strict=True)
        }

    def _base(self, instant: datetime) -> None:
        self._based_from = max(self._based_from or instant, instant)

    def _add(self, kind: str, *columns: Sequence[Any]) -> None:
        for mine, theirs in zip(self._columns[kind], columns, strict=True):
            mine.extend(theirs)

    def _within(self, table: pa.Table, begin: datetime) -> pa.Table:
        """Return the outcome's rows from an instant to the range's end, in their order."""
        from pyarrow import compute, scalar  # noqa: PLC0415 (imported with the lake's files)

        ts = table["ts"]
        wanted = compute.and_(
            compute.greater_equal(ts, scalar(begin, ts.type)), compute.less_equal(ts, scalar(self.until, ts.type))
        )
        return table.filter(compute.and_(wanted, compute.equal(table["outcome"], self._outcome)))

    def _last_and_within(self, table: pa.Table) -> pa.Table:
        """Return the outcome's last row of the range's start or before, and those within the range; sorted by time."""
        table = self._within(table, _EARLIEST)
        before = sum(us <= _us(self.since) for us in table["ts"].cast("int64").to_pylist())
        return table.slice(max(0, before - 1))


_EARLIEST = datetime(1970, 1, 1, tzinfo=UTC)


def _hour(day: date, hour: int) -> datetime:
    return datetime(day.year, day.month, day.day, hour, tzinfo=UTC)


def _hour_of(path: str, day: date) -> int:
    """Return the hour with which a file begins, by its name."""
    rest = path.rpartition("/")[2].removeprefix(f"{day}-")
    return int(rest[:2])


def _us(instant: datetime) -> int:
    return (instant - _EARLIEST) // timedelta(microseconds=1)


def _levels(text: str | None) -> list[tuple[int, int]] | None:
    """Return levels in micro-units."""
    if text is None:
        return None
    levels = json.loads(text, parse_float=Decimal, parse_int=Decimal)
    return [(int(price * MICRO), int(size * MICRO)) for price, size in levels]


def _columns(books_: Sequence[list[tuple[int, int]] | None]) -> Iterator[list[str | None]]:
    """Yield prices and sizes of levels, each as text of arrays within an array."""
    for place in (0, 1):
        yield [None if levels is None else f'"{array(level[place] for level in levels)}"' for levels in books_]
