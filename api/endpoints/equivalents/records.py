"""Responses of the endpoint of equivalent markets. The JSON is built by `sql/queries/equivalents.sql`."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

from api.endpoints.equivalents.requests import Verdict
from api.endpoints.markets.records import Returned
from api.schemas.records import MarketId, Question, Slug, UnixSeconds
from api.schemas.requests import Status


class Overruled(Struct):
    """The rules' verdict, where an operator's is shown in its place."""

    verdict: Verdict
    at: UnixSeconds


class Equivalent(Struct):
    """A market of another exchange, and how its Yes and that of this market relate."""

    market_id: MarketId
    slug: Slug | None
    question: Question
    exchange: Annotated[str, Meta(examples=["kalshi"])]
    status: Status
    end_time: UnixSeconds | None
    url: Annotated[str | None, Meta(examples=["https://kalshi.com/markets/KXRAIN"])]
    verdict: Annotated[
        Verdict,
        Meta(
            description="`identical`: paid in the same states of the world; `inverted`: exactly one is paid; `subset`: "
            "one implies the other; `related`: of one event, with another clause; `different`; `unreadable`: a clause "
            "could not be read with certainty, or a text has changed since an operator decided"
        ),
    ]
    clause: Annotated[
        Literal["event", "subject", "threshold", "window", "source", "polarity", "void"] | None,
        Meta(description="The clause that decided; null: every clause is equal, or an operator decided"),
    ]
    clause_text: Annotated[
        str,
        Meta(
            description="What the clause says on either side, Polymarket's first; or an operator's reason",
            examples=["every clause is equal"],
        ),
    ]
    within: Annotated[
        Literal["this", "other"] | None,
        Meta(description="Of a subset: the market whose Yes implies the other's", examples=[None]),
    ]
    similarity: Annotated[float, Meta(ge=0, le=100, description="How alike the titles are", examples=[91.5])]
    rules_version: Annotated[int, Meta(ge=1, description="The version of the rules that judged", examples=[1])]
    judged_at: UnixSeconds
    overruled: Annotated[Overruled | None, Meta(description="Null: the verdict is the rules'", examples=[None])]


class Equivalents(Struct):
    """Markets of other exchanges that may ask the same, closest first."""

    market_id: MarketId
    data: list[Equivalent]
    count: Returned
