"""The stages themselves, as assets: fresh in Dagster's UI while their clocks in the database say so, and no longer.

Dagster judges freshness by materializations, and keeps what a check said last. So each stage is told of anew while it
is fresh, and each change of its state at once, by a sensor that depends on none of the stages: when all of them stand
still all of them turn red, and when this sensor stands still too.
"""

import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta

import dagster as dg
import psycopg

from config import tunables as parameters
from orchestration import checks
from orchestration.assets.pipeline import NO_CLOCK, STAGES, said
from orchestration.checks import Judgement
from orchestration.resources import Database

TELL_S = 60.0  # between two materializations of a stage that stays fresh
CHECK_S = 300.0  # between two evaluations of a check that says the same
# Longer than it takes to tell of a fresh stage again, and more than the minute that Dagster asks for.
UNTOLD_S = 90.0

Event = dg.AssetMaterialization | dg.AssetCheckEvaluation
Told = list[float | str]


def policy(stage: str) -> dg.FreshnessPolicy:
    """Warn soon after a stage was told of last, as it is late then; fail as much later as it takes to be stale."""
    late, stale = parameters.THRESHOLDS[stage]
    return dg.FreshnessPolicy.time_window(
        warn_window=timedelta(seconds=UNTOLD_S), fail_window=timedelta(seconds=UNTOLD_S + stale - late)
    )


def asset(stage: str) -> dg.AssetKey:
    """Name the asset that a stage is."""
    return dg.AssetKey(["stage", stage])


@dg.multi_asset(
    name="stages",
    specs=[
        dg.AssetSpec(
            asset(stage),
            deps=[made],
            group_name="pipeline",
            kinds={"timescaledb"},
            description=f"The stage `{stage}`, told of while it is fresh by its own clock: `pipeline_status` in the "
            "database, which the API and its metrics read too.",
            freshness_policy=policy(stage),
            skippable=True,
        )
        for stage, made in STAGES.items()
    ],
    can_subset=True,
)
def stages(context: dg.AssetExecutionContext, database: Database) -> Iterator[dg.MaterializeResult[None]]:
    """Tell of those that are fresh."""
    for stage, judgement in judged(database).items():
        if asset(stage) in context.selected_asset_keys and judgement.holds:
            yield dg.MaterializeResult(asset_key=asset(stage), metadata=said(judgement)["metadata"])


@dg.sensor(
    minimum_interval_seconds=10,
    default_status=dg.DefaultSensorStatus.RUNNING,
    description="Tells Dagster of every stage's state: by its check, at once when it has changed, and by a "
    "materialization each minute while it is fresh.",
)
def stages_told(context: dg.SensorEvaluationContext, database: Database) -> dg.SensorResult:
    """Look at all clocks at once; starts nothing."""
    told = json.loads(context.cursor) if context.cursor else {}
    now = datetime.now(UTC).timestamp()
    found = judged(database)
    events, told = due(found, told, now)
    words = ", ".join(f"{stage} {judgement.said}" for stage, judgement in found.items())
    return dg.SensorResult(skip_reason=words, asset_events=events, cursor=json.dumps(told))


def judged(database: Database) -> dict[str, Judgement]:
    """Judge every stage; a database that cannot be asked has no fresh one."""
    try:
        with database.connection(autocommit=True, name="presage stages") as conn:
            known = checks.stages(conn)
    except psycopg.OperationalError as error:
        unknown = Judgement(holds=False, said=f"unknown: {str(error).partition(chr(10))[0]}")
        return dict.fromkeys(STAGES, unknown)
    return {stage: known.get(stage, NO_CLOCK) for stage in STAGES}


def due(found: Mapping[str, Judgement], told: Mapping[str, Told], now: float) -> tuple[list[Event], dict[str, Told]]:
    """Choose what to tell now; give back what has been told: each stage's word, and when by check and as fresh."""
    events: list[Event] = []
    after: dict[str, Told] = {}
    for stage, judgement in found.items():
        word = judgement.said.partition(":")[0]
        last, checked_at, fresh_at = told.get(stage, ("", 0.0, 0.0))
        if word != last or now - float(checked_at) >= CHECK_S:
            checked_at = now
            events.append(
                dg.AssetCheckEvaluation(asset_key=STAGES[stage], check_name=f"{stage}_fresh", **said(judgement))
            )
        if judgement.holds and word != "off" and (word != last or now - float(fresh_at) >= TELL_S):
            fresh_at = now
            events.append(dg.AssetMaterialization(asset(stage), metadata=said(judgement)["metadata"]))
        after[stage] = [word, checked_at, fresh_at]
    return events, after
