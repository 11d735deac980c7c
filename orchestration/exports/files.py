"""One query's rows as two files, CSV and Parquet, in one pass and little memory.

The database writes CSV itself (`copy … to`). Its output goes through gzip into one file, and through Arrow's reader
into the other, so both have the same rows. The same data gives the same bytes.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa
from psycopg import sql
from pyarrow import csv, parquet

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    import psycopg

    from orchestration.exports.topics import Topic

Format = Literal["parquet", "csv"]
SUFFIX: dict[Format, str] = {"parquet": "parquet", "csv": "csv.gz"}
ROW_GROUP = 131_072
BLOCK = 4 << 20
LEVEL = 6
DIGITS = 16  # of the digest in a file's name
UNFINISHED = ".unfinished"


@dataclass(frozen=True)
class WrittenFile:
    """A completely written file."""

    format: Format
    path: Path
    rows: int
    size: int
    sha256: bytes


def write(conn: psycopg.Connection[Any], topic: Topic, places: Mapping[str, Any], stem: Path) -> list[WrittenFile]:
    """Write a query's rows to `stem`.DIGEST.csv.gz and `stem`.DIGEST.parquet, visible once complete.

    Existing files stay: another version has another digest, and so another name.
    """
    unfinished: dict[Format, Path] = {
        form: stem.with_name(f"{stem.name}.{suffix}{UNFINISHED}") for form, suffix in SUFFIX.items()
    }
    stem.parent.mkdir(parents=True, exist_ok=True)
    copied = sql.SQL("copy ({}) to stdout (format csv, header)").format(sql.SQL(topic.text.rstrip("; \n")))
    with (
        unfinished["csv"].open("wb") as file,
        # No name and no time in the header: they would make every file different.
        gzip.GzipFile("", "wb", LEVEL, file, mtime=0) as compressed,
        parquet.ParquetWriter(unfinished["parquet"], topic.schema, compression="zstd") as columns,
        conn.cursor().copy(copied, dict(places)) as copy,
    ):
        rows = _columns(columns, topic, Tee(iter(copy), compressed))
    found = []
    for form, path in unfinished.items():
        _sync(path)
        sha256 = digest(path)
        whole = path.replace(stem.with_name(f"{stem.name}.{sha256.hex()[:DIGITS]}.{SUFFIX[form]}"))
        found.append(WrittenFile(form, whole, rows, whole.stat().st_size, sha256))
    _sync(stem.parent)
    return found


def digest(path: Path) -> bytes:
    """Return the SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").digest()


class Tee(io.RawIOBase):
    """A reader of the database's output that copies it elsewhere."""

    def __init__(self, chunks: Iterator[Any], beside: gzip.GzipFile) -> None:
        self._chunks, self._beside = chunks, beside
        self._left = b""

    def readable(self) -> bool:
        """Return True: the stream is readable."""
        return True

    def read(self, size: int = -1, /) -> bytes:
        """Return the given number of bytes; fewer only at the end."""
        pieces, have = [self._left], len(self._left)
        while size < 0 or have < size:
            chunk = bytes(next(self._chunks, b""))
            if not chunk:
                break
            self._beside.write(chunk)
            pieces.append(chunk)
            have += len(chunk)
        whole = b"".join(pieces)
        if size < 0:
            size = have
        self._left = whole[size:]
        return whole[:size]


def _columns(writer: Any, topic: Topic, source: Tee) -> int:
    """Read CSV into columns, write row groups of one size, independent of block boundaries; return the row count."""
    reader = csv.open_csv(
        pa.PythonFile(source, mode="r"),
        read_options=csv.ReadOptions(use_threads=False, block_size=BLOCK),
        parse_options=csv.ParseOptions(newlines_in_values=True),
        convert_options=csv.ConvertOptions(
            column_types=topic.schema,
            include_columns=topic.schema.names,
            true_values=["t"],
            false_values=["f"],
            null_values=[""],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        ),
    )
    rows, waiting = 0, pa.Table.from_batches([], schema=topic.schema)
    for batch in reader:
        rows += batch.num_rows
        waiting = pa.concat_tables([waiting, pa.Table.from_batches([batch])])
        while waiting.num_rows >= ROW_GROUP:
            writer.write_table(waiting.slice(0, ROW_GROUP).combine_chunks())
            waiting = waiting.slice(ROW_GROUP)
    if waiting.num_rows:
        writer.write_table(waiting.combine_chunks())
    return rows


def _sync(path: Path) -> None:
    """Sync a file, or a folder's names, to disk, to survive a power failure."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
