"""Clients that listen while events are written: what they heard, how soon, and what it cost the server."""

from __future__ import annotations

import array
import bisect
import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING, NamedTuple

from benchmarks.stream.writer import MESSAGE
from cli.stack.plan import ROOT

if TYPE_CHECKING:
    from pathlib import Path

    from benchmarks.database import Bench

RATE = 5000  # events a second
SAMPLED = 10  # of the clients
WARM_UP_S, MEASURED_S = 3.0, 15.0
TICKS = os.sysconf("SC_CLK_TCK")


class Load(NamedTuple):
    """What happened while clients listened."""

    delivered: float  # messages a second, to all together
    cpu: float  # of the server, in cores
    waited: float  # seconds a second in which the server had something to do and no core to do it
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


def listened(bench: Bench, server: int, port: int, path: str, *, clients: int, rival: bool = False) -> Load:
    """Have clients listen while events are written, or a rival makes them up."""
    heard, written = bench.folder / "heard", bench.folder / "written"
    written.write_bytes(b"")
    arguments = [str(port), path, str(clients), str(min(SAMPLED, clients)), str(heard)]
    until_open(port)
    crowd = subprocess.Popen(
        [sys.executable, "-m", "benchmarks.stream.listeners", *arguments],
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
                "benchmarks.stream.writer",
                bench.url,
                str(RATE),
                str(seconds),
                str(written),
            ]
            writer = subprocess.Popen(writing, cwd=ROOT)
        time.sleep(WARM_UP_S)
        before, began = asked(crowd), time.monotonic()
        cpu, waited = cpu_s(server), waited_s(server)
        time.sleep(MEASURED_S)
        after, took = asked(crowd), time.monotonic() - began
        cpu, waited = cpu_s(server) - cpu, waited_s(server) - waited
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
        cpu=cpu / took,
        waited=waited / took,
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


def asked(crowd: subprocess.Popen[bytes]) -> dict[str, int]:
    """Ask the clients what they have heard so far."""
    assert crowd.stdin is not None
    assert crowd.stdout is not None
    crowd.stdin.write(b"\n")
    crowd.stdin.flush()
    return dict(json.loads(crowd.stdout.readline()))


def drained(crowd: subprocess.Popen[bytes], still_s: float = 3.0) -> None:
    """Wait until nothing more comes."""
    heard, since = asked(crowd), time.monotonic()
    while time.monotonic() - since < still_s:
        time.sleep(0.5)
        if (now := asked(crowd)) != heard:
            heard, since = now, time.monotonic()


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


def waited_s(pid: int) -> float:
    """Read how long a process, its first thread, has had to wait for a core."""
    with open(f"/proc/{pid}/schedstat") as file:  # noqa: PTH123
        return int(file.read().split()[1]) / 1e9


def children(pid: int) -> list[int]:
    """Give the processes that a process has started."""
    with open(f"/proc/{pid}/task/{pid}/children") as file:  # noqa: PTH123
        return [int(each) for each in file.read().split()]
