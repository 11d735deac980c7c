"""The database reads what an answer needs, by an index, and no large table from end to end.

The benchmark's simulated exchange is made small enough for a test, and large enough that the planner would rather not
read it whole. Then every endpoint is asked what the benchmark asks it, and each query that the application sends for it
is explained and run twice: planned with its values, and by the general plan that PostgreSQL may turn to once it is
prepared.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any, NamedTuple

import psycopg
import pytest
from falcon import testing
from psycopg import sql
from psycopg._queries import PostgresQuery
from psycopg.adapt import Transformer

from api.app import create_app
from api.endpoints import ENDPOINTS
from api.ledgers import Opener
from api.pool import Pool
from api.service import Service
from api.statements import Statements
from api.stream.hub import Hub
from cli.bench.api_data import Size, load
from cli.bench.api_questions import LARGEST, NOT_ASKED, PROXIED, VARIED, Questions
from sql.database import connect
from tests.api.conftest import generous

if TYPE_CHECKING:
    from collections.abc import Iterator

SIZE = Size(markets=5000, trades=56_000)
LARGE = {
    *("trades", "quotes", "book_events", "candles_1m", "candles_1h", "markets", "tokens", "events", "stream_events"),
    *("settlements", "wallet_fills", "ledger_entries", "wallet_activity", "wallet_positions", "signals"),
    *("live_prices", "live_books", "market_stats_24h", "market_activity", "market_rankings"),
}
SMALL = 65_536  # bytes of a chunk that is soonest read whole, as it has just begun
MOST_IN_VAIN = 1000  # rows that one look reads and does not use
# What counts everything there is, and is kept for half a minute.
WHOLE = {"stats"}
READING = [
    each
    for each in ENDPOINTS
    if each.method == "GET" and each.key != "debug" and each.name not in NOT_ASKED | PROXIED | WHOLE
]


class Asked(NamedTuple):
    query: str
    params: Any
    prepared: bool


class Recording(psycopg.Cursor[Any]):
    """A cursor that remembers what it was asked."""

    asked: dict[str, Asked] = {}  # noqa: RUF012

    def execute(self, query: Any, params: Any = None, **how: Any) -> Any:
        prepared = self.connection.prepare_threshold is not None
        self.asked.setdefault(str(query), Asked(str(query), params, prepared=prepared))
        return super().execute(query, params, **how)


class RecordingStatements(Statements):
    def rows(self, text: str, arguments: Any) -> Any:
        Recording.asked.setdefault(text, Asked(text, arguments, prepared=True))
        return super().rows(text, arguments)


class RecordingPool(Pool):
    def _connect(self) -> Any:
        conn = super()._connect()
        conn.cursor_factory = Recording
        conn.statements = RecordingStatements(conn)
        return conn


@pytest.fixture(scope="module")
def url(new_database: Any) -> Iterator[str]:
    with new_database() as url:
        load(url, SIZE, lambda _: None)
        yield url


@pytest.fixture(scope="module")
def conn(url: str) -> Iterator[psycopg.Connection[Any]]:
    with connect(url) as conn:
        yield conn


@pytest.fixture(scope="module")
def asked(url: str) -> dict[str, list[Asked]]:
    """By endpoint, the queries that it sends, each once, with the values of the first time."""
    pool = RecordingPool(url)
    ledger = Opener()
    service = Service(reads=pool, writes=pool, hub=Hub(pool, ledger.ended), ledger=ledger)
    client = testing.TestClient(create_app(service))
    with connect(url, autocommit=True) as conn:
        key = generous(conn, "plans@example.com", credits_month=None)
    questions = Questions([SIZE.of_rank(rank) for rank in (1, 2, 50, 700, 4999)], 50)
    found = {}
    for endpoint in READING:
        Recording.asked = {}
        service.cache._kept.clear()
        service.markets._known.clear()
        several = [
            *itertools.islice(questions.usual(endpoint), 2 * len(VARIED.get(endpoint.name, "."))),
            *itertools.islice(questions.largest(endpoint) or (), 1),
        ]
        for question in several:
            path, _, query = question.path.partition("?")
            answer = client.simulate_get(path, query_string=query, headers={"X-API-Key": key})
            assert answer.status_code in (200, 404), (question.path, answer.text)
        found[endpoint.name] = list(Recording.asked.values())
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


def read_whole(conn: psycopg.Connection[Any], queries: list[Asked]) -> set[str]:
    """The large tables that queries read from end to end, or far more of than they use."""
    looks = [
        node
        for query, params, prepared in queries
        for plan in plans(conn, query, params, prepared=prepared)
        for node in nodes(plan)
        if "Relation Name" in node
    ]
    vain = {node["Relation Name"] for node in looks if node.get("Rows Removed by Filter", 0) > MOST_IN_VAIN}
    whole = {node["Relation Name"] for node in looks if node["Node Type"] == "Seq Scan" and node["Actual Loops"]}
    chunks = conn.execute(
        "select hypertable_name, chunk_name, pg_relation_size(format('%%I.%%I', chunk_schema, chunk_name)::regclass)"
        " from timescaledb_information.chunks where chunk_name = any(%s)",
        [list(vain | whole)],
    ).fetchall()
    begun = {name for _, name, size in chunks if size < SMALL}
    found = vain | whole - begun
    return (found | {table for table, name, _ in chunks if name in found}) & LARGE


BY_KEY = Asked("select * from trades where market_key = %(key)s", {"key": 5}, prepared=True)


def test_the_data_is_large_enough_for_an_index_to_be_worth_it(conn):
    conn.execute(
        "set local enable_indexscan = off; set local enable_bitmapscan = off; set local enable_indexonlyscan = off"
    )
    try:
        reading = read_whole(conn, [BY_KEY])
    finally:
        conn.rollback()

    assert reading == {"trades"}
    assert read_whole(conn, [BY_KEY]) == set()


@pytest.mark.parametrize("name", [endpoint.name for endpoint in READING])
def test_no_endpoint_reads_a_large_table_whole(conn, asked, name):
    try:
        assert read_whole(conn, asked[name]) == set()
    finally:
        conn.rollback()


def test_the_largest_answers_are_among_what_is_asked(asked):
    assert set(LARGEST) <= set(asked)
    assert sum(bool(queries) for queries in asked.values()) > len(asked) * 0.8


@pytest.mark.parametrize(
    ("name", "index", "table"),
    [
        ("market_trades", "trades_market_idx", "trades"),
        ("recent_trades", "trades_ts_idx", "trades"),
        ("search_markets", "markets_title_idx", "markets"),
        ("wallet_onchain", "wallet_fills_wallet_idx", "wallet_fills"),
        ("top_signals", "signals_score_idx", "signals"),
        ("event_markets", "markets_event_id_idx", "markets"),
        ("top_markets", "market_activity_value_24h_idx", "market_activity"),
    ],
)
def test_without_its_index_an_endpoint_would(conn, asked, name, index, table):
    conn.execute(sql.SQL("drop index {}").format(sql.Identifier(index)))
    try:
        assert table in read_whole(conn, asked[name])
    finally:
        conn.rollback()
