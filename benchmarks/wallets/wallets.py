"""Wallets benchmark: building and updating positions, leaderboards, and endpoint latency, the heaviest wallet apart."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import aiosql

from api.endpoints.table import ENDPOINTS
from benchmarks.api.api import generous
from benchmarks.api.load import LoadClient, request
from benchmarks.api.servers import UNCACHED, servers
from benchmarks.database import fresh
from benchmarks.figures import Target, figure
from benchmarks.harness import quantile
from cli.stack.processes.supervisor import Supervisor
from orchestration.wallets import leaderboards, positions
from sql.database import connect

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import psycopg

    from api.endpoints.base.endpoint import Endpoint
    from benchmarks.figures import Figure
    from benchmarks.harness import Options

queries = aiosql.from_path(Path(__file__).parent / "data.sql", "psycopg")

BLOCK_S = 1.5
PIECE = 250_000  # matches in one transaction
ASKED, LARGEST_ASKED = 300, 30
MAX_P99 = Target("value", "<=", 50)
MAX_HEAVIEST_P99 = Target("value", "<=", 300)
A_MINUTE = Target("value", "<=", 20)


class Size(NamedTuple):
    """Size of the data: 5 M settlements, of which 1 M are wallet 0's."""

    matches: int = 2_500_000
    wallets: int = 50_000
    markets: int = 5_000
    days: float = 13.5


def run(_options: Options, report: Callable[[str], None]) -> Iterator[Figure]:
    """Run all measurements."""
    with fresh(report) as bench, Supervisor(report, restart=False) as supervisor:
        key = generous(bench.url)
        with connect(bench.url, autocommit=True, name="presage bench") as conn:
            load(conn, Size(), report)
            yield from kept(conn, report)
            conn.execute("vacuum analyze wallet_positions, wallet_totals, wallet_days, wallet_hours")
        server = servers(bench)[UNCACHED]
        supervisor.start(server.program)
        supervisor.wait(UNCACHED)
        yield from answered(server.port, key, Size().wallets, report)


def load(
    conn: psycopg.Connection[Any], size: Size, report: Callable[[str], None], *, until: datetime | None = None
) -> None:
    """Create the rows; the newest are at `until` (default: now)."""
    blocks = int(size.days * 86_400 / BLOCK_S)
    start = (until or datetime.now(UTC)) - timedelta(days=size.days)
    at = {"start": start, "start_block": 80_000_000}
    began = time.monotonic()
    queries.catalogue(conn, markets=size.markets)
    for query in (queries.tokens, queries.chain_tokens, queries.contract, queries.prices):
        query(conn)
    queries.prepare(
        conn, matches=size.matches, blocks=blocks, wallets=size.wallets, tokens=size.markets * 2, start_block=80_000_000
    )
    conn.execute("create index on bench_matches (n)")
    queries.blocks(conn, **at)
    for since in range(0, size.matches, PIECE):
        queries.settlements(conn, since=since, until=since + PIECE, **at)
        queries.fills(conn, since=since, until=since + PIECE, **at)
        report(f"{min(size.matches, since + PIECE) * 2:,} settlements")
    queries.head(conn)
    queries.ranges(conn)
    (account,) = conn.execute("select min(account_id) from accounts").fetchone() or (None,)
    queries.watch(conn, account_id=account)
    queries.activity(conn)
    queries.done(conn)
    conn.execute("vacuum analyze")
    report(f"loaded in {time.monotonic() - began:.0f} s")


def kept(conn: psycopg.Connection[Any], report: Callable[[str], None]) -> Iterator[Figure]:
    """Build positions from scratch, then update them for a minute of new rows; write the leaderboards."""
    now = datetime.now(UTC)
    # All but the last minute: 40 blocks are a minute.
    (final,) = conn.execute("select finalized from chain_heads").fetchone() or (0,)
    conn.execute("update chain_heads set finalized = %s", [final - 40])
    began = time.monotonic()
    while positions.bring_up_to_date(conn, now).behind:
        report("positions: more to do")
    took = time.monotonic() - began
    (fills,) = conn.execute("select sum(buys + sells) from wallet_totals").fetchone() or (0,)
    yield figure("positions from nothing", int(fills) / took, "fills/s", detail={"fills": int(fills), "seconds": took})
    conn.execute("update chain_heads set finalized = %s", [final])
    began = time.monotonic()
    positions.bring_up_to_date(conn, now)
    yield figure("positions, a minute of settlements added", time.monotonic() - began, "s", target=A_MINUTE)
    began = time.monotonic()
    leaderboards.write(conn, now)
    yield figure("leaderboards, all twelve", time.monotonic() - began, "s", target=A_MINUTE)
    began = time.monotonic()
    leaderboards.write(conn, now)
    yield figure("leaderboards by volume", time.monotonic() - began, "s", target=A_MINUTE)


def answered(port: int, key: str, wallets: int, report: Callable[[str], None]) -> Iterator[Figure]:
    """Query each endpoint for many wallets, and for the heaviest; nothing is cached."""
    headers = {"X-API-Key": key, "Accept": "*/*", "Content-Type": "application/json"}
    several = [n * wallets // ASKED for n in range(1, ASKED)]  # evenly spaced
    busy = list(range(1, LARGEST_ASKED + 1))  # after the heaviest
    for endpoint in ENDPOINTS:
        if endpoint.tag != "Wallets":
            continue
        usual = [asked(endpoint, wallet, headers) for wallet in several]
        times, size = ask(port, usual)
        busy_times, _ = ask(port, [asked(endpoint, wallet, headers) for wallet in busy])
        yield figure(
            f"{endpoint.method} {endpoint.path}, p99",
            quantile(times, 0.99),
            "ms",
            target=MAX_P99,
            detail={"p50": quantile(times, 0.5), "bytes": size, "busiest_p99": quantile(busy_times, 0.99)},
        )
        if "{address}" in endpoint.path and endpoint.method == "GET":
            times, size = ask(port, [asked(endpoint, 0, headers)] * LARGEST_ASKED)
            yield figure(
                f"{endpoint.path} of the heaviest wallet, p99",
                quantile(times, 0.99),
                "ms",
                target=MAX_HEAVIEST_P99,
                detail={"p50": quantile(times, 0.5), "bytes": size},
            )
        report(f"{endpoint.method} {endpoint.path}")


def asked(endpoint: Endpoint, wallet: int, headers: dict[str, str]) -> bytes:
    """Return the request for a wallet."""
    address = f"0x{wallet:040x}"
    body = b'{"address": "%b"}' % address.encode() if endpoint.body else b""
    return request(endpoint.method, endpoint.path.replace("{address}", address), headers, body)


def ask(port: int, requests: list[bytes]) -> tuple[list[float], float]:
    """Return each response's milliseconds and their mean size in bytes; warm-up requests do not count."""
    client = LoadClient(port)
    try:
        answers = [client.ask(each) for each in (requests[:10] + requests)]
    finally:
        client.close()
    if wrong := [answer.status for answer in answers if answer.status != 200]:
        raise ValueError(f"status {wrong[0]}: {b''.join(client.body)[:200]!r}")
    counted = answers[10:]
    return [answer.seconds * 1000 for answer in counted], sum(answer.size for answer in counted) / len(counted)
