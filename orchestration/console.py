"""Console logging of runs, beside Dagster's own event log: lines with the ID of their run."""

from __future__ import annotations

import logging
import sys

import dagster as dg
from dagster._core.execution import context_creation_job

from config import settings
from config.logging import bind, formatter


def install() -> None:
    """Make every run log this way: a logger in `Definitions` applies only to runs whose configuration names it."""
    context_creation_job.default_system_loggers = lambda instance: [(console, {})]  # type: ignore[attr-defined]  # noqa: ARG005


@dg.logger(config_schema=None, description="Lines on stderr, in the settings' format, with run, job and step.")
def console(context: dg.InitLoggerContext) -> logging.Logger:
    """Log a run's messages, and add its ID to the log lines of our own modules in its process."""
    known = {"run_id": context.run_id, "job": None if context.job_def is None else context.job_def.name}
    bind(process="run", **{name: value for name, value in known.items() if value is not None})
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(formatter(settings.get().log_format))
    logger = logging.Logger("dagster", logging.INFO)  # noqa: LOG001 (for this run alone, beside all others)
    logger.addHandler(handler)
    return logger
