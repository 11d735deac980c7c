"""Files of a recordings folder: decompressed within limits, read row by row, with an account of what was used."""

from __future__ import annotations

import csv
import io
import json
import math
import re
import zlib
from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from upstream.sandbox.common.book import BUY, SELL, Side
from upstream.transport.micro import ONE, parse

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

MAX_FILE_BYTES = 256 << 20  # unpacked
MAX_ROW_CHARACTERS = 1 << 20
MAX_ROWS = 2_000_000  # of one file
MAX_DEPTH = 32  # of lists and objects within each other
MAX_REASONS = 100  # of one file
BATCH_ROWS = 256
BOM = "\N{ZERO WIDTH NO-BREAK SPACE}"
GZIP, PARQUET = b"\x1f\x8b", b"PAR1"
ESCAPES = re.compile(r"\\u(?:0000|[dD][89a-fA-F])")
TOKEN = re.compile(r"[0-9]{1,78}")
CONDITION = re.compile(r"0x[0-9a-fA-F]{64}")
WALLET = re.compile(r"0x[0-9a-fA-F]{40}")
EARLIEST_MS, LATEST_MS = 1_420_070_400_000, 4_102_444_800_000  # 2015 to 2100
MILLISECONDS_FROM = 100_000_000_000  # as seconds, larger numbers would be after the year 5000
MAX_SIZE = 10**15  # micro-units
MAX_NUMBER = 100  # characters

SIDES: dict[str, Side] = {"bid": BUY, "BUY": BUY, "buy": BUY, "ask": SELL, "SELL": SELL, "sell": SELL}

Row = dict[str, Any]


class UnreadableError(Exception):
    """A file or its rest cannot be read; the message says why."""


@dataclass
class File:
    """One file: its kind, its number of rows, and how each was used."""

    name: str
    kind: str = ""
    rows: int = 0
    used: int = 0
    why: str = ""
    cut: str = ""
    left_out: Counter[str] = field(default_factory=Counter)
    first: dict[str, int] = field(default_factory=dict)
    assigned: Counter[str] = field(default_factory=Counter)
    of_token: Counter[str] = field(default_factory=Counter)

    def leave(self, reason: str, row: int = 0, count: int = 1) -> None:
        """Count unused rows by reason, and remember the first."""
        if reason not in self.left_out and len(self.left_out) >= MAX_REASONS:
            reason = "other reasons"
        self.left_out[reason] += count
        if row:
            self.first.setdefault(reason, row)

    def take(self, token: str, count: int = 1) -> None:
        """Count rows about a token; they are used if a market has it."""
        self.of_token[token] += count

    def account(self) -> dict[str, Any]:
        """Return the account as JSON."""
        found: dict[str, Any] = {"file": self.name, "kind": self.kind, "rows": self.rows, "used": self.used}
        if self.left_out:
            found["left_out"] = {
                reason: {"rows": count, "first_row": self.first.get(reason)} for reason, count in self.left_out.items()
            }
        if self.assigned:
            found["assigned"] = dict(self.assigned)
        if self.why:
            found["why"] = self.why
        return found

    def line(self) -> str:
        """Return the account as one line of text."""
        parts = [f"{self.used:,} of {self.rows:,} rows used"]
        for reason, count in self.left_out.items():
            first = self.first.get(reason)
            where = "" if first is None else f" (row {first})" if count == 1 else f" (the first is row {first})"
            parts.append(f"{count:,} left out: {reason}{where}")
        parts += [f"{count:,} assigned: {what}" for what, count in self.assigned.items()]
        return f"{self.name}: {self.kind}: " + "; ".join(parts + ([self.why] if self.why else []))


# --- Unpacking ---


def unpack(path: Path) -> tuple[bytes, str]:
    """Return the decompressed bytes of a file, and why they end early, if they do."""
    with path.open("rb") as file:
        packed = file.read(2) == GZIP
        file.seek(0)
        if not packed:
            data = file.read(MAX_FILE_BYTES + 1)
            if len(data) > MAX_FILE_BYTES:
                raise UnreadableError(f"larger than {MAX_FILE_BYTES >> 20} MB")
            return data, ""
        return _gunzip(file)


def _gunzip(file: Any) -> tuple[bytes, str]:
    out = bytearray()
    member = zlib.decompressobj(31)
    while piece := file.read(1 << 16):
        while piece:
            try:
                out += member.decompress(piece, MAX_FILE_BYTES + 1 - len(out))
            except zlib.error as error:
                return bytes(out), f"damaged where {len(out):,} bytes are unpacked ({error})"
            if len(out) > MAX_FILE_BYTES:
                raise UnreadableError(f"unpacks to more than {MAX_FILE_BYTES >> 20} MB")
            piece = member.unconsumed_tail
            if member.eof:
                piece, member = member.unused_data, zlib.decompressobj(31)
                if not piece.strip(b"\0"):
                    piece = b""
                    if not (piece := file.read(1 << 16)):
                        return bytes(out), ""
    return bytes(out), f"cut off where {len(out):,} bytes are unpacked"


def as_text(data: bytes) -> str:
    """Return bytes as text; undecodable bytes become lone surrogates, which no row may have."""
    try:
        return data.decode("utf-8").removeprefix(BOM)
    except UnicodeDecodeError:
        if b"\0" in data[:4096]:
            raise UnreadableError("unknown kind: neither text nor gzip nor Parquet") from None
        return data.decode("utf-8", "surrogateescape").removeprefix(BOM)


# --- Tables as text ---


class Csv:
    """Rows of a file with a header line."""

    def __init__(self, file: File, text: str) -> None:
        self._file = file
        self._clean = "\0" not in text and (text.isascii() or _encodes(text))
        # A row without a line end may lack part of its last number.
        whole = text.endswith(("\n", "\r"))
        self._text = text if whole else text[: max(text.rfind("\n"), text.rfind("\r")) + 1]
        self._cut = text[len(self._text) :]
        self._reader = csv.reader(self._lines())
        try:
            self.columns = next(self._reader, [])
        except csv.Error as error:
            raise UnreadableError(f"no line of column names: {error}") from error

    def _lines(self) -> Iterator[str]:
        for line in io.StringIO(self._text, newline=""):
            if len(line) > MAX_ROW_CHARACTERS:
                raise UnreadableError(f"longer than {MAX_ROW_CHARACTERS:,} characters")
            yield line

    def rows(self) -> Iterator[tuple[int, dict[str, str]]]:
        """Yield the rows that have a cell for each column, with their numbers."""
        file = self._file
        while True:
            try:
                cells = next(self._reader)
            except StopIteration:
                break
            except csv.Error as error:
                file.rows += 1
                file.leave(f"malformed: {error}", file.rows)
                continue
            except UnreadableError as error:
                file.rows += 1
                file.why = f"row {file.rows} is {error}; it and what follows are left out"
                file.leave(str(error), file.rows)
                return
            if not cells:
                continue
            if file.rows >= MAX_ROWS:
                file.why = f"more than {MAX_ROWS:,} rows; what follows is left out"
                return
            file.rows += 1
            if len(cells) != len(self.columns):
                file.leave(f"malformed: {len(cells)} cells instead of {len(self.columns)}", file.rows)
            elif not self._clean and not _plain("".join(cells)):
                file.leave("malformed: bytes that are no text", file.rows)
            else:
                yield file.rows, dict(zip(self.columns, cells, strict=True))
        if self._cut.strip():
            file.rows += 1
            file.leave("cut off: the row has no end", file.rows)
        file.why = file.cut


def _encodes(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _plain(text: str) -> bool:
    return "\0" not in text and _encodes(text)


# --- JSON ---


def load_json(text: str) -> Any:
    """Parse JSON; non-finite numbers become null. JSON lines make a list; UnreadableError for anything else."""
    if "\n" in text and (lines := _json_lines(text)) is not None:
        return lines
    try:
        return _loads(text)
    except RecursionError:
        raise UnreadableError("not read: too many lists within each other") from None
    except ValueError as error:
        raise UnreadableError(f"not JSON: {str(error)[:200]}") from error


def _json_lines(text: str) -> list[Any] | None:
    """Parse one object per line; an invalid line becomes None."""
    first, _, rest = text.partition("\n")
    second = rest.partition("\n")[0]
    if not first.startswith("{") or not second.startswith("{"):
        return None
    found: list[Any] = []
    for line in text.splitlines():
        if len(found) >= MAX_ROWS:
            break
        try:
            found.append(_loads(line) if len(line) <= MAX_ROW_CHARACTERS else None)
        except (ValueError, RecursionError):
            if not found:
                return None  # an object over several lines
            found.append(None)
    return found


def _loads(text: str) -> Any:
    return json.loads(text, parse_constant=lambda _: None, parse_float=_finite)


def _finite(text: str) -> float | None:
    number = float(text)
    return number if math.isfinite(number) else None


def objects(file: File, rows: Sequence[Any], text: str) -> Iterator[tuple[int, Row]]:
    """Yield the objects of a list, with their numbers."""
    escapes = ESCAPES.search(text) is not None or not _encodes(text)
    for row in rows[:MAX_ROWS]:
        file.rows += 1
        if not isinstance(row, dict):
            file.leave("malformed: not an object", file.rows)
        elif not shallow(row):
            file.leave(f"malformed: more than {MAX_DEPTH} lists within each other", file.rows)
        elif escapes and not _plain(json.dumps(row, ensure_ascii=False).replace("\\u0000", "\0")):
            file.leave("malformed: characters that are no text", file.rows)
        else:
            yield file.rows, row
    file.why = f"more than {MAX_ROWS:,} rows; what follows is left out" if len(rows) > MAX_ROWS else file.cut


def shallow(value: Any, left: int = MAX_DEPTH) -> bool:
    """Return whether a value is nested no deeper than allowed."""
    if isinstance(value, dict):
        return left > 0 and all(shallow(one, left - 1) for one in value.values())
    if isinstance(value, list):
        return left > 0 and all(shallow(one, left - 1) for one in value)
    return True


# --- Parquet ---


def parquet(data: bytes) -> pq.ParquetFile:
    """Open a Parquet file; UnreadableError if damaged."""
    try:
        return pq.ParquetFile(pa.BufferReader(data))
    except (pa.ArrowException, OSError) as error:
        raise UnreadableError(f"not Parquet: {str(error)[:200]}") from error


def table(file: File, source: pq.ParquetFile, columns: Sequence[str]) -> pa.Table:
    """Read columns of a Parquet file, as far as they are readable and not too large."""
    if source.metadata.num_rows > MAX_ROWS:
        raise UnreadableError(f"more than {MAX_ROWS:,} rows")
    batches, size = [], 0
    schema = pa.schema([source.schema_arrow.field(name) for name in columns])
    try:
        for batch in source.iter_batches(BATCH_ROWS, columns=list(columns)):
            size += batch.nbytes
            if size > MAX_FILE_BYTES:
                raise UnreadableError(f"unpacks to more than {MAX_FILE_BYTES >> 20} MB")
            batches.append(batch)
    except (pa.ArrowException, OSError) as error:
        file.why = f"damaged: {str(error)[:200]}"
    found = pa.Table.from_batches(batches, None if batches else schema)
    file.rows = found.num_rows
    return found


# --- Values: ValueError for invalid ones ---


def token(value: Any) -> str:
    """Return a token id."""
    text = str(value)
    if not TOKEN.fullmatch(text) or int(text) >> 256:
        raise ValueError("malformed token")
    return text


def condition(value: Any) -> str:
    """Return a condition id."""
    if not isinstance(value, str) or not CONDITION.fullmatch(value):
        raise ValueError("malformed condition")
    return value


def wallet(value: Any) -> str:
    """Return a wallet; empty when missing."""
    if not value:
        return ""
    if not isinstance(value, str) or not WALLET.fullmatch(value):
        raise ValueError("malformed wallet")
    return value


def transaction(value: Any) -> str:
    """Return a transaction hash; empty when missing."""
    if not value:
        return ""
    if not isinstance(value, str) or not CONDITION.fullmatch(value):
        raise ValueError("malformed transaction hash")
    return value


def side(value: Any) -> Side:
    """Return a side."""
    found = SIDES.get(str(value))
    if found is None:
        raise ValueError("malformed side")
    return found


def price(value: Any) -> int:
    """Return a price in micro-units."""
    found = _number(value, "price")
    if not 0 <= found <= ONE:
        raise ValueError("malformed price")
    return found


def size(value: Any) -> int:
    """Return a size in micro-units."""
    found = _number(value, "size")
    if not 0 <= found <= MAX_SIZE:
        raise ValueError("malformed size")
    return found


def traded(price_of: Any, size_of: Any) -> tuple[int, int]:
    """Return price and size of a trade, neither of them 0."""
    found = price(price_of), size(size_of)
    if not all(found):
        raise ValueError("a price or size of 0")
    return found


def _number(value: Any, what: str) -> int:
    try:
        if isinstance(value, str):
            return _parsed(value)
        if isinstance(value, int | float) and not isinstance(value, bool):
            return parse(value)
    except ValueError:
        pass
    raise ValueError(f"malformed {what}")


@lru_cache(maxsize=1 << 16)
def _parsed(text: str) -> int:
    if len(text) > MAX_NUMBER:
        raise ValueError("too long a number")
    return parse(text)


def moment(value: Any) -> int:
    """Return a time in milliseconds: from a number of ms or seconds, or a date, in UTC if it has no zone."""
    try:
        number = float(value)
    except (ValueError, TypeError):
        found = _dated(str(value).strip())
    else:
        found = round(number if abs(number) >= MILLISECONDS_FROM else number * 1000) if math.isfinite(number) else 0
    if not EARLIEST_MS <= found < LATEST_MS:
        raise ValueError("malformed time")
    return found


def _dated(text: str) -> int:
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError("malformed time") from None
    return round((at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp() * 1000)
