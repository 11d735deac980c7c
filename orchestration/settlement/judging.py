"""Checks on the indexed chain data, evaluated against the database."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from orchestration.checks import Judgement, Severity
from orchestration.settlement.writer import FEED
from sql.queries import settlement as queries

if TYPE_CHECKING:
    from datetime import datetime

    import psycopg

PROVISIONAL = 256  # blocks above the finalized head: six minutes
PROVISIONAL_WORST = 2_048
UNSETTLED_AFTER = timedelta(hours=1)
UNSETTLED_OVER = timedelta(minutes=10)
UNSETTLED_FEW = 10  # trades; a transaction may fail on the chain
UNSETTLED_SHARE = 0.01
UNSETTLED_WORST = 0.1
NOTHING = Judgement(holds=True, summary="nothing has been indexed")


def provisional_depth(conn: psycopg.Connection[Any]) -> Judgement:
    """Check how many blocks could still be reorganised."""
    held = queries.heads(conn, feed=FEED)
    if held is None:
        return NOTHING
    head, finalized, indexed, _ = held
    depth = max(indexed - finalized, 0)
    figures = {"head": head, "finalized": finalized, "indexed": indexed, "provisional": depth}
    summary = f"{depth} blocks above the finalized head"
    return Judgement(depth <= PROVISIONAL, summary, "warn" if depth <= PROVISIONAL_WORST else "error", figures)


def no_holes(conn: psycopg.Connection[Any]) -> Judgement:
    """Check that no block is missing between the first requested one and the newest."""
    held = queries.heads(conn, feed=FEED)
    if held is None:
        return NOTHING
    _, _, indexed, detail = held
    start = max(int(detail.get("start", indexed + 1)), int(detail.get("floor", 0)))
    holes = list(queries.unindexed(conn, from_block=start, to_block=indexed)) if start <= indexed else []
    blocks = sum(high - low + 1 for low, high in holes)
    figures: dict[str, Any] = {"from_block": start, "to_block": indexed, "holes": len(holes), "blocks_missing": blocks}
    if holes:
        figures["highest_hole"] = f"{holes[0][0]} to {holes[0][1]}"
    return Judgement(not holes, f"{blocks} blocks missing in {len(holes)} holes", "warn", figures)


def unsettled_at_most(trades: int) -> float:
    """Return how many of a number of trades may lack a settlement if all contracts are followed."""
    return max(UNSETTLED_FEW, UNSETTLED_SHARE * trades)


def all_settled(conn: psycopg.Connection[Any], now: datetime) -> Judgement:
    """Check that trades of an hour ago are settled by now: nothing else reveals an unknown contract."""
    until = now - UNSETTLED_AFTER
    trades, unsettled = queries.unsettled(conn, since=until - UNSETTLED_OVER, until=until)
    if not trades:
        return Judgement(holds=True, summary="no trade of an hour ago is in indexed blocks", severity="warn")
    share = unsettled / trades
    figures = {"trades": trades, "unsettled": unsettled, "share": round(share, 4)}
    summary = f"{unsettled} of {trades} trades of an hour ago have no settlement"
    severity: Severity = "warn" if share <= UNSETTLED_WORST else "error"
    return Judgement(unsettled <= unsettled_at_most(trades), summary, severity, figures)


def no_incidents(conn: psycopg.Connection[Any]) -> Judgement:
    """Check that no source has recently contradicted another, or itself."""
    opened, lately = queries.incidents(conn)
    figures: dict[str, Any] = {"open": opened, "within_24h": lately}
    if opened or lately:
        figures["newest"] = "\n".join(
            f"{at:%Y-%m-%d %H:%M} {kind} {subject}{' (mended)' if mended else ''}"
            for kind, subject, at, _, mended, _ in queries.incidents_lately(conn)
        )
    summary = f"{opened} open, {lately} within 24 hours"
    return Judgement(opened == 0 and lately == 0, summary, "error" if opened else "warn", figures)
