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


_ALL = (
    Parameter(
        name="whale_alert_usd",
        meaning="A settlement of this value or more becomes a whale_alert signal",
        unit="USD",
        default=25_000.0,
        least=0.01,
        most=1e9,
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
