"""The stages as assets: fresh in Dagster's UI exactly while their clocks in the database say so.

Dagster judges freshness by materializations, and keeps a check's last result. So a sensor reports each stage again
while it is fresh, and each change of its state at once. The sensor depends on none of the stages: if all of them stop,
all become stale, and if this sensor stops too, the freshness policies expire.
"""

import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta

import dagster as dg
import psycopg

from config import tunables
from orchestration import checks
from orchestration.assets.pipeline import NO_CLOCK, STAGES, check_fields
from orchestration.checks import Judgement
from orchestration.resources import Database

REPORT_INTERVAL_S = 60.0  # between two materializations of a stage that stays fresh
CHECK_INTERVAL_S = 300.0  # between two evaluations of a check with an unchanged result
# Longer than the interval at which a fresh stage is reported, and more than the minute that Dagster requires.
REPORT_WINDOW_S = 90.0

Event = dg.AssetMaterialization | dg.AssetCheckEvaluation
LastReport = list[float | str]


def policy(stage: str) -> dg.FreshnessPolicy:
    """Warn soon after a stage was last reported, as it is late then; fail when it would have become stale."""
    late, stale = tunables.THRESHOLDS[stage]
    return dg.FreshnessPolicy.time_window(
        warn_window=timedelta(seconds=REPORT_WINDOW_S), fail_window=timedelta(seconds=REPORT_WINDOW_S + stale - late)
    )


def asset(stage: str) -> dg.AssetKey:
    """Return the key of a stage's asset."""
    return dg.AssetKey(["stage", stage])


@dg.multi_asset(
    name="stages",
    specs=[
        dg.AssetSpec(
            asset(stage),
            deps=[made],
            group_name="pipeline",
            kinds={"timescaledb"},
            description=f"Stage `{stage}`, reported while it is fresh by its own clock: `pipeline_status` in the "
            "database, which the API and its metrics read too.",
            freshness_policy=policy(stage),
            skippable=True,
        )
        for stage, made in STAGES.items()
    ],
    can_subset=True,
)
def stages(context: dg.AssetExecutionContext, database: Database) -> Iterator[dg.MaterializeResult[None]]:
    """Report the stages that are fresh."""
    for stage, judgement in judge_stages(database).items():
        if asset(stage) in context.selected_asset_keys and judgement.holds:
            yield dg.MaterializeResult(asset_key=asset(stage), metadata=check_fields(judgement)["metadata"])


@dg.sensor(
    minimum_interval_seconds=10,
    default_status=dg.DefaultSensorStatus.RUNNING,
    description="Reports every stage's state to Dagster: by its check, at once when it has changed, and by a "
    "materialization each minute while it is fresh.",
)
def stages_told(context: dg.SensorEvaluationContext, database: Database) -> dg.SensorResult:
    """Read all clocks at once; starts no run."""
    reported = json.loads(context.cursor) if context.cursor else {}
    now = datetime.now(UTC).timestamp()
    found = judge_stages(database)
    events, reported = due(found, reported, now)
    words = ", ".join(f"{stage} {judgement.summary}" for stage, judgement in found.items())
    return dg.SensorResult(skip_reason=words, asset_events=events, cursor=json.dumps(reported))


def judge_stages(database: Database) -> dict[str, Judgement]:
    """Judge every stage; if the database cannot be reached, none is fresh."""
    try:
        with database.connection(autocommit=True, name="presage stages") as conn:
            known = checks.stages(conn)
    except psycopg.OperationalError as error:
        unknown = Judgement(holds=False, summary=f"unknown: {str(error).partition(chr(10))[0]}")
        return dict.fromkeys(STAGES, unknown)
    return {stage: known.get(stage, NO_CLOCK) for stage in STAGES}


def due(
    found: Mapping[str, Judgement], reported: Mapping[str, LastReport], now: float
) -> tuple[list[Event], dict[str, LastReport]]:
    """Return the events to report now, and the state after them: each stage's last report, and when it was made."""
    events: list[Event] = []
    after: dict[str, LastReport] = {}
    for stage, judgement in found.items():
        word = judgement.summary.partition(":")[0]
        last, checked_at, fresh_at = reported.get(stage, ("", 0.0, 0.0))
        if word != last or now - float(checked_at) >= CHECK_INTERVAL_S:
            checked_at = now
            events.append(
                dg.AssetCheckEvaluation(asset_key=STAGES[stage], check_name=f"{stage}_fresh", **check_fields(judgement))
            )
        if judgement.holds and word != "off" and (word != last or now - float(fresh_at) >= REPORT_INTERVAL_S):
            fresh_at = now
            events.append(dg.AssetMaterialization(asset(stage), metadata=check_fields(judgement)["metadata"]))
        after[stage] = [word, checked_at, fresh_at]
    return events, after
