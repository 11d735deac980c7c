"""A running `presage demo`, seen from outside: its processes, leases and the beat of its commits."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any, NamedTuple

import psycopg

from cli.stack import guard
from cli.stack.readiness import fetch
from sql.embedded import Cluster

ROOT = Path(__file__).parents[2]


class Lease(NamedTuple):
    """A live run."""

    run_id: str
    role: str
    ready: bool
    pid: int
    silent_s: float


class Running:
    """Starts a demo and knows how to look into it."""

    def __init__(self, data_dir: Path, *options: str, **environment: str) -> None:
        self.data_dir = data_dir
        self.truth = data_dir / "truth.jsonl"
        self.json = data_dir / "out.json"
        data_dir.mkdir(parents=True, exist_ok=True)
        self.output = (data_dir / "output").open("w+")
        self.process = subprocess.Popen(
            [
                *(sys.executable, "-m", "cli.main", "demo", "--fresh", "--backfill", "0"),
                *("--json", str(self.json), "--truth", str(self.truth)),
                *options,
            ],
            stdout=self.output,
            stderr=subprocess.STDOUT,
            cwd=ROOT,
            env={
                **{name: value for name, value in os.environ.items() if name != "DATABASE_URL"},
                "PRESAGE_DATA_DIR": str(data_dir),
                **environment,
            },
        )

    def said(self) -> str:
        return (self.data_dir / "output").read_text()

    def told(self) -> dict[str, Any]:
        """What the demo's own JSON says by now."""
        return json.loads(self.json.read_text()) if self.json.exists() else {}

    def running(self) -> dict[str, Any]:
        return json.loads((self.data_dir / "running.json").read_text())

    def pid(self, service: str) -> int:
        return int(self.running()["services"][service]["pid"])

    def connect(self) -> psycopg.Connection[Any]:
        return psycopg.connect(self.running()["database_url"], autocommit=True, connect_timeout=2)

    def leases(self) -> list[Lease]:
        """Live runs with a recent sign of life; none while the database is away."""
        try:
            with self.connect() as conn:
                rows = conn.execute(
                    """select run_id, role, ready, pid, extract(epoch from now() - beat_at)::float8 from feed_leases
                    where feed = 'polymarket' and role <> 'gone' and beat_at > now() - interval '5 s'"""
                ).fetchall()
        except psycopg.Error:
            return []
        return [Lease(*row) for row in rows]

    def lease(self, role: str) -> Lease:
        return next(lease for lease in self.leases() if lease.role == role)

    def whole(self) -> bool:
        """Say whether a leader and a ready standby are there, and every service runs."""
        leases = [lease for lease in self.leases() if guard.alive(lease.pid)]
        roles = sorted(lease.role for lease in leases if lease.ready)
        services = self.running()["services"].values()
        return roles == ["leader", "standby"] and len(leases) == 2 and all(s["state"] == "up" for s in services)

    def wait_until(self, what: Any, within_s: float) -> float:
        """Wait, and say how long it took."""
        began = time.monotonic()
        while not what():
            assert self.process.poll() is None, f"the demo ended:\n{self.said()}"
            assert time.monotonic() - began < within_s, f"not within {within_s} s:\n{self.said()[-4000:]}"
            time.sleep(0.1)
        return time.monotonic() - began

    def graphql(self, query: str, **variables: Any) -> Any:
        url = f"{self.told()['urls']['dagster']}/graphql"
        return (fetch(url, body={"query": query, "variables": variables}) or {}).get("data")

    def exchange(self) -> dict[str, Any]:
        """What the sandbox says of itself."""
        api = self.told()["urls"]["api"]
        port = int(api.rpartition(":")[2]) + 1
        return fetch(f"http://127.0.0.1:{port}/sandbox/status")

    def stop(self) -> int:
        self.process.terminate()
        try:
            return self.process.wait(timeout=60)
        finally:
            self.process.kill()
            self.output.close()

    def erase(self) -> None:
        """Forget the data; what the demo wrote beside it stays until pytest clears it away."""
        Cluster(self.data_dir / "database").erase()


class Pulse(threading.Thread):
    """Watches the stream's head as a subscriber would, and notes when it moved."""

    def __init__(self, running: Running) -> None:
        super().__init__(daemon=True)
        self.running = running
        self.beats: list[float] = []
        self._enough = threading.Event()

    def run(self) -> None:
        head = -1
        while not self._enough.is_set():
            try:
                with self.running.connect() as conn:
                    while not self._enough.wait(0.03):
                        found = conn.execute("select last_seq from stream_head").fetchone()
                        if found and found[0] != head:
                            head = found[0]
                            self.beats.append(time.monotonic())
            except (psycopg.Error, OSError, KeyError):
                self._enough.wait(0.03)

    def longest_pause(self, since: float) -> float:
        """The longest time without a commit, from an instant on until now."""
        beats = [since, *(beat for beat in self.beats if beat > since), time.monotonic()]
        return max(later - earlier for earlier, later in itertools.pairwise(beats))

    def stop(self) -> None:
        self._enough.set()
        if self.is_alive():
            self.join(timeout=10)
