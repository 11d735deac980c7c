"""Markets resolved by the chain: the oracle's payouts become their state, once they are final."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import msgspec

from orchestration.markets import catalogue
from orchestration.settlement.writer import FEED
from sql.database import MICRO
from sql.queries import settlement as queries

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import psycopg

CAUSE = "chain_resolution"
TOLERANCE = 10_000  # micro: the exchange writes some old ones as 0.9999992
COMPARED_OVER = timedelta(days=7)
MAX_BLOCKS = 50_000  # blocks


def prices(numerators: Sequence[int], outcomes: int) -> list[int] | None:
    """Return each outcome's payout in micro-units; None if the payouts do not match the market.

    >>> prices([1, 1], 2)
    [500000, 500000]
    """
    total = sum(numerators)
    if len(numerators) != outcomes or total <= 0:
        return None
    return [round(numerator * MICRO / total) for numerator in numerators]


def apply(conn: psycopg.Connection[Any]) -> int:
    """Resolve markets from blocks that became final since the last call; return how many changed their state.

    Only final blocks count, as a resolved market stays resolved.
    """
    held = queries.heads(conn, feed=FEED)
    if held is None:
        return 0
    _, finalized, indexed, detail = held
    final = min(finalized, indexed)
    through = int(detail.get("resolved_through", -1))
    if through < 0:
        through = int(detail.get("start", final + 1)) - 1
    if through >= final:
        return 0
    upto = min(final, through + MAX_BLOCKS)
    span = queries.span_between(conn, from_block=through + 1, to_block=upto)
    with conn.transaction():
        # Stored before the catalogue locks the stream's head, as all code takes locks in one order.
        queries.remember_heads(conn, feed=FEED, detail=msgspec.json.encode({"resolved_through": upto}).decode())
        if span[0] is None:
            return 0
        rows = queries.resolved_between(conn, from_block=through + 1, to_block=upto, since=span[0])
        return _resolve(conn, rows)


def catch_up(conn: psycopg.Connection[Any]) -> int:
    """Resolve closed markets whose resolution was indexed before the catalogue knew of them, or was backfilled."""
    held = queries.heads(conn, feed=FEED)
    if held is None:
        return 0
    with conn.transaction():
        return _resolve(conn, queries.resolved_unnoticed(conn, to_block=held[1]))


def compare(conn: psycopg.Connection[Any], now: datetime | None = None) -> int:
    """Record payouts where the exchange contradicts the chain as incidents; return how many there are now."""
    held = queries.heads(conn, feed=FEED)
    if held is None:
        return 0
    since = (now or datetime.now(UTC)) - COMPARED_OVER
    apart = 0
    for number, _, market_id, _, stored, numerators, outcomes in queries.resolved_since(
        conn, since=since, to_block=held[1]
    ):
        paid = prices(numerators, outcomes)
        if _agree(paid, stored):
            queries.mend_incident(conn, kind="resolution_disagrees", subject=market_id)
            continue
        apart += 1
        _disagree(conn, market_id, number, numerators, stored)
    return apart


def _resolve(conn: psycopg.Connection[Any], found: Iterable[tuple[Any, ...]]) -> int:
    rows = []
    for number, ts, market_id, status, stored, numerators, outcomes in found:
        paid = prices(numerators, outcomes)
        if status == "RESOLVED" or paid is None:
            if not _agree(paid, stored):
                _disagree(conn, market_id, number, numerators, stored)
            continue
        rows.append(
            {
                "market_id": market_id,
                "status": "RESOLVED",
                "outcome_prices": paid,
                "closed_at": ts if status == "ACTIVE" else None,
                "resolved_at": ts,
                "winning_outcome": paid.index(MICRO) if MICRO in paid else None,
            }
        )
    return catalogue.store(conn, rows, cause=CAUSE).status_changes if rows else 0


def _agree(paid: list[int] | None, stored: Sequence[int]) -> bool:
    if paid is None:
        return False
    if not stored:  # the exchange has not published it
        return True
    return len(paid) == len(stored) and all(
        abs(ours - theirs) <= TOLERANCE for ours, theirs in zip(paid, stored, strict=True)
    )


def _disagree(
    conn: psycopg.Connection[Any], market_id: str, number: int, numerators: Sequence[int], stored: Sequence[int]
) -> None:
    detail = {"block": number, "payouts": list(numerators), "exchange": [price / MICRO for price in stored]}
    queries.note_incident(
        conn,
        kind="resolution_disagrees",
        subject=market_id,
        mended=False,
        detail=msgspec.json.encode(detail).decode(),
    )
