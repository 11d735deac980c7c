"""What hosts that execute runs have in Dagster's database: a queue, and locks that say which of them are there.

A message of the queue is a run's ID. Taking one deletes it, and whoever has taken it tags the run: one whose host is
lost in between fails by Dagster's start time-out. A host holds one lock while it takes runs, and another for as long as
it executes any; both last as long as its session.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import psycopg
from psycopg.conninfo import make_conninfo
from sqlalchemy import make_url

from sql import database

if TYPE_CHECKING:
    from collections.abc import Callable

    from dagster import DagsterInstance, DagsterRun

Key = TypeVar("Key", int, str)

HOST_TAG = "presage/host"
"""Name of the host that executes a run, for people."""
SESSION_TAG = "presage/host_session"
"""Number of its locks, and the run: "NUMBER RUN_ID". A run that is executed again inherits the tags of the first."""
QUEUED_TAG = "presage/queued"
"""The run's own ID, if it was put into the queue."""
TAKES, EXECUTES = 0x70726573, 0x70726574
"""First keys of the two locks; the second is the session's number."""
LOOKED_S = 45.0
"""After a longer pause nothing is known of the time in between."""
VANISHED_S = 6

CREATE = """
    do $$ begin
        perform pg_advisory_xact_lock(hashtextextended('presage.runs', 0));  -- hosts that start together
        create table if not exists presage_runs_queue (
            id bigint generated always as identity primary key, run_id text not null);
    end $$
"""
PUT = "insert into presage_runs_queue (run_id) values (%(run_id)s)"
TAKE = """
    delete from presage_runs_queue
    where id = (select id from presage_runs_queue order by id limit 1 for update skip locked)
    returning run_id
"""
LOCK = "select case when pg_is_in_recovery() then null else pg_try_advisory_lock(%s, %s) end"
LOCKED = """
    select objid::bigint from pg_locks
    where locktype = 'advisory' and classid = %(kind)s and objsubid = 2 and granted
        and database = (select oid from pg_database where datname = current_database())
"""


def sessions(instance: DagsterInstance, kind: int) -> set[int]:
    """Return the numbers of the hosts that hold this lock (`TAKES` or `EXECUTES`), from the primary."""
    storage: Any = instance.run_storage
    if not hasattr(storage, "postgres_url"):  # an instance without our dagster.yaml
        return set()
    with storage.connect() as conn:
        return set(conn.exec_driver_sql(LOCKED, {"kind": kind}).scalars())


def put(instance: DagsterInstance, run_id: str) -> None:
    """Put a run into the queue; not to be repeated, since a commit may stand that was never acknowledged."""
    storage: Any = instance.run_storage
    with storage.connect() as conn:
        conn.exec_driver_sql(PUT, {"run_id": run_id})


def session_of(run: DagsterRun) -> int | None:
    """Return the session of the host that executes this very run.

    >>> from types import SimpleNamespace as Run
    >>> session_of(Run(run_id="a", tags={"presage/host_session": "7 a"}))
    7
    >>> session_of(Run(run_id="b", tags={"presage/host_session": "7 a"}))
    """
    number, _, run_id = run.tags.get(SESSION_TAG, "").partition(" ")
    return int(number) if run_id == run.run_id and number.isdecimal() else None


def connect(sqlalchemy_url: str, number: int, *kinds: int) -> psycopg.Connection[Any]:
    """Open a host's session with these locks; raises psycopg.OperationalError, also if they are not to be had yet."""
    conn = database.connect_for_lock(libpq(sqlalchemy_url), name="presage runs", vanished_s=VANISHED_S)
    try:
        conn.execute(CREATE)  # first: runs are put there once there is a host
        for kind in kinds:
            _lock(conn, kind, number)
    except BaseException:
        conn.close()
        raise
    return conn


def libpq(sqlalchemy_url: str) -> str:
    """Return the same address as libpq reads it. As a URL it would be refused with a space, and an error would show it.

    >>> libpq("postgresql+psycopg2://me:a%20b%2Bc@/d?host=/run&options=-c%20x%3Dy")
    "user=me password='a b+c' host=/run dbname=d options='-c x=y'"
    """
    url = make_url(sqlalchemy_url)
    named = {"user": url.username, "password": url.password, "host": url.host, "port": url.port, "dbname": url.database}
    return make_conninfo(**{name: str(value) for name, value in {**named, **url.query}.items() if value is not None})


def _lock(conn: psycopg.Connection[Any], kind: int, number: int) -> None:
    if conn.execute(LOCK, [kind, number]).fetchone() != (True,):
        raise psycopg.OperationalError("a replica, or the server has not yet ended this host's former session")


class Absence(Generic[Key]):
    """Since when sessions, or runs, have been seen to be away, without a pause between two looks."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._seen: dict[Key, tuple[float, float]] = {}  # first and last look

    def seconds(self, key: Key, there: set[Key]) -> float:
        """Return for how long one has been away; 0 if it is there, or is missed for the first time."""
        now = self._clock()
        self._seen = {
            each: looks for each, looks in self._seen.items() if each not in there and now - looks[1] <= LOOKED_S
        }
        if key in there:
            return 0.0
        first, _ = self._seen.get(key, (now, now))
        self._seen[key] = first, now
        return now - first
