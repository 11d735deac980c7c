"""Exports: the exported days, their manifests, and file downloads with range support."""

from __future__ import annotations

import logging
import re
from contextlib import ExitStack, closing
from datetime import date, datetime
from typing import TYPE_CHECKING, Any, Self, get_args

from msgspec import Struct

from api.data.pool import overloaded
from api.endpoints.base.resource import ReadResource, Resource, etag_matches
from api.endpoints.exports.requests import TopicName
from api.errors import Problem
from config.exchanges import DEFAULT, EXCHANGES
from sql.queries import exports as queries

if TYPE_CHECKING:
    import falcon

    from api.data.exported import OpenFile
    from api.endpoints.exports.requests import ExportParameters
    from api.server.middleware import ApiResponse

log = logging.getLogger("presage.api")

RETRY_S = 30
OF_FILE = ("etag", "cache-control", "accept-ranges", "last-modified", "content-disposition", "content-range")

DAY = re.compile(r"\d{4}-\d\d-\d\d\Z")
RANGE = re.compile(r"bytes=(\d{0,18})-(\d{0,18})\Z")


def topics_of(exchange: str) -> list[str]:
    """Return the topics of an exchange: those that are named as it names what is its own."""
    others = tuple(f"_{name}" for name in EXCHANGES if name != DEFAULT.name)
    if exchange == DEFAULT.name:
        return [name for name in get_args(TopicName) if not name.endswith(others)]
    return [name for name in get_args(TopicName) if name.endswith(f"_{exchange}")]


def selection(given: ExportParameters) -> str | None:
    """Return which topics a list is of, for its cursor; None: Polymarket's."""
    return given.topic or (None if given.exchange == DEFAULT.name else given.exchange)


class ExportCursor(Struct, frozen=True, array_like=True):
    """A position in the list of exported days, with the list's filter."""

    of: tuple[str | None, str, str]
    day: str
    topic: str


def day_of(text: str) -> date:
    """Parse a day; raise `not_found` for any other text."""
    try:
        return date.fromisoformat(text if DAY.match(text) else "")
    except ValueError:
        raise Problem("not_found", "The day is not valid", hint="Days are written as 2026-11-20") from None


class Exports(ReadResource):
    """The list of exported days."""

    def answer(self, given: ExportParameters, **path: str) -> bytes:
        """Return a page of days, newest first."""
        cursors, of = self.service.cursors, (selection(given), f"{given.from_}", f"{given.to}")
        place = None
        if given.cursor is not None:
            place = cursors.read(given.cursor, ExportCursor)
            if place.of != of:
                raise Problem("invalid_cursor", "It belongs to a different list", hint="Start again without a cursor")
        rows = self.read(
            queries.days,
            topics=[given.topic] if given.topic else topics_of(given.exchange),
            from_day=given.from_,
            to_day=given.to,
            before_day=date.fromisoformat(place.day) if place else None,
            before_topic=place.topic if place else None,
            limit=given.limit + 1,
        )
        shown = rows[: given.limit]
        tail = cursors.write(ExportCursor(of, f"{shown[-1][0]}", shown[-1][1])) if len(rows) > len(shown) else ""
        data = ",".join(record for _, _, record in shown)
        return f'{{"data":[{data}],"next_cursor":"{tail}","has_more":{"true" if tail else "false"}}}'.encode()


class Manifest(ReadResource):
    """The manifest of an exported day."""

    def answer(self, given: Any, **path: str) -> bytes:
        """Return the manifest."""
        day, topic = day_of(path["day"]), path["topic"]
        return self.required(None if "\0" in topic else self.read(topic=topic, day=day))


class Download(Resource):
    """A file download."""

    def on_get(self, req: falcon.Request, resp: ApiResponse, topic: str, day: str, file: str) -> None:
        """Send the file or the requested range; its ETag is its SHA-256."""
        self.admit(req)
        data, size, sha256, written_at = self._found(topic, day_of(day), file)
        with ExitStack() as opened:
            opened.enter_context(closing(data))
            if data.size != size:  # its digest and ranges would be those of another file
                raise overloaded("The file was changed after it was written")
            tag = f'"{sha256}"'
            resp.add_headers({"etag": tag, "cache-control": "private, no-cache", "accept-ranges": "bytes"})
            resp.last_modified = written_at
            if (asked := req.env.get("HTTP_IF_NONE_MATCH")) and etag_matches(asked, tag):
                resp.status = "304 Not Modified"
                return
            resp.content_type = self.endpoint.media
            resp.set_header("Content-Disposition", f'attachment; filename="{file}"')
            self._body(req, resp, data, size, tag)
            if resp.stream is not None:
                opened.pop_all()  # closed after it is sent

    def on_head(self, req: falcon.Request, resp: ApiResponse, topic: str, day: str, file: str) -> None:
        """Answer with the headers only."""
        self.on_get(req, resp, topic, day, file)

    def _found(self, topic: str, day: date, file: str) -> tuple[OpenFile, int, str, datetime]:
        missing = ""
        for _ in range(0 if "\0" in topic + file else 2):  # it may be replaced between the query and its opening
            known = self.read(topic=topic, day=day, name=file)
            if known is None:
                break
            try:
                return self.service.exports.open(known[0]), *known[1:]
            except FileNotFoundError:
                missing = known[0]
            except OSError as error:
                raise unreadable(error) from None
        if missing:
            log.warning("exported file %s is not there", missing)
        raise Problem("not_found", self.endpoint.missing, hint=self.endpoint.hint)

    def _body(self, req: falcon.Request, resp: ApiResponse, file: OpenFile, size: int, tag: str) -> None:
        first, last = 0, size - 1
        # Without If-Range, a client could join ranges of different versions of the file.
        if req.env.get("HTTP_IF_RANGE", tag) == tag and (asked := RANGE.match(req.env.get("HTTP_RANGE", ""))):
            found = byte_range(asked[1], asked[2], size)
            if found is None:
                raise Problem(
                    "invalid_parameter",
                    f"`Range`: the file has {size} bytes",
                    status=416,
                    headers={"Content-Range": f"bytes */{size}"},
                )
            first, last = found
            resp.status = "206 Partial Content"
            resp.set_header("Content-Range", f"bytes {first}-{last}/{size}")
        if req.method == "HEAD":
            resp.content_length = last - first + 1
            return
        try:
            resp.set_stream(FileSlice(file, first, last - first + 1), last - first + 1)
        except OSError as error:
            for name in OF_FILE:
                resp.delete_header(name)
            raise unreadable(error) from None


def byte_range(first: str, last: str, size: int) -> tuple[int, int] | None:
    """Parse a byte range, both ends included; None if it is empty.

    >>> span("0", "499", 1000), span("500", "", 1000), span("", "200", 1000), span("1000", "", 1000)
    ((0, 499), (500, 999), (800, 999), None)
    """
    if not first:  # the last `last` bytes
        count = min(int(last or 0), size)
        return (size - count, size - 1) if count else None
    begin, end = int(first), min(int(last), size - 1) if last else size - 1
    return (begin, end) if begin <= end else None


def unreadable(error: OSError) -> Problem:
    """Return the Problem for a file that is there and cannot be read."""
    log.warning("an exported file cannot be read: %s", error)
    return overloaded("The exported files cannot be read at the moment", RETRY_S)


class FileSlice:
    """A bounded slice of an open file, in chunks: of something with `read`, Falcon would ask for 8 kB at a time.

    The first chunk is read at once, while its failure can still be answered; OSError.
    """

    def __init__(self, file: OpenFile, first: int, left: int) -> None:
        self._file, self._left = file, left
        file.seek(first)
        self._next = self._read()

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> bytes:
        data, self._next = self._next or self._read(), b""
        if not data:
            raise StopIteration
        return data

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _read(self) -> bytes:
        data = self._file.read(min(self._file.chunk, self._left)) if self._left else b""
        self._left -= len(data)
        return data
