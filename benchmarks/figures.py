"""Benchmark results: figures, each with its rival and its target."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Callable

RELATIONS: dict[str, Callable[[float, float], bool]] = {
    ">=": operator.ge,
    "<=": operator.le,
    "<": operator.lt,
    ">": operator.gt,
    "==": operator.eq,
}


class Target(msgspec.Struct, frozen=True):
    """A figure's target: `Target("ratio", ">=", 0.6)`."""

    of: str  # value or ratio
    relation: str
    bound: float

    def __str__(self) -> str:
        return f"{self.of} {self.relation} {self.bound:g}"


class Figure(msgspec.Struct, kw_only=True):
    """One measured number. `ratio` is value / rival_value; `met` is null without a target."""

    figure: str
    value: float
    unit: str
    rival: str | None = None
    rival_value: float | None = None
    ratio: float | None = None
    spread: tuple[float, float] | None = None  # the least and the greatest ratio of any turn
    target: str | None = None
    met: bool | None = None
    detail: dict[str, float] | None = None


def figure(
    name: str,
    value: float,
    unit: str,
    *,
    rival: tuple[str, float] | None = None,
    target: Target | None = None,
    spread: tuple[float, float] | None = None,
    detail: dict[str, float] | None = None,
) -> Figure:
    """Return a figure with its ratio and whether it meets the target."""
    ratio = value / rival[1] if rival and rival[1] else None
    met = None
    if target is not None:
        judged = ratio if target.of == "ratio" else value
        met = judged is not None and RELATIONS[target.relation](judged, target.bound)
    return Figure(
        figure=name,
        value=_short(value),
        unit=unit,
        rival=rival[0] if rival else None,
        rival_value=_short(rival[1]) if rival else None,
        ratio=_short(ratio) if ratio is not None else None,
        spread=(_short(spread[0]), _short(spread[1])) if spread else None,
        target=str(target) if target else None,
        met=met,
        detail={name: _short(number) for name, number in detail.items()} if detail else None,
    )


def _short(number: float) -> float:
    """Round to four significant digits: more would imply false precision."""
    return float(f"{number:.4g}")
