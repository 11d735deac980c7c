"""Decides how many runs to start and which to mark failed: a pure function of leases and runs; a sensor calls it.

A lease that is touched is the only sign of life. Dagster's run status is not: a run whose container was killed stays
STARTED. On a machine without free processor time a live run may be silent for seconds, and take a minute to start: to
replace it then would take what is left. So a silent run is replaced within seconds only if its process is known to
have ended, or if no run of the feed leads or shows a sign of life.
"""

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass

from orchestration.feeds.lease import ALIVE_S, MAX_SILENT_S, LeaseRow

START_S = 120.0  # from STARTED to the first touch: imports, connections
SILENT_S = 60.0  # of a run that was alive, whose process may be on another host
HUNG_S = 300.0  # of a run whose process is known to live: it waits for processor time, unless it hangs
GRACE_S = 30.0  # to end
LAUNCH_S = 120.0  # from QUEUED or STARTING to STARTED: a replaced code server never starts its queued runs
SETTLE_S = 15.0  # after the database comes up, leases look stale although their runs are alive

WAITING = frozenset({"QUEUED", "NOT_STARTED", "STARTING"})


@dataclass(frozen=True, slots=True)
class Run:
    """An unfinished run of the job, as Dagster reports it."""

    run_id: str
    status: str  # QUEUED, NOT_STARTED, STARTING, STARTED or CANCELING
    since: float  # Unix seconds when it got that status, or was created
    shard: str = ""  # its tag


@dataclass(frozen=True, slots=True)
class Decision:
    """Runs to start, one per entry of `windows` (its share of the usual window), and runs in `dead` to mark failed."""

    windows: tuple[float, ...]
    dead: tuple[tuple[str, str], ...]
    reason: str

    @property
    def start(self) -> int:
        """Number of runs to start."""
        return len(self.windows)

    @property
    def share(self) -> float:
        """The window of the next run to start, as a share of the usual one: one run per tick, the shortest first."""
        return min(self.windows)


def decide(
    leases: Iterable[LeaseRow],
    runs: Iterable[Run],
    now: float,
    want: int = 2,
    *,
    ended: Collection[str] = (),
    database_up_s: float = SETTLE_S,
    lives: Callable[[LeaseRow], bool | None] = lambda _: None,
    led: bool = True,
) -> Decision:
    """Keep `want` runs alive or starting; dead runs are marked failed, and so replaced at once.

    `ended` has runs that Dagster knows to be finished: their lease may look fresh for some more seconds. `lives` says
    whether the process of a lease runs, or None if that is not known. `led`: some run of the feed leads, or shows a
    sign of life.
    """
    held = {lease.run_id: lease for lease in leases if lease.run_id not in ended}
    alive = {run_id for run_id, lease in held.items() if lease.alive}
    coming = 0
    dead: list[tuple[str, str]] = []
    for run in runs:
        if run.run_id in alive:
            continue
        state = _run_state(run, held.get(run.run_id), now, database_up_s, lives, led=led)
        if state == "coming":
            coming += 1
        elif state:
            dead.append((run.run_id, state))

    present = len(alive) + coming
    missing = max(want - present, 0)
    # If none is running, all would end together: a shorter first window spreads the hand-overs.
    windows = tuple(1.0 if present else 1.0 - nth / want for nth in range(missing))
    return Decision(
        windows, tuple(dead), f"alive {len(alive)}, coming {coming}, marked failed {len(dead)}, started {missing}"
    )


def _run_state(  # noqa: PLR0911 (one line per state)
    run: Run,
    lease: LeaseRow | None,
    now: float,
    database_up_s: float,
    lives: Callable[[LeaseRow], bool | None],
    *,
    led: bool,
) -> str:
    """Return `coming`, why the run is dead, or "" for one that is about to end normally."""
    age = now - run.since
    if run.status == "QUEUED" or (run.status in WAITING and age < LAUNCH_S):
        return "coming"
    if run.status in WAITING:
        return f"launched {age:.0f} s ago and never started"
    if run.status == "CANCELING":
        return "" if age < GRACE_S else f"cancelled {age:.0f} s ago and never ended"
    if lease is None:
        return "coming" if age < START_S else f"started {age:.0f} s ago and never took a lease"
    if lease.role == "gone":
        return "" if lease.silent_s < GRACE_S else f"left {lease.silent_s:.0f} s ago and never ended"
    if database_up_s < SETTLE_S or lease.silent_s < _patience_s(alive=lives(lease), led=led):
        return "coming"
    return f"no sign of life for {lease.silent_s:.0f} s"


def _patience_s(*, alive: bool | None, led: bool) -> float:
    """Return for how long a run may be silent: long if its process runs, short if it has ended or nobody leads."""
    if alive is None:
        return SILENT_S if led else MAX_SILENT_S
    if alive:
        return HUNG_S if led else SILENT_S
    return ALIVE_S
