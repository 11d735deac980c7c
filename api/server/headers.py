"""A request's header fields, read strictly: what two servers could read differently is refused."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, BinaryIO

if TYPE_CHECKING:
    from collections.abc import Iterator

MOST_FIELDS = 100
MOST_BYTES = 16_384

_TOKEN = re.compile(rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]+\Z")
_CONTROL = re.compile(rb"[\x00-\x08\x0a-\x1f\x7f]")
_DIGITS = re.compile(r"[0-9]{1,18}\Z")
_ONCE = frozenset({"host", "content-length", "transfer-encoding", "x-api-key"})


class Refused(ValueError):  # noqa: N818 (pywsgi answers a ValueError; the name says what happened)
    """A request that is not answered by the application: with `status`, as what it asks cannot be told."""

    def __init__(self, detail: str, status: int = 400, code: str = "invalid_parameter") -> None:
        super().__init__(detail)
        self.detail, self.status, self.code = detail, status, code


class Headers:
    """What pywsgi asks of a parsed header block, without the email parser's cost and leniency."""

    __slots__ = ("_values", "fields", "status")

    def __init__(self, file: BinaryIO) -> None:
        self.status = ""  # pywsgi refuses when set; we raise instead
        self.fields: list[tuple[str, str]] = []
        self._values: dict[str, str] = {}
        left = MOST_BYTES
        while True:
            line = file.readline(left + 1)
            left -= len(line)
            if left < 0:
                raise Refused(f"The headers are longer than {MOST_BYTES} bytes", 431)
            if line == b"\r\n":
                break
            if len(self.fields) >= MOST_FIELDS:
                raise Refused(f"More than {MOST_FIELDS} headers", 431)
            self._add(line)
        if "transfer-encoding" in self._values:
            if "content-length" in self._values:
                raise Refused("Both Content-Length and Transfer-Encoding")
            raise Refused("A body needs a Content-Length", 411, "invalid_body")
        length = self._values.get("content-length")
        if length is not None and not _DIGITS.match(length):
            raise Refused("Content-Length is not a number")

    def _add(self, line: bytes) -> None:
        name, colon, value = line.partition(b":")
        if not colon or not line.endswith(b"\r\n") or not _TOKEN.match(name):
            raise Refused("A header is malformed")
        value = value[:-2].strip(b" \t")
        if _CONTROL.search(value):
            raise Refused("A header holds control characters")
        field, text = name.decode("ascii"), value.decode("latin-1")
        key = field.lower()
        if key in self._values:
            if key in _ONCE:
                raise Refused(f"More than one {field}")
            text_before = self._values[key]
            self._values[key] = f"{text_before},{text}"
        else:
            self._values[key] = text
        self.fields.append((field, text))

    def get(self, name: str, default: str | None = None) -> str | None:
        """Give a field's value, several joined by commas."""
        return self._values.get(name.lower(), default)

    getheader = get

    @property
    def typeheader(self) -> str | None:
        """The Content-Type."""
        return self._values.get("content-type")

    def items(self) -> list[tuple[str, str]]:
        """Give the fields as they came."""
        return self.fields

    def environ(self) -> Iterator[tuple[str, str]]:
        """Give the fields as WSGI names them; one with an underscore could pose as another and is left out."""
        for name, value in self.fields:
            if "_" not in name and (key := name.upper().replace("-", "_")) not in ("CONTENT_TYPE", "CONTENT_LENGTH"):
                yield f"HTTP_{key}", value
