"""Hosts benchmark: what a request costs on one, two and three hosts with the API, beside one database and its replica.

A host is Gunicorn with one worker, with a name and a folder of its own; hosts share the database, its streaming
replica and the client's key. A client sends each host that is asked the same requests, at the same rate: what differs
is how many are asked. The others stay connected. CPU time is that of all of a server's processes, without what they
use when nothing is asked; the clients' does not count.
"""

from __future__ import annotations

import contextlib
import itertools
import statistics
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from api.endpoints.table import ENDPOINTS
from benchmarks.api.api import SIZE, generous
from benchmarks.api.data import load
from benchmarks.api.load import LoadClient, request
from benchmarks.api.questions import NOT_ASKED, PROXIED, RANKS, Questions
from benchmarks.api.servers import OURS, servers
from benchmarks.database import fresh
from benchmarks.figures import Target, figure
from benchmarks.harness import quantile, turns
from benchmarks.hosts.replica import replica
from benchmarks.processes import cpu_s, parent
from cli.stack.processes.supervisor import Supervisor
from sql.database import connect

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import psycopg

    from benchmarks.api.servers import Server
    from benchmarks.database import Bench
    from benchmarks.figures import Figure
    from benchmarks.harness import Options

HOSTS = (1, 2, 3)
RATE, TURN_S = 60.0, 15.0  # requests a second of each host
BEAT_S = 0.2  # between two commits, by whose age a replica knows how far it is behind
REPORTED_S = 11.0  # after which a session's transactions are counted, at the latest
MAX_RATIO, MIN_SHARE = Target("ratio", "<=", 1.1), Target("value", ">=", 0.8)
API, PRIMARY, REPLICA = "API", "primary", "replica"
TRANSACTIONS = "select xact_commit + xact_rollback from pg_stat_database where datname = 'presage'"


class Turn(NamedTuple):
    """One measurement: requests, their milliseconds, and CPU seconds and transactions by server."""

    seconds: float
    ms: list[float]
    cpu_s: dict[str, float]
    transactions: dict[str, int]

    def without(self, idle: Turn) -> Turn:
        """Return the same without the CPU time that is used when nothing is asked."""
        share = self.seconds / idle.seconds
        return self._replace(cpu_s={name: used - share * idle.cpu_s[name] for name, used in self.cpu_s.items()})

    def cpu_us(self, *of: str) -> float:
        """Return the CPU microseconds of a request."""
        return sum(self.cpu_s[each] for each in of) / len(self.ms) * 1e6


def run(options: Options, report: Callable[[str], None]) -> Iterator[Figure]:
    """Measure hosts in turns; yield the CPU time of a request by their number, and the replica's share."""
    with fresh(report) as bench, Supervisor(report, restart=False) as supervisor:
        load(bench.url, SIZE, report)
        report("the replica's copy is made")
        copy, replica_url = replica(bench)
        supervisor.start(copy)
        supervisor.wait(copy.name)
        hosts: list[Server] = []
        for number in range(1, max(HOSTS) + 1):  # one after the other, so that each finds a free port
            hosts.append(host(bench, number, replica_url))
            supervisor.start(hosts[-1].program)
            supervisor.wait(hosts[-1].program.name)
        with measuring(bench, copy.pid, replica_url, hosts) as measure:
            measure(len(hosts))  # prepares statements and connections
            idle = measure(0)
            done: dict[int, list[Turn]] = {number: [] for number in HOSTS}

            def turn(number: int) -> float:
                done[number].append(measure(number).without(idle))
                return done[number][-1].cpu_us(API, PRIMARY, REPLICA)

            turns({str(number): partial(turn, number) for number in HOSTS}, options.repetitions, report)
    yield from costs(done)
    yield figure(
        "CPU of a host of which nothing is asked", idle.cpu_s[API] / len(hosts) / idle.seconds * 100, "% of a core"
    )
    yield share_of_replica(done)


def host(bench: Bench, number: int, replica_url: str) -> Server:
    """Return a host with the API, which is not started."""
    folder = bench.folder / f"host-{number}"
    folder.mkdir()
    changed = {
        "DATABASE_READ_URL": replica_url,
        "PRESAGE_HOST_NAME": folder.name,
        "PRESAGE_DATA_DIR": str(folder),
        "PRESAGE_METERING_DIR": str(folder),
    }
    found = servers(bench, changed)[OURS]
    found.program.name, found.program.log = folder.name, folder / "api.log"
    return found


@contextlib.contextmanager
def measuring(
    bench: Bench, replica_pid: int | None, replica_url: str, hosts: Sequence[Server]
) -> Iterator[Callable[[int], Turn]]:
    """Yield a function that measures so many of the hosts; meanwhile something is committed several times a second."""
    requests = questions(generous(bench.url))
    # Of another database, so that nothing of the benchmark's own is among the counted transactions.
    aside = [url.replace("/presage?", "/postgres?") for url in (bench.url, replica_url)]
    with contextlib.ExitStack() as stack:
        conns = [stack.enter_context(connect(url, autocommit=True, name="presage bench")) for url in aside]
        assert replica_pid is not None
        pids = {PRIMARY: parent(conns[0].info.backend_pid), REPLICA: replica_pid}
        stack.enter_context(beating(aside[0]))
        clients = stack.enter_context(ThreadPoolExecutor(len(hosts)))

        def counted() -> dict[str, int]:
            time.sleep(REPORTED_S)
            return dict(zip((PRIMARY, REPLICA), map(transactions, conns), strict=True))

        def used() -> dict[str, float]:
            api = sum(cpu_s(each.program.pid) for each in hosts if each.program.pid is not None)
            return {API: api, **{name: cpu_s(pid) for name, pid in pids.items()}}

        def measure(number: int) -> Turn:
            counts, began, before = counted(), time.monotonic(), used()
            ms = list(itertools.chain.from_iterable(clients.map(lambda each: ask(each.port, requests), hosts[:number])))
            time.sleep(max(0.0, began + TURN_S - time.monotonic()))
            took, after, done = time.monotonic() - began, used(), counted()
            return Turn(
                took,
                ms,
                {name: after[name] - before[name] for name in after},
                {name: done[name] - counts[name] for name in done},
            )

        yield measure


def transactions(conn: psycopg.Connection[Any]) -> int:
    """Return how many transactions a server has ended in the benchmark's database."""
    return int(conn.execute(TRANSACTIONS).fetchall()[0][0])


@contextlib.contextmanager
def beating(url: str) -> Iterator[None]:
    """Commit something several times a second, as the pipeline does."""
    over = threading.Event()

    def beat() -> None:
        with connect(url, autocommit=True, name="presage bench") as conn:
            while not over.wait(BEAT_S):
                conn.execute("select pg_logical_emit_message(true, 'presage bench', '')")

    thread = threading.Thread(target=beat)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def questions(key: str) -> list[bytes]:
    """Return the requests of one turn: each reading endpoint of /v1 in turn, with each of its filters."""
    headers = {"X-API-Key": key, "Accept": "*/*", "User-Agent": "presage bench"}
    asked = Questions([SIZE.of_rank(rank) for rank in RANKS], SIZE.markets)
    reading = [
        asked.usual(each)
        for each in ENDPOINTS
        if each.method == "GET" and each.path.startswith("/v1/") and each.name not in NOT_ASKED | PROXIED
    ]
    lines = (next(each) for each in itertools.cycle(reading))
    return [request(line.method, line.path, headers) for line in itertools.islice(lines, int(RATE * TURN_S))]


def ask(port: int, requests: Sequence[bytes]) -> list[float]:
    """Send requests at their times, one after the other; return milliseconds, each from when it was due."""
    client, ms, began = LoadClient(port), [], time.perf_counter()
    try:
        for number, each in enumerate(requests):
            due = began + number / RATE
            if (early := due - time.perf_counter()) > 0:
                time.sleep(early)
            answer = client.ask(each)
            if answer.status not in (200, 404):  # an ended market has no book
                raise ValueError(f"status {answer.status}: {b''.join(client.body)[:300]!r}")
            ms.append((time.perf_counter() - due) * 1000)
    finally:
        client.close()
    return ms


def costs(done: dict[int, list[Turn]]) -> Iterator[Figure]:
    """Yield the CPU time of a request by the number of hosts, beside one host in the same run."""
    for name, of in (("API and databases", (API, PRIMARY, REPLICA)), ("API alone", (API,))):
        alone = [turn.cpu_us(*of) for turn in done[1]]
        for number, measured in done.items():
            here = [turn.cpu_us(*of) for turn in measured]
            ratios = [a / b for a, b in zip(here, alone, strict=True)]
            ms = [each for turn in measured for each in turn.ms]
            yield figure(
                f"CPU of a request, {name}, hosts: {number}",
                statistics.median(here),
                "µs",
                rival=("one host", statistics.median(alone)) if number > 1 else None,
                spread=(min(ratios), max(ratios)) if number > 1 else None,
                target=MAX_RATIO if number > 1 else None,
                detail={
                    **{f"{each}_us": statistics.median(turn.cpu_us(each) for turn in measured) for each in of},
                    "requests": len(ms),
                    "p50_ms": quantile(ms, 0.5),
                    "p99_ms": quantile(ms, 0.99),
                },
            )


def share_of_replica(done: dict[int, list[Turn]]) -> Figure:
    """Return the replica's share of all transactions in the database; the primary's include all that is written."""
    of = {
        name: sum(turn.transactions[name] for measured in done.values() for turn in measured)
        for name in (PRIMARY, REPLICA)
    }
    return figure(
        "share of the transactions on the replica",
        of[REPLICA] / sum(of.values()),
        "",
        target=MIN_SHARE,
        detail={f"{name}_transactions": number for name, number in of.items()},
    )
