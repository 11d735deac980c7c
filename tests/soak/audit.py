"""Audits the database: every event of the sandbox's log is stored exactly once, or lies in a recorded gap."""

from __future__ import annotations

from array import array
from collections import Counter, defaultdict
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import psycopg

from tests.soak import truth

if TYPE_CHECKING:
    from pathlib import Path

    from tests.soak.truth import Row

    Counted = tuple[np.ndarray[Any, np.dtype[np.int64]], np.ndarray[Any, np.dtype[np.int64]]]  # keys, counts

GAPS_OF = {truth.TRADES: "trades", truth.CHANGES: "books"}
AROUND_MS = 2_000  # the Data API gives trades in whole seconds
FIRST_BOOKS = """
    select token_id, as_ms(min(ts)) from book_events join tokens using (market_key, outcome)
    where side is null group by token_id
"""


class Report(NamedTuple):
    """Result of an audit. Rows are counted by key: (kind, token, timestamp in ms, side, …)."""

    compared: Counter[str]
    """Events of the log, by kind."""
    lost: Counter[Any]
    """Not stored, though every gap around them is marked filled."""
    doubled: Counter[Any]
    """Stored more than once, or never sent by the exchange."""
    unrecorded: Counter[Any]
    """Not stored, and in no recorded gap."""
    missing: Counter[str]
    """Not stored, in a gap that is not filled; by kind."""
    in_first_book: Counter[Any]
    """Changes of a book in the millisecond of its first snapshot, which has them; see docs/coverage.md."""
    in_gaps: Counter[Any]
    """The rows of `missing`."""

    def __str__(self) -> str:
        compared = ", ".join(f"{count:,} {kind}" for kind, count in self.compared.items())
        known = ", ".join(f"{count:,} {kind}" for kind, count in self.missing.items()) or "none"
        figures = (
            f"{len(rows) and rows.total():,} {name}"
            for name, rows in (("lost", self.lost), ("doubled", self.doubled), ("unrecorded", self.unrecorded))
        )
        return (
            f"{compared} compared: {', '.join(figures)}; in unfilled gaps: {known};"
            f" in first books: {self.in_first_book.total()}"
        )

    def assert_clean(self) -> None:
        """Assert that nothing is lost, doubled or missing without a gap, and that something was compared."""
        assert all(self.compared[kind] > 0 for kind in GAPS_OF), self.compared
        for rows in (self.lost, self.doubled, self.unrecorded):
            assert not rows, f"{self}\n" + "\n".join(map(str, rows.most_common(5)))


class Gaps:
    """The recorded gaps of one kind of rows."""

    def __init__(self, conn: psycopg.Connection[Any], kind: str) -> None:
        self._spans: dict[str | None, list[tuple[int, int, bool]]] = defaultdict(list)
        rows = conn.execute(
            """select t.token_id, as_ms(g.from_ts), as_ms(coalesce(g.to_ts, now())), g.filled_at is not null
            from coverage_gaps g
            left join lateral (
                select token_id from tokens where market_key = g.market_key
                union all
                select token_id from tokens join markets m using (market_key)
                where g.market_key is null and g.shard is not null and in_shard(m.market_id, g.shard, g.shards)
            ) as t on true
            where g.kind = %s and (t.token_id is not null or coalesce(g.market_key, g.shard) is null)""",
            [kind],
        )
        for token, from_ms, to_ms, filled in rows:
            self._spans[token].append((from_ms, to_ms, filled))

    def around(self, token: str, ts_ms: int) -> list[bool]:
        """Return, for each gap that an event of a token lies in, whether it is marked filled."""
        spans = (*self._spans[None], *self._spans[token])
        return [filled for from_ms, to_ms, filled in spans if from_ms <= ts_ms <= to_ms]


class Rows(NamedTuple):
    """Rows of one kind: in the database, and of the exchange within the audited span and around it."""

    stored: Counter[Row]
    sent: Counter[Row]
    around: Counter[Row]


class Comparison:
    """Compares rows of one kind by 64-bit keys: an hour's rows themselves would take too much memory.

    Of 35 million rows, two have the same key with a probability of 1 in 30,000.
    """

    def __init__(self, kind: str) -> None:
        self.name = _without_instant if kind == truth.TRADES else _as_it_is  # what is compared of a row
        self.rows = Rows(Counter(), Counter(), Counter())  # those that differ, once they were added again
        self._stored, self._sent, self._around = array("q"), array("q"), array("q")
        self._differing: set[int] = set()

    def count_stored(self, row: Row) -> None:
        """Count a row of the database."""
        self._stored.append(hash(self.name(row)))

    def count_sent(self, row: Row, *, within: bool) -> None:
        """Count a row of the log, within the audited span or around it."""
        self._around.append(hash(self.name(row)))
        if within:
            self._sent.append(self._around[-1])

    def finish(self) -> int:
        """Find the keys of which too few are stored, or more than were sent; return how many rows were compared."""
        stored, sent, around = (
            np.unique(np.frombuffer(keys, np.int64), return_counts=True)
            for keys in (self._stored, self._sent, self._around)
        )
        self._differing.update(_more(sent, stored), _more(stored, around))
        compared = len(self._sent)
        self._stored, self._sent, self._around = array("q"), array("q"), array("q")
        return compared

    @property
    def differs(self) -> bool:
        """Return whether any row differs."""
        return bool(self._differing)

    def keep_stored(self, row: Row) -> None:
        """Keep a row of the database if it differs."""
        if hash(self.name(row)) in self._differing:
            self.rows.stored[row] += 1

    def keep_sent(self, row: Row, *, within: bool) -> None:
        """Keep a row of the log if it differs."""
        if hash(self.name(row)) in self._differing:
            self.rows.around[row] += 1
            if within:
                self.rows.sent[row] += 1

    def named(self, rows: Counter[Row]) -> Counter[Row]:
        """Count rows by what is compared of them."""
        found: Counter[Row] = Counter()
        for row, count in rows.items():
            found[self.name(row)] += count
        return found


def _more(these: Counted, those: Counted) -> list[int]:
    """Return the keys that are counted more often in `these` than in `those`; both are sorted by key."""
    keys, counts = these
    known, known_counts = those
    if not len(known):
        return keys.tolist()
    at = np.minimum(np.searchsorted(known, keys), len(known) - 1)
    return keys[counts > np.where(known[at] == keys, known_counts[at], 0)].tolist()


def audit(database_url: str, log: Path, *, from_ms: int | None = None, to_ms: int | None = None) -> Report:
    """Compare a database with the sandbox's log between two exchange timestamps, both included.

    Without them: from when the feed began to record up to what it reports as committed. Log and database are read
    twice: once for the rows' keys, and once for the rows that differ.
    """
    kinds = {kind: Comparison(kind) for kind in GAPS_OF}
    with psycopg.connect(database_url) as conn:
        conn.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ  # both readings are of one moment
        from_ms = _recorded_since(conn) if from_ms is None else from_ms
        to_ms = _committed_to(conn) if to_ms is None else to_ms
        # Nothing later: it may be stored before the sandbox has flushed its log.
        stored = partial(truth.stored_rows, conn, from_ms=from_ms - AROUND_MS, to_ms=to_ms)
        sent = partial(truth.sent_rows, log, from_ms=from_ms - 2 * AROUND_MS, to_ms=to_ms + 2 * AROUND_MS)
        for kind, row in stored():
            kinds[kind].count_stored(row)
        for kind, row, _ in sent():
            kinds[kind].count_sent(row, within=from_ms <= row[1] <= to_ms)
        compared = Counter({kind: each.finish() for kind, each in kinds.items()})
        report = Report(compared, *(Counter() for _ in Report._fields[1:]))
        if not any(each.differs for each in kinds.values()):
            return report
        for kind, row in stored():
            kinds[kind].keep_stored(row)
        gaps = {kind: Gaps(conn, of) for kind, of in GAPS_OF.items()}
        first_book_ms = dict(conn.execute(FIRST_BOOKS).fetchall())
    for kind, row, _ in sent():
        kinds[kind].keep_sent(row, within=from_ms <= row[1] <= to_ms)
    for kind, each in kinds.items():
        _judge(report, kind, each, gaps[kind], first_book_ms if kind == truth.CHANGES else {})
    return report


def _judge(report: Report, kind: str, compared: Comparison, gaps: Gaps, first_book_ms: dict[str, int]) -> None:
    """Add to a report what is wrong with the rows of one kind that differ."""
    known, expected, around = (compared.named(rows) for rows in compared.rows)
    for name, count in (known - around).items():
        report.doubled[kind, *name] += count
    absent = expected - known
    for row, count in compared.rows.sent.items():  # with its timestamp
        name = compared.name(row)
        if not absent[name]:
            continue
        taken = min(count, absent[name])
        absent[name] -= taken
        filled = gaps.around(row[0], row[1])
        if row[1] == first_book_ms.get(row[0]):
            report.in_first_book[kind, *row] += taken
        elif not filled:
            report.unrecorded[kind, *row] += taken
        elif all(filled):
            report.lost[kind, *row] += taken
        else:
            report.missing[kind] += taken
            report.in_gaps[kind, *row] += taken


def _without_instant(row: Row) -> Row:
    """Return a trade's token, side, price, size and transaction: its timestamp depends on the source."""
    token, _, *rest = row
    return (token, *rest)


def _as_it_is(row: Row) -> Row:
    return row


def _recorded_since(conn: psycopg.Connection[Any]) -> int:
    row = conn.execute(
        """select coalesce(
            (select (value #>> '{}')::bigint from settings where name = 'recorded_since'),
            (select as_ms(min(ts)) from feed_stats where messages > 0)
        )"""
    ).fetchone()
    assert row is not None
    assert row[0] is not None, "no feed has recorded anything"
    return int(row[0])


def _committed_to(conn: psycopg.Connection[Any]) -> int:
    row = conn.execute(
        "select (detail ->> 'written_ms')::bigint from stage_clocks where stage = 'ingestion'"
    ).fetchone()
    assert row is not None
    assert row[0], "no feed has committed anything"
    return int(row[0])
