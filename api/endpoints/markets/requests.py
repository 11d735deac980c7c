"""What lists of markets can be asked for."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from api.schemas.requests import Exchange, Parameters, Status, Text

InState = Annotated[Status | None, Meta(description="Only markets in this state")]
UpTo50 = Annotated[int, Meta(ge=1, le=50, description="Markets in one answer")]
UpTo100 = Annotated[int, Meta(ge=1, le=100, description="Markets in one answer")]
UpTo200 = Annotated[int, Meta(ge=1, le=200, description="Markets in one answer")]
Offset = Annotated[int, Meta(ge=0, le=1_000_000, description="Markets to pass over")]
Order = Literal["resolution", "created"]


class SearchFor(Parameters, frozen=True, kw_only=True):
    """Markets by words."""

    q: Annotated[
        Text, Meta(description="Part of a title, question or slug; upper and lower case are alike", examples=["rain"])
    ]
    limit: UpTo100 = 20
    status: InState = None
    exchange: Exchange = "polymarket"


class Top(Parameters, frozen=True, kw_only=True):
    """The busiest markets."""

    by: Annotated[Literal["volume", "trades"], Meta(description="US dollars traded, or how many trades")] = "volume"
    limit: UpTo50 = 10
    period: Annotated[Literal["1h", "24h", "7d"], Meta(description="The time up to now that counts")] = "24h"


class Resolving(Parameters, frozen=True, kw_only=True):
    """Markets that end soon."""

    within: Annotated[Literal["1h", "6h", "24h", "7d"], Meta(description="Only those that end within this time")] = (
        "24h"
    )
    exchange: Exchange = "polymarket"
    limit: UpTo100 = 20
    offset: Offset = 0


class Most(Parameters, frozen=True, kw_only=True):
    """The head of a ranking."""

    limit: UpTo100 = 20


class Newest(Parameters, frozen=True, kw_only=True):
    """Markets listed lately."""

    hours: Annotated[int, Meta(ge=1, le=168, description="Only markets listed in this many hours up to now")] = 24
    exchange: Exchange = "polymarket"
    limit: UpTo100 = 20
    offset: Offset = 0


class ByTimeframe(Parameters, frozen=True, kw_only=True):
    """Markets by the time left to them."""

    status: Annotated[Status, Meta(description="Only markets in this state")] = "ACTIVE"
    limit: Annotated[int, Meta(ge=1, le=100, description="Markets of each timeframe in one answer")] = 20
    asset: Annotated[
        Text | None, Meta(description="Only markets whose title or slug contains this", examples=["bitcoin"])
    ] = None


class Compared(Parameters, frozen=True, kw_only=True):
    """A few markets side by side."""

    ids: Annotated[
        str,
        Meta(
            min_length=1,
            max_length=5000,
            description="Up to 10 markets, separated by commas: ids or slugs",
            examples=["will-it-rain-tomorrow"],
        ),
    ]


class OfEvent(Parameters, frozen=True, kw_only=True):
    """Markets of an event."""

    sort: Annotated[
        Order, Meta(description="`resolution`: those that end first come first; `created`: the newest come first")
    ] = "resolution"
    status: InState = None
    limit: UpTo200 = 50
    offset: Offset = 0


class OfCategory(Parameters, frozen=True, kw_only=True):
    """Markets of a category."""

    sort: Annotated[
        Order, Meta(description="`created`: the newest come first; `resolution`: those that end first come first")
    ] = "created"
    status: InState = None
    exchange: Exchange = "polymarket"
    limit: UpTo100 = 20
    offset: Offset = 0
