"""Parameters of the market list endpoints."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from api.schemas.requests import (
    CursorText,
    Exchange,
    Parameters,
    Status,
    Text,
)

InState = Annotated[Status | None, Meta(description="Only markets with this status")]
UpTo50 = Annotated[int, Meta(ge=1, le=50, description="Maximum number of markets in the response")]
UpTo100 = Annotated[int, Meta(ge=1, le=100, description="Maximum number of markets in the response")]
UpTo200 = Annotated[int, Meta(ge=1, le=200, description="Maximum number of markets in the response")]
Offset = Annotated[int, Meta(ge=0, le=1_000_000, description="Number of markets to skip")]
Order = Literal["resolution", "created"]


class SearchParameters(Parameters, frozen=True, kw_only=True):
    """A market search."""

    q: Annotated[Text, Meta(description="Part of a title, question or slug; case-insensitive", examples=["rain"])]
    limit: UpTo100 = 20
    status: InState = None
    exchange: Exchange = "polymarket"


class TopParameters(Parameters, frozen=True, kw_only=True):
    """The most traded markets."""

    by: Annotated[Literal["volume", "trades"], Meta(description="US dollars traded, or number of trades")] = "volume"
    exchange: Exchange = "polymarket"
    limit: UpTo50 = 10
    period: Annotated[Literal["1h", "24h", "7d"], Meta(description="The period up to now")] = "24h"


class ResolvingParameters(Parameters, frozen=True, kw_only=True):
    """Markets that end soon."""

    within: Annotated[Literal["1h", "6h", "24h", "7d"], Meta(description="Only markets that end within this time")] = (
        "24h"
    )
    exchange: Exchange = "polymarket"
    limit: UpTo100 = 20
    offset: Offset = 0


class RankingParameters(Parameters, frozen=True, kw_only=True):
    """The top of a ranking."""

    exchange: Exchange = "polymarket"
    limit: UpTo100 = 20


class NewMarketParameters(Parameters, frozen=True, kw_only=True):
    """Recently listed markets."""

    hours: Annotated[int, Meta(ge=1, le=168, description="Only markets listed within this many hours")] = 24
    exchange: Exchange = "polymarket"
    limit: UpTo100 = 20
    offset: Offset = 0


class TimeframeParameters(Parameters, frozen=True, kw_only=True):
    """Markets by remaining time."""

    status: Annotated[Status, Meta(description="Only markets with this status")] = "ACTIVE"
    limit: Annotated[
        int, Meta(ge=1, le=100, description="Maximum number of markets of each timeframe in the response")
    ] = 20
    asset: Annotated[
        Text | None, Meta(description="Only markets whose title or slug contains this text", examples=["bitcoin"])
    ] = None
    exchange: Exchange = "polymarket"


class CompareParameters(Parameters, frozen=True, kw_only=True):
    """Several markets side by side."""

    ids: Annotated[
        str,
        Meta(
            min_length=1,
            max_length=5000,
            description="Up to 10 markets, separated by commas: ids or slugs",
            examples=["will-it-rain-tomorrow"],
        ),
    ]


class EventMarketParameters(Parameters, frozen=True, kw_only=True):
    """Markets of an event."""

    sort: Annotated[Order, Meta(description="`resolution`: earliest end first; `created`: newest first")] = "resolution"
    status: InState = None
    limit: UpTo200 = 50
    offset: Offset = 0


class CategoryMarketParameters(Parameters, frozen=True, kw_only=True):
    """Markets of a category."""

    sort: Annotated[Order, Meta(description="`created`: newest first; `resolution`: earliest end first")] = "created"
    status: InState = None
    exchange: Exchange = "polymarket"
    limit: UpTo100 = 20
    offset: Offset = 0


class TaxonomyParameters(Parameters, frozen=True, kw_only=True):
    """Names by which an exchange sorts its markets."""

    exchange: Exchange = "polymarket"


class MarketParameters(Parameters, frozen=True, kw_only=True):
    """Which markets to list."""

    status: Annotated[
        Status | None,
        Meta(description="Only markets with this status; CLOSED is not available with `source=polymarket`"),
    ] = None
    category: Annotated[
        Text | None,
        Meta(
            description="Only this category, by its slug; with `source=polymarket` not combined with a tag",
            examples=["politics"],
        ),
    ] = None
    tag: Annotated[
        Text | None,
        Meta(
            description="Only markets with this tag, by its slug; with `source=polymarket` not combined with a category"
        ),
    ] = None
    series: Annotated[
        Text | None, Meta(description="Only markets of this series, by its name; only with `source=local`")
    ] = None
    exchange: Annotated[
        Literal["polymarket", "kalshi"],
        Meta(description="The exchange that lists them; only polymarket with `source=polymarket`"),
    ] = "polymarket"
    source: Annotated[
        Literal["local", "polymarket"],
        Meta(description="`local`: as recorded here; `polymarket`: requested live from the exchange"),
    ] = "local"
    limit: Annotated[int, Meta(ge=1, le=200, description="Maximum number of markets in the response")] = 50
    offset: Annotated[
        int,
        Meta(
            ge=0,
            le=1_000_000,
            description="Number of markets to skip; not combined with a cursor, and only with `source=local`",
        ),
    ] = 0
    cursor: Annotated[CursorText | None, Meta(description="`next_cursor` of the previous page")] = None
