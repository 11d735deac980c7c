"""Parameters of the trade endpoints."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from api.schemas.requests import (
    Exchange,
    Parameters,
    RangeParameters,
    Text,
    Wallet,
)

ALL = "all"  # all outcomes; an outcome with this name is requested by its index


class RecentTradeParameters(Parameters, frozen=True, kw_only=True):
    """Parameters of `/v1/trades/recent`: trades of all markets, or of one."""

    exchange: Exchange = "polymarket"
    limit: Annotated[int, Meta(ge=1, le=500, description="Maximum number of trades in the response")] = 50
    market_id: Annotated[Text | None, Meta(description="Only this market: its market_id, slug or numeric id")] = None
    outcome: Annotated[
        Text,
        Meta(
            description="Only this outcome of the market `market_id`: its index from 0, its name, or `all`",
            examples=["all", "0", "Yes"],
        ),
    ] = ALL


class TradeParameters(RangeParameters, frozen=True, kw_only=True):
    """Parameters of `/v1/markets/{id}/trades`: trades of one outcome, or of all."""

    outcome: Annotated[
        Text | None,
        Meta(
            description="The outcome: its index from 0, its name, or `all`. Default: 0, or `all` with `wallet`",
            examples=["0", "Yes", "all"],
        ),
    ] = None  # type: ignore[assignment]  # the default depends on the wallet

    limit: Annotated[int, Meta(ge=1, le=5000, description="Maximum number of trades in the response")] = 100
    source: Annotated[
        Literal["local", "data-api"],
        Meta(description="`local`: as recorded here; `data-api`: requested live from the exchange"),
    ] = "local"
    wallet: Annotated[Wallet | None, Meta(description="Only trades of this wallet; needs `source=data-api`")] = None
