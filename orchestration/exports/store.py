"""Where the files of exports are: a folder, or a bucket of an object store."""

from __future__ import annotations

import hashlib
import os
import secrets
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Self

from pyarrow import fs

from config.object_store import in_bucket, object_store

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import pyarrow as pa

    from config.settings import Settings

UNFINISHED = ".unfinished"
READ_FOR = timedelta(hours=1)
"""So long a file of a bucket may still be read after another has replaced it: each chunk is asked for by its name."""


class Draft:
    """A file that is being written: counts and hashes what passes. A file object for gzip and Arrow."""

    closed = False

    def __init__(self, path: str, sink: pa.NativeFile) -> None:
        self.path, self._sink, self._sha256, self.size = path, sink, hashlib.sha256(), 0

    def write(self, data: bytes) -> int:
        """Append bytes."""
        view = memoryview(data)
        self._sha256.update(view)
        self._sink.write(view)
        self.size += view.nbytes
        return view.nbytes

    def tell(self) -> int:
        """Return the number of bytes so far."""
        return self.size

    def flush(self) -> None:
        """Do nothing: it is complete only once it is closed."""

    def close(self) -> None:
        """Do nothing: the store closes it."""

    @property
    def sha256(self) -> bytes:
        """Return the SHA-256 of the bytes so far."""
        return self._sha256.digest()


class ExportStore:
    """Files by their names, relative to a root: `trades/2026-11-20/trades-2026-11-20.5f0c1d2e3b4a6978.parquet`."""

    def __init__(self, files: fs.FileSystem, root: str) -> None:
        self._files, self._root = files, root

    @classmethod
    def of(cls, settings: Settings) -> Self:
        """Return the store that the settings name."""
        if not settings.exports_s3:
            return cls.at(settings.exports_folder)
        return cls(object_store(settings, writes=True), in_bucket(settings.exports_s3))

    @classmethod
    def at(cls, folder: Path) -> Self:
        """Return a folder's store."""
        return cls(fs.LocalFileSystem(), str(folder))

    def __str__(self) -> str:
        return self._root if self._is_local else f"s3://{self._root}"

    @contextmanager
    def writing(self, name: str) -> Iterator[Draft]:
        """Write a file under a temporary name; `publish` gives it its own. After an error it is left, unfinished."""
        # A name of its own: a writer that has lost its lock may still be writing.
        path = f"{self._path(name)}.{secrets.token_hex(4)}{UNFINISHED}"
        if self._is_local:
            self._files.create_dir(path.rpartition("/")[0])
        with self._files.open_output_stream(path, compression=None) as sink:
            yield Draft(path, sink)
        self._sync(path)

    def publish(self, draft: Draft, name: str) -> None:
        """Give a written file its final name, at once and durably."""
        path = self._path(name)
        self._files.move(draft.path, path)
        self._sync(path.rpartition("/")[0])
        if (size := self.size(name)) != draft.size:
            raise OSError(f"{name} has {size} bytes instead of {draft.size}")

    def size(self, name: str) -> int | None:
        """Return the bytes of a file; None: there is none."""
        info = self._files.get_file_info(self._path(name))
        return info.size if info.is_file else None

    def folders(self, folder: str) -> list[str]:
        """Return the names of the folders in a folder."""
        return [info.base_name for info in self._list(folder) if info.type == fs.FileType.Directory]

    def names(self, folder: str) -> list[str]:
        """Return the names of the files in a folder, relative to the root."""
        return [f"{folder}/{info.base_name}" for info in self._list(folder) if info.is_file]

    def is_read(self, name: str) -> bool:
        """Return whether a file that was replaced may still be read: in a folder readers keep it open."""
        if self._is_local:
            return False
        written_at = self._files.get_file_info(self._path(name)).mtime
        return written_at is not None and datetime.now(UTC) - written_at < READ_FOR

    def delete(self, name: str) -> None:
        """Delete a file, if it is there."""
        with suppress(FileNotFoundError):
            self._files.delete_file(self._path(name))

    def delete_empty(self, folder: str) -> None:
        """Delete a folder, if nothing is in it."""
        if not self._list(folder):
            with suppress(FileNotFoundError):
                self._files.delete_dir(self._path(folder))

    def _list(self, folder: str) -> list[fs.FileInfo]:
        infos: list[fs.FileInfo] = self._files.get_file_info(fs.FileSelector(self._path(folder), allow_not_found=True))
        return infos

    def _path(self, name: str) -> str:
        return f"{self._root}/{name}"

    @property
    def _is_local(self) -> bool:
        return isinstance(self._files, fs.LocalFileSystem)

    def _sync(self, path: str) -> None:
        """Sync a file, or a folder's names, to disk, to survive a power failure; an object store does so itself."""
        if not self._is_local:
            return
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
