"""The lists benchmark: its catalogue and its questions."""

from __future__ import annotations

import contextlib
import os
import re

import pytest

from api.data.pool import Pool
from benchmarks.lists import lists
from sql.database import connect

MARKETS, LIVE = 4000, 600


@pytest.fixture(scope="module")
def url(new_database):
    with new_database() as url:
        lists.fill(url, MARKETS, LIVE, lambda _: None)
        yield url


def test_the_catalogue_has_as_many_markets_as_asked_for(url):
    with connect(url) as conn:
        states = dict(conn.execute("select status, count(*) from markets group by status").fetchall())
        frequent = conn.execute("select name from name_counts where kind = 'tag' order by markets desc").fetchall()
        indexes = conn.execute("select count(*) from pg_indexes where tablename = 'markets'").fetchone()

    assert sum(states.values()) == MARKETS
    assert states["ACTIVE"] == pytest.approx(LIVE, rel=0.1)
    assert {("sports",), ("nba",), ("up-or-down",)} <= set(frequent[:20])
    assert indexes == (12,)


def test_every_question_gets_a_figure_and_the_slowest_is_named(url, monkeypatch):
    monkeypatch.setattr(lists, "ASKED", 1)
    monkeypatch.setattr(lists, "QUESTIONS", tuple(question for question in lists.QUESTIONS if len(question) % 3 == 0))

    *figures, slowest = lists.measured(url, MARKETS, lambda _: None)

    assert len(figures) == len(lists.QUESTIONS)
    assert all(each.detail and each.detail["buffers"] > 0 for each in figures)
    assert slowest.value == max(each.value for each in figures)
    assert re.search(r"slowest list's p99, uncached \(/v1/", slowest.figure)


def test_cpu_time_is_that_of_all_of_the_applications_sessions(new_database):
    with (
        new_database() as url,
        connect(url) as other,
        contextlib.closing(Pool(url)) as pool,
        pool.connection() as one,
        pool.connection() as two,
    ):
        assert set(lists.processes(other)) == {os.getpid(), one.info.backend_pid, two.info.backend_pid}
