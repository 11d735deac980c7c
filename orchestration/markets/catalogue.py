"""The catalogue store: the exchange's data is merged in, and real changes are published."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec
import psycopg

from config.exchanges import DEFAULT, KALSHI, POLYMARKET
from orchestration import stream
from orchestration.markets import merging
from sql import tables
from sql.queries import catalogue as queries

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    Row = Mapping[str, Any]
    Connection = psycopg.Connection[Any]

NESTABLE = {str, list, dict}  # what may hold a NUL
SOURCES = {POLYMARKET.name: "gamma", KALSHI.name: "kalshi"}  # as quarantine names them
EVENT_FIELDS = tuple(column.name for column in tables.events.c if column.name != "updated_at")


@dataclass(frozen=True)
class StoreResult:
    """Result of storing a batch."""

    inserted: int = 0
    changed: int = 0
    status_changes: int = 0
    refused: int = 0

    def __add__(self, other: StoreResult) -> StoreResult:
        return StoreResult(
            self.inserted + other.inserted,
            self.changed + other.changed,
            self.status_changes + other.status_changes,
            self.refused + other.refused,
        )


def store(
    conn: Connection, rows: Sequence[Row], *, cause: str, events: Iterable[Row] = (), announce_new: bool = True
) -> StoreResult:
    """Upsert markets from `rows` (keyed like `sql.tables.markets`), with their tokens and events.

    A field that is missing, null or an empty list means "unknown" and leaves the stored value. Several rows of one
    market are merged into one. A market that is not stored yet needs at least question, outcomes and token_ids,
    otherwise its row is skipped. With `announce_new=False` markets that are new to us, but not to the exchange, are not
    published.

    Runs in a transaction of its own, or within the caller's; then before the caller touches `stream_head`. Rows that
    the database refuses go to `quarantine`; the others are stored all the same.
    """
    merged = _merge(rows)
    unique_events = list({event["event_id"]: event for event in events if event.get("event_id")}.values())
    return _store(conn, merged, unique_events, cause, announce_new=announce_new)


def _store(
    conn: Connection, rows: Sequence[Row], events: Sequence[Row], cause: str, *, announce_new: bool
) -> StoreResult:
    """Store all rows at once; if the database refuses, bisect until the faulty row is isolated."""
    if not rows and not events:
        return StoreResult()
    try:
        with conn.transaction():
            queries.lock(conn)
            if events:
                queries.upsert_events(conn, rows=_events(events))
            return _store_markets(conn, rows, cause, announce_new=announce_new) if rows else StoreResult()
    except (psycopg.DataError, psycopg.IntegrityError) as refusal:
        if len(rows) + len(events) == 1:
            _refuse(conn, (*rows, *events)[0], refusal)
            return StoreResult(refused=1)
    stored = StoreResult()
    for half, of_half in _halves(rows, events):
        stored += _store(conn, half, of_half, cause, announce_new=announce_new)
    return stored


def _store_markets(conn: Connection, rows: Sequence[Row], cause: str, *, announce_new: bool) -> StoreResult:
    conn.execute(merging.INCOMING)
    conn.execute("delete from incoming_markets")
    with conn.cursor() as cursor, cursor.copy(merging.COPY) as copy:
        for row in rows:
            values = [row.get(name) for name in merging.COMPARED]
            copy.write_row(
                [*(_plain(value) if type(value) in NESTABLE else value for value in values), _raw(row.get("raw"))]
            )

    # Planned each time: a plan cached from the first pages, with an empty table, would read the whole table for each
    # page.
    conn.execute(merging.RELEASE_IDS, prepare=False)
    changed = conn.execute(merging.UPDATE, prepare=False).fetchall()
    inserted = conn.execute(merging.INSERT, prepare=False).fetchall()

    if keys := [row[0] for row in (*changed, *inserted)]:
        queries.upsert_tokens(conn, market_keys=keys)
    moved = [(key, was) for key, was, status in changed if was != status]
    if announce_new:
        moved += [(key, None) for (key,) in inserted]
    if moved:
        _publish(conn, moved, cause)
    return StoreResult(len(inserted), len(changed), len(moved))


def _publish(conn: Connection, moved: Sequence[tuple[int, str | None]], cause: str) -> None:
    """Record changes of state, and publish them to the stream."""
    keys, before = [key for key, _ in moved], [was for _, was in moved]
    changes = list(queries.record_status_changes(conn, market_keys=keys, from_statuses=before, cause=cause))
    if changes:
        now_ms = int(changes[0][0].timestamp() * 1000)  # the transaction's time, the same for all of them
        messages = [
            stream.message("market", now_ms, market_id, msgspec.Raw(data.encode())) for _, market_id, _, data in changes
        ]
        stream.publish(conn, messages, now_ms)


def _merge(rows: Sequence[Row]) -> list[Row]:
    """Merge rows of the same market, later values winning; ordered by ID."""
    merged: dict[str, dict[str, Any]] = {}
    owners: dict[str, str] = {}
    for row in rows:
        market_id = row.get("market_id")
        if not market_id:
            continue  # the exchange's oldest objects have no condition
        known = {name: value for name, value in row.items() if value is not None and value != []}
        gamma_id = known.get("gamma_id")
        if gamma_id is not None:
            if owners.setdefault(gamma_id, market_id) != market_id:
                del merged[owners[gamma_id]]["gamma_id"]
            owners[gamma_id] = market_id
        merged.setdefault(market_id, {}).update(known)
    return [merged[market_id] for market_id in sorted(merged)]


def _halves(rows: Sequence[Row], events: Sequence[Row]) -> list[tuple[Sequence[Row], Sequence[Row]]]:
    if rows and events:
        return [((), events), (rows, ())]
    middle = (len(rows) + len(events)) // 2
    return [(rows[:middle], events[:middle]), (rows[middle:], events[middle:])]


def _refuse(conn: Connection, row: Row, refusal: psycopg.Error) -> None:
    payload = msgspec.json.encode(row, enc_hook=str).decode().replace("\0", "")
    with conn.transaction():
        source = SOURCES.get(row.get("exchange", DEFAULT.name), "catalogue")
        queries.refuse(conn, source=source, reason=f"catalogue: {refusal}".replace("\0", ""), payload=payload)


def _events(events: Sequence[Row]) -> str:
    return msgspec.json.encode([{name: _plain(event.get(name)) for name in EVENT_FIELDS} for event in events]).decode()


def _plain(value: Any) -> Any:
    """Remove NUL from text, as PostgreSQL cannot store it."""
    kind = type(value)
    if kind is str:
        return value.replace("\0", "") if "\0" in value else value
    if kind is list:
        return [_plain(each) for each in value]
    if kind is dict:
        return {_plain(name): _plain(each) for name, each in value.items()}
    return value


def _raw(value: Any) -> str | None:
    """Return the exchange's object as JSON text that jsonb accepts."""
    if value is None:
        return None
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    if "\\u0000" in text:  # NUL, or an escaped backslash before "u0000"
        text = msgspec.json.encode(_plain(msgspec.json.decode(text))).decode()
    return text
