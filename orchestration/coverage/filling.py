"""Known gaps in the trades, filled from the exchange's list however old they are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from orchestration.coverage.tape import Found, Stopped, Tape
from orchestration.ingest.gaps.from_data_api import AROUND_MS, MAX_UNKNOWN, together, unknown_fault
from sql.queries import coverage as queries
from sql.queries import feed as feed_queries
from upstream.transport.errors import UpstreamError

if TYPE_CHECKING:
    from collections.abc import Callable

    import psycopg

    from orchestration.ingest.exchange import Exchange
    from orchestration.ingest.gaps.from_data_api import Gap

SETTLED_S = 900.0  # before that the live feed sees to its gaps itself
AGAIN_S = 3000.0  # after an attempt that failed: with the next run
MOST = 1000
FILLED_BY = "data_api"


@dataclass
class Filled:
    """What a pass came to."""

    gaps: int = 0
    failed: int = 0
    unknown: int = 0
    """Trades of markets that no catalogue knows; their gaps stay as they are."""
    listed: int = 0
    added: int = 0


def fill(
    conn: psycopg.Connection[Any], exchange: Exchange, *, should_stop: Callable[[], bool] = lambda: False
) -> Filled:
    """Fill what can be filled, the newest gap first; one that cannot be for now is tried again by the next run."""
    queries.remember_since(conn)
    tape = Tape(conn, exchange, should_stop=should_stop)
    filled = Filled()
    for gap in together(queries.gaps_left(conn, settled_s=SETTLED_S, most=MOST)):
        try:
            _fill(conn, tape, gap, filled)
        except Stopped:
            break
        except UpstreamError as fault:
            filled.failed += len(gap.gap_ids)
            said = f"{type(fault).__name__}: {fault}"[:500]
            feed_queries.mark_attempt(conn, gap_ids=list(gap.gap_ids), next_s=AGAIN_S, fault=said, detail="{}")
    return filled


def _fill(conn: psycopg.Connection[Any], tape: Tape, gap: Gap, filled: Filled) -> None:
    assert gap.to_ms is not None  # only gaps that are over are asked for
    markets: set[str] = set()
    if gap.market_keys is not None:
        markets = {row[0] for row in feed_queries.markets_of(conn, market_keys=sorted(gap.market_keys))}
    gap_ids, again, found = list(gap.gap_ids), Found(), Found()
    first_ms, last_ms = gap.from_ms - AROUND_MS, gap.to_ms + AROUND_MS
    # A pass ends after a while: the next one goes on where it stopped, or a long gap would never be filled.
    begin = max(first_ms, queries.filled_to(conn, gap_ids=gap_ids))
    try:
        if gap.unknown:
            for _ in tape.fill(first_ms, min(begin, last_ms), gap.unknown, gap_ids=gap_ids, found=again):
                pass
        if markets or gap.market_keys is None:
            for to_ms in tape.fill(begin, last_ms, markets, gap_ids=gap_ids, found=found):
                left = again.unknown_markets + found.unknown_markets
                if len(left) <= MAX_UNKNOWN and "" not in left:  # more are met again by walking here again
                    queries.note_filled_to(conn, gap_ids=gap_ids, to_ms=to_ms, unknown_markets=sorted(left))
    finally:
        filled.listed += again.total("listed") + found.total("listed")
        filled.added += again.total("added") + found.total("added")
        feed_queries.count_added(conn, gap_ids=gap_ids, trades=0)  # 0 is said, too
    if left := again.unknown_markets + found.unknown_markets:
        filled.unknown += left.total()
        feed_queries.mark_attempt(conn, gap_ids=gap_ids, next_s=AGAIN_S, fault=unknown_fault(left), detail="{}")
        return
    feed_queries.mark_filled(conn, gap_ids=gap_ids, to_ms=gap.to_ms, filled_by=FILLED_BY, detail="{}")
    filled.gaps += len(gap_ids)
