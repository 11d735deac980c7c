"""The live status table, or plain lines if the output is not a terminal."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from rich.console import Console, Group
from rich.live import Live
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import TracebackType
    from typing import Self

    from cli.stack.display.figures import BackfillFigures, PipelineFigures
    from cli.stack.display.outcome import Outcome
    from cli.stack.plan import Plan
    from cli.stack.processes.supervisor import SupervisedService

COLOURS = {"fresh": "green", "late": "yellow", "stale": "red", "missing": "red"}
STATES = {"up": "green", "starting": "yellow", "down": "red", "stopped": "dim"}
PLAIN_INTERVAL_S = 5.0


class Screen:
    """Shows progress; as a context manager it restores the terminal."""

    def __init__(self, plan: Plan, console: Console | None = None) -> None:
        self.plan = plan
        self.console = console or Console(highlight=False, soft_wrap=True)
        self.began = time.monotonic()
        self._live: Live | None = None
        self._printed_at = 0.0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Restore the terminal."""
        if self._live is not None:
            self._live.stop()
            self._live = None

    def say(self, line: str) -> None:
        """Print a line, above the table if there is one."""
        self.console.print(Text(f"{time.monotonic() - self.began:6.1f} s  ", style="dim"), Text(line), sep="", end="\n")

    def print_examples(self, outcome: Outcome) -> None:
        """Print example calls, outside the table so that they can be copied without its frame."""
        if outcome.api_key:
            self.console.print("try:", *examples(outcome), sep="\n  ")

    def show(self, figures: PipelineFigures, outcome: Outcome, services: Mapping[str, SupervisedService]) -> None:
        """Show the newest figures."""
        if self.console.is_terminal:
            if self._live is None:
                self._live = Live(console=self.console, auto_refresh=False, transient=False)
                self._live.start()
            self._live.update(self.page(figures, outcome, services), refresh=True)
        elif time.monotonic() - self._printed_at >= PLAIN_INTERVAL_S:
            self._printed_at = time.monotonic()
            self.say(self.line(figures) if figures.stages or figures.error else states(services))

    def line(self, figures: PipelineFigures) -> str:
        """Return the figures in one line."""
        stages = " ".join(f"{stage.stage}={stage.status}" for stage in figures.stages)
        rows = " ".join(f"{table}={figures.rows.get(table, 0)}" for table in ("markets", "trades", "book_events"))
        speed = sum(figures.rates.get(table, 0.0) for table in ("trades", "quotes", "book_events"))
        return (
            f"[{self.plan.source}] {rows} +{speed:.0f}/s lag p50 {_seconds(figures.lag_p50_s)} "
            f"p99 {_seconds(figures.lag_p99_s)} {stages} gaps={figures.gaps} quarantined={figures.quarantined}"
            + (f" past={figures.past.share:.0%}" if figures.past else "")
            + (f" ({figures.error})" if figures.error else "")
            + "".join(f"; {stage.stage}: {text}" for stage in figures.stages if (text := stage.blocked_text()))
        )

    def page(self, figures: PipelineFigures, outcome: Outcome, services: Mapping[str, SupervisedService]) -> Panel:
        """Return the whole table."""
        sides = Table.grid(padding=(0, 4))
        sides.add_row(_rows(figures), Group(_stages(figures), Text(), _leases(figures), Text(), _services(services)))
        parts: list[Table | Text] = [sides]
        if figures.past is not None:
            parts += [Text(), _past(figures.past)]
        if figures.error:
            parts.append(Text(figures.error, style="red"))
        parts += [
            Text(f"{stage.stage}: {text}", style="yellow") for stage in figures.stages if (text := stage.blocked_text())
        ]
        parts += [Text(), _addresses(outcome)]
        title = f"Presage · {self.plan.label} · {time.monotonic() - self.began:.0f} s · Ctrl-C stops it"
        return Panel(Group(*parts), title=title, title_align="left", border_style="cyan")


def states(services: Mapping[str, SupervisedService]) -> str:
    """Return the services' states in one line: of a host that does not know the pipeline's figures."""
    return " ".join(f"{name}={watched.state}" for name, watched in services.items()) or "nothing runs here yet"


def examples(outcome: Outcome) -> list[str]:
    """Return example calls."""
    api, stream, key = outcome.urls["api"], outcome.urls["stream"], outcome.api_key
    return [
        f"curl -s -H 'X-API-Key: {key}' '{api}/v1/markets?limit=3'",
        f"curl -s -H 'X-API-Key: {key}' '{api}/v1/status/pipeline'",
        f"websocat '{stream}?api_key={key}'",
    ]


def _seconds(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f} s"


def _rows(figures: PipelineFigures) -> Table:
    table = Table("table", box=None, pad_edge=False)
    table.add_column("rows", justify="right")
    table.add_column("per second", justify="right")
    for name, count in figures.rows.items():
        rate = figures.rates.get(name, 0.0)
        table.add_row(name, f"{count:,}", f"{rate:,.0f}" if rate >= 0.5 else "")
    return table


def _stages(figures: PipelineFigures) -> Table:
    table = Table("stage", "", "lag", box=None, pad_edge=False)
    for stage in figures.stages:
        behind = "" if stage.lag_s is None else f"{stage.lag_s:.1f} s"
        table.add_row(stage.stage, Text(stage.status, style=COLOURS.get(stage.status, "")), behind)
    table.add_row("live lag", "", f"p50 {_seconds(figures.lag_p50_s)}, p99 {_seconds(figures.lag_p99_s)}")
    for exchange, p99_s in figures.lags_p99_s.items() if len(figures.lags_p99_s) > 1 else ():
        table.add_row(f"  of {exchange}", "", f"p99 {_seconds(p99_s)}")
    gaps = f"{figures.gaps} ({figures.open_gaps} open)" if figures.open_gaps else str(figures.gaps)
    table.add_row("gaps", "", Text(gaps, style="yellow" if figures.gaps else ""))
    table.add_row("quarantined", "", Text(str(figures.quarantined), style="yellow" if figures.quarantined else ""))
    return table


def _leases(figures: PipelineFigures) -> Table:
    table = Table("feed", "run", "role", "", box=None, pad_edge=False)
    for lease in figures.leases:
        style = "dim" if lease.silent_s > 10 else ""
        ready = "ready" if lease.ready else "starting"
        status = f"{ready}, window {max(0.0, lease.window_left_s):.0f} s" if lease.silent_s <= 10 else "silent"
        table.add_row(lease.feed, lease.run_id[:8], lease.role, status, style=style)
    return table


def _services(services: Mapping[str, SupervisedService]) -> Table:
    table = Table.grid(padding=(0, 1))
    for name, watched in services.items():
        again = f"restarts: {watched.restarts}" if watched.restarts else ""
        table.add_row(name, Text(watched.state, style=STATES[watched.state]), Text(again, style="yellow"))
    return table


def _past(past: BackfillFigures) -> Table:
    table = Table.grid(padding=(0, 2))
    doing = past.doing or ("complete" if past.share >= 1 else "waiting for the feeds")
    progress = f"{past.share:4.0%}  {doing}" + ("" if past.share >= 1 else ", in the background")
    table.add_row(
        Text(f"back-fill of {past.days} days", style="bold"), ProgressBar(1.0, past.share, width=40), progress
    )
    return table


def _addresses(outcome: Outcome) -> Table:
    table = Table.grid(padding=(0, 2))
    for name, url in outcome.urls.items():
        if url:
            table.add_row(Text(name, style="bold"), url)
    if outcome.api_key:
        table.add_row(Text("key", style="bold"), outcome.api_key)
    return table
