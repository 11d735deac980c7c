"""Parameters of trades' endpoints."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from api.schemas.requests import ALL, Parameters, Text


class Recent(Parameters, frozen=True, kw_only=True):
    """Trades of all markets, or of one."""

    limit: Annotated[int, Meta(ge=1, le=500, description="Trades in one answer")] = 50
    market_id: Annotated[Text | None, Meta(description="Only this market: its market_id, slug or numeric id")] = None
    outcome: Annotated[
        Text,
        Meta(
            description="Only this outcome of the market: its index from 0, or its name; `all` of them",
            examples=["all", "0", "Yes"],
        ),
    ] = ALL
