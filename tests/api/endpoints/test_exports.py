"""Exports over the API: listed, described, and fetched whole or in ranges."""

from __future__ import annotations

import datetime as dt
import hashlib
import io
import urllib.request
from types import SimpleNamespace
from typing import get_args

import msgspec
import pyarrow.parquet as pq
import pytest

from api.data.exported import ExportFolder
from api.endpoints.exports import records
from api.endpoints.exports.requests import TopicName
from api.endpoints.exports.resource import byte_range, topics_of
from config.exchanges import EXCHANGES
from orchestration.exports import days
from orchestration.exports.store import ExportStore
from orchestration.exports.topics import BY_NAME
from sql import database
from tests import factories
from tests.api.conftest import generous, serving
from tests.api.endpoints.test_shapes import without_defaults

DAY = dt.date(2026, 11, 19)
NOW = dt.datetime(2026, 11, 21, tzinfo=dt.UTC)
ROWS = 20_000  # enough that a reader of columns need not read it all
NAME = f"trades-{DAY}.parquet"
PATH = f"/v1/exports/trades/{DAY}/{NAME}"


@pytest.fixture(scope="module")
def exported(new_database, tmp_path_factory):
    """A database with exported days, and their folder."""
    folder = tmp_path_factory.mktemp("exports")
    with new_database() as url, database.connect(url, autocommit=True) as conn:
        market = factories.add_market(conn, "rain")
        conn.execute(
            """insert into trades (ts, market_key, outcome, trade_id, seq, side, price, size, value_usd, tx_hash)
            select '2026-11-19T12:00Z'::timestamptz + n * interval '1 s', %s, 0, n, n, 1, 520000, n, n / 2,
                sha256(n::text::bytea)
            from generate_series(1, %s) as n""",
            [market["market_key"], ROWS],
        )
        for topic in ("trades", "markets", "candles", "trades_kalshi"):
            days.export(conn, BY_NAME[topic], DAY, ExportStore.at(folder), NOW)
        days.export(conn, BY_NAME["trades"], dt.date(2026, 11, 18), ExportStore.at(folder), NOW)
        yield url, folder


@pytest.fixture(scope="module")
def _conn(exported):
    with database.connect(exported[0], autocommit=True) as conn:
        yield conn


@pytest.fixture
def conn(_conn):
    with _conn.transaction(force_rollback=True):
        yield _conn


@pytest.fixture
def fetch(client, service, exported):
    service.exports = ExportFolder(exported[1])

    def get(path=PATH, *, method="GET", **headers):
        sent = {"X-API-Key": client.key, **{name.replace("_", "-"): value for name, value in headers.items()}}
        return client.simulate_request(method, path, headers=sent)

    return get


@pytest.fixture
def whole(exported):
    (path,) = (exported[1] / f"trades/{DAY}").glob("*.parquet")
    return path.read_bytes()


def listed(answer):
    return [(row["day"], row["topic"]) for row in answer.json["data"]]


def test_days_are_listed_newest_first_and_walked_by_cursor(fetch):
    everything = fetch("/v1/exports")
    record = msgspec.json.decode(everything.content, type=records.ExportPage)
    assert without_defaults(msgspec.to_builtins(record)) == without_defaults(everything.json)
    assert listed(everything) == [
        *(("2026-11-19", "trades"), ("2026-11-19", "markets"), ("2026-11-19", "candles"), ("2026-11-18", "trades")),
    ]
    assert everything.json["data"][0]["rows"] == ROWS

    pages, cursor = [], ""
    for _ in range(2):
        page = fetch(f"/v1/exports?limit=2{cursor}")
        cursor = f"&cursor={page.json['next_cursor']}"
        pages += listed(page)
    assert pages == listed(everything)
    assert listed(fetch("/v1/exports?topic=trades&to=2026-11-18")) == [("2026-11-18", "trades")]
    assert listed(fetch("/v1/exports?from=2026-11-19&topic=markets")) == [("2026-11-19", "markets")]
    assert fetch(f"/v1/exports?topic=markets{cursor}").json["code"] in {"invalid_cursor", "invalid_parameter"}


@pytest.mark.parametrize("wrong", ["topic=books", "from=yesterday", "to=2026-13-01", "limit=201", "day=2026-11-19"])
def test_a_wrong_question_is_refused(fetch, wrong):
    assert fetch(f"/v1/exports?{wrong}").status_code == 400


def test_the_manifest_leads_to_files_that_are_as_it_says(fetch):
    answer = fetch(f"/v1/exports/trades/{DAY}")

    record = msgspec.json.decode(answer.content, type=records.ExportManifest)
    assert without_defaults(msgspec.to_builtins(record)) == without_defaults(answer.json)
    assert answer.json["rows"] == ROWS
    for told in answer.json["files"]:
        file = fetch(told["url"])
        assert file.status_code == 200
        assert (len(file.content), hashlib.sha256(file.content).hexdigest()) == (told["bytes"], told["sha256"])
        assert file.headers["ETag"] == f'"{told["sha256"]}"'
        assert file.headers["Content-Disposition"] == f'attachment; filename="{told["name"]}"'
        assert file.headers["X-Request-Cost"] == "1"


@pytest.mark.parametrize(
    ("asked", "first", "last"),
    [("bytes=0-99", 0, 99), ("bytes=100-", 100, None), ("bytes=-64", -64, None), ("bytes=50-999999999", 50, None)],
)
def test_a_range_is_given_as_asked(fetch, whole, asked, first, last):
    answer = fetch(Range=asked)

    size = len(whole)
    wanted = whole[first:] if last is None else whole[first : last + 1]
    begin = first % size
    assert (answer.status_code, answer.content) == (206, wanted)
    assert answer.headers["Content-Range"] == f"bytes {begin}-{begin + len(wanted) - 1}/{size}"
    assert answer.headers["Content-Length"] == str(len(wanted))
    assert answer.headers["X-Request-Cost"] == "1"


def test_a_range_beyond_the_file_is_refused(fetch, whole):
    answer = fetch(Range=f"bytes={len(whole)}-")

    assert (answer.status_code, answer.json["code"]) == (416, "invalid_parameter")
    assert answer.headers["Content-Range"] == f"bytes */{len(whole)}"
    assert answer.headers["X-Request-Cost"] == "0"


@pytest.mark.parametrize("asked", ["bytes=0-1,5-6", "lines=1-2", "bytes=5-2x", "bytes", "bytes=--5"])
def test_a_range_that_is_not_understood_is_the_whole_file(fetch, whole, asked):
    answer = fetch(Range=asked)

    assert (answer.status_code, answer.content) == (200, whole)


def test_an_interrupted_download_goes_on_only_with_the_same_file(fetch, whole):
    tag = fetch(method="HEAD").headers["ETag"]

    same = fetch(Range="bytes=100-", If_Range=tag)
    other = fetch(Range="bytes=100-", If_Range='"another"')

    assert (same.status_code, same.content) == (206, whole[100:])
    assert (other.status_code, other.content) == (200, whole)


def test_a_file_that_the_client_has_is_not_sent_again(fetch):
    head = fetch(method="HEAD")
    assert (head.status_code, head.content) == (200, b"")
    assert head.headers["Accept-Ranges"] == "bytes"

    known = fetch(If_None_Match=head.headers["ETag"])

    assert (known.status_code, known.content, known.headers["X-Request-Cost"]) == (304, b"", "0")
    assert known.headers["ETag"] == head.headers["ETag"]


@pytest.mark.parametrize(
    "path",
    [
        f"/v1/exports/trades/{DAY}/manifest.json",
        f"/v1/exports/trades/{DAY}/..%2f..%2fmarkets%2f{DAY}%2fmarkets-{DAY}.parquet",
        f"/v1/exports/trades/{DAY}/%00",
        f"/v1/exports/trades/20261119/{NAME}",
        "/v1/exports/trades/2026-11-17",
        "/v1/exports/trades/2026-02-30",
        f"/v1/exports/..%2ftrades/{DAY}/{NAME}",
        f"/v1/exports/books/{DAY}",
        f"/v1/exports/%00/{DAY}",
        f"/v1/exports/trades%00/{DAY}/{NAME}",
    ],
)
def test_there_is_nothing_else_to_be_had(fetch, path):
    assert fetch(path).status_code == 404


def test_a_file_that_this_host_does_not_have_is_not_found(fetch, service, tmp_path):
    service.exports = ExportFolder(tmp_path)

    assert fetch().status_code == 404


def test_files_that_cannot_be_read_are_not_called_missing(fetch, service):
    class Unreachable:
        def open(self, name):
            raise OSError("the object store does not answer")

    service.exports = Unreachable()

    answer = fetch()

    assert (answer.status_code, answer.json["code"]) == (503, "overloaded")


def test_a_file_whose_first_bytes_cannot_be_read_is_no_answer_of_its_own(fetch, service, whole):
    class Torn:
        size, chunk, closed = len(whole), 100, False

        def seek(self, position):
            pass

        def read(self, size):
            raise OSError("the object store does not answer")

        def close(self):
            self.closed = True

    torn = Torn()
    service.exports = SimpleNamespace(open=lambda _: torn)

    answer = fetch(Range="bytes=5-9")

    assert (answer.status_code, answer.json["code"], answer.headers["Retry-After"]) == (503, "overloaded", "30")
    assert not {"etag", "content-range", "content-disposition"} & {name.lower() for name in answer.headers}
    assert torn.closed


def test_a_version_that_was_replaced_is_found_by_the_days_name_alone(fetch, conn, exported, whole):
    folder = exported[1] / f"trades/{DAY}"
    (path,) = folder.glob("*.parquet")
    named = f"/v1/exports/trades/{DAY}/{path.name}"
    before = fetch(named)
    other = folder / f"trades-{DAY}.{'0' * 16}.parquet"
    other.write_bytes(b"another")
    conn.execute(
        "update exports set file = %s, bytes = 7, sha256 = %s where file = %s",
        [f"trades/{DAY}/{other.name}", b"\0" * 32, f"trades/{DAY}/{path.name}"],
    )
    try:
        after, current = fetch(named), fetch()
    finally:
        other.unlink()

    assert (before.status_code, before.content) == (200, whole)
    assert (after.status_code, after.json["code"]) == (404, "not_found")
    assert (current.status_code, current.content, current.headers["ETag"]) == (200, b"another", f'"{"0" * 64}"')


def test_a_file_of_another_length_than_was_written_down_is_not_given(fetch, service, exported, tmp_path):
    service.exports = ExportFolder(tmp_path)
    (there,) = (exported[1] / f"trades/{DAY}").glob("*.parquet")
    path = tmp_path / f"trades/{DAY}/{there.name}"
    path.parent.mkdir(parents=True)
    path.write_bytes(b"half of it")

    answers = [fetch(), fetch(method="HEAD"), fetch(Range="bytes=0-3")]

    assert [answer.status_code for answer in answers] == [503] * 3
    assert answers[0].json["code"] == "overloaded"


def test_every_request_needs_a_key(client):
    assert [client.simulate_get(path).status_code for path in ("/v1/exports", PATH)] == [401, 401]


def test_ranges_are_read():
    assert [byte_range("0", "0", 10), byte_range("9", "", 10), byte_range("", "20", 10)] == [(0, 0), (9, 9), (0, 9)]
    assert [byte_range("10", "", 10), byte_range("5", "4", 10), byte_range("", "0", 10), byte_range("", "", 10)] == [
        None
    ] * 4


def test_a_parquet_reader_fetches_only_what_it_needs_from_a_real_server(exported, whole):
    url, folder = exported
    with database.connect(url, autocommit=True) as conn:
        key = generous(conn, "reader@example.com")
    with serving(url, PRESAGE_EXPORTS_DIR=str(folder)) as server:
        fetched = []

        class Remote(io.RawIOBase):
            """The file over HTTP ranges, as a reader of columns reads it."""

            def __init__(self):
                self.at = 0

            def readable(self):
                return True

            def seekable(self):
                return True

            def seek(self, offset, whence=0):
                self.at = offset + (0, self.at, len(whole))[whence]
                return self.at

            def tell(self):
                return self.at

            def read(self, size=-1):
                size = len(whole) - self.at if size < 0 else size
                headers = {"X-API-Key": key, "Range": f"bytes={self.at}-{self.at + size - 1}"}
                with urllib.request.urlopen(urllib.request.Request(server.url + PATH, headers=headers)) as answer:
                    data = answer.read()
                fetched.append(len(data))
                self.at += len(data)
                return data

        table = pq.ParquetFile(Remote(), pre_buffer=False).read(columns=["price"])

        assert table.num_rows == ROWS
        assert sum(fetched) < len(whole)
        request = urllib.request.Request(server.url + PATH, headers={"X-API-Key": key})
        with urllib.request.urlopen(request) as answer:
            assert answer.read() == whole


def test_an_exchange_has_topics_of_its_own_that_are_listed_when_it_is_asked_for(fetch):
    def topics(query=""):
        return {day["topic"] for day in fetch(f"/v1/exports{query}").json["data"]}

    assert topics() == {"trades", "markets", "candles"}
    assert topics("?exchange=kalshi") == topics("?topic=trades_kalshi") == {"trades_kalshi"}
    assert fetch(f"/v1/exports/trades_kalshi/{DAY}").json["rows"] == 0


def test_the_topics_that_can_be_asked_for_are_those_that_are_exported():
    assert set(get_args(TopicName)) == set(BY_NAME)
    for name, exchange in EXCHANGES.items():
        assert topics_of(name) == [topic.name for topic in BY_NAME.values() if topic.exchange is exchange]
