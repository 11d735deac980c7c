"""Runs feeds without Dagster: shared by `python -m orchestration.ingest` and the other feeds."""

from __future__ import annotations

import argparse
import signal
import sys
import uuid
from typing import TYPE_CHECKING, Any

import msgspec

from config import logging

if TYPE_CHECKING:
    from collections.abc import Callable

    from config.settings import Settings
    from orchestration.feeds.base import Feed


def arguments(name: str, window_s: float) -> argparse.ArgumentParser:
    """Return an argument parser with the options that every feed has."""
    parser = argparse.ArgumentParser(
        prog=f"python -m orchestration.{name}", description=f"One {name} run, without Dagster."
    )
    parser.add_argument("--run-id", default=f"cli-{uuid.uuid4().hex[:12]}")
    parser.add_argument("--window", type=float, default=window_s, help="seconds")
    parser.add_argument("--observe", type=float, default=15.0, help="seconds between two lines of figures")
    return parser


def run(name: str, configured: Settings, run_id: str, make_feed: Callable[[str], Feed]) -> int:
    """Run a feed until it ends or is stopped (SIGTERM, SIGINT); each observation is a line of JSON on stdout."""
    logging.configure(name)
    logging.bind(run_id=run_id)
    if configured.database_url is None:
        print("DATABASE_URL is not set", file=sys.stderr)
        return 2

    signals: list[int] = []
    for each in (signal.SIGTERM, signal.SIGINT):
        signal.signal(each, lambda number, _: signals.append(number))

    def observe(figures: dict[str, Any]) -> None:
        print(msgspec.json.encode(figures).decode(), flush=True)

    make_feed(configured.database_url.get_secret_value()).run(lambda: bool(signals), observe)
    return 0
