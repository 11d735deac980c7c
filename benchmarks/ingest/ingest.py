"""Ingest: the writer's rows a second beside psql's COPY, and a sustained load through the whole live feed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.ingest import sustained, writing

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from benchmarks.figures import Figure
    from benchmarks.harness import Options


def run(options: Options, report: Callable[[str], None]) -> Iterator[Figure]:
    """Measure both."""
    yield from writing.run(options, report)
    yield from sustained.run(options, report)
