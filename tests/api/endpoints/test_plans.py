"""The database reads what an answer needs, by an index, and no large table from end to end.

The benchmark's simulated exchange is made twice: as large as it is measured, which is a long proof (`make soak`), and
for each run of the tests so small that it takes seconds, and yet so large that the planner would rather not read it
whole. Every endpoint is asked what the benchmark asks it, and each query that the application sends for it is explained
and run twice: planned with its values, and by the general plan that PostgreSQL may turn to once it is prepared.
"""

from __future__ import annotations

import itertools
from collections import Counter
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import psycopg
import pytest
from falcon import testing
from psycopg import sql
from psycopg._queries import PostgresQuery
from psycopg.adapt import Transformer

from api.app import create_app
from api.data.pool import Pool
from api.data.statements import Statements
from api.endpoints.table import ENDPOINTS
from api.metering.ledger_location import LazyLedger
from api.service import Service
from api.stream.hub import StreamHub
from benchmarks.api.data import Size, load
from benchmarks.api.questions import LARGEST_QUERIES, NOT_ASKED, PROXIED, QUERY_VARIANTS, Questions
from benchmarks.database import fresh
from sql.database import connect
from sql.roles.rights import API
from tests.api.conftest import generous
from tests.roles import login_url

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

SMALL, FULL = Size(markets=5000, trades=56_000), Size()
LARGE = {
    *("trades", "quotes", "book_events", "candles_1m", "candles_1h", "markets", "tokens", "events", "stream_blocks"),
    *("settlements", "wallet_fills", "ledger_entries", "wallet_activity", "wallet_positions", "signals"),
    *("live_prices", "live_books", "market_stats_24h", "market_activity", "market_rankings"),
}
BEGUN = 65_536  # bytes of a chunk that is soonest read whole, as it has just begun
FEW = 10  # looks at such a one
MOST_IN_VAIN = 1000  # rows that one look reads and does not use
TITLES = "markets_titles_idx"  # of markets found by their titles, however many, each is asked for its state
MOST_AT_ONCE = 10_000  # rows that a look reads one after the other, of whatever table
# What counts everything there is, and is kept for half a minute, may add these up.
ADDED_UP = {"stats": {"market_stats_24h"}}
# And these be looked up all together for the busiest wallets, which hold much of what there is.
HELD = {name: {"chain_tokens", "tokens", "live_prices"} for name in ("wallet_summary", "wallet_pnl")}
READING = [each for each in ENDPOINTS if each.method == "GET" and each.name not in NOT_ASKED | PROXIED]
DEBUG_TOKEN = "only-for-the-plans-" + "0" * 32


class Asked(NamedTuple):
    query: str
    params: Any
    prepared: bool


class Recording(psycopg.Cursor[Any]):
    """A cursor that remembers what it was asked, each query once for each state of markets."""

    asked: dict[str, Asked] = {}  # noqa: RUF012

    def execute(self, query: Any, params: Any = None, **how: Any) -> Any:
        prepared = self.connection.prepare_threshold is not None
        self.asked[str(query)] = Asked(str(query), params, prepared=prepared)
        return super().execute(query, params, **how)


class RecordingStatements(Statements):
    def rows(self, text: str, arguments: Any) -> Any:
        Recording.asked[f"{text} {arguments.get('status')}"] = Asked(text, arguments, prepared=True)
        return super().rows(text, arguments)


class RecordingPool(Pool):
    def _connect(self) -> Any:
        conn = super()._connect()
        conn.cursor_factory = Recording
        conn.statements = RecordingStatements(conn)
        return conn


# Chunks begin at multiples of their interval, most of a day: plans would depend on the hour. With intervals that differ
# by seconds (the epoch is thousands of chunks ago) the newest chunk of every table is three quarters full now.
CUT = """
    select set_chunk_time_interval(
        format('%I.%I', hypertable_schema, hypertable_name)::regclass,
        make_interval(secs => now_s / (floor(now_s / extract(epoch from time_interval)) + 0.75))
    )
    from timescaledb_information.dimensions, extract(epoch from now()) as now_s
    where time_interval is not null
"""


@pytest.fixture(scope="module", params=[SMALL, pytest.param(FULL, marks=pytest.mark.soak)], ids=["small", "full"])
def size(request: pytest.FixtureRequest) -> Size:
    return request.param


@pytest.fixture(scope="module")
def url(size: Size, request: pytest.FixtureRequest) -> Iterator[str]:
    with measured() if size == FULL else request.getfixturevalue("new_database")() as url:
        with connect(url, autocommit=True) as conn:
            conn.execute(CUT)
        for table, rows in load(url, size, lambda _: None).items():
            print(f"{rows:>10,} {table}")
        yield url


@contextmanager
def measured() -> Iterator[str]:
    """A server with the settings of those that are measured, on disk."""
    with fresh(lambda _: None) as bench:
        yield bench.url


@pytest.fixture(scope="module")
def conn(url: str) -> Iterator[psycopg.Connection[Any]]:
    with connect(url) as conn:
        yield conn


@pytest.fixture(scope="module")
def asked(url: str, size: Size) -> dict[tuple[str, str], list[Asked]]:
    """The queries that each endpoint sends when asked as usual, and for all it may give: with the last time's values.

    A range that is widened until it holds enough is the widest then. Where markets are passed over, they are as large a
    part of all as in the benchmark.
    """
    pool = RecordingPool(login_url(url, API))
    ledger = LazyLedger()
    service = Service(reads=pool, writes=pool, hub=StreamHub(pool, ledger.ended), ledger=ledger)
    service.debug_token = DEBUG_TOKEN
    client = testing.TestClient(create_app(service))
    with connect(url, autocommit=True) as conn:
        key = generous(conn, "plans@example.com", credits_month=None)
    headers = {"X-API-Key": key, "X-Debug-Token": DEBUG_TOKEN}
    questions = Questions([size.of_rank(rank) for rank in (1, 50, 2, 700, size.markets - 1)], 50)
    found = {}
    for endpoint in READING:
        service.cache._entries.clear()
        service.markets._known.clear()
        usual = itertools.islice(questions.usual(endpoint), 2 * len(QUERY_VARIANTS.get(endpoint.name, ".")))
        largest = itertools.islice(questions.largest(endpoint) or (), 1)
        for how, several in (("usual", usual), ("largest", largest)):
            Recording.asked = {}
            for question in several:
                path, _, query = question.path.partition("?")
                query = query.replace("offset=10000", f"offset={size.markets // 5}")
                answer = client.simulate_get(path, query_string=query, headers=headers)
                assert answer.status_code in (200, 404), (question.path, answer.text)
            found[endpoint.name, how] = list(Recording.asked.values())
    pool.close()
    return found


def plans(conn: psycopg.Connection[Any], query: str, params: Any, *, prepared: bool) -> Iterator[dict[str, Any]]:
    """A query's plan with its values, and its generic one; as psycopg hands it to the server, and run."""
    explain = "explain (analyze, timing off, format json) "
    yield conn.execute(explain + query, params).fetchone()[0][0]["Plan"]  # type: ignore[index]
    sent = PostgresQuery(Transformer(conn))
    sent.convert(query, params)
    if not prepared or not sent.types:
        return
    types = ", ".join(kind(conn, oid) for oid in sent.types)
    values = sql.SQL(", ").join(params[name] for name in sent._order or ())
    conn.execute("set local plan_cache_mode = force_generic_plan")
    try:
        conn.execute(f"prepare asked ({types}) as ".encode() + sent.query.rstrip(b"; \n"))
        yield conn.execute(sql.SQL(explain + "execute asked ({})").format(values)).fetchone()[0][0]["Plan"]  # type: ignore[index]
    finally:
        conn.execute("deallocate asked")
        conn.execute("set local plan_cache_mode = auto")


def kind(conn: psycopg.Connection[Any], oid: int) -> str:
    return conn.execute(
        "select case when %(oid)s = 0 then 'unknown' else %(oid)s::regtype::text end", {"oid": oid}
    ).fetchone()[0]


def nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for below in plan.get("Plans", ()):
        yield from nodes(below)


@pytest.fixture
def read_whole(conn: psycopg.Connection[Any]) -> Iterator[Callable[[list[Asked]], set[str]]]:
    """The large tables that queries read from end to end, or far more of than they use; nothing is left behind."""
    yield partial(_read_whole, conn)
    conn.rollback()


def _read_whole(conn: psycopg.Connection[Any], queries: list[Asked]) -> set[str]:
    looks = [
        node
        for query, params, prepared in queries
        for plan in plans(conn, query, params, prepared=prepared)
        for node in nodes(plan)
        if "Relation Name" in node
    ]
    vain = {
        node["Relation Name"]
        for node in looks
        if node.get("Rows Removed by Filter", 0) > MOST_IN_VAIN
        and not any(below.get("Index Name") == TITLES for below in nodes(node))
    }
    whole: Counter[str] = Counter()  # how often at most
    many = set()
    for node in looks:
        if node["Node Type"] == "Seq Scan" and node["Actual Loops"]:
            name = node["Relation Name"]
            whole[name] = max(whole[name], node["Actual Loops"])
            if node["Actual Rows"] > MOST_AT_ONCE:
                many.add(name)
    chunks = conn.execute(
        "select hypertable_name, chunk_name, pg_relation_size(format('%%I.%%I', chunk_schema, chunk_name)::regclass)"
        " from timescaledb_information.chunks where chunk_name = any(%s)",
        [list(vain | set(whole))],
    ).fetchall()
    begun = {name for _, name, size in chunks if size < BEGUN and whole[name] <= FEW}
    table_of = {name: table for table, name, _ in chunks}
    found = {table_of.get(name, name) for name in vain | set(whole) - begun}
    small = conn.execute(  # as few markets as traded lately, by the hour
        "select relname from pg_class where relname = any(%s) and reltuples between 0 and %s",
        [list(found - set(table_of.values())), MOST_IN_VAIN],
    )
    return found & LARGE - {name for (name,) in small} | {table_of.get(name, name) for name in many}


BY_KEY = Asked("select * from trades where market_key = %(key)s", {"key": 5}, prepared=True)


def test_the_data_is_large_enough_for_an_index_to_be_worth_it(conn, read_whole):
    assert read_whole([BY_KEY]) == set()

    conn.execute(
        "set local enable_indexscan = off; set local enable_bitmapscan = off; set local enable_indexonlyscan = off"
    )
    assert read_whole([BY_KEY]) == {"trades"}


@pytest.mark.parametrize(("looks", "reading"), [(FEW, set()), (1000, {"trades"})])
def test_a_chunk_that_has_just_begun_may_be_read_whole_but_not_again_and_again(conn, read_whole, looks, reading):
    each = """select from generate_series(1, %(looks)s::integer) as look cross join lateral (
        select from trades where ts > now() + interval '2 days' and size <> look offset 0) as seen"""
    conn.execute(
        """insert into trades (ts, market_key, outcome, trade_id, seq, side, price, size, value_usd)
        values (now() + interval '3 days', 1, 0, 1, 1, 1, 500000, 1000000, 500000)"""
    )
    conn.execute("set local enable_indexscan = off; set local enable_bitmapscan = off")

    assert read_whole([Asked(each, {"looks": looks}, prepared=True)]) == reading


@pytest.mark.parametrize("name", [endpoint.name for endpoint in READING])
def test_no_endpoint_reads_a_large_table_whole(read_whole, asked, name):
    assert read_whole(asked[name, "usual"]) <= ADDED_UP.get(name, set())


@pytest.mark.parametrize("name", LARGEST_QUERIES)
def test_no_endpoint_does_for_the_largest_answer(read_whole, asked, name):
    assert asked[name, "largest"]
    assert read_whole(asked[name, "largest"]) <= HELD.get(name, set())


def test_almost_every_endpoint_asks_the_database(asked):
    assert sum(bool(asked[each.name, "usual"]) for each in READING) > len(READING) * 0.8


@pytest.mark.parametrize(
    ("name", "index", "table"),
    [
        ("market_trades", "trades_market_idx", "trades"),
        ("recent_trades", "trades_ts_idx", "trades"),
        ("search_markets", "markets_titles_idx", "markets"),
        ("wallet_onchain", "wallet_fills_wallet_idx", "wallet_fills"),
        ("top_signals", "signals_score_idx", "signals"),
        ("event_markets", "markets_event_id_idx", "markets"),
        ("top_markets", "market_activity_value_24h_idx", "market_activity"),
    ],
)
def test_without_its_index_an_endpoint_would(conn, read_whole, asked, name, index, table):
    conn.execute(sql.SQL("drop index {}").format(sql.Identifier(index)))

    assert table in read_whole(asked[name, "usual"])
