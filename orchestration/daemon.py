"""Dagster's daemon, on one of the hosts that have it: the others wait until it is gone.

python -m orchestration.daemon run [OPTIONS OF `dagster-daemon run`]

Two daemons would evaluate every sensor twice. The one that runs holds a lock of the primary for as long as its session
lasts. It looks at the session every two seconds, and ends if that is gone or its own network is: within eight seconds.
One that had to wait for the lock waits eight more, so that the former has ended whatever ended its session.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from typing import TYPE_CHECKING, Any, NoReturn

import psycopg
from dagster._daemon import cli

from config import settings
from config.logging import formatter
from orchestration.storage_pools import pooled
from sql import database

if TYPE_CHECKING:
    from collections.abc import Callable

log = logging.getLogger(__name__)

EVERY_S = 2.0
VANISHED_S = 6
BUSY = "another host's daemon runs; this one takes over when that is gone"
LOCK = """
    select case when pg_is_in_recovery() then null
        else pg_try_advisory_lock(hashtextextended('presage.daemon', 0)) end
"""


class Lead:
    """The right to run the daemon."""

    def __init__(self, url: str, end: Callable[[], NoReturn], sleep: Callable[[float], None] = time.sleep) -> None:
        self._url, self._end, self._sleep = url, end, sleep

    def wait(self) -> psycopg.Connection[Any]:
        """Wait until no other daemon runs; return the session that has the lock."""
        said = ""
        while True:
            try:
                conn = database.connect_for_lock(self._url, name="presage daemon", vanished_s=VANISHED_S)
                try:
                    has_waited = False
                    while not self._lock(conn):
                        has_waited, said = True, self._say(BUSY, said)
                        self._sleep(EVERY_S)
                    if has_waited:
                        self._sleep(VANISHED_S + EVERY_S)  # for the former to notice
                        conn.execute("select")
                except BaseException:
                    conn.close()
                    raise
            except psycopg.OperationalError as error:
                said = self._say(f"waiting for the database: {error}", said)
                self._sleep(EVERY_S)
            else:
                log.info("this host's daemon runs")
                return conn

    def hold(self, conn: psycopg.Connection[Any]) -> NoReturn:
        """Look at the session until it is gone, then end this process."""
        try:
            while True:
                self._sleep(EVERY_S)
                conn.execute("select")
        except psycopg.Error as error:
            log.warning("the database has ended this daemon's session; another may run by now: %s", error)
        finally:
            self._end()

    def _lock(self, conn: psycopg.Connection[Any]) -> bool:
        """Take the lock of the primary; a replica has locks of its own, and another connection may meet the primary."""
        (locked,) = conn.execute(LOCK).fetchone() or (None,)
        if locked is None:
            raise psycopg.OperationalError("it is a replica")
        return bool(locked)

    def _say(self, what: str, before: str) -> str:
        if what != before:
            log.info(what)
        return what


def lead(url: str, run: Callable[[], None]) -> None:
    """Run a daemon once this process may, and end with the right to."""
    right = Lead(url, lambda: os._exit(1))
    conn = right.wait()
    threading.Thread(target=right.hold, args=[conn], daemon=True, name="lead").start()
    run()


def run_pooled() -> None:
    """Run Dagster's command with pools of connections to its storage."""
    cli.get_instance_for_cli = pooled(cli.get_instance_for_cli)  # type: ignore[assignment, attr-defined]
    cli.main()


def main() -> None:
    """Wait for the right to run, and run Dagster's command."""
    handler = logging.StreamHandler()  # ours alone: Dagster's command installs its own for the rest
    handler.setFormatter(formatter(settings.get().log_format))
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    url = settings.get().database_url
    if url is None:
        raise SystemExit("presage: DATABASE_URL is not set")
    lead(url.get_secret_value(), run_pooled)


if __name__ == "__main__":
    main()
