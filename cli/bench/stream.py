"""The stream under load: from commit to client, fan-out, a resume, stalled clients; beside bare broadcasts."""

from __future__ import annotations

import array
import bisect
import contextlib
import json
import os
import resource
import signal
import statistics
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any, NamedTuple

from cli.bench.database import fresh
from cli.bench.figures import Target, figure
from cli.bench.harness import slope
from cli.bench.stream_writer import MESSAGE
from cli.bench.sustained import resident_mb, thinned
from cli.plan import ROOT
from cli.ports import choose
from cli.processes import Program, Supervisor
from cli.readiness import answers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from cli.bench.database import Bench
    from cli.bench.figures import Figure
    from cli.bench.harness import Options

RATE = 5000  # events a second
CLIENTS = 1000
SAMPLED = 10  # of them
WARM_UP_S, MEASURED_S = 3.0, 15.0
RESUMED = 10_000
STALLED = 50
STALL_S = 20.0
TICKS = os.sysconf("SC_CLK_TCK")


class Load(NamedTuple):
    """What happened while clients listened."""

    delivered: float  # messages a second, to all together
    cpu: float  # of the server, in cores
    latencies_ms: list[float]  # from commit to client, sorted
    even: bool  # whether all clients heard the same
    closed: int

    def quantile(self, share: float) -> float:
        """Give a latency that so many stay below."""
        return self.latencies_ms[int(share * (len(self.latencies_ms) - 1))] if self.latencies_ms else float("inf")

    @property
    def per_core(self) -> float:
        """Messages delivered by a second of the server's CPU."""
        return self.delivered / self.cpu if self.cpu else 0.0


def run(options: Options, report: Callable[[str], None]) -> Iterator[Figure]:
    """Measure us, then the rivals, with the same clients."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 65_536), hard))
    try:
        with fresh(report) as bench:
            crowd = yield from ours(bench, options, report)
            yield from beside(bench, crowd, report)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def ours(bench: Bench, options: Options, report: Callable[[str], None]) -> Any:
    """Measure one worker; gives what it did for the thousand."""
    from cli import key
    from sql.database import connect

    port = choose(None).api
    token = key.create(bench.url, "bench@example.com", "bench", "enterprise")
    path = f"/stream?api_key={token}"
    api = Program(
        "api",
        [sys.executable, "-m", "gunicorn", "-c", "python:api.gunicorn_conf", "api.app:app"],
        bench.folder / "api.log",
        environment={"DATABASE_URL": bench.url, "PRESAGE_API_PORT": str(port), "PRESAGE_API_WORKERS": "1"},
        directory=ROOT,
        is_ready=lambda: answers(f"http://127.0.0.1:{port}/health"),
    )
    with Supervisor(report, restart=False) as supervisor, connect(bench.url, autocommit=True) as conn:
        supervisor.start(api)
        supervisor.wait("api")
        worker = children(api.pid or 0)[0]
        alone = listened(bench, worker, port, path, clients=1)
        report(f"1 client: p50 {alone.quantile(0.5):.1f} ms, p99 {alone.quantile(0.99):.1f} ms")
        yield figure("commit to client p50, 1 client", alone.quantile(0.5), "ms", target=Target("value", "<", 10))
        yield figure("commit to client p99, 1 client", alone.quantile(0.99), "ms", target=Target("value", "<", 30))
        yield figure("worker's CPU, 1 client", alone.cpu, "cores")

        crowd = listened(bench, worker, port, path, clients=CLIENTS)
        report(f"{CLIENTS} clients: {crowd.delivered:,.0f} messages/s, {crowd.cpu:.2f} cores")
        if crowd.closed or not crowd.even:
            raise RuntimeError(f"{crowd.closed} clients were closed; all heard the same: {crowd.even}")
        yield figure(f"commit to client p50, {CLIENTS} clients", crowd.quantile(0.5), "ms")
        yield figure(f"commit to client p99, {CLIENTS} clients", crowd.quantile(0.99), "ms")
        target = Target("value", ">=", 500_000)
        yield figure(f"delivered to {CLIENTS} clients by one worker", crowd.delivered, "messages/s", target=target)
        yield figure(f"worker's CPU, {CLIENTS} clients", crowd.cpu, "cores", target=Target("value", "<", 0.7))
        yield figure("worker's memory after it", resident_mb(worker), "MB")

        head = conn.execute("select last_seq from stream_head").fetchone()
        took = statistics.median(resumed(port, path, after=head[0] - RESUMED) for _ in range(options.repetitions))  # type: ignore[index]
        yield figure(f"resume of {RESUMED:,} messages", took * 1000, "ms", target=Target("value", "<", 250))
        yield from stalled(bench, worker, port, path, seconds=options.seconds, report=report)
    return crowd


def beside(bench: Bench, crowd: Load, report: Callable[[str], None]) -> Iterator[Figure]:
    """Measure the rivals, and say how they compare in messages for a second of CPU."""
    names = {
        ("gevent", "each"): "bare gevent-websocket loop, a frame an event",
        ("gevent", "lines"): "bare gevent-websocket loop, frames of many lines",
        ("websockets", "each"): "websockets.broadcast, a frame an event",
        ("websockets", "lines"): "websockets.broadcast, frames of many lines",
    }
    for (library, frames), name in names.items():
        port = choose(None).api
        arguments = [sys.executable, "-m", "cli.bench.stream_rivals", library, str(port), str(RATE), frames]
        process = subprocess.Popen(arguments, cwd=ROOT, stderr=subprocess.DEVNULL)
        try:
            theirs = listened(bench, process.pid, port, "/", clients=CLIENTS, rival=True)
        finally:
            process.kill()
            process.wait()
        report(f"{name}: {theirs.delivered:,.0f} messages/s, {theirs.cpu:.2f} cores")
        yield figure(f"delivered to {CLIENTS} clients", crowd.delivered, "messages/s", rival=(name, theirs.delivered))
        yield figure("messages for a second of CPU", crowd.per_core, "messages", rival=(name, theirs.per_core))


def listened(bench: Bench, server: int, port: int, path: str, *, clients: int, rival: bool = False) -> Load:
    """Have clients listen while events are written, or a rival makes them up."""
    heard, written = bench.folder / "heard", bench.folder / "written"
    written.write_bytes(b"")
    arguments = [str(port), path, str(clients), str(min(SAMPLED, clients)), str(heard)]
    until_open(port)
    crowd = subprocess.Popen(
        [sys.executable, "-m", "cli.bench.stream_listeners", *arguments],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert crowd.stdin is not None
    assert crowd.stdout is not None
    writer = None
    try:
        if crowd.stdout.readline() != b"ready\n":
            raise RuntimeError("the clients were not let in")
        time.sleep(1.0)
        if rival:
            os.kill(server, signal.SIGUSR1)
        else:
            seconds = WARM_UP_S + MEASURED_S + 1
            writing = [
                sys.executable,
                "-m",
                "cli.bench.stream_writer",
                bench.url,
                str(RATE),
                str(seconds),
                str(written),
            ]
            writer = subprocess.Popen(writing, cwd=ROOT)
        time.sleep(WARM_UP_S)
        before, cpu, began = asked(crowd), cpu_s(server), time.monotonic()
        time.sleep(MEASURED_S)
        after, used, took = asked(crowd), cpu_s(server) - cpu, time.monotonic() - began
        if writer is not None:
            writer.wait(timeout=60)
            drained(crowd)
        crowd.stdin.close()
        told = json.loads(crowd.stdout.readline())
        crowd.wait(timeout=60)
    finally:
        for process in (crowd, writer):
            if process is not None:
                process.kill()
                process.wait()
        crowd.stdout.close()
    size = after["payload"] + after["frames"] - before["payload"] - before["frames"]
    return Load(
        delivered=size / (MESSAGE + 1) / took,
        cpu=used / took,
        latencies_ms=latencies(written, heard, began),
        even=told["least"] > 0 and told["most"] - told["least"] < 1000,  # but for the greeting
        closed=told["closed"],
    )


def latencies(written: Path, heard: Path, since: float) -> list[float]:
    """Give for every commit and sampled client how long it took to hear of it, in milliseconds, sorted."""
    commits = pairs(written.read_bytes())
    found = []
    data = heard.read_bytes()
    while data:
        size = int.from_bytes(data[:8], "little") * 8
        samples, data = pairs(data[8 : 8 + size]), data[8 + size :]
        seqs = [seq for seq, _ in samples]
        for seq, at in commits:
            place = bisect.bisect_left(seqs, seq)
            if place < len(samples) and since * 1e9 <= at <= (since + MEASURED_S) * 1e9:
                found.append(max(0, samples[place][1] - at) / 1e6)
    return sorted(found)


def pairs(data: bytes) -> list[tuple[int, int]]:
    """Read numbers of events with their instants."""
    numbers = array.array("q")
    numbers.frombytes(data)
    return list(zip(numbers[::2], numbers[1::2], strict=True))


def resumed(port: int, path: str, after: int) -> float:
    """Give the seconds from the handshake to the end of a replay."""
    from websockets.sync.client import connect

    began = time.monotonic()
    with connect(f"ws://127.0.0.1:{port}{path}&resume_from={after}", compression=None) as socket:
        messages = 0
        while '"type":"replay_completed"' not in (text := str(socket.recv(30))):
            messages += text.count("\n") + 1
        took = time.monotonic() - began
    if messages < RESUMED:
        raise RuntimeError(f"{messages} messages replayed")
    return took


def stalled(
    bench: Bench, worker: int, port: int, path: str, *, seconds: float, report: Callable[[str], None]
) -> Iterator[Figure]:
    """Watch the worker's memory while clients connect and read nothing, and are let go, and come again."""
    from cli.bench.stream_listeners import Listener

    arguments = [bench.url, str(RATE), str(seconds), str(bench.folder / "written")]
    writer = subprocess.Popen([sys.executable, "-m", "cli.bench.stream_writer", *arguments], cwd=ROOT)
    deaf = [Listener(port, path) for _ in range(STALLED)]
    memory: list[tuple[float, float]] = []
    came_again = 0
    began = time.monotonic()
    try:
        while writer.poll() is None:
            time.sleep(1)
            memory.append(((time.monotonic() - began) / 60, resident_mb(worker)))
            # The server lets each go after some seconds. Who reads nothing does not see that: they come by the clock.
            while came_again < (time.monotonic() - began - STALL_S) * STALLED / STALL_S:
                deaf[came_again % STALLED].socket.close()
                deaf[came_again % STALLED] = Listener(port, path)
                came_again += 1
            if len(memory) % 60 == 0:
                report(f"{len(memory)} s with {STALLED} stalled clients: {memory[-1][1]:.0f} MB")
    finally:
        writer.kill()
        writer.wait()
        for one in deaf:
            one.socket.close()
    shown = [each for each in memory if each[0] * 60 >= min(60.0, seconds / 2)]
    report(f"stalled clients were let go and came again {came_again} times")
    yield figure(f"worker's memory with {STALLED} stalled clients", memory[-1][1], "MB")
    yield figure("growth of it", slope(thinned(shown)), "MB/min", target=Target("value", "<", 1.0))


def asked(crowd: subprocess.Popen[bytes]) -> dict[str, int]:
    """Ask the clients what they have heard so far."""
    assert crowd.stdin is not None
    assert crowd.stdout is not None
    crowd.stdin.write(b"\n")
    crowd.stdin.flush()
    return dict(json.loads(crowd.stdout.readline()))


def drained(crowd: subprocess.Popen[bytes]) -> None:
    """Wait until nothing more comes."""
    heard: dict[str, int] = {}
    now = asked(crowd)
    while heard != now:
        time.sleep(1.0)
        heard, now = now, asked(crowd)


def until_open(port: int) -> None:
    """Wait until something listens."""
    import socket

    for _ in range(200):
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return
        time.sleep(0.05)
    raise RuntimeError(f"nothing listens on {port}")


def cpu_s(pid: int) -> float:
    """Read how much CPU a process has had."""
    with open(f"/proc/{pid}/stat") as file:  # noqa: PTH123 (no path of anything)
        fields = file.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def children(pid: int) -> list[int]:
    """Give the processes that a process has started."""
    with open(f"/proc/{pid}/task/{pid}/children") as file:  # noqa: PTH123
        return [int(each) for each in file.read().split()]
