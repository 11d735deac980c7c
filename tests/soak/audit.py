"""Audits the database: every event of the sandbox's log is stored exactly once, or lies in a recorded gap."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Any, NamedTuple

import psycopg

from tests.soak import truth

if TYPE_CHECKING:
    from pathlib import Path

GAPS_OF = {"trades": "trades", "level changes": "books"}
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


def audit(database_url: str, log: Path, *, from_ms: int | None = None, to_ms: int | None = None) -> Report:
    """Compare a database with the sandbox's log between two exchange timestamps, both included.

    Without them: from when the feed began to record up to what it reports as committed.
    """
    with psycopg.connect(database_url, autocommit=True) as conn:
        from_ms = _recorded_since(conn) if from_ms is None else from_ms
        to_ms = _committed_to(conn) if to_ms is None else to_ms
        # Nothing later: it may be stored before the sandbox has flushed its log.
        stored = truth.stored(conn, from_ms=from_ms - AROUND_MS, to_ms=to_ms)
        gaps = {kind: Gaps(conn, of) for kind, of in GAPS_OF.items()}
        first_book_ms = dict(conn.execute(FIRST_BOOKS).fetchall())
    events = truth.sent(log, from_ms=from_ms, to_ms=to_ms).rows
    around = truth.sent(log, from_ms=from_ms - 2 * AROUND_MS, to_ms=to_ms + 2 * AROUND_MS).rows
    report = Report(
        Counter({kind: rows.total() for kind, rows in events.items()}), *(Counter() for _ in Report._fields[1:])
    )
    for kind in GAPS_OF:
        bare = _without_instants if kind == "trades" else _as_they_are
        known, expected = bare(stored[kind]), bare(events[kind])
        for row, count in (known - bare(around[kind])).items():
            report.doubled[kind, *row] += count
        absent = expected - known
        for row, count in events[kind].items():  # with its timestamp
            name = next(iter(bare(Counter([row]))))
            if not absent[name]:
                continue
            taken = min(count, absent[name])
            absent[name] -= taken
            filled = gaps[kind].around(row[0], row[1])
            if kind == "level changes" and row[1] == first_book_ms.get(row[0]):
                report.in_first_book[kind, *row] += taken
            elif not filled:
                report.unrecorded[kind, *row] += taken
            elif all(filled):
                report.lost[kind, *row] += taken
            else:
                report.missing[kind] += taken
                report.in_gaps[kind, *row] += taken
    return report


def _without_instants(rows: Counter[Any]) -> Counter[Any]:
    """Count trades by token, side, price, size and transaction: their timestamp depends on the source."""
    found: Counter[Any] = Counter()
    for (token, _, *rest), count in rows.items():
        found[token, *rest] += count
    return found


def _as_they_are(rows: Counter[Any]) -> Counter[Any]:
    return rows


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
