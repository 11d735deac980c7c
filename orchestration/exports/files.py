"""One query's rows as two files, CSV and Parquet, in one pass and little memory.

The database writes CSV itself (`copy … to`). Its output goes through gzip into one file, and through Arrow's reader
into the other, so both have the same rows. The same data gives the same bytes.
"""

from __future__ import annotations

import gzip
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from pyarrow import parquet

from orchestration import arrow_copy

if TYPE_CHECKING:
    from collections.abc import Mapping

    import psycopg

    from orchestration.exports.store import Draft, ExportStore
    from orchestration.exports.topics import Topic

Format = Literal["parquet", "csv"]
SUFFIX: dict[Format, str] = {"parquet": "parquet", "csv": "csv.gz"}
LEVEL = 6
DIGITS = 16  # of the digest in a file's name


@dataclass(frozen=True)
class WrittenFile:
    """A completely written file."""

    format: Format
    name: str
    rows: int
    size: int
    sha256: bytes


def write(
    conn: psycopg.Connection[Any], topic: Topic, places: Mapping[str, Any], stem: str, store: ExportStore
) -> list[WrittenFile]:
    """Write a query's rows to `stem`.DIGEST.csv.gz and `stem`.DIGEST.parquet, visible once complete.

    Existing files stay: another version has another digest, and so another name.
    """
    rows = 0
    with (
        store.writing(f"{stem}.{SUFFIX['csv']}") as text,
        store.writing(f"{stem}.{SUFFIX['parquet']}") as table,
        # No name and no time in the header: they would make every file different.
        gzip.GzipFile("", "wb", LEVEL, text, mtime=0) as compressed,
        parquet.ParquetWriter(table, topic.schema, compression="zstd") as columns,
    ):
        found_rows = arrow_copy.record_batches(conn, topic.text, places, topic.schema, beside=compressed)
        for group in arrow_copy.row_groups(found_rows, topic.schema):
            columns.write_table(group)
            rows += group.num_rows
    drafts: dict[Format, Draft] = {"parquet": table, "csv": text}
    found = []
    for form, draft in drafts.items():
        name = f"{stem}.{draft.sha256.hex()[:DIGITS]}.{SUFFIX[form]}"
        store.publish(draft, name)
        found.append(WrittenFile(form, name, rows, draft.size, draft.sha256))
    return found
