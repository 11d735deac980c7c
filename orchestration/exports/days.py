"""Export of one day of a topic, part by part: complete parts are kept, so an interrupted export continues."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Any

from psycopg import IsolationLevel

from orchestration.exports import files
from sql import packs
from sql.queries import exports as queries

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    import psycopg

    from orchestration.exports.store import ExportStore
    from orchestration.exports.topics import Topic

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
ONE_DAY = timedelta(days=1)
SETTLE_TIME = timedelta(minutes=1)  # after the end of a time range, no more data for it is in flight
DAY = re.compile(r"\d{4}-\d\d-\d\d")
MANIFEST = "manifest.json"


@dataclass
class ExportResult:
    """Result of an export."""

    rows: int = 0
    bytes: int = 0
    written: int = 0
    kept: int = 0
    """Parts that were complete already."""


@dataclass(frozen=True)
class DayPart:
    """A time range of a day."""

    number: int
    since: datetime
    until: datetime
    stem: str
    """The beginning of its files' names."""

    def complete(self, now: datetime) -> bool:
        """Return whether the part lies entirely in the past."""
        return now >= self.until + SETTLE_TIME


def parts(topic: Topic, day: date) -> Iterator[DayPart]:
    """Split a day into the topic's number of parts."""
    midnight, length = datetime(day.year, day.month, day.day, tzinfo=UTC), ONE_DAY / topic.parts
    for number in range(topic.parts):
        name = f"{topic.name}-{day}" + (f"-{number:02}" if topic.parts > 1 else "")
        since = midnight + number * length
        yield DayPart(number, since, since + length, f"{topic.name}/{day}/{name}")


def export(
    conn: psycopg.Connection[Any],
    topic: Topic,
    day: date,
    store: ExportStore,
    now: datetime,
    *,
    again: bool = False,
    progress: Callable[[str], None] = lambda _: None,
) -> ExportResult:
    """Write the missing parts of a day; `again` rewrites all of them. Needs an autocommit connection of its own."""
    conn.isolation_level = IsolationLevel.REPEATABLE_READ  # so that rows packed meanwhile are seen exactly once
    queries.alone(conn, topic=topic.name)
    there = _complete_parts(conn, topic, day, store)
    done = ExportResult()
    for part in parts(topic, day):
        if part.since >= now:
            break
        if part.number in there and not again:
            done.kept += 1
            continue
        found = _write(conn, topic, part, store)
        with conn.transaction():
            for file in found:
                queries.put(
                    conn,
                    topic=topic.name,
                    day=day,
                    part=part.number,
                    format=file.format,
                    file=file.name,
                    rows=file.rows,
                    bytes=file.size,
                    sha256=file.sha256,
                    complete=part.complete(now),
                )
        done.written += 1
        done.rows += found[0].rows
        done.bytes += sum(file.size for file in found)
        progress(f"{topic.name} {day}, part {part.number + 1} of {topic.parts}: {found[0].rows:,} rows")
    if done.written or done.kept:  # the previous run may have been terminated before this step
        _write_manifest(conn, topic, day, store)
        _sweep(conn, topic, day, store)
    return done


def forget(conn: psycopg.Connection[Any], topic: Topic, store: ExportStore, before: date) -> int:
    """Delete a topic's files of days before a date; return how many."""
    queries.alone(conn, topic=topic.name)
    gone: int = queries.forget(conn, topic=topic.name, before=before)
    # Whether rows named them or not: a terminated run may have left files of a day that no other run resumed.
    for name in store.folders(topic.name):
        if DAY.fullmatch(name) and name < f"{before}":
            day = date.fromisoformat(name)
            _sweep(conn, topic, day, store)
            store.delete(_manifest(topic, day))
            store.delete_empty(f"{topic.name}/{name}")
    return gone


def _manifest(topic: Topic, day: date) -> str:
    return f"{topic.name}/{day}/{MANIFEST}"


def _complete_parts(conn: psycopg.Connection[Any], topic: Topic, day: date, store: ExportStore) -> set[int]:
    """Return the parts that are complete, with all their files as written."""
    whole: dict[int, set[str]] = {}
    for part, form, file, _, size, _, complete, _ in queries.written(conn, topic=topic.name, day=day):
        if complete and store.size(file) == size:
            whole.setdefault(part, set()).add(form)
    return {part for part, forms in whole.items() if forms == set(files.SUFFIX)}


def _write(conn: psycopg.Connection[Any], topic: Topic, part: DayPart, store: ExportStore) -> list[files.WrittenFile]:
    """Write a part from one snapshot."""
    span = {"from_ts": part.since, "to_ts": part.until}
    with conn.transaction():
        if topic.is_packed:
            unpack_events(conn, span, exchange=topic.exchange.name)
        return files.write(conn, topic, {**span, "exchange": topic.exchange.name}, part.stem, store)


def unpack_events(conn: psycopg.Connection[Any], span: Mapping[str, datetime], *, exchange: str | None = None) -> None:
    """Unpack the packed events of a time range into table `unpacked_events`, for this transaction.

    Without an exchange, those of all.
    """
    queries.make_room(conn)
    found = list(queries.packs(conn, **span, exchange=exchange))  # packs are small
    before, last = ((span[name] - EPOCH) // timedelta(microseconds=1) - 1 for name in ("from_ts", "to_ts"))
    with conn.cursor() as cursor, cursor.copy("copy unpacked_events from stdin") as copy:
        for market_key, outcome, data in found:
            pack = packs.unpack(data)
            # Of a quiet outcome, a pack spans a day, of which an hour is a part.
            for event in pack.events(since=pack.upto(before), upto=pack.upto(last)):
                copy.write_row((EPOCH + timedelta(microseconds=event.ts), market_key, outcome, *event[1:]))


def _sweep(conn: psycopg.Connection[Any], topic: Topic, day: date, store: ExportStore) -> None:
    """Delete files that no row names, once nobody reads them: replaced versions, and leftovers of terminated runs."""
    place, manifest = f"{topic.name}/{day}", _manifest(topic, day)
    named = {row[2] for row in queries.written(conn, topic=topic.name, day=day)}
    for name in store.names(place):
        if name in named or not name.startswith((f"{place}/{topic.name}-", f"{manifest}.")):
            continue
        if not store.is_read(name):
            store.delete(name)


def _write_manifest(conn: psycopg.Connection[Any], topic: Topic, day: date, store: ExportStore) -> None:
    """Write the manifest beside the files, for consumers that do not use the API."""
    manifest, name = json.loads(queries.manifest(conn, topic=topic.name, day=day)), _manifest(topic, day)
    with store.writing(name) as draft:
        draft.write((json.dumps(manifest, indent=1) + "\n").encode())
    store.publish(draft, name)
