"""Days of data as files in a bucket: the same bytes as in a folder, published whole, and deleted in their time."""

from __future__ import annotations

import datetime as dt

import pytest
from pyarrow import fs

from config.settings import Settings
from orchestration.exports import days
from orchestration.exports import store as exports_store
from orchestration.exports.store import UNFINISHED, ExportStore
from orchestration.exports.topics import BY_NAME
from sql.queries import exports as queries
from tests.object_store import object_store  # noqa: F401 (a fixture)

DAY = dt.date(2026, 11, 19)
NOON = dt.datetime(2026, 11, 19, 12, tzinfo=dt.UTC)
NOW = dt.datetime(2026, 11, 21, tzinfo=dt.UTC)
TRADES = BY_NAME["trades"]


@pytest.fixture
def bucket(object_store):  # noqa: F811
    store = fs.S3FileSystem(endpoint_override=object_store, access_key="key", secret_key="secret")
    store.delete_dir_contents("presage", missing_dir_ok=True)
    return store


@pytest.fixture
def given(object_store):  # noqa: F811
    return Settings(
        _env_file=None,
        exports_s3="s3://presage/exports",
        lake_s3_endpoint=object_store,
        lake_s3_key="key",
        lake_s3_secret="secret",
    )


def there(bucket):
    infos = bucket.get_file_info(fs.FileSelector("presage/exports", recursive=True, allow_not_found=True))
    return {
        info.path.removeprefix("presage/exports/"): bucket.open_input_file(info.path).read()
        for info in infos
        if info.is_file
    }


def in_folder(root):
    return {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}


def test_a_bucket_has_what_a_folder_has(conn, database_url, add_market, add_trades, bucket, given, tmp_path):
    add_trades(add_market("rain"), [{"ts": NOON + dt.timedelta(milliseconds=n)} for n in range(50)])
    store = ExportStore.of(given)

    done = days.export(conn, TRADES, DAY, store, NOW)
    kept = days.export(conn, TRADES, DAY, store, NOW)
    found = there(bucket)
    days.export(conn, TRADES, DAY, ExportStore.at(tmp_path), NOW, again=True)

    files = {name: data for name, data in in_folder(tmp_path).items() if not name.endswith("manifest.json")}
    assert (str(store), done.rows, kept.kept) == ("s3://presage/exports", 50, 1)
    assert len(files) == 2
    assert found.keys() == {*files, f"trades/{DAY}/manifest.json"}
    assert {name: found[name] for name in files} == files


def test_of_an_interrupted_export_nothing_is_left_once_it_has_gone_on(
    conn, database_url, add_market, add_trades, bucket, given, monkeypatch
):
    add_trades(add_market("rain"), [{"ts": NOON}])
    monkeypatch.setattr(exports_store, "READ_FOR", dt.timedelta())
    store, publish, put = ExportStore.of(given), ExportStore.publish, queries.put

    def failing(*_, **__):
        raise KeyboardInterrupt

    left = []
    for where, name, real in ((ExportStore, "publish", publish), (queries, "put", put)):
        monkeypatch.setattr(where, name, failing)
        with pytest.raises(KeyboardInterrupt):
            days.export(conn, TRADES, DAY, store, NOW)
        monkeypatch.setattr(where, name, real)
        left.append(sorted(name.rpartition(".")[2] for name in there(bucket)))

    done = days.export(conn, TRADES, DAY, store, NOW)

    unfinished = [UNFINISHED.strip(".")] * 2
    assert left == [unfinished, ["gz", "parquet", *unfinished]]
    assert not {name for (name,) in conn.execute("select file from exports")} - there(bucket).keys()
    assert done.written == 1
    assert len(there(bucket)) == 3


def test_a_replaced_version_stays_while_it_may_be_read(
    conn, database_url, add_market, add_trades, bucket, given, monkeypatch
):
    store, market = ExportStore.of(given), add_market("rain")
    for minute in range(2):
        add_trades(market, [{"ts": NOON + dt.timedelta(minutes=minute)}])
        days.export(conn, TRADES, DAY, store, NOW, again=True)
    before = len(there(bucket))
    monkeypatch.setattr(exports_store, "READ_FOR", dt.timedelta())
    days.export(conn, TRADES, DAY, store, NOW)

    assert (before, len(there(bucket))) == (5, 3)


def test_a_file_that_the_store_has_in_another_length_is_not_written_down(
    conn, database_url, add_market, add_trades, bucket, given, monkeypatch
):
    add_trades(add_market("rain"), [{"ts": NOON}])
    monkeypatch.setattr(ExportStore, "size", lambda *_: 7)

    with pytest.raises(OSError, match="has 7 bytes instead of"):
        days.export(conn, TRADES, DAY, ExportStore.of(given), NOW)

    assert conn.execute("select count(*) from exports").fetchone() == (0,)


@pytest.mark.parametrize("lake", ["s3://presage/exports", "s3://presage/exports/lake", "s3://presage"])
def test_the_lake_is_not_kept_among_exports_nor_the_other_way_around(lake):
    with pytest.raises(ValueError, match="must not be within"):
        Settings(_env_file=None, exports_s3="s3://presage/exports", lake=lake)
    assert Settings(_env_file=None, exports_s3="s3://presage/exports", lake="s3://presage/exports-lake").lake


def test_days_beyond_their_time_are_deleted(conn, database_url, add_market, add_trades, bucket, given, monkeypatch):
    add_trades(add_market("rain"), [{"ts": NOON}])
    monkeypatch.setattr(exports_store, "READ_FOR", dt.timedelta())
    store = ExportStore.of(given)
    for n in range(2):
        days.export(conn, TRADES, DAY + n * dt.timedelta(days=1), store, NOW + dt.timedelta(days=1))

    assert days.forget(conn, TRADES, store, DAY + dt.timedelta(days=1)) == 2

    assert {name.split("/")[1] for name in there(bucket)} == {str(DAY + dt.timedelta(days=1))}
    assert store.folders("trades") == [str(DAY + dt.timedelta(days=1))]


@pytest.mark.parametrize(
    "wrong", ["presage", "/srv/exports", "s3://", "s3://B/x", "s3://presage/a b", "https://presage/x"]
)
def test_another_place_than_a_bucket_is_refused(wrong):
    with pytest.raises(ValueError, match="exports_s3"):
        Settings(_env_file=None, exports_s3=wrong)
