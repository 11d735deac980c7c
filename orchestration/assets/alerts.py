"""Alerts: failed runs and failing checks, sent to the receivers in the settings."""

import logging
from collections.abc import Callable, Collection, Sequence
from datetime import UTC, datetime

import dagster as dg
import msgspec
from dagster._core.storage.asset_check_execution_record import AssetCheckExecutionRecordStatus as Status

from config import settings
from orchestration.alerts.outbox import AlertMessage, Outbox
from orchestration.alerts.receivers import receivers
from orchestration.alerts.standing import AlertState, FailedRun, FailingCheck

MAX_RUNS_PER_EVALUATION = 50
MAX_ERROR_CHARS = 300  # max characters of an error
NO_RECEIVERS = "no receivers: set PRESAGE_ALERT_WEBHOOK_URL or PRESAGE_ALERT_APPRISE_URLS"

log = logging.getLogger(__name__)


class SensorState(msgspec.Struct):
    """Sensor state kept from one evaluation to the next."""

    runs_until: float
    standing: AlertState = msgspec.field(default_factory=AlertState)
    outboxes: dict[str, Outbox] = {}


@dg.sensor(
    minimum_interval_seconds=15,
    default_status=dg.DefaultSensorStatus.RUNNING,
    description="Alerts on failed runs and failing checks, once with infrequent repeats, and on recovery: to "
    "PRESAGE_ALERT_WEBHOOK_URL and PRESAGE_ALERT_APPRISE_URLS.",
)
def alerts(context: dg.SensorEvaluationContext) -> dg.SensorResult:
    """Read failures from Dagster, and send the alerts that are due."""
    given, now = settings.get(), datetime.now(UTC).timestamp()
    ways = receivers(given)
    if not ways:
        return dg.SensorResult(skip_reason=NO_RECEIVERS)
    known = msgspec.json.decode(context.cursor, type=SensorState) if context.cursor else SensorState(now)
    failures, known.runs_until = failed_since(context.instance, known.runs_until)
    assert context.repository_def is not None
    failing, unknown = failing_checks(context.instance, context.repository_def.asset_graph.asset_check_keys)
    if given.alert_on == "error":
        # A check that improved to a warning is neither reported as failing nor as recovered.
        unknown |= {key for key, check in failing.items() if check.severity != "error"}
        failing = {key: check for key, check in failing.items() if check.severity == "error"}
    repeat_s = given.alert_repeat_h * 3600.0
    notes = known.standing.update_checks(failing, unknown, now, repeat_s=repeat_s)
    notes += known.standing.add_failed_runs(failures, now, repeat_s=repeat_s)
    known.outboxes = {name: known.outboxes.get(name, Outbox()) for name in ways}
    sent = 0
    for name, outbox in known.outboxes.items():
        outbox.put(notes)
        if (message := outbox.due(now, pause_s=given.alert_pause_s)) is None:
            continue
        if accepted(name, ways[name], message):
            outbox.sent(now)
            sent += 1
        else:
            outbox.failed(now)
    waiting = sum(len(outbox.pending) for outbox in known.outboxes.values())
    return dg.SensorResult(
        skip_reason=f"{len(failing)} checks fail, {len(failures)} runs failed; {sent} messages sent, {waiting} to send",
        cursor=msgspec.json.encode(known).decode(),
    )


def accepted(name: str, send: Callable[[AlertMessage], bool], message: AlertMessage) -> bool:
    """Send a message to one receiver, return whether it was accepted; an exception is this receiver's failure only."""
    try:
        return send(message)
    except Exception as error:  # noqa: BLE001 (its text may hold the address, and the address a secret)
        log.warning("alerts cannot be sent to %s: %s", name, type(error).__name__)
        return False


def failed_since(instance: dg.DagsterInstance, since: float) -> tuple[list[FailedRun], float]:
    """Return the runs that failed since a time, and the time up to which the list is complete."""
    records = instance.get_run_records(
        dg.RunsFilter(statuses=[dg.DagsterRunStatus.FAILURE], updated_after=datetime.fromtimestamp(since, UTC)),
        limit=MAX_RUNS_PER_EVALUATION,
        order_by="update_timestamp",
        ascending=True,
    )
    failures = [
        FailedRun(
            record.dagster_run.job_name, record.dagster_run.run_id, failure_reason(instance, record.dagster_run.run_id)
        )
        for record in records
    ]
    return failures, max([since, *(record.update_timestamp.timestamp() for record in records)])


def failure_reason(instance: dg.DagsterInstance, run_id: str) -> str:
    """Return why a run failed: the exception that a step raised, else Dagster's own message."""
    kinds = {dg.DagsterEventType.STEP_FAILURE, dg.DagsterEventType.RUN_FAILURE}
    said = "no reason given"
    for record in instance.get_records_for_run(run_id, of_type=kinds, limit=5).records:
        event = record.event_log_entry.dagster_event
        if event is None:
            continue
        error = getattr(event.event_specific_data, "error", None)
        if error is not None:
            return _short((error.cause or error).message)
        said = event.message or said
    return _short(said)


def failing_checks(
    instance: dg.DagsterInstance, keys: Collection[dg.AssetCheckKey]
) -> tuple[dict[str, FailingCheck], set[str]]:
    """Return the failing checks, and those whose state is unknown: being evaluated, or never evaluated."""
    records = instance.event_log_storage.get_latest_asset_check_execution_by_key(list(keys))
    failing, unknown = {}, set()
    for key in keys:
        name, record = _name(key.asset_key.path, key.name), records.get(key)
        if record is None or record.status == Status.PLANNED or record.evaluation is None:
            unknown.add(name)
        elif record.status == Status.FAILED:
            severe = record.evaluation.severity == dg.AssetCheckSeverity.ERROR
            failing[name] = FailingCheck(
                "error" if severe else "warn", _short(record.evaluation.description or "it fails")
            )
    return failing, unknown


def _name(path: Sequence[str], check: str) -> str:
    return f"check {check} of {'/'.join(path)}"


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= MAX_ERROR_CHARS else f"{line[: MAX_ERROR_CHARS - 1]}…"
