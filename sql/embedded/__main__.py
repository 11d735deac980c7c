"""python -m sql.embedded start|stop|url|erase --data-dir DIR [--port N]."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from config import settings
from sql.embedded import Cluster, EmbeddedError


def main() -> int:
    """Run one command on one data folder."""
    configured = settings.get()
    parser = argparse.ArgumentParser(prog="python -m sql.embedded", description="The embedded database, by hand.")
    parser.add_argument("command", choices=["start", "stop", "url", "erase"])
    parser.add_argument("--data-dir", type=Path, default=configured.data_dir / "database")
    parser.add_argument("--port", type=int, help="also listen on this port of 127.0.0.1")
    parser.add_argument("--database", default="presage")
    given = parser.parse_args()
    cluster = Cluster(given.data_dir, port=given.port, cache_dir=configured.cache_dir)
    try:
        if given.command == "start":
            cluster.start(lambda step: print(step, file=sys.stderr))
            cluster.create_database(given.database)
            cluster.leave_running()
        elif given.command in {"stop", "erase"}:
            getattr(cluster, given.command)()
            return 0
        print(cluster.url(given.database))
    except EmbeddedError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
