"""Half an hour of correct data: no data quality check fails."""

from __future__ import annotations

import os
import time

import pytest
from rich.console import Console
from rich.table import Table

from cli.stack.ports import choose
from orchestration.quality.suites import SUITES
from tests.soak.running import RunningDemo

MINUTES = float(os.environ.get("PRESAGE_SOAK_MINUTES", "30"))
EVERY_S = 60
# Tables a demo may leave empty: no watched wallets or webhooks, no gaps without faults, and no day ends.
NONE_OF = {
    *("wallet_activity", "coverage_gaps", "coverage_days", "coverage_market_days", "exports", "chain_checks"),
    *("book_anchors", "signals", "tick_sizes", "webhook_deliveries"),
}

FAILED = """
select to_char(ran_at, 'HH24:MI:SS'), suite || '.' || name, severity, rows_failed, rows_checked, samples
from quality_results where rows_failed > 0 order by ran_at
"""
PASSES = """
select suite, count(distinct ran_at), max(rows_checked), (select seconds from quality_suites s where s.suite = r.suite)
from quality_results r group by suite order by suite
"""


@pytest.fixture
def demo(tmp_path):
    options = ["--port-base", str(choose(None).api), "--rate", "200", "--markets", "100"]
    running = RunningDemo(tmp_path, *options, PRESAGE_QUALITY_EVERY_S=str(EVERY_S))
    try:
        yield running
    finally:
        running.stop()
        running.erase()


@pytest.mark.soak
def test_nothing_is_found_in_half_an_hour_in_which_nothing_is_wrong(demo):
    demo.wait_until(lambda: (demo.output_json().get("rows") or {}).get("candles_1m"), within_s=300)

    time.sleep(MINUTES * 60)

    with demo.connect() as conn:
        failed, passes = conn.execute(FAILED).fetchall(), conn.execute(PASSES).fetchall()
        held = conn.execute("select stage, status, detail -> 'quality' from pipeline_status where not off").fetchall()
    shown = Table("suite", "passes", "rows at most", "seconds at last", title="Data quality")
    for suite, times, rows, seconds in passes:
        shown.add_row(suite, str(times), f"{rows:,}", f"{seconds:.3f}")
    Console(width=120).print(shown)
    assert failed == []
    assert [row for row in held if row[2] is not None] == []
    assert {suite.table for suite in SUITES} - {row[0] for row in passes} <= NONE_OF
    assert max(times for _, times, *_ in passes) >= MINUTES * 60 / EVERY_S / 2
