"""Logs a second from eth_getLogs to committed rows, beside asking for the same logs and leaving it at that."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import time
from typing import TYPE_CHECKING

from benchmarks.chain.node import FIRST
from benchmarks.database import fresh
from benchmarks.figures import Target, figure
from benchmarks.harness import interleaved
from cli.stack.plan import ROOT
from orchestration.settlement.ranges import Ranges
from orchestration.settlement.writer import Writer
from sql.database import connect
from upstream.chain.contracts import POLYGON, followed
from upstream.chain.rpc import Rpc

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from benchmarks.database import Bench
    from benchmarks.figures import Figure
    from benchmarks.harness import Options

BLOCKS = 1_000
TARGET = Target("value", ">=", 10_000)  # the best figure that another indexer of this exchange has published is 9,984
EMPTY = (
    "truncate settlements, wallet_fills, ledger_entries, chain_blocks, chain_ranges, chain_checks, chain_tokens,"
    " stream_events, wallet_activity, position_changes, positions_due"
)


def run(options: Options, report: Callable[[str], None]) -> Iterator[Figure]:
    """Measure history, which is not told, and the same told to the stream."""
    with fresh(report) as bench, node(BLOCKS) as url:
        rows = {True: 0, False: 0}

        def filled(*, told: bool) -> float:
            seconds, logs, rows[told] = fill(bench, url, told=told)
            return logs / seconds

        medians = interleaved(
            {
                "eth_getLogs alone": lambda: asked(url),
                "to committed rows": lambda: filled(told=False),
                "to committed rows, the stream told": lambda: filled(told=True),
            },
            options.repetitions,
            report,
        )
        alone, history, live = medians.values()
        rival = ("eth_getLogs alone", alone)
        yield figure("logs to committed rows", history, "logs/s", rival=rival, target=TARGET)
        yield figure("logs to committed rows, the stream told", live, "logs/s", rival=rival)


def asked(url: str) -> float:
    """Ask for all logs; logs a second."""
    began = time.perf_counter()
    with Rpc([url]) as rpc:
        rpc.heads()
        logs = len(rpc.logs(FIRST, FIRST + BLOCKS - 1, followed(POLYGON)))
    return logs / (time.perf_counter() - began)


def fill(bench: Bench, url: str, *, told: bool) -> tuple[float, int, int]:
    """Fill in the whole chain; seconds, logs and rows."""
    with connect(bench.url, autocommit=True) as conn, Rpc([url]) as rpc:
        conn.execute(EMPTY)
        conn.execute("checkpoint")
        writer = Writer(conn, POLYGON, tell_within_s=float("inf") if told else -1e9)
        began = time.perf_counter()
        rpc.heads()
        *_, last = Ranges(writer, rpc, POLYGON).fill(FIRST, FIRST + BLOCKS - 1)
        seconds = time.perf_counter() - began
    return seconds, last.written.logs, 2 * last.written.settlements + last.written.told


@contextlib.contextmanager
def node(blocks: int) -> Iterator[str]:
    """Run a node with so many blocks, on a core of its own if there is one."""
    command = [sys.executable, "-m", "benchmarks.chain.node", str(blocks)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield f"http://127.0.0.1:{int(process.stdout.readline())}"
        finally:
            process.kill()
