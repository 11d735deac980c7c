"""Customers' latency beside a flood of requests without a valid key, as a ratio to the same customers in peace."""

from __future__ import annotations

import multiprocessing
import secrets
import selectors
import time
from contextlib import ExitStack, closing, contextmanager
from multiprocessing import resource_tracker
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from api.metering import keys
from benchmarks.api.load import LoadClient, request
from benchmarks.api.servers import MANY_REGISTRATIONS, OURS, servers
from benchmarks.database import fresh
from benchmarks.figures import Target, figure
from benchmarks.harness import quantile
from cli.stack.processes.supervisor import Supervisor
from sql.database import connect

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, MutableSequence
    from multiprocessing.synchronize import Event

    from benchmarks.figures import Figure
    from benchmarks.harness import Options

CONNECTIONS = 256
PHASE_S, SETTLING_S = 30.0, 5.0
INTERVAL_S = 0.02  # between two requests of customers
KEYS = 150  # of customers, new ones in each phase: one request in ten has a key that the server has not met
MAX_RATIO, NONE = Target("ratio", "<=", 2.0), Target("value", "==", 0)
PATH = "/v1/markets?limit=5"


def run(options: Options, report: Callable[[str], None]) -> Iterator[Figure]:  # noqa: ARG001 (every benchmark's)
    """Measure customers in peace, beside a flood from one address, in peace, and beside one from many addresses."""
    resource_tracker.ensure_running()  # before the supervisor, which ends what starts after it
    with fresh(report) as bench, Supervisor(report, restart=False) as supervisor:
        # The budget of an address is the default; the day's registrations are not, which would end the flood's.
        server = servers(bench, MANY_REGISTRATIONS)[OURS]
        supervisor.start(server.program)
        supervisor.wait(OURS)
        phases = [customers(bench.url, phase) for phase in range(5)]
        serve(server.port, phases[0])  # prepares statements and connections
        before = serve(server.port, phases[1])
        with flood(server.port, addresses=1) as answered:
            one, of_one = serve(server.port, phases[2]), answered()
        between = serve(server.port, phases[3])
        with flood(server.port, addresses=CONNECTIONS) as answered:
            many, of_many = serve(server.port, phases[4]), answered()
    calm = before.ms + between.ms
    rival = "the same customers in peace", quantile(calm, 0.99)
    report(f"in peace: p50 {quantile(calm, 0.5):.2f} ms, p99 {rival[1]:.2f} ms")
    for name, served, flooded in (("one address", one, of_one), (f"{CONNECTIONS} addresses", many, of_many)):
        yield figure(
            f"customers' p99 beside {CONNECTIONS} connections without a valid key at {name}",
            quantile(served.ms, 0.99),
            "ms",
            rival=rival,
            target=MAX_RATIO,
            detail={
                "requests": len(served.ms),
                "p50": quantile(served.ms, 0.5),
                "calm_p50": quantile(calm, 0.5),
                **{f"unauthenticated_{status}": number for status, number in flooded.items()},
            },
        )
        yield figure(f"customers' requests that failed beside {name}", served.failed, "requests", target=NONE)
    failed = before.failed + between.failed
    yield figure("customers' requests that failed in peace", failed, "requests", target=NONE)


class Served(NamedTuple):
    """Milliseconds of customers' requests, each from when it was due, and how many were not answered with 200."""

    ms: list[float]
    failed: int


def customers(url: str, phase: int) -> list[bytes]:
    """Return the requests of new customers, whose leases of credits end after ten requests."""
    with connect(url, name="presage bench") as conn:
        made = [keys.create(conn, f"{phase}-{number}@example.com", "bench", "pro") for number in range(KEYS)]
        conn.execute("update api_keys set credits_burst = 1000000, credits_month = 10000")
    return [request("GET", PATH, {"X-API-Key": key}) for key in made]


def serve(port: int, requests: list[bytes]) -> Served:
    """Send customers' requests at their times."""
    client, times, failed = LoadClient(port), [], 0
    began = time.perf_counter()
    try:
        for number in range(int(PHASE_S / INTERVAL_S)):
            due = began + number * INTERVAL_S
            if (early := due - time.perf_counter()) > 0:
                time.sleep(early)
            answer = client.ask(requests[number % len(requests)])
            failed += answer.status != 200
            times.append((time.perf_counter() - due) * 1000)
    finally:
        client.close()
    return Served(times, failed)


@contextmanager
def flood(port: int, addresses: int) -> Iterator[Callable[[], dict[int, int]]]:
    """Flood the server during the block, from a process of its own; yields a function that counts answers by status."""
    context = multiprocessing.get_context("spawn")
    stop, answered = context.Event(), context.Array("q", 600, lock=False)
    process = context.Process(target=attack, args=[port, addresses, stop, answered], daemon=True)
    process.start()
    try:
        time.sleep(SETTLING_S)
        yield lambda: {status: number for status, number in enumerate(answered) if number}
        if not process.is_alive():
            raise RuntimeError("the flood has ended")
    finally:
        stop.set()
        process.join()


def attack(port: int, addresses: int, stop: Event, answered: MutableSequence[int]) -> None:
    """Send unknown keys and registrations over all connections, as fast as they are answered."""
    with ExitStack() as stack, selectors.DefaultSelector() as selector:
        for number in range(CONNECTIONS):
            client = stack.enter_context(closing(LoadClient(port, f"127.0.{number % addresses}.1")))
            selector.register(client.socket, selectors.EVENT_READ, client)
            client.send(unwanted())
        while not stop.is_set():
            for key, _ in selector.select(0.1):
                if key.data.receive():
                    answered[key.data.status] += 1
                    key.data.send(unwanted())


def unwanted() -> bytes:
    """Return a request with an unknown key, or a registration."""
    if secrets.randbits(1):
        return request("GET", PATH, {"X-API-Key": keys.PREFIX + secrets.token_urlsafe(32)})
    body = msgspec.json.encode({"app_name": "bot", "email": f"{secrets.token_hex(8)}@example.com"})
    return request("POST", "/register", {"Content-Type": "application/json"}, body)
