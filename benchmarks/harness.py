"""Runs benchmarks: rivals in the same run, taking turns, and medians of what each of them did."""

from __future__ import annotations

import gc
import importlib
import statistics
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import msgspec

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from benchmarks.figures import Figure

# Name → module with `run(options, report)`, and what it measures. Modules are imported when run.
BENCHMARKS: dict[str, tuple[str, str]] = {
    "ingest": (
        "benchmarks.ingest.ingest",
        "Our writer against psql's COPY, and a sustained load through the live feed",
    ),
    "decode": ("benchmarks.chain.decode", "The chain's logs to arrays beside web3.py's process_log over the same logs"),
    "settlement": ("benchmarks.chain.settlement", "Logs of the chain to committed rows beside eth_getLogs alone"),
    "stream": (
        "benchmarks.stream.stream",
        "From commit to client, fan-out to 1,000 clients, resumes; beside bare broadcasts",
    ),
    "api": (
        "benchmarks.api.api",
        "CPU a request beside FastAPI and a bare Falcon; every endpoint's latency on 5 M trades",
    ),
    "coverage": ("benchmarks.coverage", "A day counted against the exchange's list and filled in; backup and restore"),
    "books": (
        "benchmarks.books.books",
        "Books of past moments in a day of 20 M book events; bytes each, beside gzipped JSON",
    ),
    "wallets": ("benchmarks.wallets.wallets", "Positions, leaderboards and wallets' endpoints on 5 M settlements"),
    "webhooks": (
        "benchmarks.webhooks.webhooks",
        "From commit to receiver, and deliveries a second beside bare requests",
    ),
    "mcp": ("benchmarks.mcp.mcp", "Calls of MCP tools beside what fastmcp makes of the same document"),
    "analysis": (
        "benchmarks.signals.signals",
        "A minute of signals over 46,500 markets beside a loop over them in pandas",
    ),
}


class Options(msgspec.Struct, frozen=True):
    """How long and how often."""

    seconds: float = 600.0  # of a sustained load
    repetitions: int = 5
    events: int = 20_000_000  # of a day's books
    markdown: Path | None = None  # a document whose measured part is written anew


class Benchmark(Protocol):
    """What a benchmark's module offers."""

    def run(self, options: Options, report: Callable[[str], None]) -> Iterator[Figure]:
        """Yield figures as they are measured."""


def interleaved(
    rivals: Mapping[str, Callable[[], float]], repetitions: int, report: Callable[[str], None] = lambda _: None
) -> dict[str, float]:
    """Let the rivals take turns; medians."""
    return {name: statistics.median(values) for name, values in turns(rivals, repetitions, report).items()}


def turns(
    rivals: Mapping[str, Callable[[], float]], repetitions: int, report: Callable[[str], None] = lambda _: None
) -> dict[str, list[float]]:
    """Let the rivals take turns, so that what the machine does meanwhile hits all alike; every sample."""
    samples: dict[str, list[float]] = {name: [] for name in rivals}
    for turn in range(repetitions):
        for name in list(rivals)[:: 1 if turn % 2 == 0 else -1]:
            gc.collect()
            samples[name].append(rivals[name]())
            report(f"{name}: {samples[name][-1]:,.4g} ({turn + 1} of {repetitions})")
    return samples


def slope(points: Sequence[tuple[float, float]]) -> float:
    """Growth per unit of x, robust against single jumps: the median of the slopes between all pairs (Theil and Sen)."""
    slopes = [(y2 - y1) / (x2 - x1) for i, (x1, y1) in enumerate(points) for x2, y2 in points[i + 1 :] if x2 != x1]
    return statistics.median(slopes) if slopes else 0.0


def run(names: Sequence[str], options: Options, report: Callable[[str], None]) -> Iterator[Figure]:
    """Run the named benchmarks, one after the other."""
    for name in names:
        module: Benchmark = importlib.import_module(BENCHMARKS[name][0])
        yield from module.run(options, report)


def save(figures: Sequence[Figure], file: Path) -> None:
    """Write the figures as JSON, whole or not at all."""
    temporary = file.with_name(f".{file.name}.new")
    temporary.write_bytes(msgspec.json.format(msgspec.json.encode(figures), indent=2) + b"\n")
    temporary.replace(file)
