"""Checks of the pipeline: lag by stage, gaps, quarantine, incidents and clocks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cli.diagnosis import Finding, Status
from config.exchanges import EXCHANGES
from sql.queries import diagnosis as queries
from sql.queries import pipeline as pipeline_queries

if TYPE_CHECKING:
    from collections.abc import Iterator

    import psycopg

STOPPED_AFTER_S = 300.0  # no stage clock updated for this long: nothing runs
MAX_SKEW_S = 1.0  # beyond it, the lag from the exchange's timestamp to the commit is wrong
STATUS: dict[str, Status] = {"fresh": "ok", "off": "ok", "late": "warn", "stale": "fail", "missing": "fail"}
REMEDIES = {
    "discovery": "in Dagster see the sensor discovery_due and the last run of discovery; `presage doctor --live` checks"
    " the exchange",
    "discovery_kalshi": "in Dagster see the sensor discovery_kalshi_due and the last run of discovery_kalshi",
    "ingestion": "in Dagster see the sensor live_keeper and the runs of live; `presage doctor --live` checks"
    " the exchange; a shard that is behind needs processor time: docs/scaling.md",
    "ingestion_kalshi": "in Dagster see the sensor live_kalshi_keeper and the runs of live_kalshi",
    "settlement": "in Dagster see the sensor settlement_keeper and runs of settlement; `presage doctor --live` checks"
    " the endpoints",
    "analysis": "in Dagster see the sensor analysis_due; it waits for the stage ingestion",
    "aggregates": "in Dagster see the sensor aggregates_due and the newest run of aggregates",
    "delivery": "in Dagster see the sensor delivery_keeper and the runs of delivery",
}
SILENT_HOST_S = 30.0
START_REMEDY = "start it with `presage up`; if it is running, see the logs of Dagster's daemon and code server"


def lag(conn: psycopg.Connection[Any]) -> Iterator[Finding]:
    """Check each stage's lag, by its own clock."""
    stages = list(queries.stages(conn))
    silent = [silence for _, _, _, silence, _, _ in stages if silence is not None]
    if not silent:
        yield Finding("lag", "warn", "no stage has run yet", START_REMEDY)
        return
    if min(silent) > STOPPED_AFTER_S:
        yield Finding("lag", "fail", f"nothing runs: no stage has reported for {_duration(min(silent))}", START_REMEDY)
        return
    for stage, status, lag_s, _, off, reason in stages:
        found = f"{stage}: {status}"
        if off is not None:
            found += f" ({off})"
        elif lag_s is not None:
            found += f", {_duration(lag_s)} behind"
        if reason is not None:
            found += f" ({reason})"
        bad = STATUS[status] != "ok"
        yield Finding("lag", STATUS[status], found, REMEDIES.get(stage, START_REMEDY) if bad else "")


def shards(conn: psycopg.Connection[Any]) -> Iterator[Finding]:
    """Check that each shard of the live feed has a leader and a standby; of a single one, the stage's lag tells."""
    found = list(pipeline_queries.shards(conn))
    exchanges = {exchange for exchange, *_ in found}
    if len(found) == len(exchanges):
        return
    for exchange, name, led, standby, *_ in found:
        shard = f"shard {name}" + (f" of {EXCHANGES[exchange].title}" if len(exchanges) > 1 else "")
        remedy = REMEDIES[EXCHANGES[exchange].own("ingestion")]
        if not led:
            yield Finding("shards", "fail", f"{shard} has no leader", remedy)
        elif not standby:
            yield Finding("shards", "warn", f"{shard} has no standby that is ready", remedy)
    if all(led and standby for _, _, led, standby, *_ in found):
        yield Finding("shards", "ok", f"{len(found)} shards, each with a leader and a ready standby")


def hosts(conn: psycopg.Connection[Any]) -> Iterator[Finding]:
    """Name the hosts that run feeds without Dagster, and how many runs each has; nothing if there are none."""
    found = list(queries.feed_hosts(conn))
    for host, silent_s, runs in found:
        if silent_s > SILENT_HOST_S:
            remedy = "others run its feeds: start it again, or wait a day until it is forgotten"
            yield Finding("hosts", "warn", f"{host} has been silent for {_duration(silent_s)}", remedy)
        else:
            yield Finding("hosts", "ok", f"{host} runs {runs} feed{'' if runs == 1 else 's'}")
    if sum(silent_s <= SILENT_HOST_S for _, silent_s, _ in found) == 1:
        remedy = "start a second one with `presage up --role feed`: until then Dagster adds the second run of each feed"
        yield Finding("hosts", "warn", "only one host runs feeds", remedy)


def losses(conn: psycopg.Connection[Any]) -> Iterator[Finding]:
    """Check open and unfilled gaps, quarantined payloads, and incidents of the chain's data."""
    still_open, unfilled, refused, incidents = queries.losses(conn)
    if still_open:
        remedy = "data is being lost now: see the stage ingestion; docs/operations.md, Gaps"
        yield Finding("gaps", "fail", f"{still_open} coverage gaps are open", remedy)
    elif unfilled:
        remedy = "data that is still available is fetched later; /v1/coverage lists permanent losses"
        yield Finding("gaps", "warn", f"{unfilled} coverage gaps of the last day are not filled", remedy)
    else:
        yield Finding("gaps", "ok", "no open or unfilled coverage gaps in the last day")
    if refused:
        remedy = "select source, reason, count(*) from quarantine group by 1, 2: has the exchange changed its format?"
        yield Finding("quarantine", "warn", f"{refused} payloads were quarantined within the hour", remedy)
    if incidents:
        remedy = "see docs/operations.md, Incidents, for the contradicting sources and what to do"
        yield Finding("incidents", "warn", f"{incidents} incidents of the chain's data are unresolved", remedy)


def clocks(conn: psycopg.Connection[Any]) -> Iterator[Finding]:
    """Check the clocks of the hosts that run feeds against the database's."""
    hosts = list(queries.clocks(conn))
    for host, ahead_s in hosts:
        found = f"{host}: {abs(ahead_s):.3f} s {'ahead of' if ahead_s > 0 else 'behind'} the database"
        if abs(ahead_s) > MAX_SKEW_S:
            yield Finding(
                "clocks",
                "warn",
                found,
                "synchronise the clocks (chrony, systemd-timesyncd): the lag is wrong otherwise",
            )
        else:
            yield Finding("clocks", "ok", found)


def _duration(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.1f} s"
    return f"{seconds / 60:.0f} minutes" if seconds < 7200 else f"{seconds / 3600:.1f} hours"
