"""Opens the files of exports: in a folder, or in a bucket of an object store."""

from __future__ import annotations

import os
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from gevent.lock import BoundedSemaphore
from gevent.threadpool import ThreadPool

from config.object_store import in_bucket, object_store

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import pyarrow as pa
    from pyarrow import fs

    from config.settings import Settings

FOLDER_CHUNK = 1 << 16  # a slow client holds two of them
BUCKET_CHUNK = 1 << 20  # and each is a request to the object store
MAX_OPEN = 16  # files of a bucket that a worker sends at once
OPEN_S = 2.0  # for which one more waits


class OpenFile(Protocol):
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

    def open(self, name: str) -> OpenFile:
        """Open a file by its name, relative to the root; FileNotFoundError: there is none."""


def of(settings: Settings) -> ExportFiles:
    """Return the files that the settings name."""
    return ExportBucket(settings) if settings.exports_s3 else ExportFolder(settings.exports_folder)


class ExportFolder:
    """The files below a folder."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def open(self, name: str) -> OpenFile:
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
    """The files below a bucket's path, read in threads, as an object store must not stop gevent's loop.

    The threads are the exports' own: gevent's are those of its resolver, for which connections to the database wait.
    Arrow is imported at once: in a thread, the import would wait for gevent's loop.
    """

    def __init__(self, settings: Settings) -> None:
        self._store, self._root = object_store(settings), in_bucket(settings.exports_s3)
        self._threads, self._places = ThreadPool(MAX_OPEN), BoundedSemaphore(MAX_OPEN)

    def open(self, name: str) -> OpenFile:
        """Open a file; OSError: the store fails, or too many files are open."""
        if not self._places.acquire(timeout=OPEN_S):
            raise OSError(f"{MAX_OPEN} files are being sent")
        try:
            return BucketFile(self, *self.do(partial(_open, self._store, f"{self._root}/{name}")))
        except BaseException:
            self._places.release()
            raise

    def do(self, work: Callable[[], Any]) -> Any:
        """Return the result of some work in a thread."""
        done = self._threads.apply(partial(_caught, work))
        if isinstance(done, OSError):
            raise done
        return done

    def closed(self) -> None:
        """Let another file be opened."""
        self._places.release()


class BucketFile:
    """An open file of a bucket."""

    chunk = BUCKET_CHUNK

    def __init__(self, bucket: ExportBucket, file: pa.NativeFile, size: int) -> None:
        self._bucket, self._file, self.size = bucket, file, size

    def seek(self, position: int) -> None:
        """Go to a position; the store is asked by the next `read`."""
        self._file.seek(position)

    def read(self, size: int) -> bytes:
        """Return the next bytes."""
        data: bytes = self._bucket.do(partial(self._file.read, size))
        return data

    def close(self) -> None:
        """Close the file."""
        if not self._file.closed:
            self._file.close()
            self._bucket.closed()


def _open(store: fs.FileSystem, path: str) -> tuple[pa.NativeFile, int]:
    """Return an open file of a store and its size."""
    file = store.open_input_file(path)
    try:
        return file, int(file.size())
    except BaseException:
        file.close()
        raise


def _caught(work: Callable[[], Any]) -> Any:
    """Return an OSError instead of raising it: gevent prints what is raised in its threads."""
    try:
        return work()
    except OSError as error:
        return error
