"""One measurement: everything that runs, its CPU time by role, and the leaders' memory, for some seconds."""

from __future__ import annotations

import time
from collections import defaultdict
from typing import TYPE_CHECKING, Any, LiteralString, NamedTuple, cast

from benchmarks.harness import slope
from benchmarks.processes import cpu_s, memory_mb, parent
from cli.stack.processes.program import StartError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import psycopg

    from benchmarks.capacity.exchange import Exchange, Sent
    from benchmarks.capacity.feeds import Feeds
    from cli.stack.processes.supervisor import Supervisor

SAMPLE_S = 1.0
PROGRESS_S = 5.0
SETTLE_S = 90.0  # for what was sent to be committed, and for the feed to write its next figures
MARGIN_MS = 1_000  # the feed estimates the exchange's time
LATE_S = 1.0  # of the newest committed event behind the exchange's time
LEADER, STANDBY, DATABASE, EXCHANGE = "leader", "standby", "database", "exchange"
NOW = "select extract(epoch from clock_timestamp())::float8"
WAL = "select wal_bytes::float8, wal_fpi::float8 from pg_stat_wal"
CHECKPOINTED = "select buffers_written::float8 from pg_stat_checkpointer"  # since PostgreSQL 17, which is embedded
LATEST_FIGURES = "select coalesce(max(extract(epoch from ts)), 0)::float8 from feed_stats"


class MeasuredWindow(NamedTuple):
    """What was measured, from one of the feed's figures to the first one after the end."""

    seconds: float
    before: Sent
    after: Sent
    from_s: float  # the database's time
    to_s: float
    log_offset: int  # of the exchange's log, before the first event
    cpu_s: dict[str, float]  # by role
    memory_mb: dict[int, float]  # most of each shard's leader
    growth_mb_per_min: tuple[float, float]  # of all leaders' memory: in all, and in the second half
    lead_changes: int
    wal_bytes: float  # that the database wrote
    wal_pages: float  # copied whole into it, as each page is when it changes first after a checkpoint
    checkpoint_s: int  # seconds in which a checkpoint wrote
    caught_up_s: float | None  # from a burst's end until no commit was late; None: not before the measurement's end


class ProgressReporter:
    """Reports a line every few seconds."""

    def __init__(self, report: Callable[[str], None]) -> None:
        self.report = report
        self._reported_at = time.monotonic()

    def __call__(self, line: str) -> None:
        """Report a line, unless another one was reported just before."""
        if time.monotonic() - self._reported_at >= PROGRESS_S:
            self._reported_at = time.monotonic()
            self.report(line)


class Measurement:
    """Everything that runs, while it is measured."""

    def __init__(
        self,
        conn: psycopg.Connection[Any],
        supervisor: Supervisor,
        exchange: Exchange,
        feeds: Feeds,
        progress: ProgressReporter,
    ) -> None:
        self._conn = conn  # left out of the database's CPU time
        self._supervisor = supervisor
        self._exchange = exchange
        self._feeds = feeds
        self._progress = progress
        self._postmaster = parent(conn.info.backend_pid)
        supervisor.guard_last(self._postmaster)

    def measure(self, seconds: float, burst: tuple[float, float] | None = None) -> MeasuredWindow:
        """Measure for some seconds; return once everything sent meanwhile is committed, if that takes no minutes.

        `burst` is how many times the rate the exchange trades at, and for how many seconds, from the beginning on.
        """
        offset = self._exchange.log.stat().st_size
        from_s = self._await_figures(self._read(LATEST_FIGURES))
        spent: dict[str, float] = defaultdict(float)
        memory: dict[int, float] = {}
        held: list[tuple[float, float]] = []
        checkpoint_s = 0
        burst_s, caught_up_s = burst[1] if burst is not None else 0.0, None
        self._feeds.poll()
        before, began, last, roles = self._exchange.sent(), time.monotonic(), self._times(), self._feeds.roles()
        wal, checkpointed = self._wal(), self._read(CHECKPOINTED)
        if burst is not None:
            self._exchange.burst(*burst)
        took, lead_changes = 0.0, 0
        while took < seconds:
            time.sleep(max(0.0, min(SAMPLE_S, began + seconds - time.monotonic())))
            self._supervisor.check_started()
            self._feeds.poll()
            took, times = time.monotonic() - began, self._times()
            for (name, pid), value in times.items():
                spent[name or roles[pid]] += value - last[name, pid]
            last, were, roles = times, roles, self._feeds.roles()
            lead_changes += sum(roles[pid] == LEADER != were[pid] for pid in roles)
            now_mb = {shard: memory_mb(lease.pid) for shard, lease in self._feeds.leaders().items()}
            memory |= {shard: max(memory.get(shard, 0.0), value) for shard, value in now_mb.items()}
            held.append((took / 60, sum(now_mb.values())))
            if caught_up_s is None and took > burst_s + SAMPLE_S and self._feeds.late_s() < LATE_S:
                caught_up_s = took - burst_s
            checkpoint_s += (now_checkpointed := self._read(CHECKPOINTED)) > checkpointed
            checkpointed = now_checkpointed
            self._progress(self._line(took, seconds, spent))
        after, to_s = self._exchange.sent(), self._read(NOW)
        wal_bytes, wal_pages = (now - then for now, then in zip(self._wal(), wal, strict=True))
        self._settle(after.clock_ms, to_s)
        growth = slope(held), slope(held[len(held) // 2 :])
        return MeasuredWindow(
            took,
            before,
            after,
            from_s,
            to_s,
            offset,
            spent,
            memory,
            growth,
            lead_changes,
            wal_bytes,
            wal_pages,
            checkpoint_s,
            caught_up_s,
        )

    def _times(self) -> dict[tuple[str, int], float]:
        """Return the CPU times by name and process; the runs of the feed have no name, but the role of the moment."""
        exchange = self._exchange.program.pid or 0
        return {
            (DATABASE, self._postmaster): cpu_s(self._postmaster, without=(self._conn.info.backend_pid,)),
            (EXCHANGE, exchange): cpu_s(exchange),
            **{("", pid): cpu_s(pid) for pid in self._feeds.pids},
        }

    def _line(self, took: float, seconds: float, spent: Mapping[str, float]) -> str:
        cores = ", ".join(f"{name} {spent[name] / took:.2f}" for name in (LEADER, STANDBY, DATABASE, EXCHANGE))
        waiting = sum(lease.backlog for lease in self._feeds.leaders().values())
        late = f"{waiting:,} events wait, the newest commit is {self._feeds.late_s():.1f} s behind"
        return f"{took:.0f} of {seconds:.0f} s; cores: {cores}; {late}"

    def _settle(self, clock_ms: int, to_s: float) -> None:
        """Wait until what was sent is committed, and the feed has written its figures."""
        self._await_figures(to_s)
        deadline = time.monotonic() + SETTLE_S
        while self._feeds.written_ms() <= clock_ms + MARGIN_MS:
            if time.monotonic() > deadline:
                self._progress.report(f"not all that was sent is committed {SETTLE_S:.0f} s later: it counts as lost")
                self._progress.report(self._feeds.log_tail())
                return
            time.sleep(0.2)
            self._supervisor.check_started()
            self._feeds.poll()

    def _await_figures(self, after_s: float) -> float:
        """Wait until the feed has written figures after an instant; return when it did."""
        deadline = time.monotonic() + SETTLE_S
        while (found := self._read(LATEST_FIGURES)) <= after_s:
            self._supervisor.check_started()
            if time.monotonic() > deadline:
                raise StartError(f"the live feed has written no figures for {SETTLE_S:.0f} s")
            time.sleep(0.1)
        return found

    def _wal(self) -> tuple[float, float]:
        written, pages = self._conn.execute(WAL).fetchall()[0]
        return written, pages

    def _read(self, query: LiteralString) -> float:
        return cast("float", self._conn.execute(query).fetchall()[0][0])
