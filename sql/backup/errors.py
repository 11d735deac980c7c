"""Errors of backup and restore that somebody can act on."""

from __future__ import annotations


class BackupError(Exception):
    """A backup cannot be made or restored; the message says what to do."""

    def __init__(self, what: str, remedy: str) -> None:
        super().__init__(f"{what}: {remedy}")
