"""Known gaps in the trades, filled from the exchange's list however old they are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from orchestration.coverage.tape import Reconciliation, Stopped, TradeReconciler
from orchestration.ingest.gaps.from_data_api import MARGIN_MS, MAX_UNKNOWN, group_gaps, unknown_markets_fault
from sql.queries import coverage as queries
from sql.queries import feed as feed_queries
from upstream.transport.errors import UpstreamError

if TYPE_CHECKING:
    from collections.abc import Callable

    import psycopg

    from orchestration.ingest.exchanges.base import ExchangeClient
    from orchestration.ingest.gaps.from_data_api import CoverageGap

SETTLE_S = 900.0  # until then the live feed handles its own gaps
RETRY_S = 3000.0  # after a failed attempt: with the next run
MAX_GAPS = 1000


@dataclass
class FillResult:
    """Result of a pass."""

    gaps: int = 0
    failed: int = 0
    unknown: int = 0
    """Trades of markets that no catalogue knows; their gaps stay as they are."""
    listed: int = 0
    added: int = 0

    def add(self, other: FillResult) -> None:
        """Add another exchange's counts."""
        for name in ("gaps", "failed", "unknown", "listed", "added"):
            setattr(self, name, getattr(self, name) + getattr(other, name))


def fill(
    conn: psycopg.Connection[Any], exchange: ExchangeClient, *, should_stop: Callable[[], bool] = lambda: False
) -> FillResult:
    """Fill what can be filled of an exchange, newest gap first; what cannot be now is retried by the next run."""
    queries.remember_since(conn)
    tape = TradeReconciler(conn, exchange, should_stop=should_stop)
    filled = FillResult()
    for gap in group_gaps(queries.gaps_left(conn, exchange=exchange.exchange.name, settled_s=SETTLE_S, most=MAX_GAPS)):
        try:
            _fill(conn, tape, gap, filled)
        except Stopped:
            break
        except UpstreamError as fault:
            filled.failed += len(gap.gap_ids)
            message = f"{type(fault).__name__}: {fault}"[:500]
            feed_queries.mark_attempt(conn, gap_ids=list(gap.gap_ids), next_s=RETRY_S, fault=message, detail="{}")
    return filled


def _fill(conn: psycopg.Connection[Any], tape: TradeReconciler, gap: CoverageGap, filled: FillResult) -> None:
    assert gap.to_ms is not None  # only gaps that have ended are requested
    markets: set[str] = set()
    if gap.market_keys is not None:
        markets = {row[0] for row in feed_queries.markets_of(conn, market_keys=sorted(gap.market_keys))}
    gap_ids, again, found = list(gap.gap_ids), Reconciliation(), Reconciliation()
    first_ms, last_ms = gap.from_ms - MARGIN_MS, gap.to_ms + MARGIN_MS
    # A pass has a time limit, and the next one continues where it stopped: otherwise a long gap would never be filled.
    begin = max(first_ms, queries.filled_to(conn, gap_ids=gap_ids))
    try:
        if gap.unknown:
            for _ in tape.fill(first_ms, min(begin, last_ms), gap.unknown, gap_ids=gap_ids, found=again):
                pass
        if markets or gap.market_keys is None:
            for to_ms in tape.fill(begin, last_ms, markets, gap_ids=gap_ids, found=found):
                left = again.unknown_markets + found.unknown_markets
                if len(left) <= MAX_UNKNOWN and "" not in left:  # if more, the next pass finds them again
                    queries.note_filled_to(conn, gap_ids=gap_ids, to_ms=to_ms, unknown_markets=sorted(left))
    finally:
        filled.listed += again.total("listed") + found.total("listed")
        filled.added += again.total("added") + found.total("added")
        feed_queries.count_added(conn, gap_ids=gap_ids, trades=0)  # 0 is recorded, too
    if left := again.unknown_markets + found.unknown_markets:
        filled.unknown += left.total()
        feed_queries.mark_attempt(conn, gap_ids=gap_ids, next_s=RETRY_S, fault=unknown_markets_fault(left), detail="{}")
        return
    feed_queries.mark_filled(conn, gap_ids=gap_ids, to_ms=gap.to_ms, filled_by=tape.exchange.trades_source, detail="{}")
    filled.gaps += len(gap_ids)
