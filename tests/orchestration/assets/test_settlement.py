"""Settlement under Dagster: what is started, listed, backfilled and checked."""

from __future__ import annotations

import time
import uuid

import dagster as dg
import pytest

from config import settings
from orchestration.assets import settlement
from orchestration.resources import Database
from orchestration.settlement import partitions
from sql.queries import settlement as queries
from sql.roles.rights import PIPELINE
from tests.chain import Chain, events
from tests.factories import insert
from tests.orchestration.settlement import truth
from tests.roles import login_url


@pytest.fixture
def instance(instance):
    yield instance
    for record in instance.get_run_records():
        instance.delete_run(record.dagster_run.run_id)
    for key in instance.get_dynamic_partitions("settlement_blocks"):
        instance.delete_dynamic_partition("settlement_blocks", key)


@pytest.fixture
def tick(instance, database_url):
    def evaluate():
        context = dg.build_sensor_context(instance=instance)
        return settlement.settlement_keeper(context, database=Database(url=login_url(database_url, PIPELINE)))

    return evaluate


@pytest.fixture
def configured(monkeypatch, anvil):
    """Configure a chain: the tests' node."""
    monkeypatch.setenv("PRESAGE_CHAIN_RPC_URLS", anvil.url)
    monkeypatch.setenv("PRESAGE_SETTLEMENT_PARTITION_BLOCKS", "100")
    settings.get.cache_clear()
    yield
    monkeypatch.undo()
    settings.get.cache_clear()


@pytest.fixture
def fresh(anvil):
    made = Chain(anvil, genesis_s=int(time.time()) - 3000)
    made.extend([[events.match_v2([events.fill_v2(maker=events.wallet(n % 7 + 1))])] for n in range(180)])
    return made


def clock(conn):
    return conn.execute("select detail from pipeline_status where stage = 'settlement'").fetchone()[0]


def test_nothing_is_started_while_no_endpoint_is_configured(tick, conn):
    skipped = tick()

    assert "PRESAGE_CHAIN_RPC_URLS" in skipped.skip_message
    assert "PRESAGE_CHAIN_RPC_URLS" in clock(conn)["off"]
    assert settlement.settlement_check_each_day().skip_message == skipped.skip_message


@pytest.mark.usefixtures("configured")
def test_two_runs_are_kept_one_started_a_tick(tick, conn):
    first = tick()

    assert len(first.run_requests) == 1
    assert float(first.run_requests[0].tags["presage/window_s"]) == settings.get().settlement_window_s / 2
    assert "off" not in clock(conn)


@pytest.mark.usefixtures("configured")
def test_the_live_feed_comes_first(tick, instance, conn, database_url):
    run = dg.DagsterRun(job_name="live", run_id=str(uuid.uuid4()), status=dg.DagsterRunStatus.STARTING)
    instance.add_run(run)
    waiting = tick()
    lease = {"feed": "polymarket", "role": "leader", "ready": True, "window_ends_at": "now"}
    insert(conn, "feed_leases", {"run_id": run.run_id, **lease})

    assert waiting.skip_message == "the live feed comes first"
    assert len(tick().run_requests) == 1


@pytest.mark.usefixtures("configured")
def test_ranges_that_are_final_are_listed_and_those_no_longer_kept_are_not(tick, instance, conn):
    size = settings.get().settlement_partition_blocks
    kept = settings.get().settlements_retention_days * 86_400 / partitions.BLOCK_S
    queries.set_heads(conn, feed="settlement", head=1050, finalized=999, indexed=1050, detail="{}")
    instance.add_dynamic_partitions("settlement_blocks", ["000000000-000000049"])

    (added, deleted) = tick().dynamic_partitions_requests

    assert added.partition_keys == [f"{n * size:09d}-{n * size + size - 1:09d}" for n in range(10)]
    assert deleted.partition_keys == ["000000000-000000049"]
    far = partitions.listed(10_000_000, size, settings.get().settlements_retention_days)
    assert partitions.bounds(far[0])[0] == (10_000_000 - kept) // size * size


@pytest.mark.usefixtures("configured")
def test_a_range_is_filled_in_from_the_ui_and_a_second_time_nothing_is_left_to_do(instance, conn, database_url, fresh):
    instance.add_dynamic_partitions("settlement_blocks", ["000000000-000000099"])
    given = {"resources": {"database": Database(url=login_url(database_url, PIPELINE))}, "instance": instance}

    runs = [
        dg.materialize([settlement.settlement_history], partition_key="000000000-000000099", **given) for _ in range(2)
    ]

    assert all(run.success for run in runs)
    told = [run.asset_materializations_for_node("settlement_history")[0].metadata for run in runs]
    assert [(each["blocks_done"].value, each["share"].value) for each in told] == [(100, 1.0), (0, 1.0)]
    assert told[0]["settlements"].value == len(truth.settlements(conn)) == 99 * 2
    assert truth.compare(conn, fresh, to=99, told=False) == {}


@pytest.mark.usefixtures("configured")
def test_a_part_of_a_range_can_be_asked_for(instance, conn, database_url, fresh):
    instance.add_dynamic_partitions("settlement_blocks", ["000000000-000000099"])

    dg.materialize(
        [settlement.settlement_history],
        partition_key="000000000-000000099",
        resources={"database": Database(url=login_url(database_url, PIPELINE))},
        instance=instance,
        run_config={"ops": {"settlement_history": {"config": {"from_block": 20, "to_block": 29}}}},
    )

    assert conn.execute("select from_block, to_block from chain_ranges").fetchall() == [(20, 29)]
    assert truth.compare(conn, fresh, from_=20, to=29, told=False) == {}


@pytest.mark.usefixtures("configured")
def test_what_is_there_can_be_counted_again(instance, conn, database_url, fresh):
    instance.add_dynamic_partitions("settlement_blocks", ["000000000-000000099"])
    given = {"resources": {"database": Database(url=login_url(database_url, PIPELINE))}, "instance": instance}
    dg.materialize([settlement.settlement_history], partition_key="000000000-000000099", **given)
    conn.execute("update chain_blocks set logs = logs - 1 where number = 50")
    conn.execute("delete from settlements where block_number = 50 and log_index = 0")

    again = {"ops": {"settlement_history": {"config": {"check": True}}}}
    run = dg.materialize(
        [settlement.settlement_history], partition_key="000000000-000000099", run_config=again, **given
    )

    told = run.asset_materializations_for_node("settlement_history")[0].metadata
    assert (told["blocks_done"].value, told["blocks_checked"].value, told["logs_found_missing"].value) == (0, 100, 1)
    assert truth.settlements(conn) == truth.Truth(fresh, 0, 99).settlements


@pytest.mark.usefixtures("configured")
def test_the_daily_check_repairs_and_says_so(instance, conn, database_url, fresh):
    instance.add_dynamic_partitions("settlement_blocks", ["000000000-000000099"])
    given = {"resources": {"database": Database(url=login_url(database_url, PIPELINE))}, "instance": instance}
    dg.materialize([settlement.settlement_history], partition_key="000000000-000000099", **given)
    conn.execute("update chain_blocks set logs = logs - 1 where number = 50")
    conn.execute("delete from settlements where block_number = 50 and log_index = 0")

    run = dg.materialize([settlement.chain_ranges], **given)

    told = run.asset_materializations_for_node("chain_ranges")[0].metadata
    assert (told["logs_found_missing"].value, told["blocks_replaced"].value) == (1, 0)
    assert truth.settlements(conn) == truth.Truth(fresh, 0, 99).settlements
    assert conn.execute("select from_block, to_block from chain_checks").fetchall() == [(0, 99)]


def test_the_checks_tell_depth_holes_and_incidents(conn, database_url):
    queries.set_heads(conn, feed="settlement", head=5000, finalized=1000, indexed=5000, detail='{"start": 10}')
    queries.add_range(conn, from_block=10, to_block=4000, logs=0)
    queries.note_incident(conn, kind="resolution_disagrees", subject="0xabc", mended=False, detail="{}")
    for source in ("chain", "gamma"):
        insert(conn, "quarantine", {"source": source, "reason": "not understood", "payload": "{}"})

    run = dg.materialize(
        [settlement.feed, settlement.chain_ranges, settlement.settlement_checks],
        selection=dg.AssetSelection.checks_for_assets("chain_blocks", "chain_ranges", "settlements", "ledger_entries"),
        resources={"database": Database(url=login_url(database_url, PIPELINE))},
    )

    found = {each.check_name: (each.passed, each.description) for each in run.get_asset_check_evaluations()}
    assert found == {
        "provisional_depth": (False, "4000 blocks above the finalized head"),
        "no_holes": (False, "1000 blocks missing in 1 holes"),
        "no_incidents": (False, "1 open, 1 within 24 hours"),
        "all_settled": (True, "no trade of an hour ago is in indexed blocks"),
        "all_understood": (False, "1 refused in ten minutes"),
    }
