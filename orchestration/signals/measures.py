"""Market measures as of an instant, from which signals are computed: integers, read in one pass over all markets."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, inf
from typing import TYPE_CHECKING, Any

import msgspec

from sql.database import MICRO
from sql.queries import signals as queries

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    import psycopg


class Measures(msgspec.Struct, frozen=True, gc=False):
    """Measures of one market. Prices and USD are micro-units, prices are of the first outcome; None: unknown."""

    market_key: int
    market_id: str
    trades_1h: int
    value_1h: int
    value_24h: int
    spike_ratio: float | None
    history_ms: int | None  # since its first trade of the last 24 hours
    moved: int  # by how much earlier whole hours moved the price, summed
    moves: int  # number of those hours
    price_now: int | None
    price_baseline: int | None  # the earliest sample of the last 65 minutes
    minutes: int | None  # of the last hour, in which the first outcome was traded
    first: int | None  # their prices: the first's, the last's, the highest and the lowest
    last: int | None
    high: int | None
    low: int | None
    spread_ms: int | None  # micro-units times milliseconds, over five minutes
    two_sided_ms: int | None
    baseline_spread_ms: int | None  # over the hour before; read only where the spread is wide
    baseline_two_sided_ms: int | None
    lean_sum: int | None  # of the newest books, at most five, of ten minutes
    books: int | None
    baseline_lean_sum: int | None  # of books of the hour before; read only where the book leans
    baseline_books: int | None
    trades_missed_day_ms: int
    trades_missed_ms: int
    books_missed_ms: int
    age_ms: int | None  # since its first trade of the last 24 hours, to the moment if that was within 65 minutes
    life_ms: int | None  # from then to its scheduled end; None: it has none


@dataclass(frozen=True)
class Parameters:
    """The tunables that define signals (`presage set`). Prices are from 0 to 1."""

    signal_min_trades: int
    signal_min_volume_usd: float
    signal_min_history_h: float
    momentum_min_move: float
    momentum_factor: float
    momentum_cooldown_min: int
    volume_spike_ratio: float
    volume_spike_cooldown_min: int
    spread_widening_min_spread: float
    spread_widening_factor: float
    spread_widening_cooldown_min: int
    book_imbalance_lean: float
    book_imbalance_cooldown_min: int
    price_reversal_min_move: float
    price_reversal_factor: float
    price_reversal_share: float
    price_reversal_cooldown_min: int
    whale_alert_usd: float = inf  # where it was not recorded, no whale alerts are added

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Parameters:
        """Select the signals' tunables from all."""
        return cls(**{name: values[name] for name in cls.__dataclass_fields__ if name in values})


def read(conn: psycopg.Connection[Any], at: datetime, given: Parameters) -> list[Measures]:
    """Measure every market that traded enough in the hour up to an instant."""
    with conn.transaction():
        queries.join_sets(conn)
        rows = queries.measures(
            conn,
            at=at,
            min_trades=given.signal_min_trades,
            min_value=ceil(given.signal_min_volume_usd * MICRO),
            min_spread=int(given.spread_widening_min_spread * MICRO),
            min_lean=int(given.book_imbalance_lean * MICRO),
        )
        measured = [Measures(*row) for row in rows]
        queries.join_as_usual(conn)
    return measured
