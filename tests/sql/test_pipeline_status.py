"""A stage is judged when it is read, not when it runs."""

from __future__ import annotations

import datetime as dt

import pytest
from psycopg.types.json import Jsonb

from config import tunables
from sql.queries import feed as queries
from tests.factories import insert


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
        ("discovery_kalshi", "Kalshi is not configured: add kalshi to PRESAGE_EXCHANGES"),
        ("ingestion_kalshi", "Kalshi is not recorded"),
        ("settlement", "no RPC is configured: set PRESAGE_CHAIN_RPC_URLS"),
    ]


@pytest.mark.parametrize(
    ("lag", "expected"), [(0, "fresh"), (15, "fresh"), (15.1, "late"), (60, "late"), (60.1, "stale"), (-5, "fresh")]
)
def test_a_stage_turns_late_and_then_stale_as_time_goes_by(conn, lag, expected):
    touch(conn, "ingestion", data_s=lag, beat_s=0)

    assert status(conn, "ingestion") == (expected, pytest.approx(max(lag, 0)))


def reason(conn, stage):
    detail = conn.execute("select detail from pipeline_status where stage = %s", [stage]).fetchone()[0]
    return detail.get("reason"), detail.get("since")


def test_what_keeps_a_stage_from_going_on_is_told_with_its_beginning_until_it_goes_on(conn):
    queries.beat(conn, stage="discovery", last_data_at=None, detail='{"open_markets": 5}')
    queries.hinder(conn, stage="discovery", reason="cannot reach there: name not known")
    conn.execute("update stage_clocks set detail = detail || '{\"since\": 1795000000}' where stage = 'discovery'")
    queries.hinder(conn, stage="discovery", reason="cannot reach there: name not known")

    assert reason(conn, "discovery") == ("cannot reach there: name not known", 1_795_000_000)
    queries.hinder(conn, stage="discovery", reason="cannot reach there: connection refused")
    assert reason(conn, "discovery")[1] != 1_795_000_000
    queries.beat(conn, stage="discovery", last_data_at=None, detail=None)
    assert reason(conn, "discovery") == (None, None)
    (detail,) = conn.execute("select detail from stage_clocks where stage = 'discovery'").fetchone()
    assert detail == {"open_markets": 5}


def test_a_stage_that_looks_and_brings_nothing_has_no_newer_data(conn):
    queries.beat(conn, stage="ingestion", last_data_at=None, detail=None)

    assert status(conn, "ingestion") == ("missing", None)
    touch(conn, "ingestion", data_s=100, beat_s=100)
    queries.beat(conn, stage="ingestion", last_data_at=None, detail=None)
    assert status(conn, "ingestion") == ("stale", pytest.approx(100))


def test_discovery_is_fresh_while_it_looks_though_nothing_is_new(conn):
    touch(conn, "discovery", data_s=86_400, beat_s=30)
    touch(conn, "aggregates", data_s=86_400, beat_s=30)

    assert status(conn, "discovery") == ("fresh", pytest.approx(30))
    assert status(conn, "aggregates") == ("stale", pytest.approx(86_400))


@pytest.mark.parametrize(("warn", "fail", "expected"), [(10, 20, "stale"), (10, 60, "late"), (60, 120, "fresh")])
def test_an_administrator_moves_the_thresholds_while_everything_runs(conn, warn, fail, expected):
    touch(conn, "ingestion", data_s=30, beat_s=0)
    assert status(conn, "ingestion")[0] == "late"

    tunables.set_(conn, "ingestion_warn_after_s", str(warn))
    tunables.set_(conn, "ingestion_fail_after_s", str(fail))

    assert status(conn, "ingestion")[0] == expected
    assert conn.execute(
        "select warn_after_s, fail_after_s from pipeline_status where stage = 'ingestion'"
    ).fetchone() == (warn, fail)


@pytest.mark.parametrize("value", ["60", None, [60], {"s": 60}, -1, 0, 1e12, True])
def test_a_threshold_that_makes_no_sense_counts_as_not_set(conn, value):
    touch(conn, "ingestion", data_s=30, beat_s=0)
    insert(conn, "settings", {"name": "parameters.ingestion_warn_after_s", "value": Jsonb(value)})

    assert status(conn, "ingestion") == ("late", pytest.approx(30))


def test_thresholds_are_by_default_what_the_clocks_say(conn):
    rows = conn.execute("select stage, warn_after_s, fail_after_s from stage_clocks").fetchall()

    assert rows == [(stage, *tunables.THRESHOLDS[stage]) for stage, _, _ in rows]
