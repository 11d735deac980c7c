"""Follows the database's notifications of new and changed keys, whoever made the change."""

from __future__ import annotations

import logging
import re
import select
import threading
import time
from typing import TYPE_CHECKING

import psycopg

from api.metering.key_filter import KeyFilter
from sql import database
from sql.queries import keys as queries

if TYPE_CHECKING:
    from collections.abc import Callable

    from api.data.pool import Connection
    from api.metering.keys import Keys

CHANNEL = "presage_keys"  # of the trigger on `api_keys`
HEARTBEAT_S = 5.0  # between two checks of a silent connection
RETRY_S = 1.0
BATCH = 10_000
_CHANGE = re.compile(r"(INSERT|UPDATE) ([0-9]{1,10}) ([0-9a-f]{64})")

log = logging.getLogger("presage.api")


class KeyChanges:
    """Keeps a worker's key cache current, over a connection of its own."""

    def __init__(self, url: str, keys: Keys, end: Callable[[int], object]) -> None:
        self._url, self._keys, self._end = url, keys, end
        self._valid = KeyFilter()
        self._stopped = False

    def start(self) -> None:
        """Start to follow, in a thread."""
        self._keys.await_filter()
        threading.Thread(target=self._run, name="key changes", daemon=True).start()

    def stop(self) -> None:
        """Stop with the next heartbeat."""
        self._stopped = True

    def _run(self) -> None:
        while not self._stopped:
            try:
                with database.connect(self._url, autocommit=True, name="presage api keys") as conn:
                    self._follow(conn)
            except psycopg.Error as error:
                seen = "other hosts' are seen within 30 s, or two minutes while the database is away"
                log.warning("changes of keys cannot be followed, %s: %s", seen, error)
            self._keys.unfollowed()
            time.sleep(RETRY_S)

    def _follow(self, conn: Connection) -> None:
        self._valid = KeyFilter()
        conn.add_notify_handler(self._changed)
        conn.execute(f"listen {CHANNEL}")  # before the keys are read, so that none is missed between
        with conn.transaction(), conn.cursor("valid_keys") as cursor:
            cursor.itersize = BATCH
            cursor.execute(queries.valid.sql)
            for (digest,) in cursor:
                self._valid.add(digest)
        self._keys.follow(self._valid)
        while not self._stopped:
            select.select([conn.fileno()], [], [], HEARTBEAT_S)
            conn.execute("select")  # handles what has arrived

    def _changed(self, notification: psycopg.Notify) -> None:
        if (change := _CHANGE.fullmatch(notification.payload)) is None:
            return  # anybody who may connect to the database may notify
        kind, key_id, text = change.groups()
        digest = bytes.fromhex(text)
        self._valid.add(digest)
        self._keys.changed(digest)
        if kind != "INSERT":
            self._end(int(key_id))
