"""Checks of the database's contents: chunks, size, keys and transaction ids."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from cli.diagnosis import Finding
from config import webhook_keys
from sql.disk import free_bytes
from sql.queries import diagnosis as queries
from sql.queries import webhooks as webhook_queries
from sql.webhook_secrets import SecretBox, UnreadableSecretError

if TYPE_CHECKING:
    from collections.abc import Iterator

    import psycopg

    from config.settings import Settings

GB = 1 << 30
MAX_CHUNKS = 5000  # beyond it, planning a query takes longer than most queries
OVERDUE = timedelta(days=2)  # maintenance drops chunks each hour, once all their rows are past retention
DAYS_LEFT_FAIL, DAYS_LEFT_WARN = 3, 14
XID_AGE_FAIL, XID_AGE_WARN = 1_500_000_000, 1_000_000_000


def chunks(conn: psycopg.Connection[Any], settings: Settings) -> Iterator[Finding]:
    """Check the number and size of chunks, and that none is in the future or past retention."""
    from sql.embedded.configuration import memory_bytes

    tables = list(queries.chunks(conn))
    if not tables:
        yield Finding("chunks", "ok", "none yet")
        return
    total, count = sum(row[4] for row in tables), sum(row[1] for row in tables)
    name, _, _, _, size, largest = tables[0]
    found = f"{count} chunks, {_size(total)}; the largest table is {name} with {_size(size)}"
    if count > MAX_CHUNKS:
        yield Finding("chunks", "warn", found, "lower the retention (PRESAGE_…_RETENTION_DAYS)")
    elif largest > memory_bytes() / 2:
        found += f", its largest chunk {_size(largest)}"
        remedy = f"select set_chunk_time_interval('{name}', …): a chunk being written should fit into memory"
        yield Finding("chunks", "warn", found, remedy)
    else:
        yield Finding("chunks", "ok", found)
    ahead = ", ".join(f"{row[0]} ({row[2]})" for row in tables if row[2])
    if ahead:
        remedy = (
            "rows have future timestamps: synchronise the clocks with NTP and delete the rows; new ones are quarantined"
        )
        yield Finding("chunks", "warn", f"chunks start days in the future: {ahead}", remedy)
    now, retention = datetime.now(UTC), _retention_days(settings)
    overdue = [
        row[0] for row in tables if row[0] in retention and row[3] < now - timedelta(days=retention[row[0]]) - OVERDUE
    ]
    if overdue:
        remedy = "the job maintenance drops them each hour: check the schedule maintenance_each_hour in Dagster"
        yield Finding("chunks", "warn", f"chunks past their retention still exist in: {', '.join(overdue)}", remedy)


def disk(conn: psycopg.Connection[Any], settings: Settings) -> Iterator[Finding]:
    """Check the database's size, growth and remaining disk space."""
    size, growth = queries.size(conn), queries.growth(conn)
    found = f"{_size(size)} of data"
    found += f", {_size(growth)} more each day" if growth else "; its growth is known after some days"
    embedded = settings.data_folder if settings.database_url is None else None
    free = free_bytes(conn, size, settings.database_disk_gb, embedded)
    if free is None:
        found += "; for a forecast of when the disk is full, set PRESAGE_DATABASE_DISK_GB"
    elif growth:
        days = max(free, 0) / growth
        found += f": space for {days:.0f} days"
        if days < DAYS_LEFT_WARN:
            remedy = "free space, lower PRESAGE_BOOKS_RETENTION_DAYS, or use the Community licence, which compresses"
            yield Finding("size", "fail" if days < DAYS_LEFT_FAIL else "warn", found, remedy)
            return
    yield Finding("size", "ok", found)


def keys(conn: psycopg.Connection[Any]) -> Iterator[Finding]:
    """Check that there are valid keys, and report those close to their monthly limit."""
    tiers = list(queries.keys(conn))
    valid, revoked, short = (sum(row[place] for row in tiers) for place in (1, 2, 3))
    if not valid:
        yield Finding("keys", "warn", f"none is valid ({revoked} revoked)", "presage key create you@example.com my-app")
        return
    found = f"{valid} valid ({', '.join(f'{row[1]} {row[0]}' for row in tiers if row[1])}), {revoked} revoked"
    if short:
        remedy = "see `presage key list`; raise limits with `presage key quota`"
        yield Finding("keys", "warn", f"{found}; {short} have used 90 % of their monthly credits", remedy)
    else:
        yield Finding("keys", "ok", found)


def webhook_secrets(conn: psycopg.Connection[Any], settings: Settings) -> Iterator[Finding]:
    """Check that webhook secrets are encrypted, with keys that this process has."""
    box = SecretBox(lambda: webhook_keys.read(settings))
    clear, sample = webhook_queries.unencrypted(conn), webhook_queries.encrypted_sample(conn)
    if sample is not None:
        try:
            box.decrypt(sample)
        except UnreadableSecretError as fault:
            remedy = "restore the key; webhooks whose secret is lost have to be made anew"
            yield Finding("webhook secrets", "fail", str(fault), remedy)
            return
    if clear:
        remedy = "presage rotate webhook-secrets" if box else "set PRESAGE_WEBHOOK_ENCRYPTION_KEYS"
        yield Finding("webhook secrets", "warn", f"{clear:,} webhooks have theirs in clear text", remedy)
    elif sample is not None:
        yield Finding("webhook secrets", "ok", "encrypted")


def wraparound(conn: psycopg.Connection[Any]) -> Iterator[Finding]:
    """Check that autovacuum keeps up with transaction id wraparound."""
    age = queries.wraparound(conn)
    if age > XID_AGE_WARN:
        found = f"{age:,} transactions since the last freeze; at 2,000,000,000 the server stops writing"
        remedy = "run `vacuum freeze`, and end old and prepared transactions, which block it"
        yield Finding("vacuum", "fail" if age > XID_AGE_FAIL else "warn", found, remedy)


def _retention_days(settings: Settings) -> dict[str, int]:
    books = settings.books_retention_days
    return {
        "trades": settings.trades_retention_days,
        "quotes": books,
        "book_events": books,
        "settlements": settings.settlements_retention_days,
        "audit_log": settings.audit_retention_days,
    }


def _size(count: float) -> str:
    return f"{count / GB:.1f} GB" if count >= GB else f"{count / (1 << 20):.1f} MB"
