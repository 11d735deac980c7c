"""Writers benchmark: commits a second before their p99 doubles, by writers, beside writers that publish nothing.

Each writer is a process that commits small batches on schedule, as the leader of a shard does. The last statement of a
transaction takes the stream's next numbers, and keeps all other writers waiting until the commit. The rival writes the
same rows without publishing them: what is left of its figure is what the stream's one sequence costs.
"""

from __future__ import annotations

import array
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import msgspec

from benchmarks.database import fresh
from benchmarks.figures import figure
from benchmarks.harness import quantile
from benchmarks.writers.writer import ROWS, Schedule
from cli.stack.plan import ROOT
from sql.database import connect

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from benchmarks.database import Bench
    from benchmarks.figures import Figure
    from benchmarks.harness import Options

WRITERS = (1, 2, 4, 8)
CALM = 25.0  # commits a second of all writers together
CALM_S, STEP_S = 12.0, 5.0
STEPS = 2**0.5
MAX_RATE = 3_200.0
STARTING_S = 4.0  # of all writers' processes; a writer that starts later counts as delayed
MAX_S = 120.0
DOUBLED = 2.0


def run(options: Options, report: Callable[[str], None]) -> Iterator[Figure]:  # noqa: ARG001 (a benchmark's parameters)
    """Raise the rate until the p99 has doubled, for each number of writers, with the stream and without."""
    with fresh(report) as bench:
        for writers in WRITERS:
            rates = {}
            for publishes in (True, False):
                rates[publishes], calm_ms = highest(bench, writers, publishes=publishes, report=report)
                if publishes:
                    detail = {"p99 at 25 commits/s, ms": calm_ms, "rows a commit": float(ROWS)}
            yield figure(
                f"commits a second before p99 doubles, writers: {writers}",
                rates[True],
                "commits/s",
                rival=("the same rows, not published", rates[False]),
                detail=detail,
            )


def highest(bench: Bench, writers: int, *, publishes: bool, report: Callable[[str], None]) -> tuple[float, float]:
    """Return the highest rate at which the p99 is at most twice that in calm, and the latter in milliseconds."""
    calm_ms = quantile(delays_ms(bench, writers, CALM, CALM_S, publishes=publishes), 0.99)
    name = f"writers: {writers}, {'published' if publishes else 'not published'}"
    report(f"{name}: p99 {calm_ms:.1f} ms at {CALM:.0f} commits a second")
    reached, rate = CALM, CALM * STEPS
    while rate <= MAX_RATE:
        p99_ms = quantile(delays_ms(bench, writers, rate, STEP_S, publishes=publishes), 0.99)
        report(f"{name}: p99 {p99_ms:.1f} ms at {rate:.0f} commits a second")
        if p99_ms > DOUBLED * calm_ms:
            break
        reached, rate = rate, rate * STEPS
    return reached, calm_ms


def delays_ms(bench: Bench, writers: int, rate: float, seconds: float, *, publishes: bool) -> list[float]:
    """Let writers share a rate for a time, from the same instant on; return each commit's delay in milliseconds."""
    with connect(bench.url, autocommit=True) as conn:  # the same state for every step
        conn.execute("truncate trades, book_events, quotes, stream_blocks, live_prices")
        conn.execute("checkpoint")
    start = time.monotonic() + STARTING_S
    files = [bench.folder / f"writer-{number}" for number in range(writers)]
    running = []
    for number, file in enumerate(files):
        schedule = Schedule(number, rate / writers, seconds, start, publishes)
        given = [bench.url, msgspec.json.encode(schedule).decode(), str(file)]
        running.append(subprocess.Popen([sys.executable, "-m", "benchmarks.writers.writer", *given], cwd=ROOT))
    try:
        for process in running:
            if process.wait(MAX_S):
                raise RuntimeError("a writer failed: see its message above")
    finally:
        for process in running:
            process.kill()
    found: list[float] = []
    for file in files:
        delays = array.array("q", file.read_bytes())
        found += [delay / 1e6 for delay in delays]
        found += [float("inf")] * (int(rate / writers * seconds) - len(delays))  # due, and not committed in time
    return found
