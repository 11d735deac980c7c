"""What wallets hold and held, as the exchange tells it."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from api.records import MarketId, Outcome, Shares, TokenId, UnixSeconds, Usd  # noqa: TC001 (msgspec resolves)

Address = Annotated[str, Meta(pattern="^0x[0-9a-f]{40}$", examples=["0x" + "5d" * 20])]
Probability = Annotated[float | None, Meta(description="0 to 1, as the exchange computes it", examples=[0.52])]
Percent = Annotated[float | None, Meta(description="Percent", examples=[4.5])]
Dollars = Annotated[float | None, Meta(description="US dollars", examples=[78.26])]
Title = Annotated[str | None, Meta(examples=["Will it rain tomorrow?"])]
Named = Annotated[str | None, Meta(examples=["will-it-rain-tomorrow"])]
OutcomeName = Annotated[str | None, Meta(examples=["Yes"])]


class Position(Struct, kw_only=True):
    """A position that is held. What the exchange does not tell is null."""

    wallet: Address
    market_id: MarketId
    token_id: TokenId
    outcome: Outcome | None = None
    outcome_name: OutcomeName = None
    size: Shares
    avg_price: Probability = None
    cur_price: Probability = None
    initial_value_usd: Dollars = None
    current_value_usd: Dollars = None
    cash_pnl_usd: Dollars = None
    percent_pnl: Percent = None
    realized_pnl_usd: Dollars = None
    total_bought: Shares | None = None
    redeemable: bool | None = None
    title: Title = None
    slug: Named = None
    event_slug: Named = None
    end_date: Annotated[str | None, Meta(examples=["2026-11-21"])] = None


class ClosedPosition(Struct, kw_only=True):
    """A position that is no longer held."""

    wallet: Address
    market_id: MarketId
    token_id: TokenId
    outcome: Outcome | None = None
    outcome_name: OutcomeName = None
    avg_price: Probability = None
    cur_price: Probability = None
    total_bought: Shares
    realized_pnl_usd: Usd
    closed_at: UnixSeconds | None = None
    title: Title = None
    slug: Named = None
    event_slug: Named = None
    end_date: str | None = None
