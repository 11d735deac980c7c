"""Benchmark runner: rivals in the same run, measured in turns, and their medians."""

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

# Name → module with `run(options, report)`, and its description. Modules are imported when run.
BENCHMARKS: dict[str, tuple[str, str]] = {
    "ingest": (
        "benchmarks.ingest",
        "The writer's rows a second beside psql's COPY",
    ),
    "decode": ("benchmarks.chain.decode", "Decoding of the chain's logs beside web3.py's process_log on the same logs"),
    "settlement": ("benchmarks.chain.settlement", "The chain's logs to committed rows, beside eth_getLogs alone"),
    "stream": (
        "benchmarks.stream.stream",
        "Commit-to-client latency, fan-out to 1,000 clients, resumes; beside bare broadcasts",
    ),
    "writers": (
        "benchmarks.writers.writers",
        "Commits a second of several writers of one stream before their p99 doubles, beside writers without a stream",
    ),
    "api": (
        "benchmarks.api.api",
        "CPU per request beside FastAPI and a bare Falcon; every endpoint's latency on 5 M trades",
    ),
    "hosts": (
        "benchmarks.hosts.hosts",
        "CPU per request on one, two and three hosts beside one database, and its replica's share of the transactions",
    ),
    "flood": (
        "benchmarks.api.flood",
        "Customers' latency beside a flood of unknown keys and registrations, and in peace",
    ),
    "coverage": ("benchmarks.coverage", "A day reconciled with the exchange's list and backfilled; backup, restore"),
    "books": (
        "benchmarks.books.books",
        "Past books in a day of 20 M book events; bytes per event, beside gzipped JSON",
    ),
    "lake": (
        "benchmarks.lake.lake",
        "A day of 20 M book events and 5 M trades written into the lake and read by DuckDB, beside the export's files",
    ),
    "wallets": ("benchmarks.wallets.wallets", "Positions, leaderboards and wallets' endpoints on 5 M settlements"),
    "webhooks": (
        "benchmarks.webhooks.webhooks",
        "Commit-to-receiver latency, and deliveries per second beside bare requests",
    ),
    "mcp": ("benchmarks.mcp.mcp", "MCP tool calls beside fastmcp's server from the same document"),
    "analysis": (
        "benchmarks.signals.signals",
        "A minute of signals over 200,000 markets beside a pandas loop",
    ),
    "lists": (
        "benchmarks.lists.lists",
        "Every list of markets, by all kinds of filters and on deep pages, over a catalogue of 1.5 M markets",
    ),
    "equivalents": (
        "benchmarks.equivalents.equivalents",
        "Candidates for the same question over two catalogues, and verdicts against labels, with intervals",
    ),
    "capacity": (
        "benchmarks.capacity.capacity",
        "CPU per event, lag, memory and time until ready of the live feed at a rate, over markets and shards",
    ),
}


MAX_POINTS = 300  # of which all pairs are looked at


class Options(msgspec.Struct, frozen=True):
    """Duration and repetitions."""

    seconds: float = 600.0  # of a sustained load
    repetitions: int = 5
    events: int = 20_000_000  # of a day's books
    markdown: Path | None = None  # a document whose measured part is rewritten
    rate: float = 4_650.0  # price changes and trades a second that an exchange sends
    markets: int | None = None  # of that exchange, or of a catalogue; None: as the benchmark prefers
    live: int | None = None  # of a catalogue's markets; None: as large a share as the exchange's
    shards: int = 1  # of the live feed
    burst: tuple[float, float] | None = None  # times that rate, and for how many seconds
    quiet_start: bool = False  # whether the exchange trades only once the feed is ready
    warm_up: float = 0.0  # seconds of trading before it is measured
    subscriber: bool = False  # whether one follows the stream meanwhile
    quality_pass: bool = True  # whether one is timed after that
    texts: Path | None = None  # a folder of labelled markets' texts


class Benchmark(Protocol):
    """Interface of a benchmark's module."""

    def run(self, options: Options, report: Callable[[str], None]) -> Iterator[Figure]:
        """Yield figures as they are measured."""


def interleaved(
    rivals: Mapping[str, Callable[[], float]], repetitions: int, report: Callable[[str], None] = lambda _: None
) -> dict[str, float]:
    """Measure the rivals in turns; return medians."""
    return {name: statistics.median(values) for name, values in turns(rivals, repetitions, report).items()}


def turns(
    rivals: Mapping[str, Callable[[], float]], repetitions: int, report: Callable[[str], None] = lambda _: None
) -> dict[str, list[float]]:
    """Measure the rivals in turns, so that other load on the machine affects all alike; return every sample."""
    samples: dict[str, list[float]] = {name: [] for name in rivals}
    for turn in range(repetitions):
        for name in list(rivals)[:: 1 if turn % 2 == 0 else -1]:
            gc.collect()
            samples[name].append(rivals[name]())
            report(f"{name}: {samples[name][-1]:,.4g} ({turn + 1} of {repetitions})")
    return samples


def quantile(values: Sequence[float], share: float) -> float:
    """Return the value that a share of them does not exceed."""
    return sorted(values)[min(len(values) - 1, int(len(values) * share))]


def slope(points: Sequence[tuple[float, float]]) -> float:
    """Return growth per unit of x, robust against single jumps: the median slope of all pairs (Theil-Sen).

    Of many points, some 300 are taken, evenly spaced.
    """
    points = points[:: max(1, len(points) // MAX_POINTS)]
    slopes = [(y2 - y1) / (x2 - x1) for i, (x1, y1) in enumerate(points) for x2, y2 in points[i + 1 :] if x2 != x1]
    return statistics.median(slopes) if slopes else 0.0


def run(names: Sequence[str], options: Options, report: Callable[[str], None]) -> Iterator[Figure]:
    """Run the named benchmarks one after the other."""
    for name in names:
        module: Benchmark = importlib.import_module(BENCHMARKS[name][0])
        yield from module.run(options, report)


def save(figures: Sequence[Figure], file: Path) -> None:
    """Write the figures as JSON, atomically."""
    temporary = file.with_name(f".{file.name}.new")
    temporary.write_bytes(msgspec.json.format(msgspec.json.encode(figures), indent=2) + b"\n")
    temporary.replace(file)
