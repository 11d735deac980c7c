"""Errors of the embedded database, and their remedies."""

from __future__ import annotations

OTHERWISE = "or set DATABASE_URL to a PostgreSQL server that has TimescaleDB"


class EmbeddedError(RuntimeError):
    """The embedded database cannot work here; `problem` says why, `remedy` what to do."""

    def __init__(self, problem: str, remedy: str = OTHERWISE) -> None:
        super().__init__(f"{problem}\n  remedy: {remedy}")
        self.problem = problem
        self.remedy = remedy
