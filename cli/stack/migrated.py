"""Waits until DATABASE_URL has this release's schema: `python -m cli.stack.migrated`, before a service's own command.

Compose starts services after the migration; Kubernetes starts everything at once.
"""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

import psycopg

from config import settings
from sql import migrate

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
    began, reason = clock(), ""
    while clock() - began < WAIT_S:
        before = reason
        try:
            if not migrate.pending(url):
                return True
            reason = "it lacks migrations of this release"
        except psycopg.Error as error:  # there is no server, no login or no table yet
            reason = str(error).strip()
        if reason != before:
            tell(f"waiting for the database: {reason}")
        sleep(RETRY_S)
    return False


if __name__ == "__main__":
    url = settings.get().database_url
    sys.exit("DATABASE_URL is not set" if url is None else not wait(url.get_secret_value()))
