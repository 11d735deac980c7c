"""Data quality: the suites' expectations on the new rows of each table, as checks on the assets that write them."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

import dagster as dg

from config import settings
from config.exchanges import EXCHANGES
from orchestration.feeds.keeper import Run
from orchestration.feeds.runs import REPEATED_TAG, unfinished
from orchestration.quality import exchanges, passes
from orchestration.quality.expecting import SCHEMA, Suite
from orchestration.quality.passes import PassResult, Result
from orchestration.quality.suites import SUITES
from orchestration.resources import Database
from sql.queries import aggregates
from sql.queries import quality as queries

ROWS_SHOWN = 5


def _described(suite: Suite) -> str:
    whose = " of its exchange" if suite.stage in exchanges.BY_EXCHANGE else ""
    late = f"A row that fails it makes stage `{suite.stage}`{whose} late (warn) or stale (fail)."
    checks = (f"- **{check.name}** ({check.severity}): {check.description}" for check in (SCHEMA, *suite.checks))
    return "\n".join([f"Expectations on the new rows of `{suite.table}`. {late}", "", *checks])


@dg.multi_asset_check(
    name="quality_checks",
    specs=[dg.AssetCheckSpec(suite.name, asset=suite.asset, description=_described(suite)) for suite in SUITES],
    can_subset=True,
    description="Great Expectations on the rows that are new since the last pass. Results and samples of failed rows "
    "are stored in quality_results.",
)
def quality_checks(context: dg.AssetCheckExecutionContext, database: Database) -> Iterator[dg.AssetCheckResult]:
    """Validate the selected tables, and report on each."""
    wanted = {key.name for key in context.op_execution_context.selected_asset_check_keys}
    suites = [suite for suite in SUITES if suite.name in wanted]
    passed = passes.run(database.url, datetime.now(UTC), suites=suites)
    context.log.info(
        "%s rows, %s checks, %s failed", sum(passed.rows.values()), len(passed.results), len(passed.failed)
    )
    if passed.share.is_partial:
        context.log.info("too many rows for a pass: those of %s of the markets were checked", passed.share.percent)
    for table, (since, until) in passed.skipped.items():
        context.log.warning("rows of %s from %s to %s were not checked: no pass for too long", table, since, until)
    for suite in suites:
        yield result(suite, passed)


def result(suite: Suite, passed: PassResult) -> dg.AssetCheckResult:
    """Convert a suite's outcome into Dagster's check result."""
    results = [one for one in passed.results if one.suite is suite]
    failed = [one for one in results if one.rows_failed]
    names = {each.own(suite.table) for each in EXCHANGES.values()}
    standing = [one for one in passed.standing if one.suite in names] if suite.by_market else []
    worst = "fail" in {*(one.check.severity for one in failed), *(one.severity for one in standing)}
    metadata: dict[str, Any] = {
        "rows_checked": passed.rows.get(suite.table, 0),
        "rows_failed": sum(one.rows_failed for one in failed),
        "checks": len(results),
        "checks_failed": len(failed),
        "seconds": round(passed.seconds[suite.table], 3),
    }
    of = ""
    if suite.by_market and passed.share.is_partial:
        metadata["markets_checked"] = passed.share.percent
        of = f", of {passed.share.percent} of the markets"
    if (skipped := passed.skipped.get(suite.table)) is not None:
        metadata["skipped"] = " to ".join(instant.isoformat(timespec="seconds") for instant in skipped)
    for one in failed:
        metadata[one.check.name] = dg.MetadataValue.md(_table(one))
    said = [f"broken: {', '.join(f'{one.check.name} ({one.rows_failed})' for one in failed)}"] if failed else []
    if standing:
        lately = ", ".join(f"{one.name} ({one.failed_at:%H:%M} UTC)" for one in standing)
        said.append(f"failed lately, and not all of the markets have been checked again: {lately}")
    return dg.AssetCheckResult(
        asset_key=suite.asset,
        check_name=suite.name,
        passed=not said,
        severity=dg.AssetCheckSeverity.ERROR if worst else dg.AssetCheckSeverity.WARN,
        description="; ".join(said) or f"{len(results)} checks hold of {metadata['rows_checked']} rows{of}",
        metadata=metadata,
    )


def _table(one: Result) -> str:
    """Format some of the rows that failed as a table."""
    names = list(dict.fromkeys(name for row in one.samples for name in row))
    lines = [
        f"{one.check.description} ({one.check.severity})",
        "",
        f"{one.rows_failed} of {one.rows_checked} rows:",
        "",
    ]
    lines += ["| " + " | ".join(names) + " |", "| " + " | ".join("---" for _ in names) + " |"]
    lines += ["| " + " | ".join(_cell(row.get(name)) for name in names) + " |" for row in one.samples[:ROWS_SHOWN]]
    return "\n".join(lines)


def _cell(value: object) -> str:
    return "" if value is None else str(value).replace("|", "\\|").replace("\n", " ")


job = dg.define_asset_job(
    "quality",
    selection=dg.AssetSelection.checks(quality_checks),
    description="Every other minute: expectations on the new rows of every table.",
    tags={"dagster/max_runtime": "600", "dagster/priority": "2", REPEATED_TAG: "yes"},
)


@dg.sensor(
    job=job,
    minimum_interval_seconds=10,
    default_status=dg.DefaultSensorStatus.RUNNING,
    description="Starts a pass every PRESAGE_QUALITY_EVERY_S seconds, the first once there are aggregates.",
)
def quality_due(context: dg.SensorEvaluationContext, database: Database) -> dg.RunRequest | dg.SkipReason:
    """Start one pass at a time."""
    now = datetime.now(UTC)
    with database.connection(autocommit=True, name="presage quality_due") as conn:
        last, computed = queries.last_pass(conn), aggregates.last_pass(conn) is not None
    runs = unfinished(context.instance, job.name)
    why = reason_to_wait(last, now, every_s=settings.get().quality_every_s, computed=computed, runs=runs)
    if why is not None:
        return dg.SkipReason(why)
    return dg.RunRequest(run_key=f"quality {now.isoformat(timespec='seconds')}")


def reason_to_wait(
    last: datetime | None, now: datetime, *, every_s: float, computed: bool, runs: Sequence[Run]
) -> str | None:
    """Return why no pass is due, or None."""
    if runs:
        return f"a pass is {runs[0].status.lower()}"
    if last is None:
        return None if computed else "there are no aggregates yet"  # at a start, whatever users see first goes first
    ago = (now - last).total_seconds()
    return None if ago >= every_s else f"the last pass ended {ago:.0f} s ago"
