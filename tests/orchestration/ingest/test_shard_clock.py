"""The stage's clock is as alive and as fresh as the worst shard of the live feed."""

import datetime as dt

import pytest
from psycopg.types.json import Jsonb

from cli.diagnosis import pipeline as doctor
from orchestration.feeds.shards import Shard
from orchestration.ingest.progress import Turn, turn
from sql.queries import feed as queries
from sql.queries import pipeline
from tests.factories import insert

NOW_MS = 1_795_000_000_000


@pytest.fixture
def lease(conn):
    def add(run_id, shard, role="leader", *, silent_s=0.0, ready=True, **detail):
        beat = dt.datetime.now(dt.UTC) - dt.timedelta(seconds=silent_s)
        row = {"run_id": run_id, "feed": shard.feed("polymarket"), "role": role, "ready": ready, "beat_at": beat}
        figures = {"tokens": 10, "backlog_events": 0, "rate": 5.0, "newest_ms": NOW_MS, "written_ms": NOW_MS, **detail}
        conn.execute("delete from feed_leases where run_id = %s", [run_id])
        insert(conn, "feed_leases", {**row, "window_ends_at": beat, "detail": Jsonb(figures)})

    return add


def beat(conn, run_id, shards):
    queries.beat_shards(conn, stage="ingestion", family="polymarket", shards=shards, run_id=run_id)
    return conn.execute(
        "select date_part('epoch', now() - beat_at), as_ms(last_data_at), detail from stage_clocks"
        " where stage = 'ingestion'"
    ).fetchone()


def test_the_clock_shows_the_worst_of_the_leaders_and_the_sum_of_what_waits(conn, lease):
    one, two = Shard.all(2)
    lease("a", one, newest_ms=NOW_MS, written_ms=NOW_MS + 5, backlog_events=3)
    lease("b", two, newest_ms=NOW_MS - 4_000, written_ms=NOW_MS - 3_000, backlog_events=4, silent_s=2)
    lease("c", two, "standby")

    silent_s, newest_ms, detail = beat(conn, "a", 2)

    assert (newest_ms, 1.9 < silent_s < 4) == (NOW_MS - 4_000, True)
    assert {name: detail[name] for name in ("backlog_events", "tokens", "rate", "written_ms")} == {
        "backlog_events": 7,
        "tokens": 20,
        "rate": 10.0,
        "written_ms": NOW_MS - 3_000,
    }
    assert [(run["shard"], run["run_id"], run["role"], run["ready"], run["rate"]) for run in detail["shards"]] == [
        ("1 of 2", "a", "leader", True, 5.0),
        ("2 of 2", "b", "leader", True, 5.0),
        ("2 of 2", "c", "standby", True, 5.0),
    ]
    assert "reason" not in detail


def test_one_leader_touches_the_clock_and_the_others_leave_it_alone(conn, lease):
    one, two = Shard.all(2)
    lease("a", one)
    lease("b", two)

    assert beat(conn, "b", 2)[0] is None
    assert beat(conn, "a", 2)[0] is not None


def test_a_shard_without_a_leader_is_named_and_holds_the_clock(conn, lease):
    one, two = Shard.all(2)
    lease("a", one)
    lease("b", two)
    before = beat(conn, "a", 2)
    lease("b", two, silent_s=11)
    lease("a", one, newest_ms=NOW_MS + 9_000, written_ms=NOW_MS + 9_000)
    _, newest_ms, detail = beat(conn, "a", 2)

    assert newest_ms == before[1] == NOW_MS
    assert detail["reason"] == "shard 2 of 2 has no leader"
    assert detail["written_ms"] == NOW_MS
    assert beat(conn, "a", 2)[2]["since"] == detail["since"]
    assert [(run["shard"], run["role"]) for run in detail["shards"]] == [("1 of 2", "leader"), ("2 of 2", None)]


def test_the_first_shard_that_has_a_leader_speaks_for_all(conn, lease):
    lease("a", Shard(1, 2), silent_s=11)
    lease("b", Shard(2, 2))

    assert beat(conn, "b", 2)[2]["reason"] == "shard 1 of 2 has no leader"


def test_a_shard_without_markets_delays_nothing_and_one_without_data_does(conn, lease):
    one, two = Shard.all(2)
    lease("a", one)
    lease("b", two, tokens=0, newest_ms=0, reason="follows no market", since=1)
    _, newest_ms, detail = beat(conn, "a", 2)
    assert (newest_ms, "reason" in detail) == (NOW_MS, False)

    lease("a", one, newest_ms=NOW_MS + 9_000)
    lease("b", two, newest_ms=0, reason="cannot be opened", since=7)
    _, newest_ms, detail = beat(conn, "a", 2)
    assert (newest_ms, detail["reason"], detail["since"]) == (NOW_MS, "shard 2 of 2: cannot be opened", 7)


def test_the_shard_that_is_furthest_behind_is_named_unless_another_is_hindered(conn, lease):
    one, two, three = Shard.all(3)
    lease("a", one, reason="6 s behind, at 5 messages a second", since=4, behind_s=6)
    lease("b", two, reason="18 s behind, at 9 messages a second", since=5, behind_s=18)
    lease("c", three)
    detail = beat(conn, "a", 3)[2]
    assert (detail["reason"], detail["since"]) == ("shard 2 of 3: 18 s behind, at 9 messages a second", 5)

    lease("c", three, reason="cannot be opened", since=6)
    detail = beat(conn, "a", 3)[2]
    assert (detail["reason"], detail["since"]) == ("shard 3 of 3: cannot be opened", 6)


def test_a_single_shard_that_is_behind_says_so_until_it_is_not(conn, lease):
    lease("a", Shard(), reason="6 s behind, at 5 messages a second", since=4, behind_s=6)
    detail = beat(conn, "a", 1)[2]
    assert (detail["reason"], "behind_s" in detail) == ("6 s behind, at 5 messages a second", False)

    lease("a", Shard())
    assert "reason" not in beat(conn, "a", 1)[2]


def test_a_single_shard_says_what_its_leader_says(conn, lease):
    lease("a", Shard(), reason="follows no market", since=5, clock_ahead_ms=12, tokens=0, newest_ms=0)

    _, newest_ms, detail = beat(conn, "a", 1)

    assert newest_ms is None
    assert (detail["run_id"], detail["reason"], detail["since"], detail["clock_ahead_ms"]) == (
        "a",
        "follows no market",
        5,
        12,
    )
    assert detail["shards"][0]["shard"] == "1 of 1"


def test_metrics_and_doctor_tell_each_shard(conn, lease):
    queries.want_shards(conn, shards=3)
    one, two, _ = Shard.all(3)
    lease("a", one, lag_p99_ms=250, backlog_events=2)
    lease("b", one, "standby")
    lease("c", two)

    assert list(pipeline.shards(conn)) == [
        ("polymarket", "1 of 3", True, True, 5.0, 2.0, 0.25),
        ("polymarket", "2 of 3", True, False, 5.0, 0.0, None),
        ("polymarket", "3 of 3", False, False, None, None, None),
    ]
    assert [(found.status, found.found) for found in doctor.shards(conn)] == [
        ("warn", "shard 2 of 3 has no standby that is ready"),
        ("fail", "shard 3 of 3 has no leader"),
    ]
    queries.switch_on(conn, stage="ingestion_kalshi")
    told = [row[:3] for row in pipeline.shards(conn)]
    assert told[3:] == [("kalshi", f"{number} of 3", False) for number in (1, 2, 3)]
    assert ("fail", "shard 1 of 3 of Kalshi has no leader") in [
        (each.status, each.found) for each in doctor.shards(conn)
    ]
    lease("d", two, "standby")
    queries.want_shards(conn, shards=1)
    assert list(doctor.shards(conn)) == []


def test_the_wanted_shards_lead_once_each_has_a_run_that_is_ready_and_the_others_leave(conn, lease):
    def found(shards, *, silent_count=False):
        wanted, ready, others, _ = queries.turn(
            conn, family="polymarket", shards=shards, ready_s=3.0, max_silent_s=30.0, silent_count=silent_count
        )
        return turn(shards, wanted, ready=ready, others=others)._replace(wanted=None)

    one, two = Shard.all(2)
    lead, wait, leave = (
        Turn(may_lead=True, over=False),
        Turn(may_lead=False, over=False),
        Turn(may_lead=False, over=True),
    )
    lease("old", Shard())
    assert (found(1), found(2)) == (lead, wait), "nobody has said how many shards there are to be"
    queries.want_shards(conn, shards=2)
    lease("a", one, "standby", ready_for_s=10)
    assert (found(1), found(2)) == (lead, wait)
    lease("b", two, "standby", ready_for_s=2)
    assert (found(1), found(2)) == (lead, wait)
    lease("b", two, "standby", ready_for_s=4)
    assert (found(1), found(2), found(3)) == (leave, lead, leave)
    lease("b", two, "standby", ready_for_s=4, silent_s=11)
    assert (found(1), found(2)) == (lead, wait)
    lease("old", Shard(), silent_s=11)
    assert found(2) == lead, "nobody else is there"
    assert found(2, silent_count=True) == wait, "the old one may be alive: the database was away"
    lease("old", Shard(), silent_s=86_401)
    assert found(2, silent_count=True) == lead
    lease("old", Shard(), silent_s=11)
    lease("old", Shard(), "gone", silent_s=11)
    assert found(2, silent_count=True) == lead


def test_once_a_leader_has_left_for_the_wanted_shards_all_others_leave(conn, lease):
    def over():
        wanted, ready, others, _ = queries.turn(
            conn, family="polymarket", shards=2, ready_s=3.0, max_silent_s=30.0, silent_count=False
        )
        return turn(2, wanted, ready=ready, others=others).over

    one, two = Shard.all(2)
    lease("a", one)
    lease("b", two, "gone", left_for_shards=3, silent_s=60)
    queries.want_shards(conn, shards=3)
    for number, shard in enumerate(Shard.all(3)):
        lease(f"new {number}", shard, "standby", ready_for_s=10, silent_s=11 if number else 0)
    assert not over(), "two of the wanted runs are silent, and it was for an earlier change that the other left"

    lease("b", two, "gone", left_for_shards=3)
    assert over()
    queries.want_shards(conn, shards=4)
    assert not over()


@pytest.mark.parametrize(
    ("shard", "role", "silent_s", "lead"),
    [
        (Shard(1, 2), "leader", 29, True),
        (Shard(1, 2), "leader", 31, False),
        (Shard(1, 2), "standby", 0, False),
        (Shard(1, 2), "gone", 0, False),
        (Shard(1, 2), "left", 0, True),
        (Shard(2, 3), "leader", 0, False),
    ],
)
def test_runs_of_another_number_of_shards_lead_if_one_did_lately(conn, lease, shard, role, silent_s, lead):
    left = {"left_for_shards": 3} if role == "left" else {}
    lease("other", shard, "gone" if left else role, silent_s=silent_s, **left)

    found = queries.turn(conn, family="polymarket", shards=3, ready_s=3.0, max_silent_s=30.0, silent_count=False)

    assert found[3] is lead
