"""The pipeline: how late each stage is, what is missing, and what is refused."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cli.diagnosis import Finding, Status
from sql.queries import diagnosis as queries

if TYPE_CHECKING:
    from collections.abc import Iterator

    import psycopg

STILL_S = 300.0  # so long nobody has touched any clock: nothing runs
CLOCK_S = 1.0  # further apart, the lag from the exchange's instant to the commit is told wrong
STATUS: dict[str, Status] = {"fresh": "ok", "off": "ok", "late": "warn", "stale": "fail", "missing": "fail"}
REMEDIES = {
    "discovery": "in Dagster see the sensor discovery_due and the newest run of discovery; `presage doctor --live` asks"
    " the exchange",
    "ingestion": "in Dagster see what the sensor live_keeper says, and the runs of live; `presage doctor --live` asks"
    " the exchange",
    "settlement": "in Dagster see the sensor settlement_keeper and the runs of settlement; `presage doctor --live` asks"
    " the endpoints",
    "analysis": "in Dagster see the sensor analysis_due; it waits for the stage ingestion",
    "aggregates": "in Dagster see the sensor aggregates_due and the newest run of aggregates",
    "delivery": "in Dagster see the sensor delivery_keeper and the runs of delivery",
}
STANDS = "start it: `presage up`; if it runs, see Dagster's daemon and code server in the logs"


def lag(conn: psycopg.Connection[Any]) -> Iterator[Finding]:
    """How late each stage is, by its own clock."""
    stages = list(queries.stages(conn))
    silent = [silence for *_, silence, _ in stages if silence is not None]
    if not silent:
        yield Finding("lag", "warn", "no stage has run yet", STANDS)
        return
    if min(silent) > STILL_S:
        yield Finding("lag", "fail", f"nothing runs: no stage has looked for {_lasted(min(silent))}", STANDS)
        return
    for stage, status, lag_s, _, off in stages:
        found = f"{stage}: {status}"
        if off is not None:
            found += f" ({off})"
        elif lag_s is not None:
            found += f", {_lasted(lag_s)} behind"
        bad = STATUS[status] != "ok"
        yield Finding("lag", STATUS[status], found, REMEDIES.get(stage, STANDS) if bad else "")


def losses(conn: psycopg.Connection[Any]) -> Iterator[Finding]:
    """What is being missed, was missed, and was refused."""
    still_open, unfilled, refused, incidents = queries.losses(conn)
    if still_open:
        remedy = "data is being missed now: see the stage ingestion; docs/operations.md, Gaps"
        yield Finding("gaps", "fail", f"{still_open} gaps of coverage are open", remedy)
    elif unfilled:
        remedy = "what can be fetched later is; /v1/coverage names what is lost for good"
        yield Finding("gaps", "warn", f"{unfilled} gaps of the last day are not filled", remedy)
    else:
        yield Finding("gaps", "ok", "no gap of coverage in the last day is left")
    if refused:
        remedy = "select source, reason, count(*) from quarantine group by 1, 2: has the exchange changed its format?"
        yield Finding("quarantine", "warn", f"{refused} payloads were refused within the hour", remedy)
    if incidents:
        remedy = "docs/operations.md, Incidents: which source contradicts which, and what to do"
        yield Finding("incidents", "warn", f"{incidents} incidents of the chain's data are not mended", remedy)


def clocks(conn: psycopg.Connection[Any]) -> Iterator[Finding]:
    """How far the clocks of the hosts that hold a feed are from the database's."""
    hosts = list(queries.clocks(conn))
    for host, ahead_s in hosts:
        found = f"{host}: {abs(ahead_s):.3f} s {'ahead of' if ahead_s > 0 else 'behind'} the database"
        if abs(ahead_s) > CLOCK_S:
            yield Finding(
                "clocks", "warn", found, "synchronise the clocks (chrony, systemd-timesyncd): lag is told wrong"
            )
        else:
            yield Finding("clocks", "ok", found)


def _lasted(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.1f} s"
    return f"{seconds / 60:.0f} minutes" if seconds < 7200 else f"{seconds / 3600:.1f} hours"
