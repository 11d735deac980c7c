"""State of base backups, stored in the database for metrics, checks and `presage doctor`."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from sql.queries import backups as queries

if TYPE_CHECKING:
    import psycopg

Kind = Literal["full", "incr"]
RETRY_AFTER = timedelta(minutes=15)


class Newest(msgspec.Struct, frozen=True):
    """The newest base backup."""

    label: str
    kind: str
    ended: datetime
    stanza: str
    full_ended: datetime
    """Of the full backup that it rests on."""
    bytes: int
    stored_bytes: int


class Failure(msgspec.Struct, frozen=True):
    """A base backup that failed, after the newest that succeeded."""

    at: datetime
    error: str


class Checked(msgspec.Struct, frozen=True):
    """Result of the last restore check."""

    at: datetime
    ok: bool
    label: str
    said: str
    seconds: float


class State(msgspec.Struct, frozen=True):
    """All of it."""

    newest: Newest | None = None
    failed: Failure | None = None
    checked: Checked | None = None


class Archive(msgspec.Struct, frozen=True):
    """Archiving of the write-ahead log, as the server reports it."""

    on: bool
    waiting: int
    """Segments."""
    waiting_bytes: int
    waiting_since: datetime | None
    archived_at: datetime | None
    failed_at: datetime | None

    def said(self, now: datetime) -> str:
        """Return how much waits, and since when."""
        if not self.waiting or self.waiting_since is None:
            return "nothing waits"
        size = f"{self.waiting_bytes / 1e6:,.0f} MB of write-ahead log wait"
        age = (now - self.waiting_since).total_seconds()
        return f"{size} since {self.waiting_since:%Y-%m-%d %H:%M:%S} UTC ({age / 60:.0f} minutes)"


def read(conn: psycopg.Connection[Any]) -> State:
    """Read the stored state."""
    value = queries.state(conn)
    return State() if value is None else msgspec.convert(value, State)


def save(conn: psycopg.Connection[Any], state: State) -> None:
    """Store the state."""
    queries.save(conn, state=msgspec.json.encode(state).decode())


def archive(conn: psycopg.Connection[Any]) -> Archive:
    """Ask the server how its archiving is; needs the rights of pg_monitor."""
    on, waiting, since, archived_at, failed_at = queries.archive(conn)
    return Archive(on, waiting, waiting * queries.segment_bytes(conn), since, archived_at, failed_at)


def due(state: State, stanza: str, now: datetime, *, every: timedelta, full_every: timedelta) -> Kind | None:
    """Return the kind of base backup that is due, if one is."""
    if state.failed is not None and now - state.failed.at < RETRY_AFTER:
        return None
    newest = state.newest
    if newest is None or newest.stanza != stanza or now - newest.full_ended >= full_every:
        return "full"
    return "incr" if now - newest.ended >= every else None
