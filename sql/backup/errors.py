"""What can go wrong with a backup, as far as somebody can act on it."""

from __future__ import annotations


class BackupError(Exception):
    """A backup cannot be made or restored; says what to do."""

    def __init__(self, what: str, remedy: str) -> None:
        super().__init__(f"{what}: {remedy}")
