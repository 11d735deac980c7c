"""API benchmark: CPU per request beside rivals, and every endpoint's latency, on the same data and in one run."""

from __future__ import annotations

import os
import statistics
import time
from functools import partial
from typing import TYPE_CHECKING

from api.endpoints.table import ENDPOINTS
from api.metering import keys
from benchmarks.api import report as api_report
from benchmarks.api.data import Size, load
from benchmarks.api.load import LoadClient, cpu_s, press, request
from benchmarks.api.questions import NOT_ASKED, PROXIED, RANKS, Question, Questions, market_id
from benchmarks.api.report import Latency
from benchmarks.api.servers import (
    HELLO,
    MANY_REGISTRATIONS,
    NO_ADDRESS_BUDGET,
    OURS,
    RIVAL,
    SANDBOX,
    TOKEN,
    UNCACHED,
    servers,
)
from benchmarks.database import fresh
from benchmarks.figures import Target, figure
from benchmarks.harness import quantile, turns
from cli.stack.processes.supervisor import Supervisor
from sql.database import connect

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from api.endpoints.base.endpoint import Endpoint
    from benchmarks.api.servers import Server
    from benchmarks.figures import Figure
    from benchmarks.harness import Options

SIZE = Size()
CLIENTS = 16
WARM_UP_S, TURN_S = 0.5, 3.0
ASKED, ASKED_S = 300, 5.0  # requests per endpoint, and their time limit
PROXY_ASKED = 20  # more would exceed the exchange's rate limits
LARGEST_ASKED = 40
MAX_TOTAL_S = 13 * 60.0  # then no more endpoints are measured: all ends within 15 minutes
MAX_RIVAL_RATIO, MAX_HELLO_RATIO, MAX_P99_MS = Target("ratio", "<=", 1.0), Target("ratio", "<=", 1.6), 50.0


def run(options: Options, report: Callable[[str], None]) -> Iterator[Figure]:
    """Run all measurements; the document is written last, with whatever was measured."""
    began = time.monotonic()
    page = api_report.Report(os.getloadavg())
    try:
        with fresh(report) as bench, Supervisor(report, restart=False) as supervisor:
            page.rows = load(bench.url, SIZE, report)
            key = generous(bench.url)
            known = servers(bench, {**MANY_REGISTRATIONS, **NO_ADDRESS_BUDGET})  # each endpoint is asked in a row
            page.server = api_report.versions(bench.url)

            def up(*names: str) -> None:
                supervisor.start(*(known[name].program for name in names))
                supervisor.wait(*names)

            up(OURS, RIVAL, HELLO)
            for each in compare(bench.url, known, key, options.repetitions, report):
                page.compared.append(each)
                yield each
            up(UNCACHED, SANDBOX)
            asker = Asker(known[UNCACHED].port, key)
            for endpoint in ENDPOINTS:
                if endpoint.name in NOT_ASKED:
                    continue
                if time.monotonic() - began > MAX_TOTAL_S:
                    report("out of time: the other endpoints were not asked")
                    break
                found = asker.latency(endpoint)
                page.latencies.append(found)
                figures = found.wrong or f"p50 {found.p50:.1f}, p99 {found.p99:.1f} ms"
                report(f"{endpoint.method} {endpoint.path}: {figures}")
                yield as_figure(found)
            bounded = [each for each in page.latencies if each.endpoint.name not in PROXIED]
            if not bounded:
                return
            slowest = max(bounded, key=lambda each: each.p99)
            yield figure(
                f"slowest endpoint's p99, uncached ({slowest.endpoint.name})",
                slowest.p99 if not any(each.wrong for each in bounded) else float("inf"),
                "ms",
                target=Target("value", "<=", MAX_P99_MS),
            )
    finally:
        if options.markdown is not None:
            api_report.write(options.markdown, page)


def compare(
    url: str, known: dict[str, Server], key: str, repetitions: int, report: Callable[[str], None]
) -> Iterator[Figure]:
    """Yield CPU per request of ours and of the rivals, measured in turns."""
    headers = {"X-API-Key": key, "Accept": "*/*", "User-Agent": "presage bench"}
    trades = [
        request("GET", f"/v1/markets/{market_id(SIZE.of_rank(rank))}/trades?limit=50", headers) for rank in range(1, 21)
    ]
    plain = {name: [request("GET", path, headers)] for name, path in (("time", "/v1/time"), ("stats", "/v1/stats"))}
    hello = [request("GET", "/hello", headers)]

    def sample(name: str, requests: Sequence[bytes]) -> Callable[[], float]:
        return partial(cpu_us, url, known[name], requests)

    ours, theirs = "trades, 50 rows", "the same SQL by FastAPI, asyncpg, uvicorn"
    found = turns({ours: sample(OURS, trades), theirs: sample(RIVAL, trades)}, repetitions, report)
    name = "CPU of 50 trades with key, metering and headers"
    yield beside(name, found[ours], theirs, found[theirs], MAX_RIVAL_RATIO)
    small = {f"/v1/{name}": sample(OURS, requests) for name, requests in plain.items()}
    found = turns({**small, "hello world": sample(HELLO, hello)}, repetitions, report)
    for path in small:
        name, target = f"CPU of {path}, computed each time", None
        if path == "/v1/stats":
            name, target = f"CPU of {path}, cached", MAX_HELLO_RATIO
        yield beside(name, found[path], "bare Falcon on the same worker", found["hello world"], target)


def cpu_us(url: str, server: Server, requests: Sequence[bytes]) -> float:
    """Return the CPU microseconds per request of a server and its database connections, at full load."""
    press(server.port, requests, clients=CLIENTS, seconds=WARM_UP_S)
    pids = server.pids() + (server.connections(url) if server.application else [])
    before = cpu_s(pids)
    answered = press(server.port, requests, clients=CLIENTS, seconds=TURN_S)
    return (cpu_s(pids) - before) / answered * 1e6


def beside(name: str, ours: list[float], rival: str, theirs: list[float], target: Target | None) -> Figure:
    """Return a figure comparing medians, with the spread of the turns' ratios."""
    ratios = [a / b for a, b in zip(ours, theirs, strict=True)]
    medians = statistics.median(ours), statistics.median(theirs)
    return figure(name, medians[0], "µs", rival=(rival, medians[1]), target=target, spread=(min(ratios), max(ratios)))


class Asker:
    """A client that sends one request at a time."""

    def __init__(self, port: int, key: str) -> None:
        self.port = port
        self.headers = {"X-API-Key": key, "X-Debug-Token": TOKEN, "Content-Type": "application/json", "Accept": "*/*"}
        self.questions = Questions([SIZE.of_rank(rank) for rank in RANKS], SIZE.markets)

    def latency(self, endpoint: Endpoint) -> Latency:
        """Measure one endpoint; the first few responses, which prepare statements, do not count."""
        largest = self.questions.largest(endpoint)
        try:
            times, sizes = self._ask(endpoint, self.questions.usual(endpoint), ASKED)
            long = quantile(self._ask(endpoint, largest, LARGEST_ASKED)[0], 0.99) if largest else None
        except (OSError, ValueError) as error:
            return Latency(endpoint, 0, 0, 0, 0, wrong=str(error))
        return Latency(endpoint, len(times), quantile(times, 0.5), quantile(times, 0.99), statistics.fmean(sizes), long)

    def _ask(self, endpoint: Endpoint, questions: Iterator[Question], most: int) -> tuple[list[float], list[int]]:
        """Return each response's milliseconds and bytes."""
        most = min(most, PROXY_ASKED) if endpoint.name in PROXIED else most
        times, sizes, client, until, missing = [], [], LoadClient(self.port), time.monotonic() + ASKED_S, 0
        try:
            for nth, question in enumerate(questions):
                answer = client.ask(request(question.method, question.path, self.headers, question.body))
                missing += answer.status == 404  # an ended market has no book
                if answer.status not in (endpoint.status, 404) or missing > 20 > nth - missing:
                    raise ValueError(f"status {answer.status}: {b''.join(client.body)[:200].decode(errors='replace')}")
                if nth >= most // 10:
                    times.append(answer.seconds * 1000)
                    sizes.append(answer.size)
                if len(times) >= most or (times and time.monotonic() > until):
                    break
        finally:
            client.close()
        return times, sizes


def as_figure(found: Latency) -> Figure:
    """Return a latency as a figure."""
    name = f"{found.endpoint.method} {found.endpoint.path}, p99"
    if found.wrong:
        return figure(f"{name}: {found.wrong}", float("inf"), "ms")
    detail = {"p50": found.p50, "asked": found.asked, "bytes": found.size}
    if found.largest is not None:
        detail["largest_p99"] = found.largest
    target = None if found.endpoint.name in PROXIED else Target("value", "<=", MAX_P99_MS)
    return figure(name, found.p99, "ms", target=target, detail=detail)


def generous(url: str) -> str:
    """Create a key without a tight rate limit, metered like any other."""
    with connect(url, autocommit=True, name="presage bench") as conn:
        key = keys.create(conn, "bench@example.com", "bench", "pro")
        conn.execute(
            "update api_keys set credits_burst = 10000000, credits_month = 1000000000 where key_hash = %s",
            [keys.digest(key)],
        )
    return key
