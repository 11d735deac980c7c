"""Whether the feed of this container is alive, by its lease: `python -m orchestration.feeds.probe [--ready]`.

A probe of Kubernetes. A process that hangs keeps its lock, and so the lead, for as long as it runs: it has to be ended.
While the database is away no lease is touched, and what a run has received is in its memory: nothing says then that the
run is dead.
"""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

import psycopg

from config import settings
from sql import database
from sql.queries import feed as queries

if TYPE_CHECKING:
    from collections.abc import Sequence

STATEMENT_TIMEOUT_MS = 3_000


def failure(url: str, host: str, *, ready: bool) -> str:
    """Return why the run on this host is not alive or, with `ready`, could not take the lead; empty: it is, or could.

    One that has no lease yet is neither.
    """
    try:
        with database.connect(url, name="presage feed probe", statement_timeout=STATEMENT_TIMEOUT_MS) as conn:
            lease = queries.lease_of(conn, host=host)
    except psycopg.Error as error:
        return f"the database does not answer: {error}" if ready else ""
    if lease is None:
        return "it has not taken a lease"
    feed, alive, could_lead = lease
    if not alive:
        return f"{feed}: its lease is not renewed"
    return f"{feed}: not ready to lead" if ready and not could_lead else ""


def main(arguments: Sequence[str] | None = None) -> int:
    """Judge the run of this host; return 0 if it is alive, or ready."""
    parser = argparse.ArgumentParser(prog="python -m orchestration.feeds.probe")
    parser.add_argument("--ready", action="store_true", help="ask whether it could take the lead at once")
    given = parser.parse_args(arguments)
    configured = settings.get()
    url = configured.database_url
    reason = failure(url.get_secret_value(), configured.host, ready=given.ready) if url else "DATABASE_URL is not set"
    if reason:
        print(reason)
    return int(bool(reason))


if __name__ == "__main__":
    sys.exit(main())
