"""Days of data as files: their contents and digests, and that an interrupted export continues."""

from __future__ import annotations

import datetime as dt
import gzip
import hashlib
import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import csv

from orchestration import arrow_copy
from orchestration.exports import days, files
from orchestration.exports.store import UNFINISHED, ExportStore
from orchestration.exports.topics import BY_NAME, TOPICS
from sql import packs
from sql.queries import exports as queries
from tests.factories import insert

DAY = dt.date(2026, 11, 19)
NOON = dt.datetime(2026, 11, 19, 12, tzinfo=dt.UTC)
NOW = dt.datetime(2026, 11, 21, tzinfo=dt.UTC)


@pytest.fixture
def market(add_market):
    return add_market(
        "rain", question='Will it "rain", or\nnot?', tags=["a,b", "ü"], created_at=NOON, token_ids=["71", "72"]
    )


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "exports"


@pytest.fixture
def export(database_url, conn, folder):
    def go(topic, day=DAY, now=NOW, **how):
        return days.export(conn, BY_NAME[topic], day, ExportStore.at(folder), now, **how)

    return go


def only(folder, name, suffix):
    (path,) = (folder / name.partition("-")[0] / str(DAY)).glob(f"{name}.*.{suffix}")
    return path


def parquet(folder, name):
    return pq.read_table(only(folder, name, "parquet"))


def comma_separated(folder, name):
    return gzip.decompress(only(folder, name, "csv.gz").read_bytes()).decode()


def test_trades_of_a_day_are_in_both_files_alike(conn, market, add_trades, export, folder):
    at = [
        NOON - dt.timedelta(hours=12),
        NOON,
        NOON + dt.timedelta(hours=11, minutes=59, seconds=59, microseconds=999_999),
    ]
    add_trades(market, [{"ts": ts, "price": "0.123456", "size": "7.5"} for ts in reversed(at)])
    add_trades(market, [{"ts": at[2] + dt.timedelta(microseconds=1)}, {"ts": at[0] - dt.timedelta(microseconds=1)}])
    add_trades(market, [{"ts": NOON, "side": -1, "tx_hash": b"\x0f" * 32}], outcome=1)

    done = export("trades")

    table = parquet(folder, f"trades-{DAY}")
    assert (done.rows, table.num_rows) == (4, 4)
    assert table.schema.equals(BY_NAME["trades"].schema)
    rows = table.to_pylist()
    assert [row["ts"] for row in rows] == sorted([*at, NOON])
    assert {(row["market_id"], row["slug"]) for row in rows} == {(market["market_id"], "rain")}
    assert {row["price"] for row in rows if row["outcome"] == 0} == {0.123456}
    sold = next(row for row in rows if row["outcome"] == 1)
    assert (sold["side"], sold["outcome_name"], sold["token_id"]) == ("SELL", "No", "72")
    assert (sold["tx_hash"], rows[0]["tx_hash"]) == ("0x" + "0f" * 32, None)
    text = comma_separated(folder, f"trades-{DAY}")
    assert text.splitlines()[0] == ",".join(table.column_names)
    assert len(text.splitlines()) == 5
    assert "0.123456" in text


def test_every_topic_is_written_and_read_back_as_it_is_declared(conn, market, add_trades, export, folder):
    add_trades(market, [{"ts": NOON, "price": "0.52"}])

    for topic in TOPICS:
        export(topic.name)

    for topic in TOPICS:
        name = f"{topic.name}-{DAY}" + ("-12" if topic.parts > 1 else "")
        table = parquet(folder, name)
        assert table.schema.equals(topic.schema)
        reread = csv.read_csv(
            pa.BufferReader(comma_separated(folder, name).encode()),
            parse_options=csv.ParseOptions(newlines_in_values=True),
            convert_options=csv.ConvertOptions(
                column_types=topic.schema,
                true_values=["t"],
                false_values=["f"],
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
            ),
        )
        assert reread.equals(table), topic.name
    (row,) = parquet(folder, f"markets-{DAY}").to_pylist()
    assert row["question"] == 'Will it "rain", or\nnot?'
    assert json.loads(row["tags"]) == ["a,b", "ü"]
    assert row["created_at"] == NOON
    assert parquet(folder, f"candles-{DAY}").to_pylist()[0]["close"] == 0.52


def add_pack(conn, market):
    """Add a packed book of NOON, and a change of it five microseconds later; return when that was."""
    us, until = round(NOON.timestamp() * 1_000_000), NOON + dt.timedelta(microseconds=5)
    whole = packs.BookEvent(
        us, us << 10, None, None, None, [500_000], [2_000_000], [520_000], [1_000_000], b"\x01" * 20
    )
    change = packs.BookEvent(us + 5, (us << 10) + 1, 1, 510_000, 3_000_000, None, None, None, None, b"\x02" * 20)
    data, _ = packs.pack([whole, change], {}, known=False)
    row = {"ts": NOON, "until_ts": until, "whole_from": NOON, "events": 2, "data": data}
    insert(conn, "book_packs", {"market_key": market["market_key"], "outcome": 0, **row})
    return until


def test_each_exchange_has_files_of_its_own(conn, market, add_market, add_trades, export, folder):
    other = add_market("fed", exchange="kalshi", market_id="KXFED-27APR-T4.25", created_at=NOON)
    for each in (market, other):
        add_trades(each, [{"ts": NOON}])
        add_pack(conn, each)

    for topic in TOPICS:
        export(topic.name)

    for name in ("markets", "trades", "candles", "book_events"):
        part = "-12" if name == "book_events" else ""
        ours, theirs = (parquet(folder, f"{topic}-{DAY}{part}").to_pylist() for topic in (name, f"{name}_kalshi"))
        assert {row["market_id"] for row in ours} == {market["market_id"]}, name
        assert {row["market_id"] for row in theirs} == {"KXFED-27APR-T4.25"}, name
    assert "settlements_kalshi" not in BY_NAME, "it has no chain"


def test_book_events_are_cut_by_the_hour_and_packed_ones_are_among_them(conn, market, export, folder):
    key, hour = market["market_key"], NOON
    us = round(hour.timestamp() * 1_000_000)
    until = add_pack(conn, market)
    later = hour + dt.timedelta(minutes=59)
    level = {"event_id": 9, "seq": (us << 10) + 9, "side": -1, "price": 520_000, "size": 0}
    insert(conn, "book_events", {"ts": later, "market_key": key, "outcome": 0, **level})
    insert(conn, "book_events", {"ts": later + dt.timedelta(minutes=1), "market_key": key, "outcome": 0, **level})

    done = export("book_events")

    assert (done.written, done.rows) == (24, 4)
    rows = parquet(folder, f"book_events-{DAY}-12").to_pylist()
    assert [(row["ts"], row["kind"], row["side"], row["price"], row["size"]) for row in rows] == [
        (hour, "snapshot", None, None, None),
        (until, "delta", "bid", 0.51, 3.0),
        (later, "delta", "ask", 0.52, 0.0),
    ]
    assert (json.loads(rows[0]["bids"]), json.loads(rows[0]["asks"])) == ([[0.5, 2]], [[0.52, 1]])
    assert rows[1]["hash"] == "02" * 20
    assert parquet(folder, f"book_events-{DAY}-13").num_rows == 1
    assert conn.execute("select count(*) from book_packs").fetchone() == (1,)


def test_the_manifest_tells_rows_bytes_and_digests_of_what_is_there(conn, market, add_trades, export, folder):
    add_trades(market, [{"ts": NOON}, {"ts": NOON}])

    export("trades")

    manifest = json.loads((folder / "trades" / str(DAY) / "manifest.json").read_text())
    assert (manifest["rows"], manifest["complete"], len(manifest["files"])) == (2, True, 2)
    for told in manifest["files"]:
        data = (folder / "trades" / str(DAY) / told["name"]).read_bytes()
        assert (told["bytes"], told["sha256"]) == (len(data), hashlib.sha256(data).hexdigest())
        assert told["rows"] == 2
    assert {told["format"] for told in manifest["files"]} == {"csv", "parquet"}
    assert not list(folder.rglob(f"*{UNFINISHED}"))


def test_the_same_data_gives_the_same_bytes(conn, market, add_trades, export, folder, tmp_path):
    add_trades(market, [{"ts": NOON + dt.timedelta(milliseconds=number)} for number in range(50)])
    export("trades")

    days.export(conn, BY_NAME["trades"], DAY, ExportStore.at(tmp_path / "again"), NOW, again=True)

    for path in (folder / "trades" / str(DAY)).glob("trades-*"):
        assert path.read_bytes() == (tmp_path / "again" / "trades" / str(DAY) / path.name).read_bytes()


def test_an_interrupted_export_goes_on_with_what_is_missing(conn, market, export, folder, monkeypatch):
    written = []
    write = files.write

    def failing(*given):
        if len(written) == 5:
            raise KeyboardInterrupt
        written.append(given[3])
        return write(*given)

    monkeypatch.setattr(files, "write", failing)
    with pytest.raises(KeyboardInterrupt):
        export("book_events")
    monkeypatch.setattr(files, "write", write)

    done = export("book_events")

    assert (done.kept, done.written) == (5, 19)
    (manifest,) = folder.rglob("manifest.json")
    manifest.rename(f"{manifest}{UNFINISHED}")
    assert conn.execute("select count(*) from exports").fetchone() == (48,)
    assert export("book_events").written == 0
    assert list(folder.rglob("manifest.json*")) == [manifest]


def test_what_was_lost_or_not_over_is_written_anew(conn, market, add_trades, export, folder):
    add_trades(market, [{"ts": NOON}])
    early = export("trades", now=NOON + dt.timedelta(hours=1))
    assert early.rows == 1
    assert conn.execute("select bool_or(complete) from exports").fetchone() == (False,)
    add_trades(market, [{"ts": NOON + dt.timedelta(hours=2)}])

    assert export("trades").rows == 2
    assert export("trades").kept == 1
    only(folder, f"trades-{DAY}", "csv.gz").unlink()
    assert export("trades").written == 1
    add_trades(market, [{"ts": NOON + dt.timedelta(hours=3)}])
    assert export("trades").kept == 1
    assert export("trades", again=True).rows == 3


def test_a_version_goes_once_another_is_written_down_and_what_no_row_names_goes_with_it(
    conn, market, add_trades, export, folder, monkeypatch
):
    export("trades")
    first = only(folder, f"trades-{DAY}", "parquet")
    add_trades(market, [{"ts": NOON}])
    put = queries.put

    def failing(*given, **columns):
        raise KeyboardInterrupt

    monkeypatch.setattr(queries, "put", failing)
    with pytest.raises(KeyboardInterrupt):
        export("trades", again=True)
    monkeypatch.setattr(queries, "put", put)

    names = {folder / name for (name,) in conn.execute("select file from exports")}
    there = set(folder.glob("trades/*/trades-*"))
    assert (len(names), len(there), names <= there) == (2, 4, True)
    add_trades(market, [{"ts": NOON}])
    export("trades", again=True)
    assert set(folder.glob("trades/*/trades-*")) == {
        folder / name for (name,) in conn.execute("select file from exports")
    }
    assert not first.exists()


def test_of_a_day_that_is_not_over_only_hours_that_have_begun_are_written(conn, export, market):
    done = export("book_events", now=dt.datetime(2026, 11, 19, 2, 30, tzinfo=dt.UTC))

    assert done.written == 3
    complete = conn.execute("select part, bool_and(complete) from exports group by part order by part").fetchall()
    assert complete == [(0, True), (1, True), (2, False)]


def test_files_beyond_their_time_are_deleted(conn, market, add_trades, export, folder):
    export("trades")
    export("markets", DAY + dt.timedelta(days=1))
    unnamed = folder / "trades" / str(DAY - dt.timedelta(days=1)) / "trades-left.csv.gz.unfinished"
    unnamed.parent.mkdir()
    unnamed.touch()
    (unnamed.parent / "manifest.json.unfinished").touch()

    assert days.forget(conn, BY_NAME["trades"], ExportStore.at(folder), DAY + dt.timedelta(days=1)) == 2

    assert list((folder / "trades").iterdir()) == []
    assert conn.execute("select distinct topic from exports").fetchall() == [("markets",)]
    assert len(list((folder / "markets").rglob("markets-*"))) == 2


def test_columns_are_written_in_groups_of_one_size(conn, market, add_trades, export, folder, monkeypatch):
    monkeypatch.setattr(arrow_copy, "ROW_GROUP", 7)
    monkeypatch.setattr(arrow_copy, "BLOCK", 1024)
    add_trades(market, [{"ts": NOON + dt.timedelta(milliseconds=number)} for number in range(50)])

    export("trades")

    file = pq.ParquetFile(only(folder, f"trades-{DAY}", "parquet"))
    groups = [file.metadata.row_group(number).num_rows for number in range(file.num_row_groups)]
    assert groups == [7] * 7 + [1]
    assert file.read().num_rows == 50
