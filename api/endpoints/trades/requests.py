"""Parameters of the trade endpoints."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from api.schemas.requests import ALL, Parameters, Text


class RecentTradeParameters(Parameters, frozen=True, kw_only=True):
    """Trades of all markets, or of one."""

    limit: Annotated[int, Meta(ge=1, le=500, description="Maximum number of trades in the response")] = 50
    market_id: Annotated[Text | None, Meta(description="Only this market: its market_id, slug or numeric id")] = None
    outcome: Annotated[
        Text,
        Meta(
            description="Only this outcome of the market: its index from 0, its name, or `all`",
            examples=["all", "0", "Yes"],
        ),
    ] = ALL
