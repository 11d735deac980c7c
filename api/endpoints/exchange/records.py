"""Positions of wallets, as reported by the exchange."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from msgspec import UNSET, Meta, Struct, UnsetType, defstruct, structs

from api.schemas.records import MarketId, Outcome, Shares, TokenId, UnixSeconds, Usd

Address = Annotated[str, Meta(pattern="^0x[0-9a-f]{40}$", examples=["0x" + "5d" * 20])]
Probability = Annotated[float | None, Meta(description="0 to 1, as the exchange computes it", examples=[0.52])]
Percent = Annotated[float | None, Meta(description="Percent", examples=[4.5])]
Dollars = Annotated[float | None, Meta(description="US dollars", examples=[78.26])]
Title = Annotated[str | None, Meta(examples=["Will it rain tomorrow?"])]
Named = Annotated[str | None, Meta(examples=["will-it-rain-tomorrow"])]
OppositeName = Annotated[str | None, Meta(description="The other outcome's name, where there are two", examples=["No"])]
OppositeToken = Annotated[
    str | None, Meta(description="The other outcome's token, where there are two", examples=["8261"])
]
OutcomeName = Annotated[str | None, Meta(examples=["Yes"])]


class Holding(Struct, kw_only=True):
    """The shares of an outcome that a wallet holds."""

    wallet: Address
    market_id: MarketId
    token_id: TokenId
    outcome: Outcome | None = None
    outcome_name: OutcomeName = None
    size: Shares


class Position(Holding, kw_only=True):
    """An open position. Fields that the exchange does not report are null."""

    avg_price: Probability = None
    cur_price: Probability = None
    initial_value_usd: Dollars = None
    current_value_usd: Dollars = None
    cash_pnl_usd: Dollars = None
    percent_pnl: Percent = None
    realized_pnl_usd: Dollars = None
    percent_realized_pnl: Percent = None
    total_bought: Shares | None = None
    redeemable: Annotated[bool | None, Meta(description="The market is resolved and the shares can be redeemed")] = None
    mergeable: Annotated[
        bool | None, Meta(description="The opposite outcome is also held: pairs can be merged for a dollar each")
    ] = None
    opposite_outcome_name: OppositeName = None
    opposite_token_id: OppositeToken = None
    neg_risk: Annotated[
        bool | None, Meta(description="The market belongs to an event in which exactly one market resolves to Yes")
    ] = None
    title: Title = None
    slug: Named = None
    event_slug: Named = None
    end_date: Annotated[str | None, Meta(examples=["2026-11-21"])] = None


if TYPE_CHECKING:
    MarketPosition = Position
else:
    MarketPosition = defstruct(
        "MarketPosition",
        [
            (each.name, each.type | UnsetType, UNSET)
            for each in structs.fields(Position)
            if each.name not in Holding.__struct_fields__
        ],
        bases=(Holding,),
        kw_only=True,
        module=__name__,
        namespace={"__doc__": "A position in the requested market. Without `wallet`, only the shares held."},
    )


class ClosedPosition(Struct, kw_only=True):
    """A closed position."""

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
    opposite_outcome_name: OppositeName = None
    opposite_token_id: OppositeToken = None
    title: Title = None
    slug: Named = None
    event_slug: Named = None
    end_date: str | None = None
