"""What sensors start, skip and mark failed."""

import json
import uuid
from datetime import UTC, datetime, timedelta

import dagster as dg
import pytest
from dagster._core.storage.runs.schema import RunsTable

from config import settings as config_settings
from config import tunables
from config.exchanges import KALSHI
from config.settings import Settings
from orchestration.assets import candles, equivalents, markets
from orchestration.assets import ingest as live
from orchestration.feeds import keeping
from orchestration.feeds.keeper import Run
from orchestration.feeds.runs import SHARD_TAG
from orchestration.feeds.shards import WHOLE, Shard
from orchestration.ingest.exchanges import opening
from orchestration.resources import Database
from sql.queries import equivalents as queries
from sql.roles.rights import PIPELINE
from tests.factories import insert
from tests.roles import login_url

NOW = datetime.now(UTC)


@pytest.fixture
def tick(instance, database_url):
    def evaluate(sensor, cursor=None):
        context = dg.build_sensor_context(instance=instance, cursor=cursor)
        return sensor(context, database=Database(url=login_url(database_url, PIPELINE)))

    yield evaluate
    for record in instance.get_run_records():
        instance.delete_run(record.dagster_run.run_id)


@pytest.fixture
def add_run(instance):
    """Add a run to Dagster's storage, without any process."""

    def add(job, status, ago=0.0, **tags):
        run_id = str(uuid.uuid4())
        run = dg.DagsterRun(job_name=job, run_id=run_id, status=dg.DagsterRunStatus[status], tags=tags)
        created = datetime.now(UTC) - timedelta(seconds=ago)
        instance.run_storage.add_historical_run(run, run_creation_time=created)
        backdate = (
            RunsTable.update().where(RunsTable.c.run_id == run_id).values(update_timestamp=created.replace(tzinfo=None))
        )
        with instance.run_storage.connect() as storage:
            storage.execute(backdate)
        return run_id

    return add


def lease(conn, run_id, silent_s=0.0, role="leader", shard=WHOLE):
    beat = datetime.now(UTC) - timedelta(seconds=silent_s)
    row = {"run_id": run_id, "feed": shard.feed("polymarket"), "role": role, "beat_at": beat, "window_ends_at": beat}
    insert(conn, "feed_leases", row)


@pytest.fixture
def long_uptime(monkeypatch):
    """Pretend that the test's database server has been up for long."""
    monkeypatch.setattr(keeping.checks, "up_s", lambda _: 1000.0)


def test_the_keeper_starts_one_run_a_tick_the_shorter_window_first(tick, add_run):
    (first,) = tick(live.live_keeper).run_requests
    add_run("live", "STARTING")
    (second,) = tick(live.live_keeper).run_requests
    add_run("live", "NOT_STARTED")
    third = tick(live.live_keeper)

    assert float(first.tags[live.WINDOW_TAG]) == float(second.tags[live.WINDOW_TAG]) / 2
    assert int(second.tags["dagster/max_runtime"]) > float(second.tags[live.WINDOW_TAG]) * 3
    assert first.run_key != second.run_key
    assert third.run_requests == []
    assert third.skip_reason.skip_message == "alive 0, coming 2, marked failed 0, started 0"


def test_the_keeper_counts_by_leases_and_buries_what_shows_no_life(tick, add_run, conn, instance, long_uptime):
    alive, dead, young = (add_run("live", "STARTED", ago) for ago in (600, 600, 5))
    lease(conn, alive)
    lease(conn, dead, silent_s=60)

    decided = tick(live.live_keeper)

    assert instance.get_run_by_id(dead).status == dg.DagsterRunStatus.FAILURE
    assert {instance.get_run_by_id(run).status for run in (alive, young)} == {dg.DagsterRunStatus.STARTED}
    assert decided.skip_reason.skip_message == "alive 1, coming 1, marked failed 1, started 0"


def test_the_keeper_does_not_count_runs_that_have_ended(tick, add_run, conn, long_uptime):
    for run_id in (add_run("live", "SUCCESS", 60), add_run("live", "FAILURE", 60)):
        lease(conn, run_id, silent_s=1)

    assert len(tick(live.live_keeper).run_requests) == 1


@pytest.mark.parametrize(("hosts", "windows"), [((), [0.5, 1.0]), (("a",), [0.5, 1.0]), (("a", "b"), [1.0])])
def test_where_two_hosts_run_the_feeds_the_keeper_starts_one_only_while_there_is_none(
    tick, add_run, conn, hosts, windows
):
    for host in hosts:
        insert(conn, "feed_hosts", {"host": host, "instance": "1"})
    insert(conn, "feed_hosts", {"host": "gone", "instance": "1", "beat_at": datetime.now(UTC) - timedelta(seconds=31)})
    started = []
    while requests := tick(live.live_keeper).run_requests:
        started += [float(request.tags[live.WINDOW_TAG]) for request in requests]
        add_run("live", "STARTING")

    assert started == [window * live.settings.get().live_window_s for window in windows]


def away(seconds):
    """Return the cursor of a keeper whose last tick was so long ago."""
    return f"1000.000 {datetime.now(UTC).timestamp() - seconds:.3f}"


@pytest.mark.parametrize(("silent_s", "awaited"), [(600, True), (90_000, False)])
def test_after_the_database_was_away_the_keeper_lets_hosts_show_first_that_they_are_alive(
    tick, conn, silent_s, awaited
):
    beat_at = datetime.now(UTC) - timedelta(seconds=silent_s)
    insert(conn, "feed_hosts", {"host": "a", "instance": "1", "beat_at": beat_at})

    first = tick(live.live_keeper, away(keeping.AWAY_S + 5))
    since, last = map(float, first.cursor.split())
    settled = tick(live.live_keeper, f"{since - 15:.3f} {last:.3f}")

    assert len(first.run_requests) == (0 if awaited else 1)
    assert len(settled.run_requests) == 1
    assert settled.cursor.startswith(f"{since - 15:.3f} ")


def test_after_the_database_was_away_silent_runs_are_not_taken_for_dead(tick, add_run, conn, instance, long_uptime):
    runs = [add_run("live", "STARTED", 600) for _ in range(2)]
    for run in runs:
        lease(conn, run, silent_s=60)

    first = tick(live.live_keeper, away(keeping.AWAY_S + 5))
    statuses = {instance.get_run_by_id(run).status for run in runs}
    since, last = map(float, first.cursor.split())
    tick(live.live_keeper, f"{since - 15:.3f} {last:.3f}")

    assert (first.run_requests, statuses) == ([], {dg.DagsterRunStatus.STARTED})
    assert {instance.get_run_by_id(run).status for run in runs} == {dg.DagsterRunStatus.FAILURE}


@pytest.mark.parametrize("cursor", [None, "", "1", "a b", "1 2 3"])
def test_a_keeper_without_a_cursor_of_its_own_waits_for_nobody(tick, conn, cursor):
    insert(conn, "feed_hosts", {"host": "a", "instance": "1"})

    assert len(tick(live.live_keeper, cursor).run_requests) == 1


def test_the_keeper_starts_a_run_of_each_shard_and_then_the_standbys(tick, add_run, conn):
    tunables.set_(conn, "live_shards", "3")
    started = []
    for _ in range(6):
        (request,) = tick(live.live_keeper).run_requests
        started.append(request.tags[SHARD_TAG])
        add_run("live", "STARTING", **{SHARD_TAG: request.tags[SHARD_TAG]})

    assert started == ["1 of 3", "2 of 3", "3 of 3"] * 2
    assert tick(live.live_keeper).run_requests == []
    assert conn.execute("select value from settings where name = 'live_shards'").fetchone() == (3,)


def test_the_keeper_leaves_runs_of_another_number_of_shards_alone_and_buries_their_dead(
    tick, add_run, conn, instance, long_uptime
):
    old, dead = add_run("live", "STARTED", 600), add_run("live", "STARTED", 600)
    lease(conn, old)
    lease(conn, dead, silent_s=60)
    tunables.set_(conn, "live_shards", "2")
    new = add_run("live", "STARTED", 60, **{SHARD_TAG: "1 of 2"})
    lease(conn, new, role="standby", shard=Shard(1, 2))

    (request,) = tick(live.live_keeper).run_requests

    assert request.tags[SHARD_TAG] == "2 of 2"
    assert [instance.get_run_by_id(run).status.value for run in (old, dead, new)] == ["STARTED", "FAILURE", "STARTED"]


def test_without_a_number_there_is_a_shard_for_each_two_cores(tick, conn, monkeypatch):
    for cores, setting, shards in ((1, 0, 1), (9, 0, 4), (64, 0, 8), (9, 2, 2)):
        monkeypatch.setattr("config.settings.os.cpu_count", lambda cores=cores: cores)
        monkeypatch.setattr(live.settings, "get", lambda setting=setting: Settings(_env_file=None, live_shards=setting))
        tick(live.live_keeper)
        assert conn.execute("select value from settings where name = 'live_shards'").fetchone() == (shards,)


def test_discovery_starts_at_once_on_an_empty_database_and_not_twice(tick, add_run):
    (request,) = tick(markets.discovery_due).run_requests
    add_run("discovery", "STARTING")
    again = tick(markets.discovery_due)

    assert request.tags == {"presage/walk": "full"}
    assert again.run_requests == []
    assert again.skip_reason.skip_message.startswith("starting")


def test_a_second_exchange_is_read_only_if_it_is_configured_and_its_stage_says_so(tick, conn, monkeypatch):
    off = "select detail ->> 'off' from stage_clocks where stage = 'discovery_kalshi'"
    monkeypatch.setattr(markets.settings, "get", lambda: Settings(_env_file=None, exchanges="polymarket"))
    skipped = tick(markets.kalshi_discovery_due)
    said = conn.execute(off).fetchone()
    monkeypatch.setattr(markets.settings, "get", lambda: Settings(_env_file=None, exchanges="polymarket, kalshi"))
    (request,) = tick(markets.kalshi_discovery_due).run_requests
    on = conn.execute(off).fetchone()
    monkeypatch.setattr(markets.settings, "get", lambda: Settings(_env_file=None, exchanges="polymarket"))
    tick(markets.kalshi_discovery_due)

    assert "PRESAGE_EXCHANGES" in skipped.skip_message
    assert said == (skipped.skip_message,)
    assert request.tags == {"presage/walk": "full"}
    assert on == (None,)
    assert conn.execute(off).fetchone() == said


def test_markets_are_compared_once_both_catalogues_have_been_read_and_then_each_hour(tick, conn, monkeypatch):
    def said():
        found = tick(equivalents.equivalents_due)
        return found.skip_message if isinstance(found, dg.SkipReason) else "starts"

    monkeypatch.setattr(equivalents.settings, "get", lambda: Settings(_env_file=None, exchanges="polymarket"))
    alone = said()
    monkeypatch.setattr(equivalents.settings, "get", lambda: Settings(_env_file=None, exchanges="polymarket,kalshi"))
    unread = said()
    for stage in ("discovery", "discovery_kalshi"):
        insert(conn, "settings", {"name": stage, "value": json.dumps({"full_at": NOW.isoformat()})})
    first = said()
    queries.begin(conn)
    fails = said()
    queries.finish(conn, left=0)
    waits = said()
    queries.finish(conn, left=3)
    goes_on = said()
    queries.finish(conn, left=0)
    conn.execute(
        "update settings set value = value || jsonb_build_object("
        "'began_at', now() - interval '62 minutes', 'ended_at', now() - interval '61 minutes')"
        " where name = 'equivalents'"
    )

    assert alone.startswith("one exchange is configured alone")
    assert unread == "the catalogue has not been read yet: Polymarket, Kalshi"
    assert (first, goes_on, said()) == ("starts", "starts", "starts")
    assert waits.startswith("the last pass ended")
    assert fails.startswith("the last pass failed")


def test_discovery_waits_until_something_is_due(tick, conn):
    now = datetime.now(UTC)
    state = {name: now.isoformat() for name in ("tried_at", "full_at", "looked_at")}
    conn.execute("insert into settings (name, value) values ('discovery', %s)", [json.dumps(state)])
    waiting = tick(markets.discovery_due)
    state["looked_at"] = (now - timedelta(minutes=2)).isoformat()
    conn.execute("update settings set value = %s where name = 'discovery'", [json.dumps(state)])
    looking = tick(markets.discovery_due)

    assert waiting.skip_reason.skip_message.startswith("nothing due")
    assert looking.run_requests[0].tags == {"presage/walk": "changes"}


def test_a_walk_whose_process_is_gone_is_marked_failed_after_a_while(tick, add_run, conn, instance):
    dead = add_run("discovery", "STARTED", 300)
    first = tick(markets.discovery_due)
    suspects = json.loads(first.cursor)
    later = json.dumps({run_id: since - 20 for run_id, since in suspects.items()})
    second = tick(markets.discovery_due, cursor=later)

    assert list(suspects) == [dead]
    assert first.run_requests == []
    assert instance.get_run_by_id(dead).status == dg.DagsterRunStatus.FAILURE
    assert len(second.run_requests) == 1


def test_a_walk_that_holds_its_lock_is_left_alone(tick, add_run, conn):
    add_run("discovery", "STARTED", 3000)
    markets.queries.begin_walk(conn, name="discovery")

    assert json.loads(tick(markets.discovery_due).cursor) == {}


def test_the_first_pass_of_aggregates_comes_with_the_first_price(tick, conn, add_market):
    before = tick(candles.aggregates_due)
    insert(conn, "live_prices", {"market_key": 1, "outcome": 0, "ts": NOW})
    after = tick(candles.aggregates_due)

    assert before.skip_message == "no prices yet"
    assert isinstance(after, dg.RunRequest)


@pytest.mark.parametrize(
    ("last_s", "run_s", "expected"),
    [
        (None, None, None),
        (30, None, "the last pass ended 30 s ago"),
        (61, None, None),
        (61, 10, "a pass is started"),
        (61, 600, "a pass is started"),
    ],
)
def test_passes_are_a_minute_apart_and_one_at_a_time(last_s, run_s, expected):
    last = None if last_s is None else NOW - timedelta(seconds=last_s)
    runs = [] if run_s is None else [Run("r", "STARTED", NOW.timestamp() - run_s)]

    assert candles.reason_to_wait(last, NOW, prices=True, runs=runs) == expected


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({}, "Kalshi is not configured: add kalshi to PRESAGE_EXCHANGES"),
        ({"PRESAGE_EXCHANGES": "polymarket,kalshi"}, "Kalshi needs an API key"),
        (
            {"PRESAGE_EXCHANGES": "polymarket,kalshi", "PRESAGE_KALSHI_KEY_ID": "a-b"},
            "PRESAGE_KALSHI_KEY_ID is set, but not PRESAGE_KALSHI_PRIVATE_KEY_FILE",
        ),
    ],
)
def test_a_feed_that_cannot_run_is_not_started_and_its_stage_says_why(monkeypatch, settings, why):
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    configured = Settings(_env_file=None)
    monkeypatch.setattr(config_settings, "get", lambda: configured)

    assert opening.obstacle(KALSHI, configured).startswith(why)


def test_the_stage_of_an_exchange_that_is_not_recorded_is_off(tick, conn):
    conn.execute("update stage_clocks set detail = '{\"written_ms\": 7}' where stage = 'ingestion_kalshi'")
    conn.commit()
    asked = tick(live.live_kalshi_keeper)

    assert asked.run_requests == []
    stage = conn.execute("select detail from stage_clocks where stage = 'ingestion_kalshi'").fetchone()
    assert stage == ({"off": asked.skip_reason.skip_message, "written_ms": 7},)
