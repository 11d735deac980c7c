"""Parameters and bodies of the webhook endpoints."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from api.schemas.requests import CursorText, Parameters

MAX_NAMED = 500  # markets, and likewise wallets, of one webhook: what fits in a body
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
        description="The receiver: https or http, on the public internet, in visible ASCII characters",
        examples=["https://example.com/hooks/presage"],
    ),
]
Events = Annotated[
    list[EventName],
    Meta(
        min_length=1,
        max_length=20,
        description="The events to deliver; `signal` and `market` include all events that begin with them",
        examples=[["signal.whale_alert", "market.resolved"]],
    ),
]
MarketNames = Annotated[
    list[Annotated[str, Meta(min_length=1, max_length=500)]],
    Meta(
        min_length=1,
        max_length=MAX_NAMED,
        description="Only these markets: condition ids, slugs or the exchange's numeric ids; null: all",
    ),
]
WalletNames = Annotated[
    list[Annotated[str, Meta(pattern="^0[xX][0-9a-fA-F]{40}$", max_length=42)]],
    Meta(
        min_length=1,
        max_length=MAX_NAMED,
        description="Only `onchain_trade` and `wallet_activity` of these wallets, watched or not; null: on-chain "
        "trades of all wallets, and activity of those that the account watches",
        examples=[["0x" + "5d" * 20]],
    ),
]
MinUsd = Annotated[
    float,
    Meta(
        gt=0,
        le=1e9,
        description="Only trades, on-chain trades, activity and whale alerts of at least this many US dollars",
        examples=[1000],
    ),
]


class WebhookBody(Struct, frozen=True, forbid_unknown_fields=True):
    """A new webhook: the receiver and the events to deliver."""

    url: Url
    events: Events
    markets: MarketNames | None = None
    wallets: WalletNames | None = None
    min_usd: MinUsd | None = None


class WebhookChanges(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Changes to a webhook; omitted fields are unchanged, null removes a filter."""

    url: Url | UnsetType = UNSET
    events: Events | UnsetType = UNSET
    markets: MarketNames | UnsetType | None = UNSET
    wallets: WalletNames | UnsetType | None = UNSET
    min_usd: MinUsd | UnsetType | None = UNSET
    enabled: Annotated[
        bool | UnsetType,
        Meta(description="False: nothing is queued or delivered, pending deliveries are kept. True: delivery resumes"),
    ] = UNSET


class RotationBody(Struct, frozen=True, forbid_unknown_fields=True):
    """A step of a secret rotation."""

    step: Annotated[
        Literal["begin", "finish", "cancel"],
        Meta(
            description="`begin`: a new secret signs in addition to the old one; `finish`: only the new one signs; "
            "`cancel`: only the old one signs, as before"
        ),
    ] = "begin"


class PageParameters(Parameters, frozen=True, kw_only=True):
    """A page of a list."""

    limit: Annotated[int, Meta(ge=1, le=200, description="Maximum number of rows in the response")] = 50
    cursor: Annotated[CursorText | None, Meta(description="`next_cursor` of the previous page")] = None


class DeliveryParameters(PageParameters, frozen=True, kw_only=True):
    """Which deliveries to list."""

    state: Annotated[
        Literal["waiting", "delivered", "failed"] | None, Meta(description="Only deliveries with this state")
    ] = None
