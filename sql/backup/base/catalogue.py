"""What a repository holds, from pgBackRest's own description of it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec


class _Moments(msgspec.Struct):
    start: int
    stop: int


class _Size(msgspec.Struct):
    size: int
    delta: int
    repository: dict[str, int] = {}


class _Backup(msgspec.Struct):
    label: str
    type: str
    timestamp: _Moments
    info: _Size
    error: bool | None = None
    annotation: dict[str, str] = {}


class _Archive(msgspec.Struct):
    id: str


class _Status(msgspec.Struct):
    code: int
    message: str


class _Stanza(msgspec.Struct):
    name: str
    status: _Status
    backup: list[_Backup] = []
    archive: list[_Archive] = []


class File(msgspec.Struct):
    """A file of the repository, or a folder."""

    type: str
    time: int | None = None


class BaseBackup(msgspec.Struct, frozen=True):
    """One base backup: what changed since the one before (`incr`), or everything (`full`)."""

    label: str
    kind: str
    began: datetime
    ended: datetime
    bytes: int
    """Of the database's files."""
    stored_bytes: int
    """That it adds to the repository, compressed."""
    damaged: bool
    """pgBackRest found pages whose checksums were wrong."""
    notes: dict[str, str]

    @property
    def restores_from(self) -> datetime:
        """Return the first moment that it can be recovered to; its times are whole seconds."""
        return self.ended + timedelta(seconds=1)


class Stanza(msgspec.Struct, frozen=True):
    """A cluster as the repository knows it."""

    name: str
    backups: list[BaseBackup]
    """By age, oldest first."""
    archives: list[str]
    problem: str = ""


UNPROBLEMATIC = {0, 2}  # ok; no valid backups
MISSING = 1


def parse(text: str) -> list[Stanza]:
    """Parse the output of `pgbackrest info --output=json`."""
    return [
        Stanza(
            each.name,
            sorted((_backup(one) for one in each.backup), key=lambda backup: backup.ended),
            [archive.id for archive in each.archive],
            "" if each.status.code in UNPROBLEMATIC else each.status.message,
        )
        for each in msgspec.json.decode(_json(text), type=list[_Stanza])
        if each.status.code != MISSING
    ]


def listing(text: str) -> dict[str, File]:
    """Parse the output of `pgbackrest repo-ls --output=json`."""
    files = msgspec.json.decode(_json(text), type=dict[str, File])
    return {name: file for name, file in files.items() if name != "."}


def _backup(one: _Backup) -> BaseBackup:
    return BaseBackup(
        label=one.label,
        kind=one.type,
        began=datetime.fromtimestamp(one.timestamp.start, UTC),
        ended=datetime.fromtimestamp(one.timestamp.stop, UTC),
        bytes=one.info.size,
        stored_bytes=one.info.repository.get("delta", 0),
        damaged=bool(one.error),
        notes=one.annotation,
    )


def _json(text: str) -> str:
    """Return the output without warnings before it."""
    starts: list[Any] = [text.find(first) for first in "[{" if first in text]
    return text[min(starts) :] if starts else "[]"
