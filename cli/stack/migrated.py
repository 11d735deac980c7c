"""Waits until DATABASE_URL has this release's schema: `python -m cli.stack.migrated`, before a service's own command.

Compose starts services after the migration; Kubernetes starts everything at once.
"""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

import psycopg

from config import settings
from sql import database, migrate

if TYPE_CHECKING:
    from collections.abc import Callable

WAIT_S = 600.0  # then the container fails, which shows, and is started again
RETRY_S = 2.0


def wait(
    url: str,
    sleep: Callable[[float], None] = time.sleep,
    clock: Callable[[], float] = time.monotonic,
    tell: Callable[[str], None] = lambda line: print(line, file=sys.stderr, flush=True),
) -> bool:
    """Return True once the database has this release's schema or a later one, False after too long."""

    def lacks() -> str:
        return "it lacks migrations of this release" if migrate.pending(url) else ""

    return _until(lacks, sleep, clock, tell)


def wait_for_primary(
    url: str,
    sleep: Callable[[float], None] = time.sleep,
    clock: Callable[[], float] = time.monotonic,
    tell: Callable[[str], None] = lambda line: print(line, file=sys.stderr, flush=True),
) -> bool:
    """Return True once a server that accepts writes answers, False after too long."""

    def lacks() -> str:
        with database.connect(url, autocommit=True) as conn:
            row = conn.execute("select pg_is_in_recovery()").fetchone()
        return "it is a replica" if row == (True,) else ""

    return _until(lacks, sleep, clock, tell)


def _until(
    lacks: Callable[[], str],
    sleep: Callable[[float], None],
    clock: Callable[[], float],
    tell: Callable[[str], None],
) -> bool:
    began, reason = clock(), ""
    while clock() - began < WAIT_S:
        before = reason
        try:
            reason = lacks()
            if not reason:
                return True
        except psycopg.Error as error:  # there is no server, no login or no table yet
            reason = str(error).strip()
        if reason != before:
            tell(f"waiting for the database: {reason}")
        sleep(RETRY_S)
    return False


if __name__ == "__main__":
    url = settings.get().database_url
    sys.exit("DATABASE_URL is not set" if url is None else not wait(url.get_secret_value()))
