"""`presage bench writers` at a small size: what its writers commit, and how their delays are judged."""

from __future__ import annotations

import pytest

from benchmarks.database import Bench
from benchmarks.writers import writers
from benchmarks.writers.writer import ROWS
from sql.database import connect


@pytest.fixture
def bench(new_database, tmp_path):
    with new_database() as url:
        yield Bench(tmp_path, url, tmp_path)


@pytest.mark.parametrize("publishes", [True, False])
def test_every_commit_that_is_due_is_made_and_measured(bench, publishes, monkeypatch):
    monkeypatch.setattr(writers, "STARTING_S", 0.0)

    delays = writers.delays_ms(bench, 2, rate=20.0, seconds=2.0, publishes=publishes)

    commits = [delay for delay in delays if delay < float("inf")]
    assert len(delays) == 40
    assert all(delay > 0 for delay in commits)
    with connect(bench.url) as conn:
        rows = conn.execute("select count(*) from book_events").fetchone()
        numbers = conn.execute("select coalesce(sum(seq_to - seq_from + 1), 0) from stream_blocks").fetchone()
    prepared = 2  # one commit of each writer before it is measured
    assert rows == ((len(commits) + prepared) * ROWS,)
    assert numbers == (rows if publishes else (0,))


def test_the_highest_rate_is_the_last_before_the_p99_has_doubled(monkeypatch):
    asked = []

    def delays_ms(bench, writers, rate, seconds, *, publishes):
        asked.append(rate)
        return [1.0] * 98 + [4.0 if rate < 90 else 8.1] * 2

    monkeypatch.setattr(writers, "delays_ms", delays_ms)

    reached, calm_ms = writers.highest(None, 4, publishes=True, report=lambda _: None)

    assert calm_ms == 4.0
    assert asked == pytest.approx([25, 35.4, 50, 70.7, 100], rel=0.01)
    assert reached == pytest.approx(70.7, rel=0.01)


def test_a_writer_that_falls_behind_counts_as_the_longest_delay(bench, monkeypatch):
    monkeypatch.setattr(writers, "STARTING_S", -3.0)  # its commits were all due before it starts

    delays = writers.delays_ms(bench, 1, rate=50.0, seconds=1.0, publishes=True)

    assert delays == [float("inf")] * 50
