"""What webhooks can be asked, and made of."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from api.schemas.requests import CursorText, Parameters

MOST_NAMED = 500  # markets, and wallets, of one webhook: what fits a body
EventName = Literal[
    "trade",
    "onchain_trade",
    "wallet_activity",
    "signal",
    "signal.momentum",
    "signal.volume_spike",
    "signal.whale_alert",
    "signal.spread_widening",
    "signal.book_imbalance",
    "signal.price_reversal",
    "market",
    "market.listed",
    "market.closed",
    "market.resolved",
    "market.reopened",
]
Url = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=2000,
        description="Where to: https or http, on the public internet, of visible ASCII characters",
        examples=["https://example.com/hooks/presage"],
    ),
]
Events = Annotated[
    list[EventName],
    Meta(
        min_length=1,
        max_length=20,
        description="What to be told of; `signal` and `market` stand for all that begins with them",
        examples=[["signal.whale_alert", "market.resolved"]],
    ),
]
MarketNames = Annotated[
    list[Annotated[str, Meta(min_length=1, max_length=500)]],
    Meta(
        min_length=1,
        max_length=MOST_NAMED,
        description="Only of these markets: condition ids, slugs or the exchange's numbers; null: of any",
    ),
]
WalletNames = Annotated[
    list[Annotated[str, Meta(pattern="^0[xX][0-9a-fA-F]{40}$", max_length=42)]],
    Meta(
        min_length=1,
        max_length=MOST_NAMED,
        description="Only `onchain_trade` and `wallet_activity` of these wallets, watched or not; null: on-chain "
        "trades of any, and activity of those that the account watches",
        examples=[["0x" + "5d" * 20]],
    ),
]
MinUsd = Annotated[
    float,
    Meta(
        gt=0,
        le=1e9,
        description="Only trades, on-chain trades, activity and whale alerts of this many US dollars or more",
        examples=[1000],
    ),
]


class WebhookBody(Struct, frozen=True, forbid_unknown_fields=True):
    """Where to tell of what."""

    url: Url
    events: Events
    markets: MarketNames | None = None
    wallets: WalletNames | None = None
    min_usd: MinUsd | None = None


class WebhookChanges(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What to change; what is left out stays, null takes a filter away."""

    url: Url | UnsetType = UNSET
    events: Events | UnsetType = UNSET
    markets: MarketNames | UnsetType | None = UNSET
    wallets: WalletNames | UnsetType | None = UNSET
    min_usd: MinUsd | UnsetType | None = UNSET
    enabled: Annotated[
        bool | UnsetType,
        Meta(description="False: nothing is queued or delivered; what waits is kept. True: from now on again"),
    ] = UNSET


class RotationBody(Struct, frozen=True, forbid_unknown_fields=True):
    """Which of the two steps."""

    step: Annotated[
        Literal["begin", "finish", "cancel"],
        Meta(
            description="`begin`: a new secret signs beside the old one; `finish`: from now on the new one alone; "
            "`cancel`: the old one alone, as before"
        ),
    ] = "begin"


class PageOf(Parameters, frozen=True, kw_only=True):
    """A page of a list."""

    limit: Annotated[int, Meta(ge=1, le=200, description="Rows in one answer")] = 50
    cursor: Annotated[CursorText | None, Meta(description="`next_cursor` of the answer before, to go on after it")] = (
        None
    )


class DeliveriesOf(PageOf, frozen=True, kw_only=True):
    """Which deliveries to list."""

    state: Annotated[
        Literal["waiting", "delivered", "failed"] | None, Meta(description="Only deliveries in this state")
    ] = None
