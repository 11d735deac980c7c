"""Whose call it is: known where the request comes in, needed where the API is asked."""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass


@dataclass(frozen=True)
class Holder:
    """Whoever calls with a key of the API."""

    key: str
    topics: frozenset[str] = frozenset()  # tools are listed of these only; none given: of all


holder: ContextVar[Holder | None] = ContextVar("holder", default=None)  # None: anyone, without a key
