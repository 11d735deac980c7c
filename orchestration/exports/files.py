"""One query's rows as two files, CSV and Parquet, in one pass and little memory.

The database writes CSV itself (`copy … to`). Its output goes through gzip into one file, and through Arrow's reader
into the other, so both have the same rows. The same data gives the same bytes.
"""

from __future__ import annotations

import gzip
import hashlib
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from pyarrow import parquet

from orchestration import arrow_copy

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    import psycopg

    from orchestration.exports.topics import Topic

Format = Literal["parquet", "csv"]
SUFFIX: dict[Format, str] = {"parquet": "parquet", "csv": "csv.gz"}
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
    rows = 0
    with (
        unfinished["csv"].open("wb") as file,
        # No name and no time in the header: they would make every file different.
        gzip.GzipFile("", "wb", LEVEL, file, mtime=0) as compressed,
        parquet.ParquetWriter(unfinished["parquet"], topic.schema, compression="zstd") as columns,
    ):
        found_rows = arrow_copy.record_batches(conn, topic.text, places, topic.schema, beside=compressed)
        for group in arrow_copy.row_groups(found_rows, topic.schema):
            columns.write_table(group)
            rows += group.num_rows
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


def _sync(path: Path) -> None:
    """Sync a file, or a folder's names, to disk, to survive a power failure."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
