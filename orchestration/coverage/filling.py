"""Known gaps in the trades, filled from the exchange's list however old they are."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from orchestration.coverage.tape import Found, Stopped, Tape
from orchestration.live.filling import AROUND_MS, together
from sql.queries import coverage as queries
from sql.queries import feed as feed_queries
from upstream.errors import UpstreamError

if TYPE_CHECKING:
    from collections.abc import Callable

    import psycopg

    from orchestration.live.exchange import Exchange
    from orchestration.live.filling import Gap

SETTLED_S = 900.0  # before that the live feed sees to its gaps itself
AGAIN_S = 3000.0  # after an attempt that failed: with the next run
MOST = 1000
FILLED_BY = "data_api"


@dataclass
class Filled:
    """What a pass came to."""

    gaps: int = 0
    failed: int = 0
    listed: int = 0
    added: int = 0
    spans: list[tuple[int, int]] = field(default_factory=list)
    """Of gaps that trades were added to: from when to when (ms)."""


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
            feed_queries.mark_attempt(conn, gap_ids=list(gap.gap_ids), next_s=AGAIN_S, fault=said)
    return filled


def _fill(conn: psycopg.Connection[Any], tape: Tape, gap: Gap, filled: Filled) -> None:
    assert gap.to_ms is not None  # only gaps that are over are asked for
    markets: set[str] = set()
    if gap.market_keys is not None:
        rows = feed_queries.tokens_of(conn, market_keys=sorted(gap.market_keys))
        markets = {market_id for _, market_id, _, _ in rows}
    gap_ids, found = list(gap.gap_ids), Found()
    # A pass ends after a while: the next one goes on where it stopped, or a long gap would never be filled.
    begin = max(gap.from_ms - AROUND_MS, queries.filled_to(conn, gap_ids=gap_ids))
    try:
        for to_ms in tape.fill(begin, gap.to_ms + AROUND_MS, markets, gap_ids=gap_ids, found=found):
            queries.note_filled_to(conn, gap_ids=gap_ids, to_ms=to_ms)
    finally:
        filled.listed += found.total("listed")
        filled.added += found.total("added")
        if feed_queries.count_added(conn, gap_ids=gap_ids, trades=0):  # perhaps by a pass that was interrupted
            filled.spans.append((gap.from_ms - AROUND_MS, gap.to_ms + AROUND_MS))
    feed_queries.mark_filled(conn, gap_ids=gap_ids, to_ms=gap.to_ms, filled_by=FILLED_BY, detail="{}")
    filled.gaps += len(gap_ids)
