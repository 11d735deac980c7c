"""Data checks: conditions that hold at any moment, evaluated against the database."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Literal

from orchestration.ingest import lag
from sql.queries import checks as queries

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import date

    import psycopg

    from sql.backup.base.state import Archive, State

Severity = Literal["warn", "error"]

LAG_OVER = timedelta(minutes=5)
LAG_P99_MS = 1000
LAG_P99_WORST_MS = 5000
MID_TOLERANCE = 20_000  # micro: two ticks of a cent
MIDS_APART_SHARE = 0.05
REFUSED_OVER = timedelta(minutes=10)
REFUSED_WORST = 1000
SILENT_S = 900.0
SILENT_PASSES = 5
WAL_WAITS, WAL_WAITS_WORST = timedelta(minutes=5), timedelta(minutes=30)


@dataclass(frozen=True)
class Judgement:
    """Result of a check: whether it holds, how severe a failure is, and the figures behind it."""

    holds: bool
    summary: str
    severity: Severity = "error"
    figures: dict[str, Any] = field(default_factory=dict)


OFF_BACKUPS = Judgement(holds=True, summary="off: PRESAGE_BACKUP_REPOSITORY is not set", severity="warn")
OFF_LAKE = Judgement(holds=True, summary="off: PRESAGE_LAKE is not set", severity="warn")


def stages(conn: psycopg.Connection[Any]) -> dict[str, Judgement]:
    """Check how late each stage is."""
    judged = {}
    for stage, status, lag_s, warn_after_s, fail_after_s, last_data_at, beat_at, off, broken in queries.stages(conn):
        if off is not None:
            judged[stage] = Judgement(holds=True, summary=f"off: {off}")
            continue
        figures = {"warn_after_s": warn_after_s, "fail_after_s": fail_after_s}
        if lag_s is not None:
            figures["lag_s"] = round(float(lag_s), 3)
        figures |= {name: at for name, at in (("last_data_at", last_data_at), ("beat_at", beat_at)) if at is not None}
        summary = f"{status}: " + ("nothing yet" if lag_s is None else f"{lag_s:.1f} s behind")
        if broken is not None:
            summary, figures["quality"] = f"{summary}, broken: {broken}", broken
        judged[stage] = Judgement(status == "fresh", summary, "warn" if status == "late" else "error", figures)
    return judged


def lag_p99(conn: psycopg.Connection[Any], now: datetime, exchange: str) -> Judgement:
    """Check the time from an exchange's timestamp to our commit."""
    counts = lag.merged(row[0] for row in queries.lags(conn, exchange=exchange, since=now - LAG_OVER))
    p50, p99 = lag.quantile(counts, 0.5), lag.quantile(counts, 0.99)
    if p50 is None or p99 is None:
        return Judgement(holds=True, summary="no rows were written in five minutes", figures={"messages": 0})
    figures = {"p50_ms": p50, "p99_ms": p99, "messages": sum(counts)}
    severity: Severity = "warn" if p99 < LAG_P99_WORST_MS else "error"
    return Judgement(p99 < LAG_P99_MS, f"p50 {p50} ms, p99 {p99} ms", severity, figures)


def not_crossed(conn: psycopg.Connection[Any], exchange: str) -> Judgement:
    """Check that no served book has a bid at or above its best ask."""
    books, crossed, doubted, keys = queries.crossed(conn, exchange=exchange)
    figures = {"books": books, "crossed": crossed, "not_verified": doubted}
    if crossed:
        figures["market_keys"] = keys
    return Judgement(crossed == 0, f"{crossed} of {books} crossed, {doubted} not verified", "error", figures)


def complementary(conn: psycopg.Connection[Any], exchange: str) -> Judgement:
    """Check that the mid prices of Yes and No add up to 1."""
    pairs, apart, worst, mean = queries.complements(conn, exchange=exchange, tolerance=MID_TOLERANCE)
    figures = {"pairs": pairs, "apart": apart, "worst": worst / 1e6, "mean": mean / 1e6}
    summary = f"{apart} of {pairs} pairs are more than {MID_TOLERANCE / 1e6} from 1"
    return Judgement(apart <= pairs * MIDS_APART_SHARE, summary, "warn", figures)


def no_open_gaps(conn: psycopg.Connection[Any], exchange: str) -> Judgement:
    """Check that coverage has no gap at this moment."""
    still_open, long_open, of_a_day, unfilled = queries.gaps(conn, exchange=exchange)
    figures = {"open": still_open, "open_over_60_s": long_open, "last_24h": of_a_day, "last_24h_unfilled": unfilled}
    summary = f"{still_open} open, {of_a_day} in 24 hours"
    return Judgement(still_open == 0, summary, "error" if long_open else "warn", figures)


def nothing_refused(conn: psycopg.Connection[Any], now: datetime, *, of_chain: bool = False) -> Judgement:
    """Check that every payload of the last minutes could be used; the exchange's, or the chain's logs."""
    found = queries.refused(conn, since=now - REFUSED_OVER)
    rows = [(source, reason, count) for source, reason, count in found if (source == "chain") == of_chain]
    total = sum(count for _, _, count in rows)
    figures: dict[str, Any] = {"refused": total}
    if rows:
        figures["reasons"] = "\n".join(f"{count}x {source}: {reason}" for source, reason, count in rows)
    return Judgement(
        total == 0, f"{total} refused in ten minutes", "warn" if total < REFUSED_WORST else "error", figures
    )


def quality_passes(conn: psycopg.Connection[Any], every_s: float) -> Judgement:
    """Check that new rows are still being validated, while there are any."""
    silent_s = queries.quality_silence(conn)
    if silent_s is None:
        return Judgement(holds=True, summary="nothing to check", severity="warn")
    figures = {"silent_s": round(float(silent_s), 1)}
    holds = silent_s <= max(SILENT_S, SILENT_PASSES * every_s)
    return Judgement(holds, f"{silent_s:.0f} s without a data-quality pass", "warn", figures)


def wal_archived(archive: Archive, now: datetime) -> Judgement:
    """Check that the write-ahead log reaches the repository."""
    figures: dict[str, Any] = {"waiting_segments": archive.waiting, "waiting_MB": round(archive.waiting_bytes / 1e6)}
    times = {
        "waiting_since": archive.waiting_since,
        "archived_at": archive.archived_at,
        "failed_at": archive.failed_at,
    }
    figures |= {name: at for name, at in times.items() if at is not None}
    if not archive.on:
        return Judgement(holds=False, summary="the server runs without archiving: restart it", figures=figures)
    age = timedelta() if archive.waiting_since is None else now - archive.waiting_since
    severity: Severity = "warn" if age < WAL_WAITS_WORST else "error"
    return Judgement(age < WAL_WAITS, archive.said(now), severity, figures)


def base_backup_recent(state: State, now: datetime, every: timedelta) -> Judgement:
    """Check that base backups are taken as often as they should be."""
    newest, failed = state.newest, state.failed
    if failed is not None:
        summary = f"failed at {failed.at:%Y-%m-%d %H:%M} UTC: {failed.error}"
        return Judgement(holds=False, summary=summary, figures={"failed_at": failed.at})
    if newest is None:
        return Judgement(holds=False, summary="there is none yet", severity="warn")
    age = now - newest.ended
    figures = {"label": newest.label, "ended": newest.ended, "MB": round(newest.bytes / 1e6)}
    hours = age.total_seconds() / 3600
    return Judgement(age < every * 2, f"{newest.kind}, {hours:.1f} hours old", "error", figures)


def lake_current(missing: Mapping[str, date | None]) -> Judgement:
    """Check that no day is missing in the lake; `missing` has each table's oldest one."""
    days = {name: day for name, day in missing.items() if day is not None}
    if not days:
        return Judgement(holds=True, summary="it has every day that is over", severity="warn")
    since = ", ".join(f"{name} since {day}" for name, day in days.items())
    return Judgement(holds=False, summary=f"missing: {since}", severity="warn", figures=days)
