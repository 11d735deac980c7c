"""Dagster's history is pruned, but never the newest run of an asset or a check."""

from datetime import UTC, datetime, timedelta

import dagster as dg

from orchestration.maintenance import pruning


@dg.asset
def often():
    return dg.MaterializeResult()


@dg.asset
def once():
    return dg.MaterializeResult()


@dg.asset_check(asset=once)
def well():
    return dg.AssetCheckResult(passed=True)


@dg.op
def broken():
    raise RuntimeError("as it happens")


@dg.job
def breaks():
    broken()


def later(**ago):
    return datetime.now(UTC) + timedelta(**ago)


def test_old_runs_go_and_the_newest_of_each_asset_stay(instance):
    runs = [dg.materialize([often], instance=instance).run_id for _ in range(3)]
    single = dg.materialize([once], instance=instance).run_id
    checked = [
        dg.materialize([once, well], instance=instance, selection=dg.AssetSelection.checks(well)).run_id
        for _ in range(2)
    ]
    failed = breaks.execute_in_process(instance=instance, raise_on_error=False).run_id

    early = pruning.prune(instance, later(hours=23))
    late = pruning.prune(instance, later(hours=25))

    assert early == pruning.Pruned(deleted=0, spared=0, checks=0, runless_events=0, finished=True)
    assert late == pruning.Pruned(deleted=3, spared=3, checks=1, runless_events=0, finished=True)
    assert {record.dagster_run.run_id for record in instance.get_run_records()} == {
        runs[-1],
        single,
        checked[-1],
        failed,
    }
    assert instance.get_latest_materialization_event(dg.AssetKey("often")).run_id == runs[-1]
    assert instance.all_logs(runs[0]) == []

    after_a_week = pruning.prune(instance, later(days=8))
    assert after_a_week.deleted == 1
    assert instance.get_run_by_id(failed) is None


def test_a_pass_ends_in_time_and_the_next_goes_on(instance):
    for _ in range(2):
        dg.materialize([often], instance=instance)

    hurried = pruning.prune(instance, later(days=2), seconds=0)
    rest = pruning.prune(instance, later(days=2))

    assert not hurried.finished
    assert hurried.deleted == 0
    assert rest.finished
    assert rest.deleted >= 1


def test_what_sensors_report_goes_too_but_the_newest_of_each_asset(instance):
    heard = dg.AssetKey("heard")
    for seconds in (1, 2, 3):
        instance.report_runless_asset_event(dg.AssetMaterialization(heard, metadata={"lag_s": seconds}))
    instance.report_runless_asset_event(dg.AssetMaterialization("seldom", metadata={"lag_s": 9}))

    early = pruning.prune_runless_events(instance, later(hours=-1))
    late = pruning.prune_runless_events(instance, later(hours=1))

    assert (early, late) == (0, 2)
    kept = instance.fetch_materializations(heard, limit=10).records
    assert [record.asset_materialization.metadata["lag_s"].value for record in kept] == [3]
    assert instance.get_latest_materialization_event(dg.AssetKey("seldom")) is not None
