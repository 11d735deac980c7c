"""Records that the operations of equivalents return.

Generated from the OpenAPI document: do not edit; run `make client`.
"""

# ruff: noqa: F821, TC001, UP037 - msgspec reads the types when it runs, and `Literal` as str

from __future__ import annotations

from typing import ClassVar

from presage_client import _record
from presage_client._field_types import Literal, Records
from presage_client._record import Record


class Equivalent(Record, kw_only=True):
    """A market of another exchange, and how its Yes and that of this market relate."""

    INSTANTS: ClassVar[dict[str, str]] = {"end_time": "s", "judged_at": "s"}

    market_id: str
    """The condition id; of Kalshi the ticker."""
    slug: str | None
    question: str
    exchange: str
    status: Literal["ACTIVE", "CLOSED", "RESOLVED"]
    end_time: int | None
    """Unix seconds."""
    url: str | None
    verdict: Literal["different", "identical", "inverted", "related", "subset", "unreadable"]
    """`identical`: paid in the same states of the world; `inverted`: exactly one is paid; `subset`: one implies the
    other; `related`: of one event, with another clause; `different`; `unreadable`: a clause could not be read with
    certainty, or a text has changed since an operator decided.
    """
    clause: Literal["event", "polarity", "source", "subject", "threshold", "void", "window"] | None
    """The clause that decided; null: every clause is equal, or an operator decided."""
    clause_text: str
    """What the clause says on either side, Polymarket's first; or an operator's reason."""
    within: Literal["other", "this"] | None
    """Of a subset: the market whose Yes implies the other's."""
    similarity: float
    """How alike the titles are."""
    rules_version: int
    """The version of the rules that judged."""
    judged_at: int
    """Unix seconds."""
    overruled: Overruled | None
    """Null: the verdict is the rules'."""


class Equivalents(Record, kw_only=True):
    """Markets of other exchanges that may ask the same, closest first."""

    market_id: str
    """The condition id; of Kalshi the ticker."""
    data: Records[Equivalent]
    count: int
    """Number of records in `data`."""

    def __post_init__(self) -> None:
        self.data = _record.Records(self.data, Equivalent)


class Overruled(Record, kw_only=True):
    """The rules' verdict, where an operator's is shown in its place."""

    INSTANTS: ClassVar[dict[str, str]] = {"at": "s"}

    verdict: Literal["different", "identical", "inverted", "related", "subset", "unreadable"]
    at: int
    """Unix seconds."""
