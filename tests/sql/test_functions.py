"""Functions cost what their expression costs, and agree with Python."""

from __future__ import annotations

import datetime as dt

import pytest


@pytest.mark.parametrize(("micro", "number"), [(520_000, 0.52), (1, 0.000001), (-7, -0.000007), (None, None)])
def test_micro_units_become_the_number_they_stand_for(conn, micro, number):
    assert conn.execute("select as_number(%s::bigint)", [micro]).fetchone() == (number,)


@pytest.mark.parametrize(
    ("instant", "ms"),
    [
        ("1970-01-01T00:00:00Z", 0),
        ("2026-11-21T12:00:00.123Z", 1795262400123),
        ("2026-11-21T12:00:00.123999Z", 1795262400123),
        ("2099-12-31T23:59:59.999999Z", 4102444799999),
        ("1969-12-31T23:59:59.9995Z", -1),
    ],
)
def test_instants_become_whole_milliseconds_and_seconds_never_later_than_they_are(conn, instant, ms):
    found = conn.execute("select as_ms(%(t)s::timestamptz), as_unix(%(t)s::timestamptz)", {"t": instant}).fetchone()

    assert found == (ms, ms // 1000)


def test_every_millisecond_of_a_second_comes_back(conn):
    start = dt.datetime(2026, 11, 21, tzinfo=dt.UTC)

    wrong = conn.execute(
        """
        select count(*) from generate_series(0, 999) as n
        where as_ms(%s::timestamptz + n * interval '1 ms') <> %s + n
        """,
        [start, int(start.timestamp()) * 1000],
    ).fetchone()

    assert wrong == (0,)


@pytest.mark.parametrize("call", ["as_number(price)", "as_ms(ts)", "as_unix(ts)"])
def test_the_planner_sees_through_them(conn, call):
    plan = "\n".join(
        row[0] for row in conn.execute(f"explain (verbose, costs off) select {call} from trades").fetchall()
    )

    assert call.split("(")[0] not in plan
