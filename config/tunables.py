"""Tunables: values that an administrator changes at run time with `presage set NAME VALUE`.

Unlike a setting, which a process reads once at startup, a tunable is a database row. Code reads it in the transaction
that uses it, so a change takes effect at once, everywhere, without a restart. A tunable that nobody has changed has its
default and no row.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sql.queries import parameters as queries

if TYPE_CHECKING:
    import psycopg

PREFIX = "parameters."


@dataclass(frozen=True)
class Tunable:
    """One tunable; an integer if its default is an integer."""

    name: str
    meaning: str
    unit: str
    default: float
    least: float
    most: float

    def parsed(self, text: str) -> float:
        """Parse a value as entered by a person; raise ValueError, naming the allowed values, if it is not allowed."""
        try:
            number = int(text) if isinstance(self.default, int) else float(text)
        except ValueError:
            number = math.nan
        return self.checked(number)

    def checked(self, number: float) -> float:
        """Return the number if it is allowed, else raise ValueError."""
        if not self.least <= number <= self.most:  # also rejects nan
            kind = "an integer" if isinstance(self.default, int) else "a number"
            raise ValueError(f"{self.name} is {kind} from {self.least:,} to {self.most:,} ({self.unit})")
        return number


# When a stage becomes late and stale: the same defaults as its row of `stage_clocks`, used while nothing is set.
THRESHOLDS = {
    "discovery": (900, 1800),
    "discovery_kalshi": (900, 1800),
    "ingestion": (15, 60),
    "ingestion_kalshi": (15, 60),
    "settlement": (30, 120),
    "analysis": (180, 600),
    "aggregates": (180, 600),
    "delivery": (30, 120),
}

_ALL = (
    *(
        Tunable(
            name=f"{stage}_{word}_after_s",
            meaning=f"Age of the last activity of stage `{stage}` at which the stage becomes {status}",
            unit="seconds",
            default=default,
            least=1,
            most=604_800,
        )
        for stage, (late, stale) in THRESHOLDS.items()
        for word, status, default in (("warn", "late", late), ("fail", "stale", stale))
    ),
    Tunable(
        name="live_shards",
        meaning="Parts into which the live feed's markets are divided; 0: as PRESAGE_LIVE_SHARDS says",
        unit="shards",
        default=0,
        least=0,
        most=64,
    ),
    Tunable(
        name="whale_alert_usd",
        meaning="A settlement of this value or more becomes a whale_alert signal",
        unit="USD",
        default=25_000.0,
        least=0.01,
        most=1e9,
    ),
    Tunable(
        name="quality_hold_min",
        meaning="For how long a failed data-quality check counts against its stage after it last failed",
        unit="minutes",
        default=10,
        least=0,
        most=10_080,
    ),
    Tunable(
        name="signal_min_trades",
        meaning="Trades in the last hour, over all outcomes, below which a market has no signals",
        unit="trades",
        default=10,
        least=1,
        most=100_000,
    ),
    Tunable(
        name="signal_min_volume_usd",
        meaning="Volume in the last hour, below which a market has no signals",
        unit="USD",
        default=250.0,
        least=0.01,
        most=1e9,
    ),
    Tunable(
        name="signal_min_history_h",
        meaning="Minimum time since a market's first trade of the last 24 hours, for its moves and volume to be judged",
        unit="hours",
        default=8.0,
        least=0.0,
        most=24.0,
    ),
    Tunable(
        name="momentum_min_move",
        meaning="Minimum price move within 65 minutes for momentum",
        unit="price, 0 to 1",
        default=0.05,
        least=0.001,
        most=0.99,
    ),
    Tunable(
        name="momentum_factor",
        meaning="Minimum ratio of a move to the usual hourly move for momentum",
        unit="times",
        default=5.0,
        least=0.0,
        most=1000.0,
    ),
    Tunable(
        name="momentum_cooldown_min",
        meaning="Cool-down of momentum for a market and direction",
        unit="minutes",
        default=60,
        least=1,
        most=1440,
    ),
    Tunable(
        name="volume_spike_ratio",
        meaning="Minimum ratio of the last hour's USD to the 24-hour hourly mean for volume_spike",
        unit="times, 24 at most",
        default=5.0,
        least=1.0,
        most=24.0,
    ),
    Tunable(
        name="volume_spike_cooldown_min",
        meaning="Cool-down of volume_spike for a market",
        unit="minutes",
        default=60,
        least=1,
        most=1440,
    ),
    Tunable(
        name="spread_widening_min_spread",
        meaning="Minimum spread over five minutes for spread_widening",
        unit="price, 0 to 1",
        default=0.03,
        least=0.001,
        most=0.99,
    ),
    Tunable(
        name="spread_widening_factor",
        meaning="Minimum ratio of the spread to that of the hour before for spread_widening",
        unit="times",
        default=3.0,
        least=1.0,
        most=1000.0,
    ),
    Tunable(
        name="spread_widening_cooldown_min",
        meaning="Cool-down of spread_widening for a market",
        unit="minutes",
        default=60,
        least=1,
        most=1440,
    ),
    Tunable(
        name="book_imbalance_lean",
        meaning="Minimum lean of the best levels to one side for book_imbalance: 0 is balanced, 1 all on one side",
        unit="share",
        default=0.7,
        least=0.05,
        most=1.0,
    ),
    Tunable(
        name="book_imbalance_cooldown_min",
        meaning="Cool-down of book_imbalance for a market and side",
        unit="minutes",
        default=60,
        least=1,
        most=1440,
    ),
    Tunable(
        name="price_reversal_min_move",
        meaning="Minimum initial price move within an hour for price_reversal",
        unit="price, 0 to 1",
        default=0.05,
        least=0.001,
        most=0.99,
    ),
    Tunable(
        name="price_reversal_factor",
        meaning="Minimum ratio of the initial move to the usual hourly move for price_reversal",
        unit="times",
        default=4.0,
        least=0.0,
        most=1000.0,
    ),
    Tunable(
        name="price_reversal_share",
        meaning="Minimum share of the initial move that the price must have reversed for price_reversal",
        unit="share",
        default=0.6,
        least=0.1,
        most=1.0,
    ),
    Tunable(
        name="price_reversal_cooldown_min",
        meaning="Cool-down of price_reversal for a market and direction",
        unit="minutes",
        default=60,
        least=1,
        most=1440,
    ),
)
TUNABLES = {parameter.name: parameter for parameter in _ALL}


def value(conn: psycopg.Connection[Any], name: str) -> float:
    """Return the current value of a tunable."""
    return _value(TUNABLES[name], queries.stored(conn, name=PREFIX + name))


def values(conn: psycopg.Connection[Any]) -> dict[str, float]:
    """Return the current values of all tunables."""
    stored = dict(queries.all_stored(conn, prefix=PREFIX))
    return {name: _value(parameter, stored.get(PREFIX + name)) for name, parameter in TUNABLES.items()}


def set_(conn: psycopg.Connection[Any], name: str, text: str) -> float:
    """Set a tunable, effective on commit; `default` removes the change. Raise ValueError for a value not allowed."""
    if name not in TUNABLES:
        raise ValueError(f"there is no parameter {name}, only {', '.join(sorted(TUNABLES))}")
    parameter = TUNABLES[name]
    if text == "default":
        queries.forget(conn, name=PREFIX + name)
        return parameter.default
    number = parameter.parsed(text)
    queries.store(conn, name=PREFIX + name, value=number)
    return number


def _value(parameter: Tunable, stored: object) -> float:
    # A row changed by hand, or left by another release, must not break readers: a value that is not allowed is ignored.
    if isinstance(stored, int | float) and not isinstance(stored, bool) and parameter.least <= stored <= parameter.most:
        return int(stored) if isinstance(parameter.default, int) else float(stored)
    return parameter.default
