"""Stream benchmark: commit to client, fan-out, a resume, stalled clients; beside bare broadcasts."""

from __future__ import annotations

import contextlib
import json
import os
import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from benchmarks import document
from benchmarks.database import fresh
from benchmarks.figures import Target, figure
from benchmarks.harness import slope
from benchmarks.processes import resident_mb
from benchmarks.served import api
from benchmarks.stream import blocks
from benchmarks.stream.load import RATE, Load, children, listened, until_open
from cli.stack.plan import ROOT
from cli.stack.ports import choose
from cli.stack.processes.supervisor import Supervisor

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from benchmarks.database import Bench
    from benchmarks.figures import Figure
    from benchmarks.harness import Options

CLIENTS = 1000
RESUMED = 10_000
STALLED = 50
STALL_S = 20.0
WARM_S = 300.0  # until the resume buffer has reached its limit
SOON = (Target("value", "<", 10), Target("value", "<", 30))  # p50 and p99, in milliseconds


def run(options: Options, report: Callable[[str], None]) -> Iterator[Figure]:
    """Run all measurements, and write the document if requested."""
    load = os.getloadavg()
    figures: list[Figure] = []
    for each in measured(options, report):
        figures.append(each)
        yield each
    if options.markdown is not None:
        document.write(options.markdown, "stream", figures, load)


def measured(options: Options, report: Callable[[str], None]) -> Iterator[Figure]:
    """Measure our blocks, our server, then the rivals, with the same clients."""
    yield from blocks.run()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 65_536), hard))
    try:
        with fresh(report) as bench:
            crowd = yield from ours(bench, options, report)
            yield from compared(bench, crowd, report)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def ours(bench: Bench, options: Options, report: Callable[[str], None]) -> Any:
    """Measure one worker; return its load with a thousand clients."""
    from sql.database import connect

    program, port, path = api(bench)
    with Supervisor(report, restart=False) as supervisor, connect(bench.url, autocommit=True) as conn:
        supervisor.start(program)
        supervisor.wait(program.name)
        worker = children(program.pid or 0)[0]
        for clients in (1, 100):
            few = listened(bench, worker, port, path, clients=clients)
            label = "1 client" if clients == 1 else f"{clients} clients"
            report(f"{label}: p50 {few.quantile(0.5):.1f} ms, p99 {few.quantile(0.99):.1f} ms")
            for share, target in zip((0.5, 0.99), SOON, strict=True):
                name = f"commit to client p{share * 100:.0f}, {label}, {RATE:,} events/s"
                yield figure(name, few.quantile(share), "ms", target=target)
            yield figure(f"worker's CPU, {label}", few.cpu, "cores")

        crowd = listened(bench, worker, port, path, clients=CLIENTS)
        report(f"{CLIENTS} clients: {crowd.delivered:,.0f} messages/s, {crowd.cpu:.2f} cores")
        if crowd.closed or not crowd.even:
            raise RuntimeError(f"{crowd.closed} clients were closed; all received the same: {crowd.even}")
        yield figure(f"commit to client p50, {CLIENTS} clients", crowd.quantile(0.5), "ms")
        yield figure(f"commit to client p99, {CLIENTS} clients", crowd.quantile(0.99), "ms")
        most = Target("value", ">=", 500_000)
        yield figure(f"delivered to {CLIENTS} clients by one worker", crowd.delivered, "messages/s", target=most)
        yield figure(f"worker's CPU, {CLIENTS} clients", crowd.cpu, "cores", target=Target("value", "<", 0.7))
        yield figure(f"worker's memory after {CLIENTS} clients", resident_mb(worker), "MB")

        head = conn.execute("select last_seq from stream_head").fetchone()
        parts = [head[0] - RESUMED * (number + 1) for number in range(options.repetitions)]  # type: ignore[index]
        took = statistics.median([resumed(port, path, after) for after in parts])  # all read from the database
        yield figure(f"resume of {RESUMED:,} messages", took * 1000, "ms", target=Target("value", "<", 250))
        took = statistics.median([resumed(port, path, parts[0]) for _ in range(options.repetitions)])
        yield figure("the same messages again, as to clients that resume together", took * 1000, "ms")
        yield from beside_hostile_clients(bench, worker, port, path, report)
        yield from stalled(bench, worker, port, path, seconds=options.seconds, report=report)
    return crowd


def compared(bench: Bench, crowd: Load, report: Callable[[str], None]) -> Iterator[Figure]:
    """Measure the rivals, and compare messages per second of CPU."""
    names = {
        ("gevent", "each"): "bare gevent-websocket loop, one event per frame",
        ("gevent", "lines"): "bare gevent-websocket loop, many events per frame",
        ("websockets", "each"): "websockets.broadcast, one event per frame",
        ("websockets", "lines"): "websockets.broadcast, many events per frame",
    }
    for (library, frames), name in names.items():
        port = choose(None).api
        arguments = [sys.executable, "-m", "benchmarks.stream.rivals", library, str(port), str(RATE), frames]
        process = subprocess.Popen(arguments, cwd=ROOT, stderr=subprocess.DEVNULL)
        try:
            theirs = listened(bench, process.pid, port, "/", clients=CLIENTS, rival=True)
        finally:
            process.kill()
            process.wait()
        report(f"{name}: {theirs.delivered:,.0f} messages/s, {theirs.cpu:.2f} cores")
        yield figure(f"delivered to {CLIENTS} clients", crowd.delivered, "messages/s", rival=(name, theirs.delivered))
        yield figure("messages per second of CPU", crowd.per_core, "messages", rival=(name, theirs.per_core))


def resumed(port: int, path: str, after: int) -> float:
    """Return the seconds from the handshake until `RESUMED` messages were replayed."""
    from websockets.sync.client import connect

    began, messages = time.monotonic(), 0
    with connect(f"ws://127.0.0.1:{port}{path}&resume_from={after}", compression=None) as socket:
        while messages < RESUMED:
            messages += str(socket.recv(30)).count('"data":')
        return time.monotonic() - began


class Interference(NamedTuple):
    """Clients' load without hostile clients, with those at another server, and with those at ours."""

    calm: Load
    elsewhere: Load
    during: Load
    times: dict[str, int]  # attempts by kind

    @property
    def baseline_ms(self) -> float:
        """Return the p99 on an equally busy machine, excluding delays of the server itself."""
        return max(self.calm.quantile(0.99), self.elsewhere.quantile(0.99))


def beside_hostile_clients(
    bench: Bench, worker: int, port: int, path: str, report: Callable[[str], None]
) -> Iterator[Figure]:
    """Measure the effect of hostile clients on others."""
    measured = measure_hostile_clients(bench, worker, port, path)
    waited = f"{measured.calm.waited:.3f}, {measured.elsewhere.waited:.3f} and {measured.during.waited:.3f}"
    report(f"hostile clients: {measured.times}; seconds per second in which the worker waited for a core: {waited}")
    for share, name in ((0.5, "p50"), (0.99, "p99")):
        value = measured.during.quantile(share)
        rivals = {"without them": measured.calm, "with them at a bare server": measured.elsewhere}
        for number, (rival, load) in enumerate(rivals.items()):
            target = Target("ratio", "<=", 1.5) if name == "p99" and not number else None
            yield figure(
                f"commit to client {name} beside hostile clients",
                value,
                "ms",
                rival=(rival, load.quantile(share)),
                target=target,
            )
    yield figure("worker's peak memory until then", peak_mb(worker), "MB")


def measure_hostile_clients(bench: Bench, worker: int, port: int, path: str, *kinds: str) -> Interference:
    """Listen without hostile clients, with them at a bare server on the same machine, and with them at ours."""

    def listen() -> Load:
        return listened(bench, worker, port, path, clients=10)

    calm = listen()
    other = choose(None).api
    rival = [sys.executable, "-m", "benchmarks.stream.rivals", "gevent", str(other), "0", "each"]
    with ended(subprocess.Popen(rival, cwd=ROOT, stderr=subprocess.DEVNULL)):
        until_open(other)
        elsewhere, _ = meanwhile(other, "/", kinds, listen)
    during, times = meanwhile(port, path, kinds, listen)
    return Interference(calm, elsewhere, during, times)


def meanwhile(port: int, path: str, kinds: tuple[str, ...], listen: Callable[[], Load]) -> tuple[Load, dict[str, int]]:
    """Listen while hostile clients are at a server; return the load and their attempts."""
    command = [sys.executable, "-m", "benchmarks.stream.hostile_clients", str(port), path, *kinds]
    with ended(subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE)) as process:
        assert process.stdout is not None
        if process.stdout.readline() != b"ready\n":
            raise RuntimeError("the hostile clients did not start")
        load = listen()
        output, _ = process.communicate(timeout=60)
    return load, json.loads(output)


@contextlib.contextmanager
def ended(process: subprocess.Popen[bytes]) -> Iterator[subprocess.Popen[bytes]]:
    """Terminate a program at the end of the block, if still running."""
    with process:
        try:
            yield process
        finally:
            process.kill()


def stalled(
    bench: Bench, worker: int, port: int, path: str, *, seconds: float, report: Callable[[str], None]
) -> Iterator[Figure]:
    """Track the worker's memory while clients connect, read nothing, are disconnected, and reconnect."""
    from benchmarks.stream.listeners import Listener

    arguments = [bench.url, str(RATE), str(seconds), str(bench.folder / "written")]
    writer = subprocess.Popen([sys.executable, "-m", "benchmarks.stream.writer", *arguments], cwd=ROOT)
    readers = [Listener(port, path) for _ in range(STALLED)]
    memory: list[tuple[float, float]] = []
    reconnects = 0
    began = time.monotonic()
    try:
        while writer.poll() is None:
            time.sleep(1)
            memory.append(((time.monotonic() - began) / 60, resident_mb(worker)))
            # The server disconnects each after some seconds. One that reads nothing never notices: reconnect by time.
            while reconnects < (time.monotonic() - began - STALL_S) * STALLED / STALL_S:
                readers[reconnects % STALLED].socket.close()
                readers[reconnects % STALLED] = Listener(port, path)
                reconnects += 1
            if len(memory) % 60 == 0:
                report(f"{len(memory)} s with {STALLED} stalled clients: {memory[-1][1]:.0f} MB")
    finally:
        writer.kill()
        writer.wait()
        for one in readers:
            one.socket.close()
    shown = [each for each in memory if each[0] * 60 >= min(WARM_S, seconds / 2)]
    report(f"stalled clients were disconnected and reconnected {reconnects} times")
    yield figure(f"worker's memory with {STALLED} stalled clients", memory[-1][1], "MB")
    yield figure(
        f"growth of that memory, over {seconds / 60:.0f} min",
        slope(shown),
        "MB/min",
        target=Target("value", "<", 1.0),
    )


def peak_mb(pid: int) -> float:
    """Return a process's peak memory."""
    with contextlib.suppress(StopIteration):
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
        return int(next(line for line in lines if line.startswith("VmHWM")).split()[1]) / 1024
    return 0.0
