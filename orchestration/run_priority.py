"""Processor time of runs: what live data waits for goes before other runs of a code server where it is scarce."""

from __future__ import annotations

import os
from functools import partial
from typing import TYPE_CHECKING, Any

from dagster._grpc import impl

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from dagster import DagsterRun

PRIORITY = "dagster/priority"
URGENT = 5
"""Least priority, by Dagster's tag, of feeds and of the other runs that write the stream, whose lock feeds wait for."""
NICENESS = 5
"""Added to that of other runs: beside a feed on a busy core they get a quarter of it."""


def execute(*arguments: Any) -> None:
    """Execute a run in this process, as Dagster's `start_run_in_subprocess` does."""
    impl.core_execute_run = partial(_execute, impl.core_execute_run)  # type: ignore[assignment]
    impl.start_run_in_subprocess(*arguments)  # type: ignore[no-untyped-call]


def _execute(
    dagsters: Callable[..., Iterator[Any]], job: Any, run: DagsterRun, *rest: Any, **named: Any
) -> Iterator[Any]:
    give_way(run)
    return dagsters(job, run, *rest, **named)


def give_way(run: DagsterRun) -> None:
    """Lower this process's priority unless the run is urgent. One started by hand, without a tag, is not."""
    try:
        priority = int(run.tags.get(PRIORITY, "0"))
    except ValueError:  # set by hand: Dagster's queue ignores it, too
        priority = 0
    if priority < URGENT:
        os.nice(NICENESS)
