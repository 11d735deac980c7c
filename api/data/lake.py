"""Reads one market's rows of expired days from the lake's Parquet files."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from cachetools import LRUCache
from gevent import get_hub
from gevent.monkey import get_original

from config.object_store import object_store

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import pyarrow as pa
    from pyarrow import fs, parquet

    from config.settings import Settings

MAX_FOOTERS_BYTES = 8_000_000  # kept of files, which never change; in memory they take some times as much
GROUP_BYTES = 200  # two markets' ids and a tuple
LAST = chr(0x10FFFF)

Footer = tuple["parquet.FileMetaData", list[tuple[str, str]]]  # and the least and the greatest market of each group


class LakeFiles:
    """The lake's files, read in threads of gevent's pool, as neither the disk nor an object store waits on its loop.

    Arrow is imported where there is a lake, and not by the first question: in a thread of the pool, the import would
    wait for gevent's loop; in a greenlet, all others would wait for the import.
    """

    def __init__(self, settings: Settings) -> None:
        import pyarrow as pa  # noqa: PLC0415 (see above)
        from pyarrow import compute, fs, parquet  # noqa: PLC0415

        self._pa, self._compute, self._fs, self._parquet = pa, compute, fs, parquet
        self._settings = settings
        self._files: fs.FileSystem | None = None
        self._footers: LRUCache[str, Footer] = LRUCache(MAX_FOOTERS_BYTES, getsizeof=_size)
        self._lock = get_original("threading", "Lock")()  # as gevent's are not for threads of its pool

    def rows(self, paths: Iterable[str], market_id: str, columns: Sequence[str]) -> pa.Table:
        """Return a market's rows of some files, in their order; OSError: one cannot be read."""
        table: pa.Table = get_hub().threadpool.apply(partial(self._read, list(paths), market_id, list(columns)))
        return table

    def _read(self, paths: list[str], market_id: str, columns: list[str]) -> pa.Table:
        try:
            return self._tables(paths, market_id, columns)
        except self._pa.ArrowException as error:  # a file is not Parquet
            raise OSError(str(error)) from error

    def _tables(self, paths: list[str], market_id: str, columns: list[str]) -> pa.Table:
        found = []
        for path in paths:
            files, name = self._opened(path)
            with files.open_input_file(name) as source:
                footer, groups = self._footer(name, source)
                file = self._parquet.ParquetFile(source, metadata=footer)
                wanted = [n for n, (least, most) in enumerate(groups) if least <= market_id <= most]
                rows = file.read_row_groups(wanted, [*columns, "market_id"], use_threads=False)
            found.append(rows.filter(self._compute.equal(rows["market_id"], market_id)).select(columns))
        return self._pa.concat_tables(found)

    def _footer(self, name: str, source: pa.NativeFile) -> Footer:
        with self._lock:
            known = self._footers.get(name)
        if known is None:
            read = self._parquet.read_metadata(source)
            known = read, [_markets(read.row_group(number)) for number in range(read.num_row_groups)]
            with self._lock, suppress(ValueError):  # one alone is larger than all may be
                self._footers[name] = known
        return known

    def _opened(self, path: str) -> tuple[fs.FileSystem, str]:
        with self._lock:
            if self._files is None:
                self._files = self._fs.LocalFileSystem()
                if path.startswith("s3://"):
                    self._files = object_store(self._settings)
            return self._files, path.partition("://")[2]


def _size(footer: Footer) -> int:
    read, groups = footer
    return int(read.serialized_size) + GROUP_BYTES * len(groups)


def _markets(group: parquet.RowGroupMetaData) -> tuple[str, str]:
    """Return the least and the greatest market of a group of rows: they are sorted by it."""
    for number in range(group.num_columns):
        column = group.column(number)
        if column.path_in_schema == "market_id" and column.is_stats_set and column.statistics.has_min_max:
            return column.statistics.min, column.statistics.max
    return "", LAST


def micro(amounts: pa.ChunkedArray) -> list[int | None]:
    """Return decimals as whole micro-units."""
    import pyarrow as pa  # noqa: PLC0415

    whole = pa.decimal128(amounts.type.precision, 0)
    return [
        each
        for chunk in amounts.chunks
        for each in pa.Array.from_buffers(whole, len(chunk), chunk.buffers(), offset=chunk.offset)
        .cast(pa.int64())
        .to_pylist()
    ]


def array(values: Iterable[Any]) -> str:
    """Return values as the text of a PostgreSQL array: whole numbers, hexadecimal digits or None.

    >>> array([1, None, "0f"])
    '{1,NULL,0f}'
    """
    return f"{{{','.join('NULL' if value is None else str(value) for value in values)}}}"
