"""Figures in a document: a table between two marks, rewritten by each run of a benchmark."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from benchmarks.api import report

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from benchmarks.figures import Figure


def write(file: Path, benchmark: str, figures: Sequence[Figure], load: tuple[float, float, float]) -> None:
    """Replace a benchmark's previous figures."""
    busy = ", ".join(f"{each:.2f}" for each in load)
    where = f"Measured {datetime.now(UTC):%Y-%m-%d %H:%M} UTC on {report.machine()}. Load average before: {busy}."
    begin = report.BEGIN.replace("bench api", f"bench {benchmark}")
    report.write(file, f"{where}\n\n{table(figures)}", begin=begin)


def table(figures: Sequence[Figure]) -> str:
    """Return a table with a row per figure."""
    lines = ["| figure | value | rival | its | ratio | target |", "| --- | ---: | --- | ---: | ---: | --- |"]
    for each in figures:
        verdict = "" if each.met is None else f"{each.target}: {'met' if each.met else 'missed'}"
        its, ratio = _number(each.rival_value), "" if each.ratio is None else f"{each.ratio:.2f}"
        lines.append(
            f"| {each.figure} | {_number(each.value)} {each.unit} | {each.rival or ''} | {its} | {ratio} | {verdict} |"
        )
    return "\n".join(lines)


def _number(number: float | None) -> str:
    if number is None:
        return ""
    return f"{number:,.0f}" if abs(number) >= 1000 else f"{number:.3g}"
