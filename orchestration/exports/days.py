"""A day of a topic, written part by part: what is there whole is left alone, so an interrupted export goes on."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Any

from psycopg import IsolationLevel

from orchestration.exports import files
from sql import packs
from sql.queries import exports as queries

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    import psycopg

    from orchestration.exports.topics import Topic

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
DAY = timedelta(days=1)
SETTLED = timedelta(minutes=1)  # so long after its end nothing of a stretch of time is on its way any longer
A_DAY = "[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]"
MANIFEST = "manifest.json"


@dataclass
class Exported:
    """What an export came to."""

    rows: int = 0
    bytes: int = 0
    written: int = 0
    kept: int = 0
    """Parts that were there already."""


@dataclass(frozen=True)
class Part:
    """A stretch of a day."""

    number: int
    since: datetime
    until: datetime
    stem: Path

    def complete(self, now: datetime) -> bool:
        """Tell whether all of it lies behind us."""
        return now >= self.until + SETTLED


def parts(topic: Topic, day: date, folder: Path) -> Iterator[Part]:
    """Cut a day as its topic is cut."""
    midnight, length = datetime(day.year, day.month, day.day, tzinfo=UTC), DAY / topic.parts
    for number in range(topic.parts):
        name = f"{topic.name}-{day}" + (f"-{number:02}" if topic.parts > 1 else "")
        since = midnight + number * length
        yield Part(number, since, since + length, folder / topic.name / str(day) / name)


def export(
    conn: psycopg.Connection[Any],
    topic: Topic,
    day: date,
    folder: Path,
    now: datetime,
    *,
    again: bool = False,
    progress: Callable[[str], None] = lambda _: None,
) -> Exported:
    """Write what is not there of a day; `again` writes all of it anew. The connection is in autocommit, and its own."""
    conn.isolation_level = IsolationLevel.REPEATABLE_READ  # what is packed meanwhile is seen once
    queries.alone(conn, topic=topic.name)
    there = _there(conn, topic, day, folder)
    done = Exported()
    for part in parts(topic, day, folder):
        if part.since >= now:
            break
        if part.number in there and not again:
            done.kept += 1
            continue
        found = _write(conn, topic, part)
        with conn.transaction():
            for file in found:
                queries.put(
                    conn,
                    topic=topic.name,
                    day=day,
                    part=part.number,
                    format=file.format,
                    file=str(file.path.relative_to(folder)),
                    rows=file.rows,
                    bytes=file.size,
                    sha256=file.sha256,
                    complete=part.complete(now),
                )
        done.written += 1
        done.rows += found[0].rows
        done.bytes += sum(file.size for file in found)
        progress(f"{topic.name} {day}, part {part.number + 1} of {topic.parts}: {found[0].rows:,} rows")
    if done.written or done.kept:  # the run before may have been ended ahead of this
        _tell(conn, topic, day, folder)
        _sweep(conn, topic, day, folder)
    return done


def forget(conn: psycopg.Connection[Any], topic: Topic, folder: Path, before: date) -> int:
    """Delete a topic's files of days long ago; give how many."""
    queries.alone(conn, topic=topic.name)
    gone: int = queries.forget(conn, topic=topic.name, before=before)
    # Whether rows named it or not: a run that was ended may have left files of a day that no other run took up again.
    for place in (folder / topic.name).glob(A_DAY):
        if place.name < f"{before}":
            _sweep(conn, topic, date.fromisoformat(place.name), folder)
            for name in (MANIFEST, MANIFEST + files.UNFINISHED):
                (place / name).unlink(missing_ok=True)
            if not any(place.iterdir()):
                place.rmdir()
    return gone


def _there(conn: psycopg.Connection[Any], topic: Topic, day: date, folder: Path) -> set[int]:
    """Tell which parts are complete, with all their files as they were written."""
    whole: dict[int, set[str]] = {}
    for part, form, file, _, size, _, complete, _ in queries.written(conn, topic=topic.name, day=day):
        path = folder / file
        if complete and path.is_file() and path.stat().st_size == size:
            whole.setdefault(part, set()).add(form)
    return {part for part, forms in whole.items() if forms == set(files.SUFFIX)}


def _write(conn: psycopg.Connection[Any], topic: Topic, part: Part) -> list[files.Written]:
    """Write a part, of one moment."""
    span = {"from_ts": part.since, "to_ts": part.until}
    with conn.transaction():
        if topic.name == "book_events":
            _unpack(conn, span)
        return files.write(conn, topic, span, part.stem)


def _unpack(conn: psycopg.Connection[Any], span: dict[str, datetime]) -> None:
    """Lay out what of a stretch of time is packed, beside what stands as rows."""
    queries.make_room(conn)
    found = list(queries.packs(conn, **span))  # packed they are small
    with conn.cursor() as cursor, cursor.copy("copy unpacked_events from stdin") as copy:
        for market_key, outcome, data in found:
            for event in packs.unpack(data).events():
                copy.write_row((EPOCH + timedelta(microseconds=event.ts), market_key, outcome, *event[1:]))


def _sweep(conn: psycopg.Connection[Any], topic: Topic, day: date, folder: Path) -> None:
    """Delete what no row names (any more): versions that were replaced, and what was left by a run that was ended."""
    named = {folder / row[2] for row in queries.written(conn, topic=topic.name, day=day)}
    for path in (folder / topic.name / str(day)).glob(f"{topic.name}-*"):
        if path not in named:
            path.unlink(missing_ok=True)


def _tell(conn: psycopg.Connection[Any], topic: Topic, day: date, folder: Path) -> None:
    """Write the manifest beside the files, for whoever takes them by other ways than the API."""
    path = folder / topic.name / str(day) / MANIFEST
    unfinished = path.with_name(MANIFEST + files.UNFINISHED)
    manifest = json.loads(queries.manifest(conn, topic=topic.name, day=day))
    unfinished.write_text(json.dumps(manifest, indent=1) + "\n")
    unfinished.replace(path)
