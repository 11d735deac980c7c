"""Checks of base backups: whether they are on, how old they are, and whether the write-ahead log is archived."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from cli.diagnosis import Finding, Status
from sql.backup.base import options, repository, state

if TYPE_CHECKING:
    from collections.abc import Iterator

    import psycopg

    from config.settings import Settings

WAITS_WARN, WAITS_FAIL = timedelta(minutes=5), timedelta(minutes=30)
CHECK_AGE = timedelta(days=15)
TOPIC = "backups"
REPAIR = "make the repository reachable; until then the log stays on the database's disk and may fill it"


def configuration(settings: Settings) -> Iterator[Finding]:
    """Check that base backups are on, and kept apart from the data."""
    wanted = options.of(settings)
    if settings.database_url is not None:
        if wanted is not None:
            found = "PRESAGE_BACKUP_REPOSITORY is for the embedded database; DATABASE_URL names another server"
            yield Finding(TOPIC, "warn", found, "set up pgBackRest beside that server: docs/operations.md")
        return
    if wanted is None:
        found = "base backups are off: if this disk is lost, everything since the last `presage backup FILE` is"
        yield Finding(TOPIC, "warn", found, "set PRESAGE_BACKUP_REPOSITORY to a folder of another disk, or to s3://…")
        return
    data_dir = settings.data_folder
    if wanted.folder is not None and _same_disk(wanted.folder, data_dir):
        found = f"the repository {wanted.folder} is on the same disk as the database: they are lost together"
        yield Finding(TOPIC, "warn", found, "use a folder of another disk, or s3://…")
    if wanted.passphrase is None:
        found = "the repository is not encrypted: it contains email addresses and digests of keys"
        yield Finding(TOPIC, "warn", found, "set PRESAGE_BACKUP_PASSPHRASE before the first base backup")


def archive(conn: psycopg.Connection[Any], settings: Settings) -> Iterator[Finding]:
    """Check that the write-ahead log is archived, base backups are taken, and the newest can be restored."""
    if settings.database_url is not None or options.of(settings) is None:
        return
    data_dir = settings.data_folder
    now = datetime.now(UTC)
    if repository.opened(data_dir) is None:
        found = "PRESAGE_BACKUP_REPOSITORY is set, and the write-ahead log is not archived yet"
        yield Finding(TOPIC, "fail", found, "restart `presage up`")
        return
    yield _archived(state.archive(conn), now)
    known = state.read(conn)
    if known.failed is not None:
        found = f"the last base backup failed at {known.failed.at:%Y-%m-%d %H:%M} UTC: {known.failed.error}"
        yield Finding(TOPIC, "fail", found, "it is tried again each quarter of an hour; or: presage backup base")
    if known.newest is None:
        yield Finding(TOPIC, "warn", "no base backup yet: nothing can be restored", "presage backup base")
    else:
        age = now - known.newest.ended
        late = age > 2 * timedelta(hours=settings.backup_every_h)
        found = f"newest base backup {known.newest.label}, {_age(age)} old"
        remedy = "see the job base_backup in Dagster; or: presage backup base"
        yield Finding(TOPIC, "fail" if late else "ok", found, remedy if late else "")
    yield from _checked(known, now)


def _archived(archived: state.Archive, now: datetime) -> Finding:
    if not archived.on:
        return Finding(TOPIC, "fail", "the server runs without archiving its write-ahead log", "restart `presage up`")
    waits = timedelta() if archived.waiting_since is None else now - archived.waiting_since
    found = f"write-ahead log: {archived.said(now)}"
    if archived.archived_at is not None:
        found += f"; last archived {_age(now - archived.archived_at)} ago"
    if archived.failed_at is not None and (archived.archived_at is None or archived.failed_at > archived.archived_at):
        found += f"; last failed {_age(now - archived.failed_at)} ago"
        status: Status = "fail" if waits > WAITS_FAIL else "warn"
        return Finding(TOPIC, status, found, REPAIR)
    status = "fail" if waits > WAITS_FAIL else "warn" if waits > WAITS_WARN else "ok"
    return Finding(TOPIC, status, found, "" if status == "ok" else REPAIR)


def _checked(known: state.State, now: datetime) -> Iterator[Finding]:
    checked = known.checked
    if checked is None:
        if known.newest is not None:
            found = "it has never been checked that a base backup can be restored"
            yield Finding(TOPIC, "warn", found, "Dagster's job restore_check does it each week, and by hand")
    elif not checked.ok:
        yield Finding(
            TOPIC, "fail", f"the restore check failed: {checked.said}", "see the job restore_check in Dagster"
        )
    else:
        found = f"restore check {_age(now - checked.at)} ago: {checked.said}"
        yield Finding(TOPIC, "ok" if now - checked.at < CHECK_AGE else "warn", found)


def _same_disk(one: Any, other: Any) -> bool:
    def device(path: Any) -> int:
        return int(next(each for each in (path, *path.parents) if each.exists()).stat().st_dev)

    try:
        return device(one) == device(other)
    except OSError:
        return False


def _age(age: timedelta) -> str:
    seconds = age.total_seconds()
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} minutes" if seconds < 7200 else f"{seconds / 3600:.1f} hours"
