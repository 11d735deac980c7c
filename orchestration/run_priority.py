"""Processor time of runs: feeds and discovery go before all others where it is scarce, as live data cannot wait."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from dagster._grpc import impl

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dagster._core.definitions.reconstruct import ReconstructableJob

PRIORITY = "dagster/priority"
URGENT = 7
"""Least priority of the jobs that live data needs, by Dagster's tag."""
NICENESS = 5
"""Added to that of other runs: beside a feed on a busy core they get a quarter of it."""


def execute(run: str, job: ReconstructableJob, *queues: Any) -> None:
    """Execute a run in this process as Dagster's code server does, `run` being its serialized arguments."""
    give_way(job.get_definition().tags)
    impl.start_run_in_subprocess(run, job, *queues)  # type: ignore[no-untyped-call]


def give_way(tags: Mapping[str, str]) -> None:
    """Lower this process's priority unless the tags are those of an urgent job."""
    if int(tags.get(PRIORITY, "0")) < URGENT:
        os.nice(NICENESS)
