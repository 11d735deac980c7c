"""Feeds without Dagster: what `python -m orchestration.ingest` and its like have in common."""

from __future__ import annotations

import argparse
import signal
import sys
import uuid
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from config import logging as logs

if TYPE_CHECKING:
    from collections.abc import Callable

    from config.settings import Settings


class Feed(Protocol):
    """What runs until it leaves, or is told to."""

    def run(self, should_stop: Callable[[], bool], observe: Callable[[dict[str, Any]], None]) -> dict[str, Any]:
        """Run to the end and give the totals."""
        ...


def arguments(name: str, window_s: float) -> argparse.ArgumentParser:
    """Give a parser of what every feed may be told."""
    parser = argparse.ArgumentParser(
        prog=f"python -m orchestration.{name}", description=f"One {name} run, without Dagster."
    )
    parser.add_argument("--run-id", default=f"cli-{uuid.uuid4().hex[:12]}")
    parser.add_argument("--window", type=float, default=window_s, help="seconds")
    parser.add_argument("--observe", type=float, default=15.0, help="seconds between two lines of figures")
    return parser


def run(name: str, configured: Settings, run_id: str, feed_of: Callable[[str], Feed]) -> int:
    """Run a feed until it leaves or is told to (SIGTERM, SIGINT); each observation is a line of JSON on stdout."""
    logs.configure(name)
    logs.bind(run_id=run_id)
    if configured.database_url is None:
        print("DATABASE_URL says where the data is", file=sys.stderr)
        return 2

    told: list[int] = []
    for each in (signal.SIGTERM, signal.SIGINT):
        signal.signal(each, lambda number, _: told.append(number))

    def observe(said: dict[str, Any]) -> None:
        print(msgspec.json.encode(said).decode(), flush=True)

    feed_of(configured.database_url.get_secret_value()).run(lambda: bool(told), observe)
    return 0
