"""The drill: a full backup under load, minutes of commits, a table dropped, the second before restored."""

from __future__ import annotations

import datetime as dt
import os
import threading
import time
from typing import TYPE_CHECKING

import pytest

from sql.backup.base import recovery, taking
from sql.embedded import Cluster
from tests.archived import SETTINGS, archived, erase

if TYPE_CHECKING:
    from pathlib import Path

MINUTES = float(os.environ.get("PRESAGE_SOAK_MINUTES", "10"))
WRITERS = 3


@pytest.mark.soak
@pytest.mark.timeout(MINUTES * 60 + 1800)
def test_what_was_committed_by_the_second_before_a_table_was_dropped_is_there_and_nothing_after(capsys):
    with archived() as made:
        made.start()
        market = made.migrate()
        ended, failures = threading.Event(), []

        def write():
            while not ended.is_set():
                try:
                    made.commit(market, 50)
                except Exception as error:  # noqa: BLE001 - told by the test
                    failures.append(error)
                    return

        writers = [threading.Thread(target=write) for _ in range(WRITERS)]
        for writer in writers:
            writer.start()
        try:
            full = taking.take(made.url, made.data_dir, "full")
            taking.take(made.url, made.data_dir, "incr")
            ended.wait(MINUTES * 60)
        finally:
            ended.set()
            for writer in writers:
                writer.join()
        assert failures == []
        commits = made.commits()
        moment = (commits[-1][0] - dt.timedelta(seconds=1)).replace(microsecond=0)
        made.query("drop table trades cascade")

        began = time.monotonic()
        into = made.folder / "recovered"
        try:
            done = recovery.recover(made.data_dir, into, made.options, moment)
            took = time.monotonic() - began
            with Cluster(into / "database", settings=SETTINGS) as copy:
                rows = made.query("select trade_id from trades order by 1", copy.url("exchange"))
                sizes_mb = [size_mb(folder) for folder in (copy.home, made.repository)]
        finally:
            erase(into)

        by_then = sorted((trade_id,) for at, trade_id in commits if at <= moment)
        with capsys.disabled():
            print(
                f"\n{len(commits):,} commits in {MINUTES} min, {len(by_then):,} by {moment}; full backup {full.label};"
                f" from {done.backup.label} recovered in {took:.1f} s: {len(rows):,} rows;"
                f" database {sizes_mb[0]:,} MB, repository {sizes_mb[1]:,} MB"
            )
        assert rows == by_then
        assert len(by_then) < len(commits)


def size_mb(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file()) // 1_000_000
