"""Runs of the live feed: a leader and a standby for each shard, and what their leases say."""

from __future__ import annotations

import sys
import time
from collections import Counter
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from cli.stack.plan import ROOT
from cli.stack.processes.program import Program

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    import psycopg

RUNS = ("first", "second")  # of each shard: the product decides which of them leads
POLL_S = 0.5
LEASES = """
    select pid, role, ready, extract(epoch from beat_at)::float8, coalesce((detail ->> 'ready_for_s')::float8, 0),
           coalesce((detail ->> 'tokens')::int, 0), coalesce((detail ->> 'backlog_events')::int, 0),
           coalesce((detail ->> 'written_ms')::bigint, 0), coalesce((detail ->> 'newest_ms')::bigint, 0)
    from feed_leases where pid = any(%s)
"""


class Lease(NamedTuple):
    """A row of `feed_leases`: what a run reports of itself each second."""

    pid: int
    role: str
    ready: bool
    beat_at: float
    ready_for_s: float
    tokens: int
    backlog: int
    written_ms: int  # the exchange's time up to which everything is committed: behind by a connection's last message
    newest_ms: int  # the newest committed event's


class Feeds:
    """All runs of the feed."""

    def __init__(self, conn: psycopg.Connection[Any], shards: int, progress: Callable[[str], None]) -> None:
        self.programs: dict[tuple[int, str], Program] = {}
        self.seconds_to_ready: dict[str, float] = {}
        self.leases: dict[int, Lease] = {}
        self._shards = shards
        self._conn = conn
        self._progress = progress
        self._polled_at = 0.0

    def prepare(self, folder: Path, environment: Mapping[str, str], *, window_s: float, ready_within_s: float) -> None:
        """Make the programs; none is started."""
        several = {"PRESAGE_LIVE_SHARDS": str(self._shards)} if self._shards > 1 else {}
        for shard in range(self._shards):
            command = [sys.executable, "-m", "orchestration.ingest", "--window", str(window_s)]
            for run in RUNS:
                name = f"{run} run of shard {shard}"
                self.programs[shard, run] = Program(
                    name,
                    [*command, *(("--shard", f"{shard + 1}/{self._shards}") if several else ())],
                    folder / f"{name}.log",
                    environment={**environment, **several},
                    directory=ROOT,
                    is_ready=partial(self._is_ready, shard, run),
                    ready_within_s=ready_within_s,
                )

    @property
    def pids(self) -> list[int]:
        """The process ids of all runs that were started."""
        return [program.pid for program in self.programs.values() if program.pid is not None]

    def roles(self) -> dict[int, str]:
        """Return the role of each run by its process id."""
        return {pid: self.leases[pid].role if pid in self.leases else "standby" for pid in self.pids}

    def leaders(self) -> dict[int, Lease]:
        """Return the leaders' leases by shard."""
        return {
            shard: lease
            for (shard, _), program in self.programs.items()
            if (lease := self.leases.get(program.pid or 0)) is not None and lease.role == "leader"
        }

    def poll(self) -> None:
        """Read the leases."""
        self.leases = {row[0]: Lease(*row) for row in self._conn.execute(LEASES, [self.pids])}

    def written_ms(self) -> int:
        """Return the exchange's time up to which every shard's leader has committed; 0 while one has no leader."""
        leaders = self.leaders()
        return min(lease.written_ms for lease in leaders.values()) if len(leaders) == self._shards else 0

    def late_s(self) -> float:
        """Return how far any shard's newest committed event was behind our clock when its run last said so."""
        leaders = self.leaders()
        late = [lease.beat_at - lease.newest_ms / 1000 for lease in leaders.values()]
        return max(late) if len(late) == self._shards else float("inf")

    def log_tail(self) -> str:
        """Return the ends of all logs."""
        return "\n".join(f"the log of the {each.name} ends:\n{each.log_tail()}" for each in self.programs.values())

    def _is_ready(self, shard: int, run: str) -> bool:
        """Return whether a run holds every book, and its shard has a leader."""
        if time.monotonic() - self._polled_at >= POLL_S:
            self._polled_at = time.monotonic()
            self.poll()
            tokens = Counter(leader=0, standby=0)
            for each in self.leases.values():
                tokens[each.role] += each.tokens
            self._progress(f"tokens followed: {tokens['leader']:,} by leaders, {tokens['standby']:,} by standbys")
        program = self.programs[shard, run]
        lease = self.leases.get(program.pid or 0)
        if lease is None or not lease.ready or shard not in self.leaders():
            return False
        self.seconds_to_ready.setdefault(program.name, lease.beat_at - lease.ready_for_s - program.started_at)
        return True
