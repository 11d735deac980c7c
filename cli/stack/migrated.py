"""Waits until DATABASE_URL has this release's schema: `python -m cli.stack.migrated`, before a service's own command.

Compose starts services after the migration; Kubernetes starts everything at once.
"""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, NamedTuple

import psycopg

from config import settings
from sql import database, migrate

if TYPE_CHECKING:
    from collections.abc import Callable

WAIT_S = 600.0  # then the container fails, which shows, and is started again
RETRY_S = 2.0


class Waiting(NamedTuple):
    """How to wait, by which clock, and whom to tell for what."""

    sleep: Callable[[float], None] = time.sleep
    clock: Callable[[], float] = time.monotonic
    tell: Callable[[str], None] = lambda line: print(line, file=sys.stderr, flush=True)

    def until(self, lacks: Callable[[], str]) -> bool:
        """Return True once the database lacks nothing, False after too long."""
        began, reason = self.clock(), ""
        while self.clock() - began < WAIT_S:
            before = reason
            try:
                reason = lacks()
                if not reason:
                    return True
            except psycopg.Error as error:  # there is no server, no login or no table yet
                reason = str(error).strip()
            if reason != before:
                self.tell(f"waiting for the database: {reason}")
            self.sleep(RETRY_S)
        return False


WAITING = Waiting()


def wait(url: str, waiting: Waiting = WAITING) -> bool:
    """Return True once the database has this release's schema or a later one, False after too long."""
    return waiting.until(lambda: "it lacks migrations of this release" if migrate.pending(url) else "")


def with_primary(url: str, act: Callable[[], None], waiting: Waiting = WAITING) -> bool:
    """Act once a server accepts writes, and again if that is lost meanwhile; return False after too long.

    `act` may be repeated, however far it came. Raises what it raises for any other reason.
    """
    failed: list[Exception] = []

    def lacks() -> str:
        with database.connect(url, autocommit=True) as conn:
            if conn.execute("select pg_is_in_recovery()").fetchone() == (True,):
                return "it is a replica"
        try:
            act()
        except Exception as error:  # noqa: BLE001 (raised below)
            cause = getattr(error, "orig", error)  # of SQLAlchemy's
            if _is_lost(cause):
                return f"it was lost: {str(cause).strip()}"
            failed.append(error)
        return ""

    done = waiting.until(lacks)
    if failed:
        raise failed[0]
    return done


def _is_lost(error: BaseException) -> bool:
    """Return whether a connection could not be had or was lost, the server shuts down or starts, or is a replica."""
    if isinstance(error, psycopg.errors.ReadOnlySqlTransaction):
        return True
    state = error.sqlstate or "08" if isinstance(error, psycopg.OperationalError) else ""
    return state.startswith(("08", "57P"))


if __name__ == "__main__":
    url = settings.get().database_url
    sys.exit("DATABASE_URL is not set" if url is None else not wait(url.get_secret_value()))
