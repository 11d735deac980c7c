"""Parameters of the export endpoints."""

from __future__ import annotations

from datetime import date  # noqa: TC003 (msgspec resolves annotations)
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from api.endpoints.webhooks.requests import PageParameters
from api.schemas.requests import Exchange  # noqa: TC001 (as above)

TopicName = Literal[
    "markets",
    "trades",
    "candles",
    "settlements",
    "book_events",
    "markets_kalshi",
    "trades_kalshi",
    "candles_kalshi",
    "book_events_kalshi",
]


class ExportParameters(PageParameters, frozen=True, kw_only=True):
    """Which exported days to list."""

    topic: Annotated[TopicName | None, Meta(description="Only days of this topic")] = None
    exchange: Annotated[Exchange, Meta(description="Whose topics are listed, unless `topic` names one")] = "polymarket"
    from_: Annotated[date | None, Meta(description="Only this day (UTC) and later ones")] = msgspec.field(
        default=None, name="from"
    )
    to: Annotated[date | None, Meta(description="Only this day (UTC) and earlier ones")] = None
