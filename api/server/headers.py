"""Parses request headers strictly: anything that two servers could interpret differently is refused."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, BinaryIO

if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_HEADER_FIELDS = 100
MAX_HEADER_BYTES = 16_384

_TOKEN = re.compile(rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]+\Z")
_CONTROL = re.compile(rb"[\x00-\x08\x0a-\x1f\x7f]")
_DIGITS = re.compile(r"[0-9]{1,18}\Z")
_ONCE = frozenset({"host", "content-length", "transfer-encoding", "x-api-key"})


class BadRequest(ValueError):  # noqa: N818 (pywsgi answers a ValueError; the name says what happened)
    """A request that cannot be parsed; it is answered with `status` without calling the application."""

    def __init__(self, detail: str, status: int = 400, code: str = "invalid_parameter") -> None:
        super().__init__(detail)
        self.detail, self.status, self.code = detail, status, code


class Headers:
    """A parsed header block with the interface that pywsgi needs, stricter and cheaper than the email parser."""

    __slots__ = ("_values", "fields", "status")

    def __init__(self, file: BinaryIO) -> None:
        self.status = ""  # pywsgi refuses the request if set; we raise instead
        self.fields: list[tuple[str, str]] = []
        self._values: dict[str, str] = {}
        left = MAX_HEADER_BYTES
        while True:
            line = file.readline(left + 1)
            left -= len(line)
            if left < 0:
                raise BadRequest(f"The headers are longer than {MAX_HEADER_BYTES} bytes", 431)
            if line == b"\r\n":
                break
            if len(self.fields) >= MAX_HEADER_FIELDS:
                raise BadRequest(f"More than {MAX_HEADER_FIELDS} headers", 431)
            self._add(line)
        if "transfer-encoding" in self._values:
            if "content-length" in self._values:
                raise BadRequest("Content-Length and Transfer-Encoding are both present")
            raise BadRequest("A body needs a Content-Length", 411, "invalid_body")
        length = self._values.get("content-length")
        if length is not None and not _DIGITS.match(length):
            raise BadRequest("Content-Length is not a number")

    def _add(self, line: bytes) -> None:
        name, colon, value = line.partition(b":")
        if not colon or not line.endswith(b"\r\n") or not _TOKEN.match(name):
            raise BadRequest("A header is malformed")
        value = value[:-2].strip(b" \t")
        if _CONTROL.search(value):
            raise BadRequest("A header contains control characters")
        field, text = name.decode("ascii"), value.decode("latin-1")
        key = field.lower()
        if key in self._values:
            if key in _ONCE:
                raise BadRequest(f"More than one {field} header")
            text_before = self._values[key]
            self._values[key] = f"{text_before},{text}"
        else:
            self._values[key] = text
        self.fields.append((field, text))

    def get(self, name: str, default: str | None = None) -> str | None:
        """Return a field's value; several are joined by commas."""
        return self._values.get(name.lower(), default)

    getheader = get

    @property
    def typeheader(self) -> str | None:
        """The Content-Type."""
        return self._values.get("content-type")

    def items(self) -> list[tuple[str, str]]:
        """Return the fields in order of arrival."""
        return self.fields

    def environ(self) -> Iterator[tuple[str, str]]:
        """Yield the fields by their WSGI names; a name with an underscore could spoof another and is omitted."""
        for name, value in self.fields:
            if "_" not in name and (key := name.upper().replace("-", "_")) not in ("CONTENT_TYPE", "CONTENT_LENGTH"):
                yield f"HTTP_{key}", value
