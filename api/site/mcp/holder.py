"""The caller's API key, passed from the request to the API call by a context variable."""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass


@dataclass(frozen=True)
class Holder:
    """A caller with an API key."""

    key: str
    topics: frozenset[str] = frozenset()  # only tools of these topics are listed; empty: all
    may_write: bool = False  # the client was configured to allow tools that change something


holder: ContextVar[Holder | None] = ContextVar("holder", default=None)  # None: an anonymous caller
