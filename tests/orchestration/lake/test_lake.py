"""The lake: what engines read of it, what a crash leaves, and that nothing is dropped that it does not have."""

from __future__ import annotations

import dataclasses
import datetime as dt
import os
import signal
import subprocess
import sys
from decimal import Decimal
from pathlib import Path

import pytest
from pyarrow import fs, parquet
from typer.testing import CliRunner

from api.data.lake import LakeFiles
from cli.main import app
from config import settings
from config.settings import Settings
from orchestration.exports.days import unpack_events
from orchestration.lake import verifying, writing
from orchestration.lake.catalogue import Lake, data_files
from orchestration.lake.tables import BY_NAME, TABLES
from orchestration.maintenance import packs, retention
from sql import database
from sql.queries import lake as queries
from tests.factories import insert
from tests.object_store import object_store  # noqa: F401 (a fixture)

ROOT = Path(__file__).parents[3]
DAY = dt.date(2026, 11, 19)
NOON = dt.datetime(2026, 11, 19, 12, tzinfo=dt.UTC)
NOW = dt.datetime(2026, 11, 21, 12, tzinfo=dt.UTC)
TRADES = BY_NAME["trades"]


@pytest.fixture
def given(tmp_path):
    return Settings(_env_file=None, lake=f"{tmp_path}/lake")


@pytest.fixture
def lake(database_url, given):
    with Lake(database_url, given) as lake:
        yield lake


@pytest.fixture
def market(add_market):
    return add_market("rain", question='Will it "rain", or\nnot?', tags=["a,b", "ü"], created_at=NOON)


def write(conn, lake, day=DAY, table=TRADES):
    return writing.write(conn, lake, table, day)


def retained(conn, settings, now):
    """Run the pass of retention that says what it will drop, and a later one that drops it."""
    retention.drop_old(conn, settings, now)
    conn.execute(
        "update settings set updated_at = updated_at - interval '11 minutes' where name like 'lake_hot_from.%'"
    )
    return retention.drop_old(conn, settings, now)


def paths(lake, table=TRADES):
    return sorted(file.file_path.removeprefix("file://") for file in data_files(lake.table(table)))


def test_another_engine_reads_what_the_database_has(conn, lake, market, add_trades, duck, caplog):
    add_trades(market, [{"ts": NOON + dt.timedelta(hours=n), "price": "0.123456", "size": "7.5"} for n in (-12, 0, 11)])
    add_trades(market, [{"ts": NOON, "side": -1, "tx_hash": b"\x0f" * 32}], outcome=1)
    add_trades(market, [{"ts": NOON + dt.timedelta(hours=12)}, {"ts": NOON - dt.timedelta(hours=13)}])

    done = [write(conn, lake, table=table) for table in TABLES]

    assert [each.rows for each in done] == [1, 4, 4, *[0] * 6]
    assert not caplog.messages
    rows = duck("select count(*), min(price), sum(size), min(ts)::varchar, max(tx_hash) from LAKE", lake.table(TRADES))
    smallest = conn.execute("select min(price)::numeric / 1e6, sum(size)::numeric / 1e6 from trades").fetchone()
    assert rows[0][0] == 4
    assert rows[0][1] == Decimal("0.123456") == smallest[0]
    assert rows[0][3].startswith("2026-11-19 00:00:00")
    assert rows[0][4] == "0x" + "0f" * 32
    (candles,) = duck("select sum(trades), sum(volume) from LAKE", lake.table(BY_NAME["candles_1m"]))
    assert candles == (4, rows[0][2])
    assert duck("select question, tags from LAKE", lake.table(BY_NAME["markets"])) == [
        ('Will it "rain", or\nnot?', '["a,b","ü"]')
    ]


def test_who_asks_for_a_market_reads_the_groups_of_rows_that_may_have_it(
    conn, lake, given, add_market, add_trades, monkeypatch
):
    markets = [add_market(name) for name in ("rain", "snow", "wind")]
    for market in markets:
        add_trades(market, [{"ts": NOON + dt.timedelta(seconds=number)} for number in range(5)])
    write(conn, lake, table=dataclasses.replace(TRADES, row_group=2))
    (path,) = paths(lake)
    files = LakeFiles(given)

    groups = parquet.ParquetFile(path).metadata
    read, asked = parquet.ParquetFile.read_row_groups, []
    monkeypatch.setattr(
        parquet.ParquetFile,
        "read_row_groups",
        lambda file, wanted, *a, **n: asked.append(wanted) or read(file, wanted, *a, **n),
    )
    found = [files.rows([f"file://{path}"], market["market_id"], ["trade_id"]) for market in [*markets, *markets]]

    assert [groups.row_group(number).num_rows for number in range(groups.num_row_groups)] == [2] * 7 + [1]
    trades = conn.execute("select array_agg(trade_id order by trade_id) from trades group by market_key").fetchall()
    assert sorted(sorted(rows["trade_id"].to_pylist()) for rows in found[:3]) == sorted(ids for (ids,) in trades)
    assert found[:3] == found[3:]
    assert sorted(asked[:3]) == sorted(asked[3:]) == [[0, 1, 2], [2, 3, 4], [5, 6, 7]]
    assert groups.serialized_size < files._footers.currsize < groups.serialized_size + 10_000


def test_a_footer_that_is_larger_than_all_may_be_is_read_each_time(conn, lake, given, market, add_trades, monkeypatch):
    add_trades(market, [{"ts": NOON}])
    write(conn, lake)
    monkeypatch.setattr("api.data.lake.MAX_FOOTERS_BYTES", 10)
    files = LakeFiles(given)

    assert files.rows([f"file://{path}" for path in paths(lake)], market["market_id"], ["trade_id"]).num_rows == 1

    assert not files._footers


def test_a_day_that_is_written_again_is_the_same_file_or_replaces_it(conn, lake, market, add_trades, duck):
    add_trades(market, [{"ts": NOON}])
    first, again = write(conn, lake), write(conn, lake)
    before = paths(lake)
    add_trades(market, [{"ts": NOON + dt.timedelta(minutes=1)}])

    filled_in = write(conn, lake)

    assert (first.changed, again.changed, filled_in.changed) == (True, False, True)
    assert len(paths(lake)) == len(before) == 1
    assert paths(lake) != before
    assert duck("select count(*) from LAKE", lake.table(TRADES)) == [(2,)]


def test_due_are_missing_days_and_those_that_got_more_rows(conn, lake, market, add_trades):
    add_trades(market, [{"ts": NOON}])
    told = []
    assert list(writing.due(conn, TRADES, NOW)) == [DAY, DAY + dt.timedelta(days=1)]

    assert len(writing.write_due(conn, lake, TRADES, NOW, told.append)) == 2
    assert list(writing.due(conn, TRADES, NOW)) == []
    add_trades(market, [{"ts": NOON + dt.timedelta(minutes=1)}])

    assert list(writing.due(conn, TRADES, NOW)) == [DAY]
    assert told == ["trades 2026-11-19: 1 rows, 0.0 MB", "trades 2026-11-20: 0 rows, 0.0 MB"]


@pytest.mark.parametrize("hour", [0, 1])
def test_a_day_is_due_an_hour_after_its_end(conn, market, add_trades, hour):
    add_trades(market, [{"ts": NOON}])

    due = list(writing.due(conn, TRADES, dt.datetime(2026, 11, 20, hour, tzinfo=dt.UTC)))

    assert due == ([DAY] if hour else [])


def test_books_of_a_day_are_there_whether_packed_or_not(conn, lake, market, duck):
    books = BY_NAME["book_events"]
    key = {"market_key": market["market_key"], "outcome": 0}
    for number, minutes in enumerate((0, 1, 59, 61, 24 * 60), 1):
        row = {
            **key,
            "ts": NOON + dt.timedelta(minutes=minutes),
            "event_id": number,
            "seq": number,
            "hash": b"\x07" * 20,
        }
        level = {"side": -1, "price": 250_000, "size": number * 1_000_000}
        book = {"bid_prices": [240_000], "bid_sizes": [5_000_000], "ask_prices": [250_000], "ask_sizes": [1_500_000]}
        insert(conn, "book_events", {**row, **(book if number == 1 else level)})
    first = write(conn, lake, table=books)
    before = duck("select * from LAKE order by ts", lake.table(books))
    if database.license(conn) == "apache":  # the columnstore replaces packs
        assert packs.bring_up_to_date(conn, NOW + dt.timedelta(days=1)).events > 0
        with conn.transaction():
            unpack_events(conn, {"from_ts": NOON, "to_ts": NOON + dt.timedelta(hours=1)})
            unpacked = conn.execute("select array_agg(ts order by ts) from unpacked_events").fetchone()
        assert unpacked == ([NOON + dt.timedelta(minutes=minutes) for minutes in (1, 59)],)  # the first stays a row

    due = DAY in writing.due(conn, books, NOW)
    again = write(conn, lake, table=books)

    assert (first.rows, first.files, due, again.changed) == (4, 2, False, False)
    assert duck("select * from LAKE order by ts", lake.table(books)) == before
    assert [row[4:9] for row in before[:2]] == [
        ("snapshot", None, None, None, "[[0.24,5]]"),
        ("delta", "ask", Decimal("0.25"), Decimal(2), None),
    ]
    assert before[0][9:] == ("[[0.25,1.5]]", "07" * 20)
    late = {**key, "ts": NOON + dt.timedelta(minutes=2), "event_id": 9, "seq": 9, "side": 1, "price": 1, "size": 1}
    insert(conn, "book_events", late)
    assert DAY in writing.due(conn, books, NOW)


def test_a_day_that_expired_is_not_emptied_by_writing_it_again(
    conn, database_url, lake, given, market, add_trades, monkeypatch
):
    add_trades(market, [{"ts": NOON}, {"ts": NOON + dt.timedelta(days=1)}])
    write(conn, lake)
    conn.execute("select drop_chunks('trades', older_than => %s)", [NOON + dt.timedelta(hours=13)])

    with pytest.raises(writing.ExpiredError, match="2026-11-19 has expired: the database has the days from 2026-11-20"):
        write(conn, lake)

    assert verifying.verify(conn, lake, TRADES).rows == 1
    assert DAY not in list(writing.due(conn, TRADES, NOW))
    monkeypatch.setattr(settings, "get", lambda: given)
    command = ["lake", "write", "trades", "--day", "2026-11-19", "--database-url", database_url]
    assert CliRunner().invoke(app, command).exit_code == 1


def test_markets_are_written_whole(conn, lake, market, add_market, duck):
    markets = BY_NAME["markets"]
    write(conn, lake, table=markets)
    add_market("sun", created_at=NOON + dt.timedelta(days=1))

    write(conn, lake, DAY + dt.timedelta(days=1), markets)

    assert duck("select slug from LAKE order by 1", lake.table(markets)) == [("rain",), ("sun",)]
    assert [row[0] for row in queries.days(conn, name="markets")] == [DAY + dt.timedelta(days=1)]


WRITER = """
import sys, datetime as dt
from config.settings import Settings
from orchestration.lake import writing
from orchestration.lake.catalogue import Lake
from orchestration.lake.tables import BY_NAME
from sql import database
from sql.queries import lake as queries
from tests.factories import insert
url, folder, stop = sys.argv[1:]
def wait(*_, **__):
    print("here", flush=True)
    sys.stdin.read()
if stop == "before the commit":
    writing._commit = wait
else:
    queries.put = wait
with database.connect(url, autocommit=True) as conn, Lake(url, Settings(_env_file=None, lake=folder)) as lake:
    writing.write(conn, lake, BY_NAME["trades"], dt.date(2026, 11, 19))
"""


@pytest.mark.parametrize("stop", ["before the commit", "after the commit"])
def test_a_writer_that_is_killed_leaves_no_row_lost_or_doubled(
    conn, database_url, lake, given, market, add_trades, duck, stop
):
    add_trades(market, [{"ts": NOON}])
    with subprocess.Popen(
        [sys.executable, "-c", WRITER, database_url, given.lake, stop],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as writer:
        assert writer.stdout.readline() == b"here\n"
        writer.send_signal(signal.SIGKILL)
    assert list(writing.due(conn, TRADES, NOW)) == [DAY, DAY + dt.timedelta(days=1)]

    done = write(conn, lake)

    assert done.changed == (stop == "before the commit")
    assert duck("select count(*) from LAKE", lake.table(TRADES)) == [(1,)]
    assert verifying.verify(conn, lake, TRADES).faults == []


def test_an_object_store_holds_a_lake_as_a_folder_does(conn, database_url, object_store, market, add_trades):  # noqa: F811
    given = Settings(
        _env_file=None,
        lake="s3://presage/days",
        lake_s3_endpoint=object_store,
        lake_s3_key="key",
        lake_s3_secret="secret",
    )
    store = fs.S3FileSystem(endpoint_override=object_store, access_key="key", secret_key="secret")
    add_trades(market, [{"ts": NOON, "price": "0.25"}])
    with Lake(database_url, given) as lake:
        write(conn, lake)
        add_trades(market, [{"ts": NOON + dt.timedelta(minutes=1), "price": "0.5"}])
        write(conn, lake)
        stored = lake.table(TRADES)

        assert sorted(stored.scan().to_arrow()["price"].to_pylist()) == [Decimal("0.25"), Decimal("0.5")]
        assert verifying.verify(conn, lake, TRADES).faults == []
        files = fs.FileSelector("presage/days/trades/data", recursive=True)
        assert len(store.get_file_info(files)) == 2
        assert verifying.sweep(conn, lake, TRADES, dt.datetime.now(dt.UTC) + dt.timedelta(days=8)) > 0
        assert len(store.get_file_info(files)) == 1
        assert verifying.verify(conn, lake, TRADES).faults == []
        with store.open_output_stream(store.get_file_info(files)[0].path) as damaged:
            damaged.write(b"damaged")
        assert len(verifying.verify(conn, lake, TRADES).faults) == 1


def test_verification_finds_what_is_damaged_missing_or_no_longer_the_same(conn, lake, market, add_trades):
    for day in range(3):
        add_trades(market, [{"ts": NOON + dt.timedelta(days=day)}])
        write(conn, lake, DAY + dt.timedelta(days=day))
    whole = verifying.verify(conn, lake, TRADES)
    damaged, missing, _ = map(Path, paths(lake))
    damaged.write_bytes(damaged.read_bytes()[:-1] + b"?")
    missing.unlink()
    add_trades(market, [{"ts": NOON + dt.timedelta(days=2, minutes=1)}])

    found = verifying.verify(conn, lake, TRADES)

    assert (whole.faults, whole.rows, whole.days, whole.compared) == ([], 3, 3, 3)
    assert [fault.split("file://")[0] for fault in found.faults] == [
        "trades: has other bytes than were written: ",
        "trades: is not there: ",
        "trades 2026-11-21: the database has other rows now: write it again",
    ]


def test_a_sweep_deletes_what_no_kept_snapshot_has(conn, lake, market, add_trades, duck):
    add_trades(market, [{"ts": NOON}])
    write(conn, lake)
    (replaced,) = paths(lake)
    add_trades(market, [{"ts": NOON + dt.timedelta(minutes=1)}])
    write(conn, lake)
    leftover = Path(replaced).with_name("2026-11-19.ab.parquet")
    leftover.write_bytes(b"of a writer that was killed")
    later = dt.datetime.now(dt.UTC)
    os.utime(leftover, (later.timestamp(),) * 2)  # the file system's clock is not the test's

    assert verifying.sweep(conn, lake, TRADES, later) == 0
    assert verifying.sweep(conn, lake, TRADES, later + dt.timedelta(days=2)) == 1
    assert not leftover.exists()
    assert Path(replaced).exists(), "a snapshot of this week has it"
    assert verifying.sweep(conn, lake, TRADES, later + dt.timedelta(days=8)) > 0

    assert not Path(replaced).exists()
    assert duck("select count(*) from LAKE", lake.table(TRADES)) == [(2,)]
    assert verifying.verify(conn, lake, TRADES).faults == []


def test_a_database_does_not_take_over_the_files_of_another(conn, lake, database_url, given, market, add_trades):
    add_trades(market, [{"ts": NOON}])
    write(conn, lake)
    conn.execute("truncate iceberg_tables, lake_days")  # the database was lost, and made anew

    with Lake(database_url, given) as again, pytest.raises(ValueError, match="PRESAGE_LAKE to another place"):
        write(conn, again)

    assert len(list(Path(given.lake).rglob("*.parquet"))) == 1


def test_expired_days_stay_until_the_lake_has_them(conn, lake, given, market, add_trades):
    now = dt.datetime.now(dt.UTC)
    kept = given.model_copy(update={"trades_retention_days": 10})
    old = [now - dt.timedelta(days=days) for days in (14, 13)]
    for ts in old:
        add_trades(market, [{"ts": ts}])
    add_trades(market, [{"ts": now}])

    def dropped():
        found = retained(conn, kept, now)
        return found["trades"], found["days_held_for_the_lake"]

    assert dropped() == (0, 4)
    write(conn, lake, old[0].date())
    assert dropped() == (1, 3)
    for ago in range(10, 14):
        write(conn, lake, (now - dt.timedelta(days=ago)).date())
    assert dropped() == (1, 0)


def test_an_expired_day_to_which_rows_were_added_is_written_again_before_it_is_dropped(
    conn, lake, given, market, add_trades
):
    now = dt.datetime.now(dt.UTC)
    kept = given.model_copy(update={"trades_retention_days": 30})
    old = now - dt.timedelta(days=31)
    add_trades(market, [{"ts": old}, {"ts": now}])
    for ago in range(30, 32):
        write(conn, lake, (now - dt.timedelta(days=ago)).date())
    add_trades(market, [{"ts": old + dt.timedelta(milliseconds=1)}])  # a gap is filled

    assert retained(conn, kept, now)["trades"] == 0
    assert old.date() in list(writing.due(conn, TRADES, now))
    assert write(conn, lake, old.date()).rows == 2
    found = retained(conn, kept, now)

    assert (found["trades"], found["days_held_for_the_lake"]) == (1, 0)


def test_expired_days_are_dropped_once_every_process_of_the_api_knows(conn, lake, given, market, add_trades):
    now = dt.datetime.now(dt.UTC)
    kept = given.model_copy(update={"trades_retention_days": 30})
    old = now - dt.timedelta(days=31)
    add_trades(market, [{"ts": old}])
    for ago in range(30, 32):
        write(conn, lake, (now - dt.timedelta(days=ago)).date())

    assert [retention.drop_old(conn, kept, now)["trades"] for _ in range(2)] == [0, 0]
    said, long_ago = queries.hot_from(conn, name="trades")

    assert (said.date(), long_ago) == ((now - dt.timedelta(days=30)).date(), False)
    assert retained(conn, kept, now)["trades"] == 1


def test_the_gaps_of_days_that_the_lake_has_are_kept(conn, given):
    old = dt.datetime.now(dt.UTC) - dt.timedelta(days=5000)
    gap = {"kind": "trades", "cause": "a test", "from_ts": old, "to_ts": old}
    insert(conn, "coverage_gaps", gap)

    def left(settings):
        retention.drop_old(conn, settings, dt.datetime.now(dt.UTC))
        return conn.execute("select count(*) from coverage_gaps").fetchone()

    assert left(given) == (1,)
    assert left(given.model_copy(update={"lake": ""})) == (0,)


def test_the_files_of_days_that_an_earlier_release_wrote_are_recorded(conn, lake, market, add_trades):
    add_trades(market, [{"ts": NOON}, {"ts": NOON + dt.timedelta(days=1)}])
    writing.write_due(conn, lake, TRADES, NOW, lambda _: None)
    recorded = conn.execute("select day, paths from lake_days where name = 'trades' order by day").fetchall()
    conn.execute("update lake_days set paths = null")

    writing.write_due(conn, lake, TRADES, NOW, lambda _: None)

    assert [len(paths) for _, paths in recorded] == [1, 1]
    assert conn.execute("select day, paths from lake_days where name = 'trades' order by day").fetchall() == recorded


def test_a_block_of_the_chain_is_kept_with_all_its_rows(conn, given, monkeypatch):
    before = dict.fromkeys(("trades", "book_events", *retention.CHAIN), NOW)
    monkeypatch.setattr(retention.lake, "first_missing", lambda _, name, **__: DAY if name == "settlements" else None)

    waiting = retention._hold_for_the_lake(conn, before)

    assert waiting == 2
    assert {before[name] for name in retention.CHAIN} == {dt.datetime(2026, 11, 19, tzinfo=dt.UTC)}
    assert before["trades"] == NOW


def test_the_commands(conn, database_url, given, market, add_trades, monkeypatch):
    monkeypatch.setattr(settings, "get", lambda: given)
    add_trades(market, [{"ts": NOON}])

    def run(*words):
        return CliRunner().invoke(app, ["lake", *words, "--database-url", database_url])

    assert "trades 2026-11-19: 1 rows" in run("write").output
    assert "nothing is due" in run("write", "trades").output
    assert "as it was" in run("write", "trades", "--day", "2026-11-19").output
    assert "trades: 1 rows in 1 files" in run("verify").output
    assert "2026-11-19             1 rows" in run("list", "trades").output
    assert "0 files deleted" in run("sweep").output
    assert "no such table: prices; available: markets, trades" in run("write", "prices").output
    assert "2999-01-01 is not over" in run("write", "--day", "2999-01-01").output
    (file,) = Path(given.lake).glob("trades/data/*.parquet")
    file.unlink()
    assert run("verify").exit_code == 1
    monkeypatch.setattr(settings, "get", lambda: given.model_copy(update={"lake": ""}))
    assert "PRESAGE_LAKE is not set" in run("verify").output


def test_a_lake_that_is_out_of_reach_is_said_so(database_url, given, market, monkeypatch):
    (Path(given.lake)).write_text("a file, not a folder")
    monkeypatch.setattr(settings, "get", lambda: given)

    done = CliRunner().invoke(app, ["lake", "write", "markets", "--database-url", database_url])

    assert (done.exit_code, done.stdout) == (1, "")
    assert done.stderr.startswith("presage: PRESAGE_LAKE cannot be read or written: ")
