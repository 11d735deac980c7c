"""python -m orchestration.delivery: deliver webhooks without Dagster; observations are lines of JSON on stdout."""

import argparse
import signal
import sys
import uuid
from types import FrameType
from typing import Any

import msgspec

import logs
import settings
from orchestration.delivery.feed import Feed


def main() -> int:
    """Run one feed from the settings in the environment until it leaves or is told to (SIGTERM, SIGINT)."""
    configured = settings.get()
    parser = argparse.ArgumentParser(
        prog="python -m orchestration.delivery", description="One delivery run, without Dagster."
    )
    parser.add_argument("--run-id", default=f"cli-{uuid.uuid4().hex[:12]}")
    parser.add_argument("--window", type=float, default=configured.webhook_window_s, help="seconds")
    parser.add_argument("--observe", type=float, default=15.0, help="seconds between two lines of figures")
    given = parser.parse_args()
    logs.configure("delivery")
    logs.bind(run_id=given.run_id)
    if configured.database_url is None:
        print("DATABASE_URL says where to read from", file=sys.stderr)
        return 2

    stopped = False

    def stop(_signal: int, _frame: FrameType | None) -> None:
        nonlocal stopped
        stopped = True

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)

    def observe(said: dict[str, Any]) -> None:
        print(msgspec.json.encode(said).decode(), flush=True)

    Feed(
        configured,
        configured.database_url.get_secret_value(),
        run_id=given.run_id,
        window_s=given.window,
        observe_s=given.observe,
    ).run(lambda: stopped, observe)
    return 0


if __name__ == "__main__":
    sys.exit(main())
