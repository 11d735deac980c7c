"""Exports that a bucket has, served by a real server."""

from __future__ import annotations

import datetime as dt
import hashlib
import http.client
import json
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest
from pyarrow import fs

from api.data import exported
from config.settings import Settings
from orchestration.exports import days
from orchestration.exports.store import ExportStore
from orchestration.exports.topics import BY_NAME
from sql import database
from tests import factories
from tests.api.conftest import generous, serving
from tests.object_store import object_store  # noqa: F401 (a fixture)
from tests.patience import PATIENCE_S

DAY = dt.date(2026, 11, 19)
PATH = f"/v1/exports/trades/{DAY}/trades-{DAY}.parquet"
AT_ONCE = 2 * exported.MAX_OPEN


@pytest.fixture(scope="module")
def bucket(new_database, object_store, tmp_path_factory):  # noqa: F811
    """A server whose exports are in a bucket, a key for it, the bucket, and the file's bytes."""
    named = {
        "PRESAGE_EXPORTS_S3": "s3://presage/exports",
        "PRESAGE_LAKE_S3_ENDPOINT": object_store,
        "PRESAGE_LAKE_S3_KEY": "key",
        "PRESAGE_LAKE_S3_SECRET": "secret",
    }
    given = {name.removeprefix("PRESAGE_").lower(): value for name, value in named.items()}
    store = fs.S3FileSystem(endpoint_override=object_store, access_key="key", secret_key="secret")
    with new_database() as url, database.connect(url, autocommit=True) as conn:
        market = factories.add_market(conn, "rain")
        conn.execute(
            """insert into trades (ts, market_key, outcome, trade_id, seq, side, price, size, value_usd, tx_hash)
            select '2026-11-19T12:00Z'::timestamptz + n * interval '1 s', %s, 0, n, n, 1, 520000, n, n / 2,
                sha256(n::text::bytea)
            from generate_series(1, 20000) as n""",
            [market["market_key"]],
        )
        key = generous(conn, "a@example.com")
        days.export(
            conn,
            BY_NAME["trades"],
            DAY,
            ExportStore.of(Settings(_env_file=None, **given)),
            dt.datetime(2026, 11, 21, tzinfo=dt.UTC),
        )
        (name,) = conn.execute("select file from exports where format = 'parquet'").fetchone()
        whole = store.open_input_file(f"presage/exports/{name}").read()
        with serving(url, **named) as server:
            yield server, key, store, f"presage/exports/{name}", whole


def ask(bucket, method="GET", **headers):
    server, key, *_ = bucket
    with closing(http.client.HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE_S)) as connection:
        connection.request(method, PATH, headers={"X-API-Key": key, **headers})
        answer = connection.getresponse()
        return answer.status, answer.headers, answer.read()


def test_a_file_is_sent_whole_and_in_ranges(bucket):
    whole = bucket[-1]

    status, headers, body = ask(bucket)
    part = ask(bucket, Range="bytes=1000-1999")
    head = ask(bucket, "HEAD")

    assert (status, body) == (200, whole)
    assert headers["ETag"] == f'"{hashlib.sha256(whole).hexdigest()}"'
    assert (part[0], part[2], part[1]["Content-Range"]) == (206, whole[1000:2000], f"bytes 1000-1999/{len(whole)}")
    assert (head[0], head[1]["Content-Length"], head[2]) == (200, str(len(whole)), b"")


def test_many_are_sent_at_once(bucket):
    with ThreadPoolExecutor(AT_ONCE) as pool:
        answers = list(pool.map(lambda _: ask(bucket), range(AT_ONCE)))

    assert [(status, body == bucket[-1]) for status, _, body in answers] == [(200, True)] * AT_ONCE


def test_a_file_that_is_not_there_is_not_found_and_another_one_is_not_given(bucket):
    _, _, store, path, whole = bucket
    with store.open_output_stream(path) as changed:
        changed.write(b"half of it")
    other = ask(bucket)
    store.delete_file(path)
    try:
        gone = ask(bucket)
    finally:
        with store.open_output_stream(path) as restored:
            restored.write(whole)

    assert (other[0], json.loads(other[2])["code"]) == (503, "overloaded")
    assert (gone[0], json.loads(gone[2])["code"]) == (404, "not_found")


def test_beyond_the_files_that_are_sent_at_once_one_is_refused_until_another_ends(bucket, object_store, monkeypatch):  # noqa: F811
    monkeypatch.setattr(exported, "OPEN_S", 0)
    monkeypatch.setattr(exported, "MAX_OPEN", 2)
    given = {"lake_s3_endpoint": object_store, "lake_s3_key": "key", "lake_s3_secret": "secret"}
    files = exported.of(Settings(_env_file=None, exports_s3="s3://presage/exports", **given))
    name = bucket[3].removeprefix("presage/exports/")
    opened = [files.open(name) for _ in range(2)]

    with pytest.raises(OSError, match="2 files are being sent"):
        files.open(name)
    opened[0].close()
    with pytest.raises(FileNotFoundError):
        files.open("trades/nothing")
    another = files.open(name)
    another.seek(4)

    assert another.read(10) == bucket[-1][4:14]
    for each in (opened[1], another):
        each.close()
        each.close()


def test_a_store_that_cannot_be_reached_is_no_missing_file():
    nowhere = {"lake_s3_endpoint": "http://127.0.0.1:1", "lake_s3_key": "key", "lake_s3_secret": "secret"}

    with pytest.raises(OSError, match=r"127\.0\.0\.1") as failure:
        exported.of(Settings(_env_file=None, exports_s3="s3://presage/exports", **nowhere)).open("trades/x")

    assert not isinstance(failure.value, FileNotFoundError)
