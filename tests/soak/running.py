"""Runs `presage demo` and observes it from outside: processes, leases and commits."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import psycopg

from cli.stack.ports import Ports
from cli.stack.processes import guard
from cli.stack.readiness import fetch
from config import tunables
from orchestration.feeds.shards import Shard
from sql.embedded import Cluster, cluster

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

ROOT = Path(__file__).parents[2]
PROGRAMS_STOP_S = 60  # their own limits add up to less
SANDBOXES = {"polymarket": "sandbox", "kalshi": "kalshi"}  # by exchange: its port's name


class LiveLease(NamedTuple):
    """The lease of a live run."""

    feed: str
    run_id: str
    role: str
    ready: bool
    pid: int
    silent_s: float

    @property
    def exchange(self) -> str:
        """The exchange of its feed."""
        return self.feed.partition("/")[0]


class RunningDemo:
    """Starts a demo and inspects it."""

    def __init__(
        self, data_dir: Path, *options: str, exchanges: Sequence[str] = ("polymarket",), **environment: str
    ) -> None:
        self.data_dir = data_dir
        self.exchanges = exchanges
        self.shards = int(environment.setdefault("PRESAGE_LIVE_SHARDS", "1"))  # that the live feed is to have
        self.truth = data_dir / "truth.jsonl"
        self.json = data_dir / "out.json"
        data_dir.mkdir(parents=True, exist_ok=True)
        self.output = (data_dir / "output").open("w+")
        self.process = subprocess.Popen(
            [
                *(sys.executable, "-m", "cli.main", "demo", "--fresh", "--backfill", "0"),
                *("--json", str(self.json), "--truth", str(self.truth), "--exchanges", ",".join(exchanges)),
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

    def log_text(self) -> str:
        return (self.data_dir / "output").read_text()

    def output_json(self) -> dict[str, Any]:
        """Return the demo's current JSON output."""
        return json.loads(self.json.read_text()) if self.json.exists() else {}

    def running(self) -> dict[str, Any]:
        return json.loads((self.data_dir / "running.json").read_text())

    def pid(self, service: str) -> int:
        return int(self.running()["services"][service]["pid"])

    def connect(self) -> psycopg.Connection[Any]:
        return psycopg.connect(self.running()["database_url"], autocommit=True, connect_timeout=2)

    def leases(self) -> list[LiveLease]:
        """Return leases touched recently; none while the database is unavailable."""
        try:
            with self.connect() as conn:
                rows = conn.execute(
                    """select feed, run_id, role, ready, pid, extract(epoch from now() - beat_at)::float8
                    from feed_leases
                    where split_part(feed, '/', 1) = any(%s) and role <> 'gone' and beat_at > now() - interval '5 s'""",
                    [list(self.exchanges)],
                ).fetchall()
        except psycopg.Error:
            return []
        return [LiveLease(*row) for row in rows]

    def lease(self, role: str, exchange: str = "polymarket") -> LiveLease:
        return next(lease for lease in self.leases() if (lease.role, lease.exchange) == (role, exchange))

    def committed_ms(self, exchange: str = "polymarket") -> int:
        """Return the exchange's time up to which every shard's leader has committed."""
        with self.connect() as conn:
            (written_ms,) = conn.execute(
                """select min((detail ->> 'written_ms')::bigint) from feed_leases
                where split_part(feed, '/', 1) = %s and role = 'leader' and beat_at > now() - interval '5 s'""",
                [exchange],
            ).fetchone()
        return written_ms or 0

    def whole(self) -> bool:
        """Return whether each shard has a leader and a ready standby, no other run exists, and every service runs."""
        leases = [lease for lease in self.leases() if guard.alive(lease.pid)]
        ready = sorted((lease.feed, lease.role) for lease in leases if lease.ready)
        expected = sorted(
            (shard.feed(exchange), role)
            for exchange in self.exchanges
            for shard in Shard.all(self.shards)
            for role in ("leader", "standby")
        )
        services = self.running()["services"].values()
        return ready == expected and len(leases) == len(expected) and all(s["state"] == "up" for s in services)

    def want_shards(self, shards: int) -> None:
        """Change the number of shards, as `presage set live_shards` does."""
        self.shards = shards
        with self.connect() as conn:
            tunables.set_(conn, "live_shards", str(shards))

    def wait_until(self, what: Any, within_s: float) -> float:
        """Wait for a condition; return the seconds it took."""
        began = time.monotonic()
        while not what():
            assert self.process.poll() is None, f"the demo ended:\n{self.log_text()}"
            assert time.monotonic() - began < within_s, f"not within {within_s} s:\n{self.log_text()[-4000:]}"
            time.sleep(0.25)  # most conditions connect to the database
        return time.monotonic() - began

    def graphql(self, query: str, **variables: Any) -> Any:
        url = f"{self.output_json()['urls']['dagster']}/graphql"
        password = (self.data_dir / "dagster.password").read_text()
        return (fetch(url, password=password, body={"query": query, "variables": variables}) or {}).get("data")

    def exchange(self, name: str = "polymarket") -> dict[str, Any]:
        """Return the status of an exchange's sandbox."""
        ports = Ports.of(int(self.output_json()["urls"]["api"].rpartition(":")[2]))
        return fetch(f"http://127.0.0.1:{getattr(ports, SANDBOXES[name])}/sandbox/status")

    def stop(self) -> int:
        """Stop the demo; return its exit status. Raises AssertionError, with what it still ran, if it takes too long.

        Its last act is the database's checkpoint, which lasts as long as the disk needs.
        """
        self.process.terminate()
        try:
            return self.process.wait(timeout=PROGRAMS_STOP_S + cluster.STOP_S)
        except subprocess.TimeoutExpired:
            left = [
                "ps",
                "-o",
                "pid,ppid,stat,wchan:20,etimes,args",
                "-p",
                _listed(guard.descendants(self.process.pid)),
            ]
            found = subprocess.run(left, stdout=subprocess.PIPE, text=True, check=False).stdout
            raise AssertionError(f"the demo does not end:\n{self.log_text()[-4000:]}\n{found}") from None
        finally:
            self.process.kill()
            self.output.close()

    def erase(self) -> None:
        """Delete the database; the demo's other files stay until pytest removes them."""
        Cluster(self.data_dir / "database").erase()


def _listed(pids: Iterable[int]) -> str:
    return ",".join(map(str, sorted(pids))) or "0"


class CommitWatcher(threading.Thread):
    """Polls the stream's head as a subscriber would, and records when it moved."""

    def __init__(self, running: RunningDemo) -> None:
        super().__init__(daemon=True)
        self.running = running
        self.commits: list[float] = []
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
                            self.commits.append(time.monotonic())
            except (psycopg.Error, OSError, KeyError):
                self._enough.wait(0.03)

    def longest_pause(self, since: float) -> float:
        """Return the longest time without a commit since an instant."""
        commits = [since, *(commit for commit in self.commits if commit > since), time.monotonic()]
        return max(later - earlier for earlier, later in itertools.pairwise(commits))

    def stop(self) -> None:
        self._enough.set()
        if self.is_alive():
            self.join(timeout=10)
