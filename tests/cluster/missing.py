"""What explains rows that the exchange sent and the database does not have: their markets, gaps and the feed's runs."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import psycopg

from orchestration.ingest.gaps.starts import LISTED

if TYPE_CHECKING:
    from tests.soak.audit import Report


Row = tuple[Any, ...]  # kind, token, timestamp in ms, …

HISTORY = """
    select t.market_key, t.outcome, m.created_at::time(3)::text, m.first_seen_at::time(3)::text, m.status,
        (select min(ts)::time(3)::text from book_events e where (e.market_key, e.outcome) = (t.market_key, t.outcome)),
        (select value::text from settings where name = 'followed'),
        (
            select jsonb_agg(jsonb_build_array(
                g.kind, g.cause, g.market_key, g.from_ts::time(3), g.to_ts::time(3), g.created_at::time(3), g.run_id,
                g.filled_by, g.filled_at::time(3)
            ) order by g.from_ts)
            from coverage_gaps g
            where (g.market_key = t.market_key or g.market_key is null)
                and tstzrange(g.from_ts, g.to_ts) && tstzrange(%(at)s - interval '60 s', %(at)s + interval '30 s')
        )
    from tokens t join markets m using (market_key) where token_id = %(token)s
"""
IN_START = """
    select from coverage_gaps join tokens using (market_key)
    where token_id = %(token)s and cause = %(listed)s and %(at)s between from_ts and coalesce(to_ts, now()) limit 1
"""
MARKETS_IN_GAPS = """
    select g.cause, g.from_ts::time(3)::text, g.to_ts::time(3)::text, g.created_at::time(3)::text, g.run_id,
        m.market_key, m.status, m.created_at::time(3)::text, m.first_seen_at::time(3)::text, m.closed_at::time(3)::text,
        (select min(ts)::time(3)::text from book_events e where e.market_key = m.market_key),
        (select count(*) from book_events e where e.market_key = m.market_key and e.ts between g.from_ts and g.to_ts),
        (
            select jsonb_agg(jsonb_build_array(
                o.kind, o.cause, o.from_ts::time(3), o.to_ts::time(3), o.created_at::time(3), o.run_id, o.filled_by
            ))
            from coverage_gaps o where o.market_key = m.market_key and o.gap_id <> g.gap_id
        )
    from coverage_gaps g join markets m using (market_key)
    where g.filled_at is null and g.cause <> %(listed)s order by g.from_ts
"""
RUNS_OF_FEEDS = """
    select run_id, role, started_at::time(1)::text, beat_at::time(1)::text,
        to_timestamp((detail ->> 'led_ms')::bigint / 1000.0)::time(3)::text,
        to_timestamp((detail ->> 'written_ms')::bigint / 1000.0)::time(3)::text
    from feed_leases where feed = 'polymarket' order by started_at
"""
MAX_HISTORIES = 20


def explained(url: str, report: Report) -> tuple[list[Row], dict[str, str]]:
    """Return rows that are missing in gaps, but in none from before a market was followed, and what explains all."""
    with psycopg.connect(url, autocommit=True) as conn:

        def in_start(row: Row) -> bool:
            found = conn.execute(IN_START, {"token": row[1], "at": instant(row), "listed": LISTED}).fetchone()
            return found is not None

        outside_starts = [row for row in report.in_gaps if not in_start(row)]
        rows = [*report.lost, *report.unrecorded, *outside_starts][:MAX_HISTORIES]
        histories = [
            (row[0], instant(row).isoformat(), *conn.execute(HISTORY, {"token": row[1], "at": instant(row)}).fetchall())
            for row in rows
        ]
        gaps = conn.execute(MARKETS_IN_GAPS, {"listed": LISTED}).fetchall()
        runs = conn.execute(RUNS_OF_FEEDS).fetchall() if rows or gaps else []
    return outside_starts, {
        f"{name} {number}": str(row)
        for name, found in (("not stored", histories), ("market in a gap", gaps), ("run of a feed", runs))
        for number, row in enumerate(found, start=1)
    }


def instant(row: Row) -> datetime:
    """Return when the exchange sent a row."""
    return datetime.fromtimestamp(row[2] / 1000, UTC)
