"""A stage is judged when it is looked at, not when it runs."""

from __future__ import annotations

import datetime as dt

import pytest


def status(conn, stage):
    return conn.execute("select status, lag_s from pipeline_status where stage = %s", [stage]).fetchone()


def touch(conn, stage, *, data_s, beat_s):
    conn.execute(
        "update stage_clocks set last_data_at = now() - %s, beat_at = now() - %s where stage = %s",
        [dt.timedelta(seconds=data_s), dt.timedelta(seconds=beat_s), stage],
    )


def test_a_stage_that_never_ran_is_missing(conn):
    rows = conn.execute("select stage, status, lag_s from pipeline_status order by stage").fetchall()

    assert ("ingestion", "missing", None) in rows
    assert {row[1:] for row in rows} == {("missing", None)}


def test_a_stage_that_is_not_configured_says_so(conn):
    off = conn.execute("select stage, detail ->> 'off' from pipeline_status where off order by stage").fetchall()

    assert off == [
        ("delivery", "no webhook is enabled: POST /v1/webhooks makes one"),
        ("settlement", "no RPC is configured: set PRESAGE_CHAIN_RPC_URLS"),
    ]


@pytest.mark.parametrize(
    ("lag", "expected"), [(0, "fresh"), (15, "fresh"), (15.1, "late"), (60, "late"), (60.1, "stale"), (-5, "fresh")]
)
def test_a_stage_turns_late_and_then_stale_as_time_goes_by(conn, lag, expected):
    touch(conn, "ingestion", data_s=lag, beat_s=0)

    assert status(conn, "ingestion") == (expected, pytest.approx(max(lag, 0)))


def test_discovery_is_fresh_while_it_looks_though_nothing_is_new(conn):
    touch(conn, "discovery", data_s=86_400, beat_s=30)
    touch(conn, "aggregates", data_s=86_400, beat_s=30)

    assert status(conn, "discovery") == ("fresh", pytest.approx(30))
    assert status(conn, "aggregates") == ("stale", pytest.approx(86_400))
