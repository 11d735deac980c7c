"""Books benchmark: latency and correctness of past books, and the disk cost of a book event.

Rivals for the disk: the same messages gzipped, and the same rows as Parquet.

A day is loaded as the live feed leaves it, anchors included; then it is packed, as happens some hours after its end
on the Apache licence. Both times the same moments are requested and compared with the generated books.
"""

from __future__ import annotations

import contextlib
import time
from datetime import UTC, datetime, timedelta
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
from rich.console import Console
from rich.progress import Progress

from api.endpoints.table import ENDPOINTS
from api.schemas.records import Orderbook
from benchmarks.api.api import generous
from benchmarks.api.load import LoadClient, cpu_s, request
from benchmarks.api.servers import OURS, servers
from benchmarks.books.data import Day
from benchmarks.database import fresh
from benchmarks.figures import Target, figure
from benchmarks.harness import quantile
from cli.stack.processes.supervisor import Supervisor
from orchestration.maintenance import packs
from sql.database import connect
from sql.packs import pack, unpack

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    import psycopg

    from benchmarks.api.load import Answer
    from benchmarks.api.servers import Server
    from benchmarks.books.data import Probe, Sides
    from benchmarks.database import Bench
    from benchmarks.figures import Figure
    from benchmarks.harness import Options

EACH, ASKED = 2_000, 1_000  # average events per market; moments
P95 = Target("value", "<", 30)
NONE = Target("value", "==", 0)
ARCHIVE = Target("value", "<=", 20.6)  # bytes an event of a public archive of the whole exchange, as Parquet
PARQUET_OUTCOMES = 200  # and packs whose hashes are stored: the size per event hardly depends on their number
EVERYTHING = timedelta(days=36_500)


def run(options: Options, report: Callable[[str], None]) -> Iterator[Figure]:
    """Measure rows, then packs."""
    now = datetime.now(UTC)
    with fresh(report) as bench, Supervisor(report, restart=False) as supervisor:
        key = generous(bench.url)
        server = servers(bench)[OURS]
        supervisor.start(server.program)
        supervisor.wait(OURS)
        day = Day(packs.horizon(now) - timedelta(days=1), options.events, options.events // EACH, ASKED)
        with connect(bench.url, autocommit=True, name="presage bench") as conn:
            day.catalogue(conn)
            messages = bench.folder / "messages.gz"
            bounded(conn)
            began = time.monotonic()
            with bar("loading", 1) as advance:
                day.load(conn, messages, advance)
            conn.execute("vacuum analyze book_events, book_anchors, markets, tokens")
            report(f"{day.events:,} events loaded in {time.monotonic() - began:,.0f} s")
            json = ("the exchange's JSON, gzip -6", messages.stat().st_size / day.written)
            yield stored(conn, day, "rows", json)
            every, fewer = parquet(conn, bench.folder)
            yield from asked(bench, server, key, day.probes, "rows")
            yield from packing(conn, now, day.events)
            others = {json[0]: json[1], "Parquet without hash and seq": fewer, "hashes stored": with_hashes(conn)}
            yield stored(conn, day, "packs", ("the same rows as Parquet, zstd", every), others)
            yield from asked(bench, server, key, day.probes, "packs")


@contextlib.contextmanager
def bar(what: str, total: float) -> Iterator[Callable[[float], None]]:
    """Show a progress bar on a terminal; yield the callback for progress."""
    console = Console(stderr=True)
    with Progress(console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task(what, total=total)
        yield lambda done: progress.update(task, completed=done)


def bounded(conn: psycopg.Connection[Any]) -> None:
    """Limit WAL to one gigabyte, so that all stays below ten."""
    conn.execute("alter system set max_wal_size = '1GB'")
    conn.execute("select pg_reload_conf()")


def stored(
    conn: psycopg.Connection[Any],
    day: Day,
    how: str,
    rival: tuple[str, float],
    others: Mapping[str, float] = MappingProxyType({}),
) -> Figure:
    """Measure the disk cost of a book event, indexes and whole books included."""
    tables = ("book_events", "book_packs", "book_anchors")
    sizes = {table: size(conn, table) for table in tables}
    return figure(
        f"a book event on disk, {how}",
        sum(sizes.values()) / day.events,
        "bytes",
        rival=rival,
        target=ARCHIVE if how == "packs" else None,
        detail={"events": day.events, **{f"{table}, MB": bytes_ / 1e6 for table, bytes_ in sizes.items()}, **others},
    )


def parquet(conn: psycopg.Connection[Any], folder: Path) -> tuple[float, float]:
    """Write the rows of some outcomes as Parquet; return bytes per row, and those without hash and `seq`."""
    rows = conn.execute(
        "select ts, market_key, outcome, seq, side, price, size, bid_prices, bid_sizes, ask_prices, ask_sizes, hash"
        " from book_events where market_key %% %s = 0 order by market_key, outcome, ts, seq",
        [step(conn)],
    )
    names = [column.name for column in rows.description or ()]
    table = pa.table(dict(zip(names, map(list, zip(*rows.fetchall(), strict=True)), strict=True)))
    path = folder / "events.parquet"
    found = []
    for each in (table, table.drop_columns(["hash", "seq"])):
        pq.write_table(each, path, compression="zstd", compression_level=9)
        found.append(path.stat().st_size / len(table))
    path.unlink()
    every, fewer = found
    return every, fewer


def with_hashes(conn: psycopg.Connection[Any]) -> float:
    """Return the bytes per event of some packs if none of their hashes could be computed."""
    count = total = 0
    for (data,) in conn.execute("select data from book_packs where market_key %% %s = 0", [step(conn)]):
        found = unpack(data)
        count += len(found)
        total += len(pack([*found.events()], found.base, known=found.known)[0])
    return total / count


def step(conn: psycopg.Connection[Any]) -> int:
    """Return the step between the markets that are taken as a sample."""
    (markets,) = conn.execute("select count(*) from markets").fetchone() or (0,)
    return max(1, int(markets) * 2 // PARQUET_OUTCOMES)


def size(conn: psycopg.Connection[Any], table: str) -> int:
    """Return the bytes of a table, everything belonging to it included."""
    (found,) = conn.execute("select hypertable_size(%s::regclass)", [table]).fetchone() or (0,)
    return int(found or 0)


def packing(conn: psycopg.Connection[Any], now: datetime, events: int) -> Iterator[Figure]:
    """Pack the day."""
    began = time.monotonic()
    with bar("packing", events) as advance:
        packed = packs.bring_up_to_date(
            conn, now, max_s=EVERYTHING.total_seconds(), report=lambda packed: advance(packed.events)
        )
    took = time.monotonic() - began
    conn.execute("vacuum analyze book_packs")
    detail = {"events": packed.events, "packs": packed.packs, "seconds": took, "payload": packed.bytes / packed.events}
    yield figure("packing", packed.events / took, "events/s", detail=detail)


def asked(bench: Bench, server: Server, key: str, probes: list[Probe], how: str) -> Iterator[Figure]:
    """Request the book of each moment, and compare with the expected one."""
    (endpoint,) = (each for each in ENDPOINTS if each.name == "market_orderbook")
    headers = {"X-API-Key": key, "Accept": "*/*"}
    client = LoadClient(server.port)

    def ask(probe: Probe) -> Answer:
        path = endpoint.path.replace("{id}", Day.condition(probe.market_key - 1))
        return client.ask(request("GET", f"{path}?at={probe.ms}&outcome={probe.outcome}", headers))

    with contextlib.closing(client):
        for probe in probes[:20]:  # warm-up, not counted
            ask(probe)
        api, database = server.pids(), server.connections(bench.url)
        before = cpu_s(api), cpu_s(database)
        answers = [(ask(probe), b"".join(client.body)) for probe in probes]
        each_ms = 1000 / len(probes)
        spent = [(now - then) * each_ms for now, then in zip((cpu_s(api), cpu_s(database)), before, strict=True)]
    times = [answer.seconds * 1000 for answer, _ in answers]
    books = [msgspec.json.decode(body, type=Orderbook) if answer.status == 200 else None for answer, body in answers]
    detail = {
        "p50": quantile(times, 0.5),
        "p99": quantile(times, 0.99),
        "asked": len(times),
        "most_changes": max((found.integrity.changes for found in books if found and found.integrity), default=0),
        "CPU ms, API": spent[0],
        "CPU ms, database": spent[1],
    }
    yield figure(f"the book of a past moment, {how}: p95", quantile(times, 0.95), "ms", target=P95, detail=detail)
    wrong = sum(found is None or sides(found) != probe.sides for found, probe in zip(books, probes, strict=True))
    yield figure(f"books that differ, {how}", wrong, "books", target=NONE)


def sides(book: Orderbook) -> Sides:
    """Return bids and asks by price, in the day's format."""
    bids, asks = (
        {round(level.price * 1e6): round(level.size * 1e6) for level in side} for side in (book.bids, book.asks)
    )
    return bids, asks
