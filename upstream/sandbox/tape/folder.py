"""A folder of recordings: its files, unpacked within limits, and why others are not read."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import TYPE_CHECKING

from upstream.sandbox.tape.files import File, UnreadableError, unpack

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

MAX_FILES = 5_000
MAX_TOTAL_BYTES = 1 << 30  # unpacked


class UnplayableError(ValueError):
    """The folder is not a tape; the message says why, and what was wrong with each file."""


class Folder:
    """A folder of recordings; `files` are those that were looked at."""

    def __init__(self, folder: Path, progress: Callable[[str], None]) -> None:
        if not folder.is_dir():
            raise UnplayableError(f"no folder of recordings: {folder}")
        self._folder, self._progress = folder, progress
        self.files: list[File] = []
        self._digests: dict[bytes, str] = {}
        self._left = MAX_TOTAL_BYTES

    def unpacked(self) -> Iterator[tuple[File, bytes]]:
        """Yield the files that can be read; the others say why not."""
        for path in _paths(self._folder):
            file = File(str(path.relative_to(self._folder)).encode(errors="replace").decode())
            self.files.append(file)
            self._progress(f"reading {file.name}")
            try:
                data = self._unpacked(file, path)
            except UnreadableError as error:
                file.why = "; ".join(filter(None, [str(error), file.cut]))
            except OSError as error:
                file.why = error.strerror or str(error)
            else:
                yield file, data

    def _unpacked(self, file: File, path: Path) -> bytes:
        if any(part.startswith("fixtures") for part in path.relative_to(self._folder).parts[:-1]):
            raise UnreadableError("fixtures are written by hand, and no recordings")
        if not path.is_file():
            raise UnreadableError("not a file")
        data, file.cut = unpack(path)
        self._left -= len(data)
        if self._left < 0:
            raise UnreadableError(f"the files before it unpack to {MAX_TOTAL_BYTES >> 20} MB already")
        same = self._digests.setdefault(hashlib.sha256(data).digest(), file.name)
        if same != file.name:
            raise UnreadableError(f"the same as {same}")
        return data


def _paths(folder: Path) -> Iterator[Path]:
    """Yield all files of a folder and its subfolders, except hidden ones."""
    found = 0
    seen: set[str] = set()
    for here, inside, names in os.walk(folder, followlinks=True):
        real = os.path.realpath(here)
        inside[:] = sorted(name for name in inside if not name.startswith(".")) if real not in seen else []
        if real in seen:
            continue
        seen.add(real)
        for name in sorted(names):
            if not name.startswith("."):
                found += 1
                if found > MAX_FILES:
                    raise UnplayableError(f"no folder of recordings: more than {MAX_FILES:,} files in {folder}")
                yield Path(here, name)
