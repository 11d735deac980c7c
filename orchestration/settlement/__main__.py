"""python -m orchestration.settlement: follow the chain without Dagster; observations are lines of JSON on stdout."""

import argparse
import signal
import sys
import uuid
from types import FrameType
from typing import Any

import msgspec

import logs
import settings
from orchestration.settlement import chain
from orchestration.settlement.feed import Feed


def main() -> int:
    """Run one feed from the settings in the environment until it leaves or is told to (SIGTERM, SIGINT)."""
    configured = settings.get()
    parser = argparse.ArgumentParser(
        prog="python -m orchestration.settlement", description="One settlement run, without Dagster."
    )
    parser.add_argument("--run-id", default=f"cli-{uuid.uuid4().hex[:12]}")
    parser.add_argument("--window", type=float, default=configured.settlement_window_s, help="seconds")
    parser.add_argument("--observe", type=float, default=15.0, help="seconds between two lines of figures")
    given = parser.parse_args()
    logs.configure("settlement")
    logs.bind(run_id=given.run_id)
    if configured.database_url is None:
        print("DATABASE_URL says where to write to", file=sys.stderr)
        return 2
    if not chain.urls(configured):
        print(chain.OFF, file=sys.stderr)
        return 2

    stopped = False

    def stop(_signal: int, _frame: FrameType | None) -> None:
        nonlocal stopped
        stopped = True

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)

    def observe(said: dict[str, Any]) -> None:
        print(msgspec.json.encode(said).decode(), flush=True)

    with chain.reached(configured) as (rpc, second):
        Feed(
            configured,
            configured.database_url.get_secret_value(),
            rpc,
            chain.followed(configured),
            run_id=given.run_id,
            second=second,
            window_s=given.window,
            observe_s=given.observe,
        ).run(lambda: stopped, observe)
    return 0


if __name__ == "__main__":
    sys.exit(main())
