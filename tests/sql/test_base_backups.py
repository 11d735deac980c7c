"""Base backups by pgBackRest, and recovery to a moment: what was committed by then is there, and nothing else."""

from __future__ import annotations

import datetime as dt
import re
import socket
import tempfile
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import dagster as dg
import msgspec
import pytest
from pydantic import ValidationError
from typer.testing import CliRunner

from api.endpoints.service import exposition
from cli.diagnosis import backups as diagnosis
from cli.main import app
from cli.stack.plan_database import PlanDatabase
from cli.stack.processes.program import StartError
from config import settings as configuration
from config.settings import Settings
from orchestration import checks
from orchestration.assets import backups as assets
from orchestration.resources import Database
from sql import database
from sql.backup import BackupError
from sql.backup.base import contents, options, recovery, repository, state, taking
from sql.embedded import Cluster, archiving, place, postmaster
from sql.queries import backups as queries
from tests.archived import PASSPHRASE, SETTINGS, archived, erase
from tests.patience import until

# How long the write-ahead log waits, and what an archive holds, is told by files' times.
pytestmark = pytest.mark.file_times

NOW = dt.datetime(2026, 11, 22, 12, tzinfo=dt.UTC)
SECOND = dt.timedelta(seconds=1)


@pytest.fixture(scope="module")
def origin():
    """A server with a full backup, and trades that were committed before and after it."""
    with archived() as made:
        made.start()
        market = made.migrate()
        made.commit(market, 5)
        taking.take(made.url, made.data_dir, "full")
        made.market = market
        yield made


@pytest.fixture
def presage(origin, monkeypatch):
    """`presage("backup", "list")` with the origin's settings; returns the result."""

    def run(*words, given=origin.settings):
        monkeypatch.setattr(configuration, "get", lambda: given)
        return CliRunner().invoke(app, [str(word) for word in words])

    return run


def after(origin, seconds=1.0):
    """Wait until backups that have ended can be restored from: their times are whole seconds."""
    until(lambda: dt.datetime.now(dt.UTC) > origin.archiving.stanza_info().backups[-1].restores_from)


@pytest.mark.soak
def test_every_row_committed_by_the_moment_is_there_again_and_none_after(origin, presage):
    after(origin)
    origin.commit(origin.market, 20)
    commits = origin.commits()
    moment = commits[14][0] + (commits[15][0] - commits[14][0]) / 2
    origin.query("drop table trades cascade")
    into = origin.folder / "recovered"
    try:
        done = presage("restore", "--at", moment.isoformat(), "--into", into)
        assert done.exit_code == 0, done.output
        with Cluster(into / "database", settings=SETTINGS) as copy:
            url = copy.url("exchange")
            rows = origin.query("select trade_id from trades order by trade_id", url)
            ours = origin.query("select current_setting('archive_mode'), pg_is_in_recovery()", url)
            origin.query("create table written (n int)", url)
        assert rows == sorted((trade_id,) for at, trade_id in commits if at <= moment)
        assert len(rows) == 15
        assert ours == [("off", False)]
        # The end says what to do, and that the copy does not archive into the origin's stanza.
        assert f"PRESAGE_DATA_DIR={into} presage up" in done.output
        assert f"last transaction was committed at {commits[14][0]:%Y-%m-%d %H:%M:%S.%f} UTC" in done.output
        assert "archiving is off" in done.output
        assert (into / "started").read_text() == "exchange"
        # The passphrase does not stay there, and archiving begins under another name.
        assert not [file for file in into.rglob("*.conf") if PASSPHRASE in file.read_text()]
        assert repository.enable(into, origin.options).stanza != origin.archiving.stanza
    finally:
        erase(into)
    # A second attempt never touches what is there: the origin runs, and is the default with --replace.
    running = presage("restore", "--at", moment.isoformat(), "--replace")
    assert running.exit_code == 1
    assert "a database is running" in running.output


def test_a_moment_outside_of_the_repository_is_refused_with_the_allowed_span(origin, presage):
    after(origin)
    into = origin.folder / "never"
    info = origin.archiving.stanza_info()
    for moment in (info.backups[0].restores_from - SECOND, dt.datetime.now(dt.UTC) + dt.timedelta(days=1)):
        refused = presage("restore", "--at", moment.isoformat(), "--into", into)
        assert refused.exit_code == 1
        assert "is outside of what the repository holds" in refused.output
        assert f"choose a moment from {info.backups[0].restores_from:%Y-%m-%d %H:%M:%S} to 20" in refused.output
    assert not into.exists()

    listed = presage("backup", "list")
    assert listed.exit_code == 0, listed.output
    assert f"{origin.archiving.stanza} (this database)" in listed.output
    assert f"{info.backups[0].label}" in listed.output
    assert f"can be restored: {info.backups[0].restores_from:%Y-%m-%d %H:%M:%S}" in listed.output
    assert presage("restore", "--at", "yesterday").exit_code == 2
    assert presage("restore").exit_code == 2


def test_secrets_are_in_no_process_list_log_metadata_or_output_and_without_them_nothing_is_read(origin, presage):
    seen, ended = set(), threading.Event()

    def watch():
        while not ended.is_set():
            for file in Path("/proc").glob("[0-9]*/cmdline"):
                try:
                    seen.add(file.read_bytes())
                except OSError:
                    continue

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        taken = presage("backup", "base", "--incremental")
        listed = presage("backup", "list")
    finally:
        ended.set()
        watcher.join()
    assert taken.exit_code == 0, taken.output
    assert any(b"pgbackrest" in line and b"backup" in line for line in seen), "the program was not seen at all"
    password = (origin.cluster.home / "password").read_text()
    secrets = [PASSPHRASE.encode(), password.encode()]
    written = [file.read_bytes() for file in (origin.cluster.home / "log").iterdir()]
    kept = [file.read_bytes() for file in origin.repository.rglob("*") if file.is_file()]
    assert len(kept) > 100
    with database.connect(origin.url) as conn:
        state_ = conn.execute("select string_agg(value::text, '') from settings").fetchone()[0].encode()
    for text in [
        *seen,
        *written,
        *kept,
        taken.output.encode(),
        listed.output.encode(),
        state_,
        repr(origin.options).encode(),
    ]:
        assert not any(secret in text for secret in secrets)
    conf = origin.archiving.folder / "pgbackrest.conf"
    assert conf.stat().st_mode & 0o777 == 0o600

    for passphrase in (None, "another passphrase altogether"):
        given = origin.settings.model_copy(update={"backup_passphrase": None})
        if passphrase is not None:
            given = Settings(**{**given.model_dump(), "backup_passphrase": passphrase, "_env_file": None})
        into = origin.folder / "unreadable"
        refused = presage("restore", "--at", "latest", "--into", into, given=given)
        assert refused.exit_code == 1, refused.output
        assert not (into / "database/17").exists()


def test_the_newest_backup_is_restored_compared_and_removed(origin):
    done = taking.check(origin.url, origin.data_dir, origin.options)

    assert done.ok, done.said
    assert "all " in done.said
    assert not (origin.data_dir / taking.CHECK_FOLDER).exists()
    # One whose note claims a row more is not what was noted.
    noted = contents.read(origin.cluster.url, dt.datetime.now(dt.UTC))
    markets = noted.databases["exchange"]["markets"]
    noted.databases["exchange"]["markets"] = msgspec.structs.replace(markets, rows=markets.rows + 1)
    origin.archiving.take("incr", {contents.NOTE: noted.encoded()})

    failed = taking.check(origin.url, origin.data_dir, origin.options)

    assert not failed.ok
    assert failed.said == f"exchange.markets has {markets.rows} of {markets.rows + 1} rows"
    with database.connect(origin.url, autocommit=True) as conn:
        assert state.read(conn).checked == failed
        found = [finding for finding in diagnosis.archive(conn, origin.settings) if finding.status == "fail"]
    assert ["the restore check failed" in finding.found for finding in found] == [True]


def test_what_is_noted_leaves_out_a_database_of_the_pipeline_whatever_it_puts_there(origin):
    url = origin.cluster.url("postgres")
    origin.query("create database trap owner presage_pipeline", url)
    try:
        origin.query("create table stream_head (number int)", origin.cluster.url("trap"))

        assert contents.databases(origin.cluster.url) == ["exchange"]
    finally:
        origin.query("drop database trap with (force)", url)


def test_dagster_takes_a_backup_when_one_is_due_and_reports_on_it(origin, monkeypatch):
    monkeypatch.setattr(configuration, "get", lambda: origin.settings)
    resources = {"database": Database(url=origin.url)}
    with (
        dg.instance_for_test() as instance,
        dg.build_schedule_context(instance=instance, resources=resources) as context,
    ):
        assert "none is due" in assets.base_backup_due(context).skip_message
        with database.connect(origin.url, autocommit=True) as conn:
            conn.execute("delete from settings where name = 'base_backups'")
        asked = assets.base_backup_due(context)
        assert asked.run_config["ops"]["base_backups"]["config"] == {"kind": "full"}

        config = dg.RunConfig({"base_backups": assets.BaseBackupConfig(kind="incr")})
        done = dg.materialize(
            [assets.base_backups, assets.archive_checks], resources=resources, run_config=config, instance=instance
        )

    (made,) = done.asset_materializations_for_node("base_backups")
    assert made.metadata["kind"].value == "incr"
    judged = {each.check_name: (each.passed, each.description) for each in done.get_asset_check_evaluations()}
    assert judged["base_backup_recent"] == (True, "incr, 0.0 hours old")
    assert judged["wal_archived"][0]


def test_metrics_tell_the_ages_of_the_archive_the_backup_and_the_check(origin):
    with database.connect(origin.url, autocommit=True) as conn:
        now = dt.datetime.now(dt.UTC)
        state.save(
            conn,
            state.State(
                state.Newest("label", "incr", now - dt.timedelta(hours=3), "a", now, 1, 1),
                checked=state.Checked(now - dt.timedelta(days=1), False, "label", "why", 1.0),
            ),
        )
        conn.execute("select pg_current_xact_id()")
        conn.execute("select pg_switch_wal()")
        until(lambda: queries.ages(conn)[1] is not None)
        told = {each.name: each.samples[0].value for each in exposition._backups(queries.ages(conn))}
        conn.execute("delete from settings where name = 'base_backups'")

    assert told.keys() == exposition.BACKUPS.keys()
    assert 3 * 3600 <= told["presage_base_backup_age_seconds"] < 4 * 3600
    assert 86_400 <= told["presage_restore_check_age_seconds"] < 90_000
    assert told["presage_restore_check_ok"] == 0
    assert 0 <= told["presage_wal_archived_age_seconds"] < 3600
    assert list(exposition._backups((False, 1.0, 2.0, 3.0, True))) == []


def test_a_stopped_server_is_recovered_to_the_end_of_its_archive_beside_it_and_in_its_place(origin, monkeypatch):
    """Where no transaction is as late as the moment, recovery ends with the last one there is."""
    after(origin)
    origin.query("create table last_words as select 1 as n")
    with recovery.listed(origin.data_dir, origin.options) as reader:
        recovery.flush(origin.data_dir, None, print)
        before = reader.archived_until(reader.stanza_info())
    # A last segment that is archived well after the last commit.
    committed = dt.datetime.now(dt.UTC)
    until(lambda: dt.datetime.now(dt.UTC) > committed + 2 * SECOND)
    origin.query("select pg_logical_emit_message(false, 'tests', 'no commit')")
    origin.query("select pg_switch_wal()")
    origin.cluster.stop()
    into = origin.folder / "end"
    try:
        with recovery.listed(origin.data_dir, origin.options) as reader:
            newest = reader.archived_until(reader.stanza_info())
        assert newest > before
        done = recovery.recover(origin.data_dir, into, origin.options, newest)
        with Cluster(into / "database", settings=SETTINGS) as copy:
            rows = origin.query("select n from last_words", copy.url("exchange"))
    finally:
        erase(into)
    assert rows == [(1,)]
    assert (done.complete, done.databases) == (False, ["exchange"])

    # A recovery that fails leaves everything as it was, archiving too.
    there = sorted(origin.cluster.home.iterdir())
    conf = (origin.archiving.folder / "pgbackrest.conf").read_text()

    def fails(*_):
        raise BackupError("it failed", "why")

    with monkeypatch.context() as patch:
        patch.setattr(recovery, "_replay", fails)
        with pytest.raises(BackupError, match="it failed"):
            recovery.recover(origin.data_dir, origin.data_dir, origin.options, "latest", replace=True)
    assert sorted(origin.cluster.home.iterdir()) == there
    assert (origin.archiving.folder / "pgbackrest.conf").read_text() == conf
    assert not (origin.archiving.folder / "restore.conf").exists()
    assert repository.opened(origin.data_dir) == origin.archiving
    with pytest.raises(BackupError, match="has a database already"):
        recovery.recover(origin.data_dir, origin.data_dir, origin.options, "latest")

    done = recovery.recover(origin.data_dir, origin.data_dir, origin.options, "latest", replace=True)

    assert (done.kept / "PG_VERSION").exists()
    assert repository.opened(origin.data_dir) is None, "it archives under a name of its own from now on"
    with Cluster(origin.data_dir / "database", settings=SETTINGS):
        assert origin.query("select n from last_words") == [(1,)]


@pytest.fixture
def mute():
    """The port of a server that accepts connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


def test_a_dead_repository_neither_delays_a_stop_nor_goes_unnoticed(mute):
    with archived(backup_passphrase=None) as made:
        made.start()
        made.repository.rename(made.folder / "away")
        made.repository.write_text("not a folder")

        def archive():
            with database.connect(made.url, autocommit=True) as conn:
                return state.archive(conn)

        made.query("create table t as select generate_series(1, 1000)")
        made.query("select pg_switch_wal()")
        until(lambda: archive().failed_at is not None)
        waits = archive()
        assert waits.waiting >= 1
        assert waits.waiting_since is not None
        with database.connect(made.url, autocommit=True) as conn:
            first = next(diagnosis.archive(conn, made.settings))
        assert first.status == "warn"
        assert re.search(r"\d+ MB of write-ahead log wait since .* UTC .*; last failed", first.found)
        later = waits.waiting_since + dt.timedelta(minutes=31)
        assert diagnosis._archived(waits, later).status == "fail"
        judged = checks.wal_archived(waits, later)
        assert (judged.holds, judged.severity) == (False, "error")

        # One that hangs is worse than one that refuses: the archive command waits for its answer.
        hanging = made.settings.model_copy(
            update={
                "backup_repository": "s3://bucket",
                "backup_s3_endpoint": f"127.0.0.1:{mute}",
                "backup_s3_key": configuration.SecretStr("key"),
                "backup_s3_secret": configuration.SecretStr("secret"),
            }
        )
        repository.enable(made.data_dir, options.of(hanging))
        made.query("create table u as select generate_series(1, 1000)")
        made.query("select pg_switch_wal()")
        folder = str(made.cluster.home / archiving.FOLDER)
        until(lambda: postmaster.with_argument(folder, "archive-push"), within_s=90)
        began = time.monotonic()
        made.cluster.stop()
        took = time.monotonic() - began

        assert took < 20
        assert postmaster.with_argument(folder, "archive-push") == []

        def log():
            return "".join(file.read_text(errors="replace") for file in (made.cluster.home / "log").iterdir())

        until(lambda: "database system is shut down" in log())  # the server says so after its pid file is gone
        assert "immediate shutdown" not in log(), "the next start would have to recover"

        # What waited is archived once the repository is there again.
        made.repository.unlink()
        (made.folder / "away").rename(made.repository)
        repository.enable(made.data_dir, made.options)
        made.start()
        made.archiving.ensure_stanza()
        made.query("select pg_switch_wal()")
        until(lambda: archive().waiting == 0, within_s=120)


@pytest.fixture
def folder():
    """A folder that the server's user can enter (pytest's own are root's alone)."""
    with tempfile.TemporaryDirectory(prefix="presage-") as made:
        Path(made).chmod(0o755)
        yield Path(made)


def test_archiving_belongs_to_the_data_and_ends_only_when_it_is_turned_off(folder):
    data_dir = folder / "da ta%"
    made = repository.enable(data_dir, options.Options(str(folder / "repository")))
    home = place.find(data_dir / "database").home

    said = archiving.server_settings(home)
    assert said["archive_mode"] == "on"
    assert said["archive_command"] == f"/bin/sh '{home}/backup/pgbackrest-archive' %p".replace("ta%", "ta%%")
    assert repository.opened(data_dir).stanza == made.stanza
    assert repository.enable(data_dir, options.Options(str(folder / "repository"))).stanza == made.stanza

    assert repository.disable(place.find(data_dir / "database"))
    assert archiving.server_settings(home) == {}
    assert repository.opened(data_dir) is None
    assert not repository.disable(place.find(data_dir / "database"))


def test_presage_up_turns_archiving_on_and_off_as_the_settings_say(folder, monkeypatch):
    said, data_dir = [], folder / "data"
    database = PlanDatabase(SimpleNamespace(data_dir=data_dir, cache_dir=None), said.append)
    given = {"_env_file": None, "database_url": None, "data_dir": data_dir}

    def configure(**more):
        monkeypatch.setattr(configuration, "get", lambda: Settings(**given, **more))
        database.configure_archiving()

    configure()
    assert said == []
    configure(backup_repository=str(folder / "repository"))
    assert said[-1] == f"base backups: {repository.opened(data_dir).stanza} in {folder}/repository"
    assert repository.active(data_dir) is None, "the server does not run"
    configure()
    assert "base backups are off from now on" in said[-1]
    assert repository.opened(data_dir) is None
    with pytest.raises(StartError, match="set PRESAGE_BACKUP_S3_KEY"):
        configure(backup_repository="s3://bucket/path")


@pytest.mark.parametrize(
    ("hours", "full_hours", "stanza", "failed_minutes", "expected"),
    [
        (1, 1, "a", None, None),
        (24, 25, "a", None, "incr"),
        (1, 24 * 7, "a", None, "full"),
        (1, 1, "b", None, "full"),
        (24, 25, "a", 5, None),
        (24, 25, "a", 16, "incr"),
    ],
)
def test_a_backup_is_due_by_the_age_of_the_newest(hours, full_hours, stanza, failed_minutes, expected):
    hour = dt.timedelta(hours=1)
    newest = state.Newest("label", "incr", NOW - hours * hour, stanza, NOW - full_hours * hour, 1, 1)
    failed = None if failed_minutes is None else state.Failure(NOW - failed_minutes * hour / 60, "why")

    due = state.due(state.State(newest, failed), "a", NOW, every=24 * hour, full_every=24 * 7 * hour)

    assert due == expected
    assert state.due(state.State(), "a", NOW, every=24 * hour, full_every=24 * 7 * hour) == "full"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("backup_repository", "relative/folder"),
        ("backup_repository", "/folder\nrepo1-path=/other"),
        ("backup_repository", "ftp://somewhere"),
        ("backup_passphrase", "too short"),
        ("backup_passphrase", "long enough, but\nof two lines"),
        ("backup_s3_endpoint", "host\nrepo1-s3-key=x"),
    ],
)
def test_a_setting_that_would_not_be_one_line_of_the_configuration_is_refused_without_being_shown(name, value):
    with pytest.raises(ValidationError) as refused:
        Settings(_env_file=None, **{name: value})

    assert name in str(refused.value)
    assert value not in str(refused.value)


def test_off_is_said_and_nothing_is_done(database_url, presage, monkeypatch, tmp_path):
    off = Settings(_env_file=None, database_url=None, data_dir=tmp_path)
    monkeypatch.setattr(configuration, "get", lambda: off)

    assert [finding.status for finding in diagnosis.configuration(off)] == ["warn"]
    assert "base backups are off" in next(diagnosis.configuration(off)).found
    for words in (["backup", "base"], ["backup", "list"], ["restore", "--at", "latest"]):
        refused = presage(*words, given=off)
        assert refused.exit_code == 1
        assert "PRESAGE_BACKUP_REPOSITORY is not set" in refused.output
    resources = {"database": Database(url=database_url)}
    with (
        dg.instance_for_test() as instance,
        dg.build_schedule_context(instance=instance, resources=resources) as context,
    ):
        assert "off" in assets.base_backup_due(context).skip_message
        done = dg.materialize(
            [assets.base_backups, assets.archive_checks, assets.restore_check], resources=resources, instance=instance
        )
    assert {each.description for each in done.get_asset_check_evaluations()} == {checks.OFF_BACKUPS.summary}
    assert list(tmp_path.iterdir()) == []


def test_a_repository_that_the_servers_user_cannot_write_to_is_named(folder):
    there = folder / "repository"
    there.mkdir(mode=0o555)
    there.chmod(0o555)
    with pytest.raises(BackupError, match=r"cannot write to the repository .*repository: chown"):
        repository.enable(folder / "data", options.Options(str(there)))
    assert not archiving.script(place.find(folder / "data/database").home).exists()
