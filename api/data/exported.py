"""Opens the files of exports: in a folder, or in a bucket of an object store."""

from __future__ import annotations

import os
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from gevent import get_hub

from config.object_store import object_store

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import pyarrow as pa

    from config.settings import Settings

FOLDER_CHUNK = 1 << 18
BUCKET_CHUNK = 1 << 22  # each is a request to the object store


class ExportedFile(Protocol):
    """An open file. Reading raises OSError."""

    size: int
    chunk: int
    """How many bytes are best read at once."""

    def seek(self, position: int, /) -> object:
        """Go to a position."""

    def read(self, size: int, /) -> bytes:
        """Return the next bytes."""

    def close(self) -> None:
        """Close the file."""


class ExportFiles(Protocol):
    """Where the files are."""

    def open(self, name: str) -> ExportedFile:
        """Open a file by its name, relative to the root; FileNotFoundError: there is none."""


def of(settings: Settings) -> ExportFiles:
    """Return the files that the settings name."""
    return ExportBucket(settings) if settings.exports_s3 else ExportFolder(settings.exports_folder)


class ExportFolder:
    """The files below a folder."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def open(self, name: str) -> ExportedFile:
        """Open a file."""
        return FolderFile(self._root / name)


class FolderFile:
    """An open file of a folder."""

    chunk = FOLDER_CHUNK

    def __init__(self, path: Path) -> None:
        self._file = path.open("rb")
        self.size = os.fstat(self._file.fileno()).st_size
        self.seek, self.read, self.close = self._file.seek, self._file.read, self._file.close


class ExportBucket:
    """The files below a bucket's path, read in threads of gevent's pool, as an object store must not stop its loop.

    Arrow is imported at once: in a thread of the pool, the import would wait for gevent's loop.
    """

    def __init__(self, settings: Settings) -> None:
        self._store, self._root = object_store(settings), settings.exports_s3.removeprefix("s3://")

    def open(self, name: str) -> ExportedFile:
        """Open a file."""
        return BucketFile(_in_thread(partial(self._store.open_input_file, f"{self._root}/{name}")))


class BucketFile:
    """An open file of a bucket."""

    chunk = BUCKET_CHUNK

    def __init__(self, file: pa.NativeFile) -> None:
        self._file, self.size = file, int(file.size())

    def seek(self, position: int) -> None:
        """Go to a position; the store is asked by the next `read`."""
        self._file.seek(position)

    def read(self, size: int) -> bytes:
        """Return the next bytes."""
        data: bytes = _in_thread(partial(self._file.read, size))
        return data

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def _in_thread(work: Callable[[], Any]) -> Any:
    return get_hub().threadpool.apply(work)
