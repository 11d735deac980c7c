"""Files that hold a generated secret: only their owner can read them, and they are whole after a power cut."""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


def write(file: Path, text: str, like: os.stat_result | None = None) -> None:
    """Create or replace a file; when this returns it is on the disk, for whoever could read one like it."""
    file = file.resolve()  # a link stays one
    file.parent.mkdir(parents=True, exist_ok=True)
    new = file.with_name(f".{file.name}.new")
    new.unlink(missing_ok=True)
    with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as written:
        if like is not None:
            os.fchown(written.fileno(), like.st_uid, like.st_gid)
            os.fchmod(written.fileno(), like.st_mode & 0o777)
        written.write(text)
        written.flush()
        os.fsync(written.fileno())
    new.replace(file)
    folder = os.open(file.parent, os.O_RDONLY)
    try:
        os.fsync(folder)  # the new name
    finally:
        os.close(folder)


@contextmanager
def kept(file: Path) -> Iterator[None]:
    """Keep a file's text as `.NAME.old` meanwhile, and afterwards if the file was replaced and what followed failed."""
    file = file.resolve()
    before, former = file.read_text(), file.with_name(f".{file.name}.old")
    write(former, before, file.stat())
    try:
        yield
    except Exception as error:
        if file.read_text() != before:
            raise ValueError(f"{file} is already replaced, its former text is in {former}: {error}") from error
        former.unlink()
        raise
    former.unlink()
