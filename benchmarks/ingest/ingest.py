"""Ingest benchmark: the writer's rows per second beside psql's COPY, and a sustained load through the whole feed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.ingest import sustained, writing

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from benchmarks.figures import Figure
    from benchmarks.harness import Options


def run(options: Options, report: Callable[[str], None]) -> Iterator[Figure]:
    """Run both measurements."""
    yield from writing.run(options, report)
    yield from sustained.run(options, report)
