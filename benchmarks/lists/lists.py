"""Lists benchmark: every list of markets, by frequent and rare filters and such that exclude each other, page by page.

The API's own application answers in this process, uncached; the figures include everything but the network.
"""

from __future__ import annotations

import os
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import aiosql
from falcon import testing

from api.app import create_app
from api.data import cursor
from api.data.pool import Pool
from api.endpoints.markets.requests import MarketParameters
from api.endpoints.markets.resource import MarketCursor
from api.metering.ledger_location import LazyLedger
from api.schemas.requests import parse
from api.service import Service
from api.stream.hub import StreamHub
from benchmarks.api.api import generous
from benchmarks.api.apps import UncachedCache
from benchmarks.api.load import cpu_s
from benchmarks.database import fresh
from benchmarks.figures import Target, figure
from benchmarks.harness import quantile
from orchestration.candles import aggregates
from sql.database import connect
from sql.queries import activity, markets

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from benchmarks.figures import Figure
    from benchmarks.harness import Options

MARKETS, LIVE_SHARE = 1_500_000, 2 / 15
ASKED, ASKED_S = 50, 3.0  # requests of a question, and their time limit
MAX_P99_MS = Target("value", "<=", 50.0)
FILTERS = (
    *(
        "",
        "status=ACTIVE",
        "status=CLOSED",
        "status=RESOLVED",
        "category=politics",
        "category=category-13",
        "category=none",
    ),
    *(
        "tag=nba",
        "tag=sports",
        "tag=topic-1",
        "tag=topic-4000",
        "tag=person-77",
        "series=nba-2026",
        "series=bitcoin-up-or-down-5m",
    ),
    *("tag=nba&status=RESOLVED", "tag=nba&status=ACTIVE", "tag=sports&status=CLOSED", "tag=person-77&status=ACTIVE"),
    *("category=politics&series=nba-2026", "category=politics&tag=nba", "tag=nba&series=nfl-2026&status=RESOLVED"),
    *(
        "series=nba-2024&status=ACTIVE",
        "series=nba-2024",
        "category=crypto&tag=5m&status=ACTIVE",
        "category=sports&status=ACTIVE",
    ),
    *("category=politics&tag=topic-1&status=RESOLVED", "category=category-1&tag=topic-1&status=CLOSED"),
)
TEXTS = ("bitcoin", "up", "team", "team 17", "nothing like this", "candidate 3", "e", "over 200.5", "election 1600")
QUESTIONS = (
    *(f"/v1/markets?{each}" for each in FILTERS),
    *(f"/v1/markets?{each}&limit=200" for each in ("", "tag=nba", "tag=nba&status=RESOLVED")),
    *(
        f"/v1/markets?{each}&offset={skipped}"
        for each in ("", "tag=sports", "status=RESOLVED")
        for skipped in (10_000, 100_000, 1_000_000)
    ),
    *(f"/v1/markets?{each}&cursor={place}" for each in ("", *FILTERS[1:]) for place in ("ranked", "unranked")),
    *(f"/v1/markets/search?q={each}" for each in TEXTS),
    *(f"/v1/markets/search?q={each}&status={status}" for each in TEXTS for status in ("ACTIVE", "CLOSED", "RESOLVED")),
    *(
        f"/v1/markets/top?by={by}&period={period}&limit=50"
        for by in ("volume", "trades")
        for period in ("1h", "24h", "7d")
    ),
    *("/v1/markets/trending?limit=100", "/v1/markets/breaking?limit=100"),
    *(
        f"/v1/markets/resolving?limit=100&within={each}"
        for each in ("1h", "24h", "7d", "7d&offset=10000", "7d&offset=1000000")
    ),
    *(f"/v1/markets/new?limit=100&hours={each}" for each in ("1", "168", "168&offset=5000", "168&offset=1000000")),
    *("/v1/markets/by-timeframe", "/v1/markets/by-timeframe?limit=100", "/v1/markets/by-timeframe?status=RESOLVED"),
    *(f"/v1/markets/by-timeframe?asset={each}" for each in TEXTS),
    "/v1/markets/by-timeframe?asset=e&limit=100",
    "/v1/events/{event}/markets?limit=200",
    *(
        f"/v1/categories/{name}/markets?limit=100&sort={sort}{more}"
        for name in ("sports", "category-13")
        for sort in ("created", "resolution")
        for more in ("", "&status=ACTIVE", "&status=RESOLVED", "&offset=10000", "&offset=200000", "&offset=1000000")
    ),
    *("/v1/categories", "/v1/tags", "/v1/series"),
)


def run(options: Options, report: Callable[[str], None]) -> Iterator[Figure]:
    """Fill a database, and measure."""
    total = options.markets or MARKETS
    with fresh(report) as bench:
        fill(bench.url, total, options.live or round(total * LIVE_SHARE), report)
        yield from measured(bench.url, total, report)


def fill(url: str, total: int, live: int, report: Callable[[str], None]) -> None:
    """Generate the catalogue, and what orchestration computes of it."""
    queries: Any = aiosql.from_path(Path(__file__).with_name("data.sql"), "psycopg")
    now = datetime.now(UTC)
    with connect(url, autocommit=True, name="presage bench data") as conn:
        queries.prepare(conn)
        queries.markets(conn, markets=total, live=live, now=now)
        queries.index(conn)
        report(f"{total:,} markets")
        for name in ("prices", "activity", "day"):
            getattr(queries, name)(conn, now=now)
        activity.count_taxonomy(conn, now=now)
        aggregates.rank(conn, now)
        conn.execute("vacuum analyze")
        report("what orchestration computes of them")


def measured(url: str, total: int, report: Callable[[str], None]) -> Iterator[Figure]:
    """Ask each question many times; yield its p99, then the slowest of all."""
    pool, ledger = Pool(url), LazyLedger()
    service = Service(reads=pool, writes=pool, hub=StreamHub(pool, ledger.ended), ledger=ledger, cache=UncachedCache())
    client = testing.TestClient(create_app(service))
    headers = {"X-API-Key": generous(url)}
    slowest = ("", 0.0)
    with connect(url, autocommit=True, name="presage bench") as conn:
        for question in QUESTIONS:
            path, _, query = question.partition("?")
            path = path.replace("{event}", str(total // 16))
            query = placed(service, conn, query, total)
            times: list[float] = []
            until = time.monotonic() + ASKED_S
            read, spent = buffers(service, conn), cpu_s(processes(conn))
            while len(times) < 3 or (len(times) < ASKED and time.monotonic() < until):
                began = time.perf_counter()
                answer = client.simulate_get(path, query_string=query, headers=headers)
                times.append((time.perf_counter() - began) * 1000)
                if answer.status_code not in (200, 404):
                    raise ValueError(f"{question}: {answer.text}")
            p99 = quantile(times[1:], 0.99)
            detail = {
                "p50": quantile(times[1:], 0.5),
                "first": times[0],
                "CPU": (cpu_s(processes(conn)) - spent) * 1000 / len(times),
                "buffers": (buffers(service, conn) - read) / len(times),
            }
            slowest = max(slowest, (question, p99), key=lambda each: each[1])
            report(f"{question}: p99 {p99:.1f}, " + ", ".join(f"{name} {value:,.1f}" for name, value in detail.items()))
            yield figure(f"{question}, p99", p99, "ms", target=MAX_P99_MS, detail=detail)
    pool.close()
    yield figure(f"slowest list's p99, uncached ({slowest[0]})", slowest[1], "ms", target=MAX_P99_MS)


def placed(service: Service, conn: Any, query: str, total: int) -> str:
    """Return the query with a deep page's cursor: half-way through the ranked markets or all markets."""
    name, _, place = query.rpartition("cursor=")
    if place not in ("ranked", "unranked"):
        return query
    filters = dict(each.split("=") for each in name.split("&") if each)
    generation = markets.generation(conn)
    (ranked,) = conn.execute("select max(rank) from market_rankings where generation = %s", [generation]).fetchone()
    at = {"rank": ranked // 2} if place == "ranked" else {"rank": ranked, "before": total // 2}
    meant = cursor.digest(parse(MarketParameters, filters))
    return name + "cursor=" + service.cursors.write(MarketCursor(meant, generation, **at))


def processes(conn: Any) -> list[int]:
    """Return the pids of this process and of its pool's database sessions, of which any may answer a question."""
    query = "select pid from pg_stat_activity where datname = current_database() and application_name = 'presage api'"
    return [os.getpid(), *(pid for (pid,) in conn.execute(query))]


def buffers(service: Service, conn: Any) -> int:
    """Return the number of buffers that the database's sessions have read."""
    service.reads.read(lambda each: each.execute("select pg_stat_force_next_flush()"))
    query = "select blks_hit + blks_read from pg_stat_database where datname = current_database()"
    return int(conn.execute(query).fetchone()[0])
