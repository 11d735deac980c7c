"""Responses of the webhook endpoints. The JSON is built by `sql/queries/webhooks.sql`."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from api.endpoints.exchange.records import Address
from api.schemas.records import Count, MarketId, UnixMs, UnixSeconds, Usd

Id = Annotated[str, Meta(examples=["7f0c2f5e-3a0b-4f0e-9a54-6f0c7d0c1f3a"])]
Secret = Annotated[
    str,
    Meta(
        description="Verifies signatures. Shown only once",
        examples=["whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"],
    ),
]


class Webhook(Struct):
    """A webhook: its URL, events and filters."""

    id: Id
    url: Annotated[str, Meta(examples=["https://example.com/hook"])]
    events: Annotated[list[str], Meta(examples=[["signal.whale_alert"]])]
    markets: list[MarketId] | None
    wallets: list[Address] | None
    min_usd: Usd | None
    enabled: bool
    state: Annotated[
        Literal["pending", "active", "over_budget", "disabled"],
        Meta(
            description="`pending`: the receiver has not repeated the challenge, and nothing else is sent to it; "
            "`over_budget`: the account's messages of the day are used up, and deliveries wait for the next day (UTC)"
        ),
    ]
    verified_at: Annotated[UnixSeconds | None, Meta(description="When the receiver first repeated a challenge")]
    disabled_reason: Annotated[str | None, Meta(description="The reason, if the service disabled it", examples=[None])]
    disabled_at: Annotated[UnixSeconds | None, Meta(examples=[None])]
    rotating: Annotated[bool, Meta(description="A secret rotation is in progress: both secrets sign")]
    waiting: Annotated[Count, Meta(description="Number of pending deliveries")]
    next_at: Annotated[UnixSeconds | None, Meta(description="When the first of them is attempted: Unix seconds")]
    created_at: UnixSeconds
    updated_at: UnixSeconds
    secret: Secret | UnsetType = UNSET


class WebhookPage(Struct):
    """The account's webhooks, in order of creation."""

    data: list[Webhook]
    next_cursor: str
    has_more: bool


class Removed(Struct):
    """A removed webhook."""

    id: Id
    removed: bool


class SecretRotation(Struct):
    """The state of a secret rotation."""

    id: Id
    rotating: Annotated[bool, Meta(description="Both secrets sign")]
    message: str
    secret: Annotated[Secret | UnsetType, Meta(description="The new secret, after `begin`")] = UNSET


class Attempt(Struct):
    """A delivery attempt."""

    ts: UnixMs
    status: Annotated[int | None, Meta(description="The receiver's HTTP status; null: no response")]
    error: Annotated[
        str | None, Meta(description="Why there was no response, or why a response to a challenge was not accepted")
    ]
    duration_ms: Count
    answer: Annotated[str, Meta(description="The beginning of the response body")]


class Delivery(Struct):
    """A delivery: one message to one webhook."""

    id: Id
    webhook_id: Id
    message_id: Annotated[
        str, Meta(description="The `webhook-id` header of every attempt", examples=["msg_7f0c2f5e3a0b"])
    ]
    type: Annotated[str, Meta(examples=["signal.whale_alert"])]
    seq: Annotated[int | None, Meta(description="The event's `seq` in the stream; null: a test message")]
    state: Literal["waiting", "delivered", "failed"]
    attempts: Count
    next_at: Annotated[UnixSeconds | None, Meta(description="When the next attempt is due: Unix seconds")]
    created_at: UnixSeconds
    ended_at: UnixSeconds | None
    log: Annotated[list[Attempt], Meta(description="The latest attempts, oldest first")]
    payload: Annotated[
        dict[str, Any], Meta(description="What is sent: `type`, `timestamp`, `seq`, `market_id`, `data`")
    ]


class DeliveryPage(Struct):
    """A page of deliveries, newest first."""

    data: list[Delivery]
    next_cursor: str
    has_more: bool
