"""Output of a running `presage demo`: the table, the plain line, the example calls."""

from __future__ import annotations

import io
import re
from datetime import datetime
from pathlib import Path
from types import SimpleNamespace

import pytest
from rich.console import Console

from cli.stack.display.figures import BackfillFigures, FeedLease, PipelineFigures, StageLag
from cli.stack.display.outcome import Outcome
from cli.stack.display.screen import Screen, examples
from cli.stack.plan import Plan
from cli.stack.ports import Ports

KEY = "psg_" + "k" * 43  # as long as a true one
PLAN = Plan(source="simulated", ports=Ports.of(8080), data_dir=Path("nowhere"), seed=7)
OUTCOME = Outcome(source="simulated", urls=PLAN.urls(), api_key=KEY)
FIGURES = PipelineFigures(
    rows={"markets": 40, "trades": 9, "book_events": 1_234_567},
    rates={"trades": 0.2, "book_events": 678.4},
    lag_p50_s=0.125,
    lag_p99_s=0.482,
    stages=[
        StageLag("discovery", "fresh", None),
        StageLag("ingestion", "late", 4.21, "follows no market", 1_795_000_000),
    ],
    leases=[
        FeedLease("market", "5a2c99d1-aaaa", "leader", ready=True, pid=1, silent_s=0.4, window_left_s=71.2),
        FeedLease("market", "77e0b3c4-bbbb", "standby", ready=False, pid=2, silent_s=0.2, window_left_s=-3.0),
        FeedLease("market", "90f1d2e3-cccc", "standby", ready=True, pid=3, silent_s=31.0, window_left_s=10.0),
    ],
    gaps=3,
    open_gaps=1,
    quarantined=2,
    past=BackfillFigures(
        days=14,
        doing="trades of 2026-11-12",
        share=0.37,
        signals=60,
        leaderboard_wallets_with_profit=30,
        markets_with_14_days_of_candles=0,
        trending_ratios=25,
        filled_days=5,
        trades=20_000,
        settlements=50_000,
    ),
    error="database: gone away",
)
SERVICES = {"api": SimpleNamespace(state="up", restarts=2), "daemon": SimpleNamespace(state="down", restarts=0)}


@pytest.fixture(scope="module")
def page():
    console = Console(record=True, width=120, file=io.StringIO())
    console.print(Screen(PLAN, console).page(FIGURES, OUTCOME, SERVICES))
    return console.export_text()


@pytest.mark.parametrize(
    "shown",
    [
        "Presage · simulated .seed 7.: no real market",
        "markets +40 ",
        "trades +9  ",  # and no rate: less than one in two seconds
        "book_events +1,234,567 +678 ",
        "discovery +fresh ",
        "ingestion +late +4.2 s ",
        "live lag +p50 0.125 s, p99 0.482 s",
        "gaps +3 .1 open.",
        "quarantined +2 ",
        "market +5a2c99d1 +leader +ready, window 71 s",
        "market +77e0b3c4 +standby +starting, window 0 s",
        "market +90f1d2e3 +standby +silent",
        "api +up +restarts: 2",
        "daemon +down ",
        "back-fill of 14 days +━+╸ +37%  trades of 2026-11-12, in the background",
        "database: gone away",
        "api +http://127.0.0.1:8080 ",
        "stream +ws://127.0.0.1:8080/stream ",
        "dagster +http://127.0.0.1:8082 ",
        "site +http://127.0.0.1:8085 ",
        f"key +{KEY} ",
    ],
)
def test_the_table_shows(page, shown):
    assert re.search(shown, page), page


def test_where_nobody_looks_a_line_says_it_and_not_at_every_look():
    written = io.StringIO()
    screen = Screen(PLAN, Console(file=written, width=300))

    for _ in range(3):
        screen.show(FIGURES, OUTCOME, SERVICES)

    (line,) = written.getvalue().splitlines()
    at = datetime.fromtimestamp(1_795_000_000).astimezone()
    assert line.strip().endswith(
        "[simulated] markets=40 trades=9 book_events=1234567 +679/s lag p50 0.125 s p99 0.482 s "
        "discovery=fresh ingestion=late gaps=3 quarantined=2 past=37% (database: gone away); "
        f"ingestion: follows no market, since {at:%H:%M:%S}"
    )


def test_on_a_terminal_the_table_is_drawn_and_the_cursor_given_back(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    written = io.StringIO()

    with Screen(PLAN, Console(file=written, width=120, force_terminal=True)) as screen:
        screen.show(FIGURES, OUTCOME, SERVICES)

    drawn = written.getvalue()
    assert drawn.index("\x1b[?25l") < drawn.index("book_events") < drawn.rindex("\x1b[?25h")


def test_calls_to_try_have_the_key_and_can_be_copied_whole(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")

    Screen(PLAN).print_examples(OUTCOME)

    assert examples(OUTCOME) == [
        f"curl -s -H 'X-API-Key: {KEY}' 'http://127.0.0.1:8080/v1/markets?limit=3'",
        f"curl -s -H 'X-API-Key: {KEY}' 'http://127.0.0.1:8080/v1/status/pipeline'",
        f"websocat 'ws://127.0.0.1:8080/stream?api_key={KEY}'",
    ]
    assert [line.strip() for line in capsys.readouterr().out.splitlines()] == ["try:", *examples(OUTCOME)]


def test_without_a_key_there_is_nothing_to_try(capsys):
    Screen(PLAN).print_examples(Outcome(source="exchange", urls=PLAN.urls()))

    assert capsys.readouterr().out == ""
