"""Settlement benchmark: logs per second from eth_getLogs to committed rows, beside only requesting the same logs."""

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
TARGET = Target("value", ">=", 10_000)  # the best figure published by another indexer of this exchange is 9,984
EMPTY = (
    "truncate settlements, wallet_fills, ledger_entries, chain_blocks, chain_ranges, chain_checks, chain_tokens,"
    " stream_blocks, wallet_activity, position_changes, positions_due"
)


def run(options: Options, report: Callable[[str], None]) -> Iterator[Figure]:
    """Measure history, which is not published, and the same published to the stream."""
    with fresh(report) as bench, node(BLOCKS) as url:
        rows = {True: 0, False: 0}

        def filled(*, publish: bool) -> float:
            seconds, logs, rows[publish] = fill(bench, url, publish=publish)
            return logs / seconds

        medians = interleaved(
            {
                "eth_getLogs alone": lambda: asked(url),
                "to committed rows": lambda: filled(publish=False),
                "to committed rows, messages published": lambda: filled(publish=True),
            },
            options.repetitions,
            report,
        )
        alone, history, live = medians.values()
        rival = ("eth_getLogs alone", alone)
        yield figure("logs to committed rows", history, "logs/s", rival=rival, target=TARGET)
        yield figure("logs to committed rows, messages published", live, "logs/s", rival=rival)


def asked(url: str) -> float:
    """Request all logs; return logs per second."""
    began = time.perf_counter()
    with Rpc([url]) as rpc:
        rpc.heads()
        logs = len(rpc.logs(FIRST, FIRST + BLOCKS - 1, followed(POLYGON)))
    return logs / (time.perf_counter() - began)


def fill(bench: Bench, url: str, *, publish: bool) -> tuple[float, int, int]:
    """Process the whole chain; return seconds, logs and rows."""
    with connect(bench.url, autocommit=True) as conn, Rpc([url]) as rpc:
        conn.execute(EMPTY)
        conn.execute("checkpoint")
        writer = Writer(conn, POLYGON, publish_within_s=float("inf") if publish else -1e9)
        began = time.perf_counter()
        rpc.heads()
        *_, last = Ranges(writer, rpc, POLYGON).fill(FIRST, FIRST + BLOCKS - 1)
        seconds = time.perf_counter() - began
    return seconds, last.written.logs, 2 * last.written.settlements + last.written.published


@contextlib.contextmanager
def node(blocks: int) -> Iterator[str]:
    """Run a node with `blocks` blocks, on a core of its own if there is one."""
    command = [sys.executable, "-m", "benchmarks.chain.node", str(blocks)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield f"http://127.0.0.1:{int(process.stdout.readline())}"
        finally:
            process.kill()
