"""Parameters: what an administrator changes while everything runs, with `presage set NAME VALUE`.

Unlike a setting, which a process reads once at its door, a parameter is a row of the database: whoever uses one asks
for it in the transaction that it is used in, so a change acts at once, everywhere, without a restart. What nobody has
changed has its default, and takes no row.
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
class Parameter:
    """One of them; a whole number where its default is one."""

    name: str
    meaning: str
    unit: str
    default: float
    least: float
    most: float

    def parsed(self, text: str) -> float:
        """Read a value as people write it; ValueError says what is allowed."""
        try:
            number = int(text) if isinstance(self.default, int) else float(text)
        except ValueError:
            number = math.nan
        return self.checked(number)

    def checked(self, number: float) -> float:
        """Give the number back if it is allowed."""
        if not self.least <= number <= self.most:  # neither does a nan pass
            kind = "a whole number" if isinstance(self.default, int) else "a number"
            raise ValueError(f"{self.name} is {kind} from {self.least:,} to {self.most:,} ({self.unit})")
        return number


# By when a stage is late, and when stale: the same as its row of `stage_clocks` says, for whoever has set nothing.
THRESHOLDS = {
    "discovery": (900, 1800),
    "ingestion": (15, 60),
    "settlement": (30, 120),
    "analysis": (180, 600),
    "aggregates": (180, 600),
    "delivery": (30, 120),
}

_ALL = (
    *(
        Parameter(
            name=f"{stage}_{word}_after_s",
            meaning=f"How old what the stage `{stage}` last did may be before it is {status}",
            unit="seconds",
            default=default,
            least=1,
            most=604_800,
        )
        for stage, (late, stale) in THRESHOLDS.items()
        for word, status, default in (("warn", "late", late), ("fail", "stale", stale))
    ),
    Parameter(
        name="whale_alert_usd",
        meaning="A settlement of this value or more becomes a whale_alert signal",
        unit="USD",
        default=25_000.0,
        least=0.01,
        most=1e9,
    ),
    Parameter(
        name="quality_hold_min",
        meaning="For how long a failed check of data quality counts against its stage after it last failed",
        unit="minutes",
        default=10,
        least=0,
        most=10_080,
    ),
    Parameter(
        name="signal_min_trades",
        meaning="Trades of the last hour, over all outcomes, below which nothing is found of a market",
        unit="trades",
        default=10,
        least=1,
        most=100_000,
    ),
    Parameter(
        name="signal_min_volume_usd",
        meaning="What must have been traded in the last hour for anything to be found of a market",
        unit="USD",
        default=250.0,
        least=0.01,
        most=1e9,
    ),
    Parameter(
        name="signal_min_history_h",
        meaning="How long ago a market's first trade of 24 hours must lie for its moves and volume to be judged",
        unit="hours",
        default=8.0,
        least=0.0,
        most=24.0,
    ),
    Parameter(
        name="momentum_min_move",
        meaning="A smaller move of the price within 65 minutes is no momentum",
        unit="price, 0 to 1",
        default=0.05,
        least=0.001,
        most=0.99,
    ),
    Parameter(
        name="momentum_factor",
        meaning="How many times the usual move of an hour a move must have for momentum",
        unit="times",
        default=5.0,
        least=0.0,
        most=1000.0,
    ),
    Parameter(
        name="momentum_cooldown_min",
        meaning="For how long momentum is not found again of a market in the same direction",
        unit="minutes",
        default=60,
        least=1,
        most=1440,
    ),
    Parameter(
        name="volume_spike_ratio",
        meaning="The last hour's USD over the 24 hours' hourly mean, from which on it is a volume_spike",
        unit="times, 24 at most",
        default=5.0,
        least=1.0,
        most=24.0,
    ),
    Parameter(
        name="volume_spike_cooldown_min",
        meaning="For how long a volume_spike is not found again of a market",
        unit="minutes",
        default=60,
        least=1,
        most=1440,
    ),
    Parameter(
        name="spread_widening_min_spread",
        meaning="A smaller spread over five minutes is no spread_widening",
        unit="price, 0 to 1",
        default=0.03,
        least=0.001,
        most=0.99,
    ),
    Parameter(
        name="spread_widening_factor",
        meaning="How many times the spread of the hour before a spread must have for spread_widening",
        unit="times",
        default=3.0,
        least=1.0,
        most=1000.0,
    ),
    Parameter(
        name="spread_widening_cooldown_min",
        meaning="For how long spread_widening is not found again of a market",
        unit="minutes",
        default=60,
        least=1,
        most=1440,
    ),
    Parameter(
        name="book_imbalance_lean",
        meaning="How far the best levels must lean to one side for book_imbalance: 0 is balanced, 1 all on one side",
        unit="share",
        default=0.7,
        least=0.05,
        most=1.0,
    ),
    Parameter(
        name="book_imbalance_cooldown_min",
        meaning="For how long book_imbalance is not found again of a market to the same side",
        unit="minutes",
        default=60,
        least=1,
        most=1440,
    ),
    Parameter(
        name="price_reversal_min_move",
        meaning="A way out that is smaller than this, within an hour, has nothing to come back from",
        unit="price, 0 to 1",
        default=0.05,
        least=0.001,
        most=0.99,
    ),
    Parameter(
        name="price_reversal_factor",
        meaning="How many times the usual move of an hour the way out must have for price_reversal",
        unit="times",
        default=4.0,
        least=0.0,
        most=1000.0,
    ),
    Parameter(
        name="price_reversal_share",
        meaning="Which share of its way out the price must have come back for price_reversal",
        unit="share",
        default=0.6,
        least=0.1,
        most=1.0,
    ),
    Parameter(
        name="price_reversal_cooldown_min",
        meaning="For how long price_reversal is not found again of a market in the same direction",
        unit="minutes",
        default=60,
        least=1,
        most=1440,
    ),
)
PARAMETERS = {parameter.name: parameter for parameter in _ALL}


def value(conn: psycopg.Connection[Any], name: str) -> float:
    """Tell what a parameter is right now."""
    return _value(PARAMETERS[name], queries.stored(conn, name=PREFIX + name))


def values(conn: psycopg.Connection[Any]) -> dict[str, float]:
    """Tell what all of them are right now."""
    stored = dict(queries.all_stored(conn, prefix=PREFIX))
    return {name: _value(parameter, stored.get(PREFIX + name)) for name, parameter in PARAMETERS.items()}


def set_(conn: psycopg.Connection[Any], name: str, text: str) -> float:
    """Change a parameter, from the commit on; `default` takes the change back. ValueError where it cannot be."""
    if name not in PARAMETERS:
        raise ValueError(f"there is no parameter {name}, only {', '.join(sorted(PARAMETERS))}")
    parameter = PARAMETERS[name]
    if text == "default":
        queries.forget(conn, name=PREFIX + name)
        return parameter.default
    number = parameter.parsed(text)
    queries.store(conn, name=PREFIX + name, value=number)
    return number


def _value(parameter: Parameter, stored: object) -> float:
    # A row that was changed by hand, or left by another release, must not stop who asks:
    # what is not allowed is no value.
    if isinstance(stored, int | float) and not isinstance(stored, bool) and parameter.least <= stored <= parameter.most:
        return int(stored) if isinstance(parameter.default, int) else float(stored)
    return parameter.default
