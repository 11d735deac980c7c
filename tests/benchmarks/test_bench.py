"""The benchmark harness: turns, medians, verdicts."""

from __future__ import annotations

import json

import pytest

from benchmarks import document
from benchmarks.figures import Target, figure
from benchmarks.harness import BENCHMARKS, interleaved, save, slope
from benchmarks.table import table


def test_rivals_take_turns_in_alternating_order_and_the_median_counts():
    order = []
    values = {"ours": iter([5.0, 100.0, 7.0]), "theirs": iter([1.0, 2.0, 3.0])}

    def rival(name):
        def sample():
            order.append(name)
            return next(values[name])

        return sample

    medians = interleaved({name: rival(name) for name in values}, 3)

    assert order == ["ours", "theirs", "theirs", "ours", "ours", "theirs"]
    assert medians == {"ours": 7.0, "theirs": 2.0}


@pytest.mark.parametrize(
    ("target", "met"),
    [
        (Target("ratio", ">=", 0.6), True),
        (Target("ratio", ">=", 0.8), False),
        (Target("value", "<", 76), True),
        (Target("value", "<", 75), False),
        (None, None),
    ],
)
def test_a_figure_is_judged_by_its_target(target, met):
    judged = figure("rows", 75.0, "rows/s", rival=("COPY", 100.0), target=target)

    assert judged.ratio == 0.75
    assert judged.met is met


def test_a_target_on_a_ratio_without_rival_is_missed():
    assert figure("rows", 75.0, "rows/s", target=Target("ratio", ">=", 0.1)).met is False


def test_the_json_holds_a_list_of_figures_with_every_field(tmp_path):
    save(
        [figure("rows", 75.0, "rows/s", rival=("COPY", 100.0), target=Target("ratio", ">=", 0.6), spread=(0.7, 0.8))],
        tmp_path / "b.json",
    )

    assert json.loads((tmp_path / "b.json").read_text()) == [
        {
            "figure": "rows",
            "value": 75.0,
            "unit": "rows/s",
            "rival": "COPY",
            "rival_value": 100.0,
            "ratio": 0.75,
            "spread": [0.7, 0.8],
            "target": "ratio >= 0.6",
            "met": True,
            "detail": None,
        }
    ]
    assert [file.name for file in tmp_path.iterdir()] == ["b.json"]


def test_growth_is_the_trend_and_not_a_single_jump():
    level = [(float(second), 100.0 + (50.0 if second == 5 else 0.0)) for second in range(20)]
    growing = [(float(second), 100.0 + 3 * second) for second in range(20)]

    assert slope(level) == 0.0
    assert slope(growing) == pytest.approx(3.0)


def test_the_table_shows_verdicts(capsys):
    from rich.console import Console

    console = Console(width=140)
    console.print(table([figure("rows", 75.0, "rows/s", target=Target("value", ">", 80))]))

    assert "missed" in capsys.readouterr().out


def test_every_registered_benchmark_can_be_imported():
    import importlib

    for module, description in BENCHMARKS.values():
        assert callable(importlib.import_module(module).run)
        assert description


def test_a_documents_figures_are_written_anew_and_nothing_else(tmp_path):
    file = tmp_path / "performance.md"
    file.write_text("# Figures\n<!-- measured by `presage bench x` -->\nold\n<!-- end -->\nafter\n")
    figures = [
        figure("latency", 6.42, "ms", target=Target("value", "<", 5)),
        figure("rate", 5e6, "messages/s", rival=("theirs", 2e6), target=Target("ratio", ">=", 1)),
    ]

    for _ in range(2):
        document.write(file, "x", figures, (0.5, 0.25, 0.1))

    text = file.read_text()
    assert text.startswith("# Figures\n<!-- measured by `presage bench x` -->\nMeasured ")
    assert text.endswith("<!-- end -->\nafter\n")
    assert "old" not in text
    assert text.count("| latency | 6.42 ms |  |  |  | value < 5: missed |\n") == 1
    assert "| rate | 5,000,000 messages/s | theirs | 2,000,000 | 2.50 | ratio >= 1: met |\n" in text
    assert "Load average before: 0.50, 0.25, 0.10." in text
