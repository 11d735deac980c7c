"""Recovery of a cluster to a moment: the base backup before it, and the write-ahead log up to it."""

from __future__ import annotations

import shutil
import tempfile
import time
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import psycopg

from sql import database
from sql.backup import restoring
from sql.backup.base import contents, repository
from sql.backup.errors import BackupError
from sql.embedded import Cluster, EmbeddedError, installation, postmaster
from sql.embedded import place as places
from sql.embedded.place import ClusterFolder
from sql.queries import backups

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from sql.backup.base.catalogue import BaseBackup, Stanza
    from sql.backup.base.options import Options
    from sql.backup.base.repository import Repository

Moment = datetime | Literal["latest", "backup"]  # `backup`: the end of the newest base backup
FLUSH_S = 30.0  # that a running server has to archive its newest log
RECOVERY_S = 7 * 86_400.0
ENDED_BEFORE = "recovery ended before configured recovery target was reached"
MARGIN_BYTES = 256 << 20
PROGRESS_EVERY_S = 5.0
# Without hot_standby, recovery also works on a machine with fewer processors than the origin's. With archiving, log of
# the copy would reach the repository.
SERVER_SETTINGS = {"hot_standby": "off", "archive_mode": "off"}
BESIDE = ("webhook_encryption_keys", "started")  # files of a data folder that the restored databases need


@dataclass(frozen=True)
class RecoveryWindow:
    """The moments that a stanza can be recovered to."""

    oldest: datetime
    newest: datetime

    def __str__(self) -> str:
        return f"{self.oldest:%Y-%m-%d %H:%M:%S} to {self.newest:%Y-%m-%d %H:%M:%S} UTC"


@dataclass(frozen=True)
class Recovered:
    """A recovered cluster, stopped, with its archiving off."""

    data_dir: Path
    stanza: str
    backup: BaseBackup
    reached: datetime | None
    """Commit time of the last transaction in it."""
    complete: bool
    """False if the archive ended before the wanted moment."""
    databases: list[str]
    kept: Path | None
    """Data that was in its place before."""


def recover(
    source: Path,
    into: Path,
    options: Options,
    moment: Moment,
    *,
    stanza: str | None = None,
    replace: bool = False,
    cache_dir: Path | None = None,
    settings: Mapping[str, str] | None = None,
    tell: Callable[[str], None] = lambda _: None,
) -> Recovered:
    """Restore into a data folder, whose database must be neither running nor, unless `replace`, there."""
    place = places.find(into / "database")
    if postmaster.running(place.data) is not None:
        raise BackupError(f"a database is running in {into}", "stop it, or restore --into another folder")
    if place.data.exists() and not replace:
        raise BackupError(
            f"{into} has a database already",
            "restore --into another folder, or pass --replace: what is there is then kept aside",
        )
    flushed = flush(source, cache_dir, tell)
    with listed(source, options, cache_dir) as reader:
        chosen = choose(reader, source, stanza)
        newest = flushed if flushed is not None and chosen.name == _own(source) else reader.archived_until(chosen)
    backup = backup_before(chosen, moment, newest)
    tell(f"base backup {backup.label} ({backup.kind}) of {backup.ended:%Y-%m-%d %H:%M:%S} UTC, {_mb(backup.bytes)}")
    home_was_there = place.home.exists()
    kept, placed = None, False
    copy = Cluster(
        into / "database",
        cache_dir=cache_dir,
        settings={**(settings or {}), **SERVER_SETTINGS},
        start_within_s=RECOVERY_S,
    )
    try:
        place.make()
        with installation.locked(place.lock, tell):
            configure = partial(
                repository.configure, place, options, stanza=chosen.name, cache_dir=cache_dir, tell=tell
            )
            _fetch(place, backup, moment, configure, tell)
            kept, placed = _put_in_place(place), True
        reached, complete, databases = _replay(copy, place, moment, tell)
    except BaseException as error:
        if not home_was_there:
            shutil.rmtree(place.home, ignore_errors=True)
        _undo(place, kept, placed=placed)
        if isinstance(error, EmbeddedError):
            raise BackupError(error.problem, error.remedy) from error
        raise
    finally:
        repository.forget_origin(place)
    repository.disable(place)
    _bring_along(source, into, databases)
    return Recovered(into, chosen.name, backup, reached, complete, databases, kept)


@contextmanager
def listed(source: Path, options: Options, cache_dir: Path | None = None) -> Iterator[Repository]:
    """Open a repository for reading, whether there is a cluster of it on this machine or not."""
    user = places.find(source / "database").user
    with ExitStack() as stack:
        try:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="presage-backup-")))
            place = ClusterFolder(folder / "home", folder / "home", user)
            folder.chmod(0o755)
            yield repository.configure(place, options, stanza=_own(source) or "unnamed", cache_dir=cache_dir)
        except EmbeddedError as error:
            raise BackupError(error.problem, error.remedy) from error


def choose(reader: Repository, source: Path, stanza: str | None) -> Stanza:
    """Return the wanted stanza; without a wish the cluster's own, or the only one."""
    held = [each for each in reader.stanzas() if each.backups]
    wanted = stanza or _own(source)
    names = ", ".join(each.name for each in held)
    if wanted is not None:
        for each in held:
            if each.name == wanted:
                return each
        if stanza is not None or not held:
            raise BackupError(f"the repository has no base backup of {wanted}", f"it has: {names or 'none at all'}")
    if len(held) != 1:
        remedy = (
            f"name one by --stanza: {names}" if held else "check PRESAGE_BACKUP_REPOSITORY; see presage backup list"
        )
        raise BackupError(f"the repository has base backups of {len(held)} clusters", remedy)
    return held[0]


def span(stanza: Stanza, newest: datetime | None) -> RecoveryWindow:
    """Return the moments that a stanza can be recovered to; `newest`: when it was archived last."""
    oldest = stanza.backups[0].restores_from
    return RecoveryWindow(oldest, max(oldest, newest or oldest))


def backup_before(stanza: Stanza, moment: Moment, newest: datetime | None) -> BaseBackup:
    """Return the newest base backup from which a moment can be reached."""
    if not isinstance(moment, datetime):
        return stanza.backups[-1]
    allowed = span(stanza, newest)
    if not allowed.oldest <= moment <= allowed.newest:
        raise BackupError(
            f"{moment:%Y-%m-%d %H:%M:%S} UTC is outside of what the repository holds of {stanza.name}",
            f"choose a moment from {allowed}, or `latest`",
        )
    return [backup for backup in stanza.backups if backup.restores_from <= moment][-1]


def flush(source: Path, cache_dir: Path | None, tell: Callable[[str], None]) -> datetime | None:
    """Have a running server archive its newest log; return up to when it is archived, None if that is unknown."""
    if repository.opened(source) is None:
        return None
    cluster = Cluster(source / "database", cache_dir=cache_dir)
    if cluster.pid is None:
        return None
    deadline = time.monotonic() + FLUSH_S
    try:
        with database.connect(cluster.url("postgres"), autocommit=True, name="presage restore") as conn:
            # Recovery ends at the first commit after its target: so there is one. Before it, nothing is missing.
            at: datetime = _row(conn, "select clock_timestamp() from pg_current_xact_id()")[0]
            (wal,) = _row(conn, "select pg_walfile_name(pg_switch_wal())")
            while time.monotonic() < deadline:
                waits = "select from pg_ls_archive_statusdir() where right(name, 6) = '.ready' and left(name, 24) <= %s"
                if conn.execute(waits, [wal]).fetchone() is None:
                    return at
                time.sleep(0.1)
    except psycopg.Error as error:
        tell(f"the running database could not be asked for its newest write-ahead log: {error}")
        return None
    tell("the newest write-ahead log of the running database could not be archived: see presage doctor")
    return None


def _fetch(
    place: ClusterFolder,
    backup: BaseBackup,
    moment: Moment,
    configure: Callable[..., Repository],
    tell: Callable[[str], None],
) -> None:
    """Restore the files of a base backup, with the settings by which the server then recovers."""
    if (free := shutil.disk_usage(place.home).free) < backup.bytes + MARGIN_BYTES:
        raise BackupError(
            f"the database has {_mb(backup.bytes)}, and {place.home} has {_mb(free)} free", "choose a larger disk"
        )
    part = _part(place)
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(mode=0o700)
    place.user.own(part)
    reader = configure(data=part)
    target = {"latest": ["--type=default"], "backup": ["--type=immediate"]}.get(
        str(moment), ["--type=time", f"--target={moment}"]
    )
    if moment != "latest":
        target.append("--target-action=promote")
    shown = time.monotonic()

    def progress(percent: str) -> None:
        nonlocal shown
        if time.monotonic() - shown >= PROGRESS_EVERY_S:
            shown = time.monotonic()
            tell(f"restoring files: {float(percent):.0f} %")

    began = time.monotonic()
    reader.run("restore", f"--set={backup.label}", *target, progress=progress)
    tell(f"restored {_mb(backup.bytes)} in {time.monotonic() - began:.1f} s")
    # From here on, pgBackRest fetches log for the server in its final place.
    configure()


def _put_in_place(place: ClusterFolder) -> Path | None:
    kept = None
    if place.data.exists():
        kept = place.data.with_name(f"17.before-{datetime.now(UTC):%Y%m%d-%H%M%S}")
        place.data.rename(kept)
    try:
        _part(place).rename(place.data)
    except OSError:
        if kept is not None:
            kept.rename(place.data)
        raise
    return kept


def _undo(place: ClusterFolder, kept: Path | None, *, placed: bool) -> None:
    """Remove what a failed recovery has made, and put back what was there."""
    shutil.rmtree(_part(place), ignore_errors=True)
    if placed:
        shutil.rmtree(place.data, ignore_errors=True)
    if kept is not None:
        kept.rename(place.data)


def _replay(
    cluster: Cluster, place: ClusterFolder, moment: Moment, tell: Callable[[str], None]
) -> tuple[datetime | None, bool, list[str]]:
    """Replay the log up to the moment, and settle what was live then."""
    tell("replaying the write-ahead log")
    complete = True
    try:
        try:
            cluster.start(tell)
        except EmbeddedError as error:
            if ENDED_BEFORE not in error.problem:
                raise
            # No transaction of the archive is as late as the moment: all of them belong into the result.
            complete = False
            _forget_target(place)
            cluster.start(tell)
        with database.connect(cluster.url("postgres"), autocommit=True, name="presage restore") as conn:
            (reached,) = _row(conn, "select pg_last_xact_replay_timestamp()")
        at = moment if isinstance(moment, datetime) else reached or datetime.now(UTC)
        databases = contents.databases(cluster.url)
        for name in databases:
            restoring.settle(cluster.url(name), at)
            with database.connect(cluster.url(name), autocommit=True, name="presage restore") as conn:
                backups.forget(conn)
    except (EmbeddedError, psycopg.Error) as error:
        raise BackupError("the write-ahead log could not be replayed", str(error)) from error
    finally:
        cluster.stop()
    return reached, complete, databases


def _forget_target(place: ClusterFolder) -> None:
    file = place.data / "postgresql.auto.conf"
    lines = [line for line in file.read_text().splitlines(keepends=True) if not line.startswith("recovery_target")]
    file.write_text("".join(lines))


def _bring_along(source: Path, into: Path, databases: list[str]) -> None:
    """Copy small files of the origin's data folder, if they are on this machine."""
    if source.resolve() == into.resolve():
        return
    into.mkdir(parents=True, exist_ok=True)
    for name in BESIDE:
        if (source / name).is_file() and not (into / name).exists():
            shutil.copy2(source / name, into / name)
    if not (into / "started").exists() and len(databases) == 1:
        (into / "started").write_text(f"{databases[0]}\n")


def _own(source: Path) -> str | None:
    found = repository.opened(source)
    return None if found is None else found.stanza


def _part(place: ClusterFolder) -> Path:
    return place.home / "17.part"


def _row(conn: psycopg.Connection[Any], query: Any) -> Any:
    row = conn.execute(query).fetchone()
    assert row is not None
    return row


def _mb(size: int) -> str:
    return f"{size / 1e6:,.1f} MB"
