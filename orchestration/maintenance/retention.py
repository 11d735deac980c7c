"""Retention: expired chunks, and rows that no longer serve anything, are dropped. Candles are kept for ever."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from sql.queries import audit, lake, webhooks
from sql.queries import retention as queries

if TYPE_CHECKING:
    import psycopg

    from config.settings import Settings

FEED_STATS_KEPT = timedelta(days=30)
LEASES_KEPT = timedelta(days=1)
QUARANTINE_KEPT = timedelta(days=30)
INCIDENTS_KEPT = timedelta(days=90)
ACTIVITY_KEPT = timedelta(days=90)
QUALITY_KEPT = timedelta(days=3)
QUALITY_FAILURES_KEPT = timedelta(days=90)
MARKET_DAYS_KEPT = timedelta(days=90)
ALL_KEPT = datetime(1970, 1, 1, tzinfo=UTC)
BATCH_ROWS = 10_000  # rows deleted in one statement
CHAIN = ("settlements", "wallet_fills", "ledger_entries", "position_changes")
# Tables of the lake, and what is only dropped with them: a stored block has all of its rows.
BOOKS = ("book_events", "book_anchors", "book_packs", "quotes")
HELD_FOR_THE_LAKE = {
    "trades": ("trades",),
    "settlements": CHAIN,
    **dict.fromkeys(("book_events", "quotes", "book_anchors", "book_packs", "book_rows"), BOOKS),
}
READ_FROM_THE_LAKE = {"trades": ("trades",), "books": BOOKS}  # by the API, once they have expired


def drop_old(conn: psycopg.Connection[Any], settings: Settings, now: datetime) -> dict[str, int]:
    """Drop expired data, and return how many chunks or rows of each table were dropped."""
    now = queries.clock(conn, now=now)
    books = now - timedelta(days=settings.books_retention_days)
    settled = now - timedelta(days=settings.settlements_retention_days)
    # Rows that are in no position's base yet are needed to rebuild that position: they stay, and this is logged.
    held, unbased = timedelta(), queries.first_unbased(conn)
    if unbased is not None and unbased < settled:
        held, settled = settled - unbased, unbased
    before = {
        "trades": now - timedelta(days=settings.trades_retention_days),
        "quotes": books,
        "book_events": books,
        "book_anchors": books,
        "book_packs": books,
        "feed_stats": now - FEED_STATS_KEPT,
        "signals": now - timedelta(days=settings.trades_retention_days),
        "wallet_activity": now - ACTIVITY_KEPT,
        "audit_log": now - timedelta(days=settings.audit_retention_days),
        **dict.fromkeys(CHAIN, settled),
    }
    waiting = 0
    if settings.lake:
        waiting = _hold_for_the_lake(conn, before)
        for name, tables in READ_FROM_THE_LAKE.items():
            before.update(dict.fromkeys(tables, _said(conn, name, _day(before[tables[0]]))))
    blocks = _forget_blocks(conn, before["settlements"])  # first: a stored block has all of its rows
    dropped: dict[str, int] = {
        name: queries.drop_before(conn, hypertable=name, before=instant) for name, instant in before.items()
    }
    oldest = first_block_since(conn, now - timedelta(hours=settings.stream_retention_h))
    dropped["stream_events"] = queries.drop_stream_before(conn, seq=oldest) if oldest is not None else 0
    dropped["chain_blocks"] = blocks
    dropped["chain_days_held_for_positions"] = held.days
    dropped["days_held_for_the_lake"] = waiting
    dropped["wallets_watched"] = queries.forget_watched(conn, before=before["wallet_activity"])
    dropped["data_incidents"] = queries.forget_incidents(conn, before=now - INCIDENTS_KEPT)
    dropped["coverage_gaps"] = sum(
        queries.forget_gaps(conn, kind=kind, before=_day(before[table]))
        for kind, table in (("trades", "trades"), ("books", "book_events"))
        if not settings.lake  # which has the days of these gaps for ever
    )
    dropped["coverage_market_days"] = queries.forget_market_days(conn, before=now - MARKET_DAYS_KEPT)
    dropped["quality_results"] = queries.forget_quality(
        conn, held_before=now - QUALITY_KEPT, failed_before=now - QUALITY_FAILURES_KEPT
    )
    dropped["ended_keys"] = audit.forget_ended_keys(conn, before=before["audit_log"])
    dropped["feed_leases"] = queries.forget_leases(conn, before=now - LEASES_KEPT)
    dropped["feed_hosts"] = queries.forget_hosts(conn, before=now - LEASES_KEPT)
    dropped["quarantine"] = queries.forget_quarantine(conn, before=now - QUARANTINE_KEPT)
    dropped["webhook_deliveries"] = _forget_deliveries(conn, now - timedelta(days=settings.webhook_log_days))
    return dropped


def _hold_for_the_lake(conn: psycopg.Connection[Any], before: dict[str, datetime]) -> int:
    """Keep expired days that the lake does not have as they are; return for how many days the longest held one waits.

    Rows may have been filled in after the last time that the lake's job looked at their day.
    """
    from orchestration.lake import writing  # noqa: PLC0415 (brings Arrow and Iceberg along)
    from orchestration.lake.tables import BY_NAME  # noqa: PLC0415

    waiting = 0
    for name, tables in HELD_FOR_THE_LAKE.items():
        table, expired = BY_NAME[name], before[tables[0]]
        writing.forget_changed(conn, table, expired)
        missing = lake.first_missing(conn, name=name, hypertable=table.hypertable, before=expired)
        if missing is not None:
            since = datetime(missing.year, missing.month, missing.day, tzinfo=UTC)
            waiting = max(waiting, (expired - since).days)
            before.update(dict.fromkeys(tables, since))
    return waiting


def _said(conn: psycopg.Connection[Any], name: str, before: datetime) -> datetime:
    """Say from when on a table is whole, and return the instant before which it may be dropped: that said last time.

    The API reads what is older from the lake. Its processes look every minute, so it is dropped by a later pass.
    """
    said, long_ago = lake.hot_from(conn, name=name) or (None, False)
    lake.say_hot_from(conn, name=name, instant=max(before, said or before))
    return min(before, said) if said is not None and long_ago else ALL_KEPT


def _forget_deliveries(conn: psycopg.Connection[Any], before: datetime) -> int:
    """Delete deliveries that ended long ago; in batches, as the dispatcher writes at the same time."""
    gone = 0
    while some := int(webhooks.forget(conn, before=before, most=BATCH_ROWS)):
        gone += some
    return gone


def _forget_blocks(conn: psycopg.Connection[Any], before: datetime) -> int:
    """Delete the blocks of days that are dropped entirely."""
    last = queries.last_block_before(conn, before=_day(before))
    if last is None:
        return 0
    queries.forget_blocks(conn, upto=last)
    return int(last)


def _day(instant: datetime) -> datetime:
    """Return the start of the day (UTC): chunks are split by day, and dropped whole."""
    return instant.replace(hour=0, minute=0, second=0, microsecond=0)


def first_block_since(conn: psycopg.Connection[Any], instant: datetime) -> int | None:
    """Find where the first block not older than `instant` begins: by bisection, as only numbers are indexed."""
    low, high = queries.stream_ends(conn)
    if low is None:
        return None
    high += 1
    while low < high:
        middle = (low + high) // 2
        found = queries.stream_block_from(conn, seq=middle)
        if found is None or found[1] >= instant:
            high = middle
        else:
            low = found[0] + 1
    return int(low)
