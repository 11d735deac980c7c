"""The whole database into a file, and back: nothing is lost, and nothing incomplete is ever in place."""

from __future__ import annotations

import datetime as dt
import re
import stat

import msgspec
import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from typer.testing import CliRunner

from cli.main import app
from orchestration import stream
from sql import database, migrate
from sql.backup import BackupError, origin, restore, save, saving
from sql.tables import metadata
from tests import stream_rows
from tests.factories import insert
from tests.sql import schema

NOW = dt.datetime.now(dt.UTC)
# What a restore changes: leases are over, books are to be resynced, the stream's numbers jump, the command is recorded.
SETTLED = {"audit_log", "feed_leases", "live_books", "stream_blocks", "stream_head", "webhook_head", "settings"}


@pytest.fixture(autouse=True)
def filled(conn, add_market, add_trades):
    """Three days of trades, and a row of everything that a restore has to settle."""
    market = add_market("rain")
    for days in range(3):
        add_trades(
            market, [{"ts": NOW - dt.timedelta(days=days, minutes=n), "price": f"0.{n + 11}"} for n in range(30)]
        )
    of = {"market_key": market["market_key"], "outcome": 0, "ts": NOW}
    insert(conn, "quotes", {**of, "bid": 1})
    insert(conn, "book_events", {**of, "event_id": 1, "seq": 1})
    book = {"bid_prices": [1], "bid_sizes": [1], "ask_prices": [], "ask_sizes": []}
    insert(conn, "live_books", {**of, **book, "seq": 1, "verified": True})
    stream_rows.add(conn, 7, [stream.message("trade", 0, None, {})])
    conn.execute("update stream_head set last_seq = 7")
    insert(conn, "feed_leases", {"run_id": "a", "feed": "polymarket", "role": "leader", "window_ends_at": NOW})
    return market


@pytest.fixture
def admin(database_url):
    with database.connect(make_conninfo(database_url, dbname="postgres"), autocommit=True) as connection:
        yield connection


@pytest.fixture
def elsewhere(admin, database_url):
    """The URL of a database that does not exist."""
    name = f"{conninfo_to_dict(database_url)['dbname']}_elsewhere"
    yield make_conninfo(database_url, dbname=name)
    left = admin.execute("select datname from pg_database where datname like %s", [f"{name}%"]).fetchall()
    for (each,) in left:
        admin.execute(sql.SQL("drop database {} with (force)").format(sql.Identifier(each)))


@pytest.fixture
def file(tmp_path):
    return tmp_path / "presage.dump"


def contents(url):
    """Return every table's rows, in an order of their own."""
    with database.connect(url, autocommit=True) as conn:
        if database.license(conn) == "timescale":  # as each pass does: until then a policy may hide what is older
            for name in ("candles_1m", "candles_1h"):
                conn.execute("call refresh_continuous_aggregate(%s, null, null)", [name])
        return {
            name: conn.execute(
                sql.SQL("select count(*), md5(string_agg(t::text, ';' order by t::text)) from {} t").format(
                    sql.Identifier(name)
                )
            ).fetchone()
            for name in metadata.tables
            if name not in SETTLED
        }


def described(url):
    with database.connect(url, autocommit=True) as conn:
        told = schema.describe(conn)
    # For a union's later parts the server shows names that it chose itself.
    return {**told, "views": [(*name, re.sub(r" AS \w+", "", text)) for *name, text in told["views"]]}


def column(url, query):
    with database.connect(url, autocommit=True) as conn:
        return [value for (value,) in conn.execute(query)]


def test_every_row_and_everything_that_keeps_them_is_there_again(database_url, elsewhere, file):
    save(database_url, file)
    restore(elsewhere, file)

    assert contents(elsewhere) == contents(database_url)
    assert contents(elsewhere)["trades"][0] == 90
    assert contents(elsewhere)["candles_1m"][0] == 90
    assert described(elsewhere) == described(database_url)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_pg_dump_before_16_which_knows_compression_by_its_level_alone_makes_a_backup(
    database_url, conn, file, tmp_path, monkeypatch
):
    older = tmp_path / "pg_dump"
    real = saving.programs.program("pg_dump", conn.info.server_version // 10_000, None, newer=True)
    refuses = 'echo "pg_dump: error: invalid value for option -Z/--compress"; exit 1'
    older.write_text(
        f'#!/bin/sh\nfor it; do case $it in --compress=*[!0-9]*) {refuses};; esac; done\nexec "{real}" "$@"\n'
    )
    older.chmod(0o755)
    find = saving.programs.program
    monkeypatch.setattr(
        saving.programs, "program", lambda name, *rest, **how: older if name == "pg_dump" else find(name, *rest, **how)
    )

    save(database_url, file)

    assert file.stat().st_size > 0


def test_a_restored_database_goes_on(database_url, elsewhere, file, filled):
    save(database_url, file)
    restore(elsewhere, file)

    with database.connect(elsewhere, autocommit=True) as conn:
        later = NOW + dt.timedelta(days=9)
        key = {"ts": later, "market_key": filled["market_key"], "outcome": 0}
        insert(conn, "trades", {**key, "trade_id": 1, "seq": 1, "side": 1, "price": 7, "size": 2, "value_usd": 3})
        candle = conn.execute(
            "select open, volume, trades from candles_1m where bucket > %s", [NOW + dt.timedelta(days=8)]
        )
        assert candle.fetchall() == [(7, 2, 1)]
        dropped = conn.execute(
            "select drop_chunks('trades', older_than => %s::timestamptz)", [NOW - dt.timedelta(days=1)]
        )
        assert len(dropped.fetchall()) >= 1
        insert(conn, "coverage_gaps", {"kind": "books", "from_ts": NOW, "cause": "numbers go on"})
        assert conn.execute("show timescaledb.restoring").fetchone() == ("off",)


def test_what_was_live_when_it_was_made_is_live_no_longer(database_url, elsewhere, file):
    save(database_url, file)
    restore(elsewhere, file)

    assert column(elsewhere, "select verified from live_books") == [False]
    assert column(elsewhere, "select role from feed_leases") == ["gone"]
    assert column(elsewhere, "select count(*) from stream_blocks") == [0]
    (head,) = column(elsewhere, "select last_seq from stream_head")
    assert head > 7 + 1_000_000, "a number that a client has seen since is not given to another event"
    assert column(elsewhere, "select last_seq from webhook_head") == [head], "no events are left to look through"
    (told,) = column(elsewhere, "select value from settings where name = 'backup'")
    with database.connect(elsewhere) as conn:
        assert told["license"] == database.license(conn)


def test_a_backup_from_before_the_stream_had_blocks_is_restored_and_migrated(database_url, elsewhere, file):
    migrate.downgrade(database_url, "0009")
    assert column(database_url, "select seq from stream_events") == [7]
    save(database_url, file)

    restore(elsewhere, file)

    assert column(elsewhere, "select seq from stream_events") == []
    migrate.upgrade(elsewhere)
    assert column(elsewhere, "select count(*) from stream_blocks") == [0]
    migrate.upgrade(database_url)
    assert contents(elsewhere) == contents(database_url)


def test_what_is_not_committed_when_it_begins_is_not_in_it(database_url, elsewhere, file, add_market):
    with database.connect(database_url) as other:
        insert(other, "coverage_gaps", {"kind": "books", "from_ts": NOW, "cause": "not yet"})
        save(database_url, file)
        other.commit()
    restore(elsewhere, file)

    assert column(database_url, "select count(*) from coverage_gaps") == [1]
    assert column(elsewhere, "select count(*) from coverage_gaps") == [0]


def test_a_file_that_is_there_is_not_written_over(database_url, file):
    file.write_text("precious")

    with pytest.raises(BackupError, match="exists: give another name"):
        save(database_url, file)

    assert file.read_text() == "precious"


def test_a_backup_that_fails_leaves_nothing_behind(database_url, file, monkeypatch):
    monkeypatch.setattr("sql.backup.saving.COMPRESSION", "no such compression")

    with pytest.raises(BackupError, match="pg_dump failed"):
        save(database_url, file)

    assert list(file.parent.iterdir()) == []


def test_a_database_with_something_in_it_is_replaced_only_when_asked_and_kept_aside(
    database_url, elsewhere, admin, file
):
    save(database_url, file)
    restore(elsewhere, file)
    with database.connect(elsewhere, autocommit=True) as conn:
        insert(conn, "coverage_gaps", {"kind": "books", "from_ts": NOW, "cause": "mine"})
    with pytest.raises(BackupError, match="is not empty"):
        restore(elsewhere, file)
    assert column(elsewhere, "select cause from coverage_gaps") == ["mine"]

    said = []
    restore(elsewhere, file, replace=True, tell=said.append)

    name = conninfo_to_dict(elsewhere)["dbname"]
    (kept,) = admin.execute("select datname from pg_database where datname like %s", [f"{name}_before%"]).fetchone()
    assert kept in said[-1]
    assert column(elsewhere, "select count(*) from coverage_gaps") == [0]
    assert column(make_conninfo(elsewhere, dbname=kept), "select cause from coverage_gaps") == ["mine"]


def test_an_empty_database_is_taken(database_url, elsewhere, admin, file):
    save(database_url, file)
    name = conninfo_to_dict(elsewhere)["dbname"]
    admin.execute(sql.SQL("create database {}").format(sql.Identifier(name)))

    restore(elsewhere, file)

    assert contents(elsewhere) == contents(database_url)
    left = admin.execute("select datname from pg_database where datname like %s", [f"{name}%"]).fetchall()
    assert left == [(name,)]


def test_a_database_in_use_is_left_alone(database_url, conn, file):
    save(database_url, file)

    with pytest.raises(BackupError, match="in use by presage test: stop"):
        restore(database_url, file, replace=True)

    assert conn.execute("select count(*) from trades").fetchone() == (90,)


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ({"revision": "9999"}, "which this release does not know"),
        ({"timescaledb": "9.9.9"}, "this server has 2"),
        ({"postgresql": 99}, "restore on one as new"),
        ({"license": "another"}, "restore on a server under the same licence"),
    ],
)
def test_what_could_not_work_is_refused_and_nothing_is_made(
    database_url, elsewhere, admin, file, monkeypatch, said, why
):
    told = save(database_url, file)
    monkeypatch.setattr(origin, "of", lambda *_: msgspec.structs.replace(told, **said))

    with pytest.raises(BackupError, match=why):
        restore(elsewhere, file)

    name = conninfo_to_dict(elsewhere)["dbname"]
    assert admin.execute("select from pg_database where datname like %s", [f"{name}%"]).fetchall() == []


def test_a_damaged_file_leaves_what_is_there_in_place(database_url, elsewhere, admin, file):
    save(database_url, file)
    restore(elsewhere, file)
    whole = file.read_bytes()
    file.write_bytes(whole[: len(whole) * 2 // 3])

    with pytest.raises(BackupError):
        restore(elsewhere, file, replace=True)

    assert contents(elsewhere) == contents(database_url)
    name = conninfo_to_dict(elsewhere)["dbname"]
    assert admin.execute("select datname from pg_database where datname like %s", [f"{name}%"]).fetchall() == [(name,)]


def test_other_files_are_not_restored(elsewhere, file):
    with pytest.raises(BackupError, match="there is no file"):
        restore(elsewhere, file)
    file.write_text("select 1;")
    with pytest.raises(BackupError):
        restore(elsewhere, file)


def test_an_empty_database_is_not_backed_up(elsewhere, admin, file):
    admin.execute(sql.SQL("create database {}").format(sql.Identifier(conninfo_to_dict(elsewhere)["dbname"])))

    with pytest.raises(BackupError, match="none of our tables"):
        save(elsewhere, file)


def test_the_commands_say_what_they_did_and_what_is_wrong(database_url, elsewhere, file):
    def presage(*words):
        return CliRunner().invoke(app, [*words])

    made = presage("backup", str(file), "--database-url", database_url)
    again = presage("backup", str(file), "--database-url", database_url)
    restored = presage("restore", str(file), "--database-url", elsewhere)
    refused = presage("restore", str(file), "--database-url", elsewhere)

    assert (made.exit_code, restored.exit_code) == (0, 0), made.output + restored.output
    assert f"{file}: " in made.output
    assert "presage analyst add" in restored.output
    assert (again.exit_code, refused.exit_code) == (1, 1)
    assert "exists" in again.output
    assert "--replace" in refused.output
    assert contents(elsewhere) == contents(database_url)


def test_a_password_is_not_shown_to_other_users_of_the_machine(monkeypatch):
    from sql.backup import programs

    seen = {}
    monkeypatch.setattr(programs, "_run", lambda command, env: seen.update(command=command, env=env) or "")

    programs.run(["pg_dump"], "postgresql://presage:geheim@db.example/presage?sslmode=require")

    assert "geheim" not in " ".join(seen["command"])
    assert seen["env"]["PGPASSWORD"] == "geheim"
    assert "sslmode=require" in seen["command"][-1]


def test_a_missing_program_of_the_servers_release_is_named(monkeypatch):
    from sql.backup import programs

    monkeypatch.setattr(programs, "_candidates", lambda *_: [])

    with pytest.raises(BackupError, match="postgresql-client-42"):
        programs.program("pg_restore", 42, None, newer=False)


def test_a_server_without_room_for_the_locks_says_so_before(database_url, file, monkeypatch):
    from sql.backup import saving

    monkeypatch.setattr(saving, "_one", lambda _, query: 10 if "max_locks" in query else 1_000_000)

    with pytest.raises(BackupError, match="raise max_locks_per_transaction"):
        save(database_url, file)


def test_an_address_without_a_database_is_refused(file, cluster):
    file.touch()
    with pytest.raises(BackupError, match="names no database"):
        restore("postgresql://presage@/?host=/nowhere", file)
    with pytest.raises(psycopg.OperationalError):
        restore("postgresql://presage@/presage?host=/nowhere", file)
