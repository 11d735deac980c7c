"""What the database holds: chunks, bytes, keys."""

from __future__ import annotations

import shutil
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from cli.diagnosis import Finding
from sql.queries import diagnosis as queries

if TYPE_CHECKING:
    from collections.abc import Iterator

    import psycopg

    from config.settings import Settings

GB = 1 << 30
CHUNKS_WORST = 5000  # beyond it, planning a query takes longer than most queries
OVERDUE = timedelta(days=2)  # maintenance drops chunks each hour, once their every row is beyond its time
DAYS_LEFT_WORST, DAYS_LEFT = 3, 14
FROZEN_WORST, FROZEN = 1_500_000_000, 1_000_000_000


def chunks(conn: psycopg.Connection[Any], settings: Settings) -> Iterator[Finding]:
    """How many, how large, and none where none should be."""
    from sql.embedded.configuration import memory_bytes

    tables = list(queries.chunks(conn))
    if not tables:
        yield Finding("chunks", "ok", "none yet")
        return
    total, count = sum(row[4] for row in tables), sum(row[1] for row in tables)
    name, _, _, _, size, largest = tables[0]
    found = f"{count} chunks, {_size(total)}; the largest table is {name} with {_size(size)}"
    if count > CHUNKS_WORST:
        yield Finding("chunks", "warn", found, "lower the days kept (PRESAGE_…_RETENTION_DAYS)")
    elif largest > memory_bytes() / 2:
        found += f", its largest chunk {_size(largest)}"
        remedy = f"select set_chunk_time_interval('{name}', …): a chunk that is written to should fit into memory"
        yield Finding("chunks", "warn", found, remedy)
    else:
        yield Finding("chunks", "ok", found)
    ahead = ", ".join(f"{row[0]} ({row[2]})" for row in tables if row[2])
    if ahead:
        remedy = "rows with a time to come: set the clocks by NTP, and delete them; quarantine keeps new ones out"
        yield Finding("chunks", "warn", f"chunks begin days ahead of now: {ahead}", remedy)
    now, kept = datetime.now(UTC), _kept(settings)
    overdue = [row[0] for row in tables if row[0] in kept and row[3] < now - timedelta(days=kept[row[0]]) - OVERDUE]
    if overdue:
        remedy = "the job maintenance drops them each hour: in Dagster see the schedule maintenance_each_hour"
        yield Finding("chunks", "warn", f"beyond their time and still there: {', '.join(overdue)}", remedy)


def disk(conn: psycopg.Connection[Any], settings: Settings) -> Iterator[Finding]:
    """How large the database is, how fast it grows, and for how long there is room."""
    size, growth = queries.size(conn), queries.growth(conn)
    found = f"{_size(size)} of data"
    found += f", {_size(growth)} more each day" if growth else "; how fast it grows is known after some days"
    if settings.database_url is None and growth:
        days = shutil.disk_usage(settings.data_dir.expanduser().resolve()).free / growth
        found += f": room for {days:.0f} days"
        if days < DAYS_LEFT:
            remedy = "make room, lower PRESAGE_BOOKS_RETENTION_DAYS, or use the Community licence, which compresses"
            yield Finding("size", "fail" if days < DAYS_LEFT_WORST else "warn", found, remedy)
            return
    yield Finding("size", "ok", found)


def keys(conn: psycopg.Connection[Any]) -> Iterator[Finding]:
    """How many keys there are, and whether any is about to be refused."""
    tiers = list(queries.keys(conn))
    valid, revoked, short = (sum(row[place] for row in tiers) for place in (1, 2, 3))
    if not valid:
        yield Finding("keys", "warn", f"none is valid ({revoked} revoked)", "presage key create you@example.com my-app")
        return
    found = f"{valid} valid ({', '.join(f'{row[1]} {row[0]}' for row in tiers if row[1])}), {revoked} revoked"
    if short:
        remedy = "`presage key list` names them; `presage key quota` gives more"
        yield Finding("keys", "warn", f"{found}; {short} have used nine tenths of their month", remedy)
    else:
        yield Finding("keys", "ok", found)


def wraparound(conn: psycopg.Connection[Any]) -> Iterator[Finding]:
    """Whether autovacuum keeps up with the numbers of transactions, which are finite."""
    age = queries.wraparound(conn)
    if age > FROZEN:
        found = f"{age:,} transactions since rows were frozen last; at 2,000,000,000 the server stops writing"
        remedy = "run `vacuum freeze`, and end old transactions and prepared ones, which hold it up"
        yield Finding("vacuum", "fail" if age > FROZEN_WORST else "warn", found, remedy)


def _kept(settings: Settings) -> dict[str, int]:
    books = settings.books_retention_days
    return {
        "trades": settings.trades_retention_days,
        "quotes": books,
        "book_events": books,
        "settlements": settings.settlements_retention_days,
    }


def _size(count: float) -> str:
    return f"{count / GB:.1f} GB" if count >= GB else f"{count / (1 << 20):.1f} MB"
