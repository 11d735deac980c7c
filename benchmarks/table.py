"""Figures as a table for the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.table import Table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.figures import Figure

VERDICTS = {None: "", True: "[green]met[/]", False: "[red]missed[/]"}


def table(figures: Sequence[Figure]) -> Table:
    """Return a table with one row per figure."""
    made = Table(title="Benchmarks", title_justify="left")
    made.add_column("figure")
    made.add_column("value", justify="right")
    made.add_column("unit")
    made.add_column("rival")
    made.add_column("its value", justify="right")
    made.add_column("ratio", justify="right")
    made.add_column("target")
    made.add_column("")
    for each in figures:
        made.add_row(
            each.figure,
            _number(each.value),
            each.unit,
            each.rival or "",
            _number(each.rival_value),
            _number(each.ratio) + (f" ({_number(each.spread[0])} to {_number(each.spread[1])})" if each.spread else ""),
            each.target or "",
            VERDICTS[each.met],
        )
    return made


def _number(number: float | None) -> str:
    if number is None:
        return ""
    return f"{number:,.0f}" if abs(number) >= 1000 else f"{number:.4g}"
