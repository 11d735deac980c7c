"""What webhooks' endpoints answer, for the document."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from api.endpoints.exchange.records import Address
from api.schemas.records import Count, MarketId, UnixMs, UnixSeconds, Usd

Id = Annotated[str, Meta(examples=["7f0c2f5e-3a0b-4f0e-9a54-6f0c7d0c1f3a"])]
Secret = Annotated[
    str,
    Meta(
        description="Verifies the signatures. It is shown this once",
        examples=["whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"],
    ),
]


class Webhook(Struct):
    """Where an account has itself told of what."""

    id: Id
    url: Annotated[str, Meta(examples=["https://example.com/hook"])]
    events: Annotated[list[str], Meta(examples=[["signal.whale_alert"]])]
    markets: list[MarketId] | None
    wallets: list[Address] | None
    min_usd: Usd | None
    enabled: bool
    disabled_reason: Annotated[str | None, Meta(description="Why, where it was not its owner", examples=[None])]
    disabled_at: Annotated[UnixSeconds | None, Meta(examples=[None])]
    rotating: Annotated[bool, Meta(description="Two secrets sign: a rotation was begun and not finished")]
    waiting: Annotated[Count, Meta(description="Deliveries that are not over")]
    next_at: Annotated[UnixSeconds | None, Meta(description="When the first of them is tried: Unix seconds")]
    created_at: UnixSeconds
    updated_at: UnixSeconds
    secret: Secret | UnsetType = UNSET


class WebhookPage(Struct):
    """The account's webhooks, in the order in which they were made."""

    data: list[Webhook]
    next_cursor: str
    has_more: bool


class Removed(Struct):
    """A webhook that is no more."""

    id: Id
    removed: bool


class SecretRotation(Struct):
    """How a rotation of secrets stands."""

    id: Id
    rotating: Annotated[bool, Meta(description="Both secrets sign")]
    message: str
    secret: Annotated[Secret | UnsetType, Meta(description="After `begin`: the new one")] = UNSET


class Attempt(Struct):
    """One try."""

    ts: UnixMs
    status: Annotated[int | None, Meta(description="What the receiver answered; null: nothing")]
    error: Annotated[str | None, Meta(description="Why there was no answer")]
    duration_ms: Count
    answer: Annotated[str, Meta(description="The beginning of the answer's body")]


class Delivery(Struct):
    """One message to one webhook."""

    id: Id
    webhook_id: Id
    message_id: Annotated[str, Meta(description="`webhook-id` of every attempt", examples=["msg_7f0c2f5e3a0b"])]
    type: Annotated[str, Meta(examples=["signal.whale_alert"])]
    seq: Annotated[int | None, Meta(description="The event's place in the stream; null: a test")]
    state: Literal["waiting", "delivered", "failed"]
    attempts: Count
    next_at: Annotated[UnixSeconds | None, Meta(description="When it may be tried next: Unix seconds")]
    created_at: UnixSeconds
    ended_at: UnixSeconds | None
    log: Annotated[list[Attempt], Meta(description="The latest attempts, oldest first")]
    payload: Annotated[
        dict[str, Any], Meta(description="What is sent: `type`, `timestamp`, `seq`, `market_id`, `data`")
    ]


class DeliveryPage(Struct):
    """Deliveries, the newest first."""

    data: list[Delivery]
    next_cursor: str
    has_more: bool
