import pytest

from orchestration.feeds.shards import Shard
from orchestration.ingest import session
from orchestration.ingest.committer import MARGIN_MS
from orchestration.ingest.gaps.losses import UNCHANGED as NOTHING_MISSED
from sql.queries import feed as queries
from tests.orchestration.ingest.live_world import (
    MIN_COMPARED,
    NO_DIFFERENCES,
    World,
    disable_listings,
    now_ms,
    wait_until,
)
from tests.soak.audit import audit
from upstream.sandbox.server import Sandbox


@pytest.fixture(autouse=True)
def fast_polling(monkeypatch):
    """Poll more often than needed, so that tests do not wait."""
    disable_listings(monkeypatch)
    for interval in ("BEAT_S", "TOKENS_S", "GAPS_S", "NEWS_S"):
        monkeypatch.setattr(session, interval, 0.2)


@pytest.fixture
def world(database_url, tmp_path):
    log = tmp_path / "truth.jsonl"
    with (
        Sandbox(simulate=11, rate=150, markets=15, log=log) as sandbox,
        World(sandbox, database_url, log) as made,
    ):
        yield made


def markets_of(world, shard):
    """Return the keys of a shard's markets."""
    rows = world.conn.execute(
        "select market_key from markets where shard_of(market_id, %s) = %s", [shard.of, shard.number]
    )
    return {key for (key,) in rows}


def start(world, shards):
    """Want so many shards and start a run of each; return them once they lead, and all others have left."""
    queries.want_shards(world.conn, shards=shards)
    started = [world.feed(shard=shard, settle_s=1) for shard in Shard.all(shards)]
    wait_until(lambda: [run_id for run_id, _ in world.leaders(shards)] == [feed.run_id for feed in started])
    return started


def test_each_shard_writes_its_own_markets_and_together_they_write_everything(world):
    feeds = start(world, 2)
    began = world.shards_caught_up(2, MARGIN_MS)
    world.wait_until_sent(began, more_than=40)
    until = world.shards_caught_up(2)
    totals = [feed.stop() for feed in feeds]

    assert world.differences(began, until) == NO_DIFFERENCES
    assert world.gaps() == []
    assert [total["tokens"] for total in totals] == [2 * len(markets_of(world, shard)) for shard in Shard.all(2)]
    assert all(total["trades"] for total in totals)


def test_a_killed_shard_misses_only_its_own_markets_and_says_so(world):
    queries.want_shards(world.conn, shards=2)
    one, two = Shard.all(2)
    kept = world.feed(shard=one, settle_s=1)
    killed = world.process(shard=two)
    wait_until(lambda: world.leaders(2))
    began = world.shards_caught_up(2, MARGIN_MS)
    world.wait_until_sent(began, more_than=10)

    killed.kill()
    world.wait_until_sent(now_ms(), more_than=20)
    again = world.feed(shard=two, settle_s=1)
    wait_until(lambda: [run_id for run_id, _ in world.leaders(2)] == [kept.run_id, again.run_id])
    wait_until(lambda: world.filled("trades") == {"data_api"})
    world.wait_until_sent(now_ms(), more_than=10)
    until = world.shards_caught_up(2)

    rows = world.conn.execute("select distinct market_key, shard, shards from coverage_gaps").fetchall()
    assert rows == [(None, 2, 2)]
    world.sandbox.call(world.sandbox.log.flush)
    report = audit(world.url, world.log, from_ms=began, to_ms=until)
    report.assert_clean()
    assert report.missing["level changes"] > 0, "what nobody received of the killed shard"


def test_a_standby_takes_over_its_shard_and_nothing_is_lost_or_doubled(world):
    queries.want_shards(world.conn, shards=2)
    one, two = Shard.all(2)
    world.feed(shard=one)
    killed = world.process(shard=two)
    wait_until(lambda: world.leaders(2))
    standby = world.feed(shard=two)
    wait_until(lambda: world.ready(standby))
    began = world.shards_caught_up(2, MARGIN_MS)
    world.wait_until_sent(began, more_than=10)

    wait_until(lambda: world.ready(standby))
    killed.kill()
    wait_until(lambda: (leaders := world.leaders(2)) and leaders[1][0] == standby.run_id)
    world.wait_until_sent(now_ms(), more_than=10)

    assert world.differences(began, world.shards_caught_up(2)) == NO_DIFFERENCES
    assert world.gaps() == []


def test_the_number_of_shards_changes_under_load_and_nothing_is_lost_or_doubled(world):
    former = start(world, 1)
    began = world.shards_caught_up(1, MARGIN_MS)
    for shards in (2, 3, 1):
        present = start(world, shards)
        wait_until(lambda former=former: all(feed.over for feed in former))
        world.wait_until_sent(world.shards_caught_up(shards), more_than=MIN_COMPARED // 2)
        former = present
    until = world.shards_caught_up(1)

    assert world.differences(began, until) == NO_DIFFERENCES
    assert world.gaps() == []


def test_runs_of_another_number_of_shards_wait_until_all_are_ready(world):
    (old,) = start(world, 1)
    queries.want_shards(world.conn, shards=2)
    first = world.feed(shard=Shard(1, 2))
    wait_until(lambda: (lease := world.leases().get(first.run_id)) and lease[2]["ready_for_s"] > 5)

    assert world.leader() == old.run_id
    second = world.feed(shard=Shard(2, 2))
    wait_until(lambda: [run_id for run_id, _ in world.leaders(2)] == [first.run_id, second.run_id])
    wait_until(lambda: old.over)
    assert world.gaps() == []


@pytest.mark.soak
def test_whatever_is_killed_while_the_number_of_shards_changes_nothing_is_lost_without_a_record(world):
    queries.want_shards(world.conn, shards=1)
    old = world.process()
    wait_until(lambda: world.leader() == old.run_id)
    began = world.shards_caught_up(1, MARGIN_MS)
    queries.want_shards(world.conn, shards=2)
    one, two = Shard.all(2)
    world.feed(shard=one, settle_s=1)
    killed, standby = world.process(shard=two), world.feed(shard=two, settle_s=1)
    wait_until(lambda: world.ready(killed) and world.ready(standby))

    old.kill()
    wait_until(lambda: world.leaders(2))
    killed.kill()
    wait_until(lambda: (leaders := world.leaders(2)) and leaders[1][0] == standby.run_id)
    world.wait_until_sent(now_ms(), more_than=20)
    until = world.shards_caught_up(2)
    wait_until(lambda: world.filled("trades") <= {"data_api", f"run {standby.run_id}", NOTHING_MISSED})

    world.sandbox.call(world.sandbox.log.flush)
    audit(world.url, world.log, from_ms=began, to_ms=until).assert_clean()
