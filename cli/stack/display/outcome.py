"""The outcome of a run: the JSON for scripts, the problems found, and the summary."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from cli.stack.display.figures import BackfillFigures
from config.exchanges import EXCHANGES

if TYPE_CHECKING:
    from pathlib import Path

    from cli.stack.display.figures import PipelineFigures


class ExchangeOutcome(msgspec.Struct, kw_only=True):
    """What is measured of each exchange."""

    time_to_first_market_s: float | None = None
    time_to_first_price_s: float | None = None
    live_lag_p99_s: float | None = None


class Outcome(msgspec.Struct, kw_only=True):
    """Written each second; null means not known yet."""

    time_to_first_market_s: float | None = None
    time_to_first_price_s: float | None = None
    live_lag_p50_s: float | None = None
    live_lag_p99_s: float | None = None
    by_exchange: dict[str, ExchangeOutcome] = {}
    rows: dict[str, int] = {}
    past: BackfillFigures | None = None  # the back-fill, at the last reading
    past_at_60_s: BackfillFigures | None = None  # and 60 s after the first price
    coverage_gaps: int | None = None
    gaps_by_cause: dict[str, int] = {}
    quarantined: int | None = None
    stages: dict[str, str] = {}
    reasons: dict[str, str] = {}
    """Why stages are blocked, and since when."""
    urls: Mapping[str, str | None] = {}
    api_key: str | None = None
    tape: dict[str, Any] | None = None
    """For each recording, what was used of it, or why nothing was."""
    source: str

    def take(self, figures: PipelineFigures) -> None:
        """Update from a reading of the pipeline's figures."""
        self.live_lag_p50_s = figures.lag_p50_s
        self.live_lag_p99_s = figures.lag_p99_s
        for exchange, of in self.by_exchange.items():
            of.live_lag_p99_s = figures.lags_p99_s.get(exchange)
        self.rows = figures.rows
        self.coverage_gaps, self.gaps_by_cause = figures.gaps, figures.gaps_by_cause
        self.quarantined = figures.quarantined
        self.past = figures.past
        self.stages = {stage.stage: stage.status for stage in figures.stages}
        self.reasons = {stage.stage: text for stage in figures.stages if (text := stage.blocked_text())}

    def of(self, exchange: str) -> ExchangeOutcome:
        """Return what is measured of an exchange."""
        return self.by_exchange.setdefault(exchange, ExchangeOutcome())

    def save(self, file: Path) -> None:
        """Write it as JSON, atomically."""
        temporary = file.with_name(f".{file.name}.new")
        temporary.write_bytes(msgspec.json.format(msgspec.json.encode(self), indent=2) + b"\n")
        temporary.replace(file)


def problems(outcome: Outcome, down: list[str], error: str | None = None, *, served: bool = True) -> list[str]:
    """Return the problems at the end; none means success. `served`: the API was polled during the run."""
    found = [f"{name} is down" for name in down]
    if error is not None:
        found.append(error)
    if not outcome.stages:
        found.append("no stage has reported")
    for stage, status in outcome.stages.items():
        if status != "fresh":
            found.append(
                f"stage {stage} is {status}" + (f": {outcome.reasons[stage]}" if stage in outcome.reasons else "")
            )
    if not served:
        return found
    if outcome.time_to_first_market_s is None:
        found.append("the API served no market")
    if outcome.time_to_first_price_s is None:
        found.append("the API served no price")
    if outcome.live_lag_p99_s is None:
        found.append("no live row was committed")
    return [*found, *_problems_by_exchange(outcome)]


def _problems_by_exchange(outcome: Outcome) -> Iterator[str]:
    """Yield what is missing of each exchange, where there are several."""
    for exchange, of in outcome.by_exchange.items() if len(outcome.by_exchange) > 1 else ():
        title = EXCHANGES[exchange].title
        if of.time_to_first_price_s is None:
            yield f"the API served no price of {title}"
        if of.live_lag_p99_s is None:
            yield f"no live row of {title} was committed"


def summary(outcome: Outcome, problems: list[str]) -> list[str]:
    """Return a summary in a few lines."""

    def seconds(value: float | None) -> str:
        return "-" if value is None else f"{value:.2f} s"

    rows = ", ".join(f"{count:,} {table.replace('_', ' ')}" for table, count in outcome.rows.items() if count)
    stages = ", ".join(f"{stage} {status}" for stage, status in outcome.stages.items())
    first = f"first market after {seconds(outcome.time_to_first_market_s)}, "
    first += f"first price after {seconds(outcome.time_to_first_price_s)}"
    lag = f"live lag p50 {seconds(outcome.live_lag_p50_s)}, p99 {seconds(outcome.live_lag_p99_s)}"
    causes = "; ".join(f"{count:,} {cause}" for cause, count in outcome.gaps_by_cause.items())
    past = outcome.past
    lines = [
        first,
        lag,
        f"rows: {rows or 'none'}",
        f"stages: {stages or 'none'}",
        f"coverage gaps {outcome.coverage_gaps}{causes and f' ({causes})'}, quarantined {outcome.quarantined}",
    ]
    if len(outcome.by_exchange) > 1:
        lines[2:2] = [
            f"{EXCHANGES[exchange].title}: first price after {seconds(of.time_to_first_price_s)}, "
            f"live lag p99 {seconds(of.live_lag_p99_s)}"
            for exchange, of in outcome.by_exchange.items()
        ]
    if past is not None:
        lines.append(
            f"back-fill: {past.share:.0%} of {past.days} days, {past.trades:,} trades, {past.settlements:,} "
            f"settlements, {past.signals:,} signals"
        )
    if problems:
        lines += ["problems:", *(f"  {problem}" for problem in problems)]
    return lines
