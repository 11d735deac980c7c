"""Records that the operations of webhooks return.

Generated from the OpenAPI document: do not edit; run `make client`.
"""

# ruff: noqa: F821, TC001, UP037 - msgspec reads the types when it runs, and `Literal` as str

from __future__ import annotations

from typing import Any, ClassVar

from presage_client import _record
from presage_client._field_types import Literal, Records
from presage_client._record import Record


class Attempt(Record, kw_only=True):
    """A delivery attempt."""

    INSTANTS: ClassVar[dict[str, str]] = {"ts": "ms"}

    ts: int
    """Unix milliseconds."""
    status: int | None
    """The receiver's HTTP status; null: no response."""
    error: str | None
    """Why there was no response, or why a response to a challenge was not accepted."""
    duration_ms: int
    answer: str
    """The beginning of the response body."""


class Delivery(Record, kw_only=True):
    """A delivery: one message to one webhook."""

    INSTANTS: ClassVar[dict[str, str]] = {"next_at": "s", "created_at": "s", "ended_at": "s"}

    id: str
    webhook_id: str
    message_id: str
    """The `webhook-id` header of every attempt."""
    type: str
    seq: int | None
    """The event's `seq` in the stream; null: a test message."""
    state: Literal["delivered", "failed", "waiting"]
    attempts: int
    next_at: int | None
    """When the next attempt is due: Unix seconds."""
    created_at: int
    """Unix seconds."""
    ended_at: int | None
    """Unix seconds."""
    log: Records[Attempt]
    """The latest attempts, oldest first."""
    payload: dict[str, Any]
    """What is sent: `type`, `timestamp`, `seq`, `market_id`, `data`."""

    def __post_init__(self) -> None:
        self.log = _record.Records(self.log, Attempt)


class DeliveryPage(Record, kw_only=True):
    """A page of deliveries, newest first."""

    data: Records[Delivery]
    next_cursor: str
    has_more: bool

    def __post_init__(self) -> None:
        self.data = _record.Records(self.data, Delivery)


class Removed(Record, kw_only=True):
    """A removed webhook."""

    id: str
    removed: bool


class SecretRotation(Record, kw_only=True):
    """The state of a secret rotation."""

    id: str
    rotating: bool
    """Both secrets sign."""
    message: str
    secret: str | None = None
    """Verifies signatures. Shown only once."""


class Webhook(Record, kw_only=True):
    """A webhook: its URL, events and filters."""

    INSTANTS: ClassVar[dict[str, str]] = {
        "verified_at": "s",
        "disabled_at": "s",
        "next_at": "s",
        "created_at": "s",
        "updated_at": "s",
    }

    id: str
    url: str
    events: list[str]
    markets: list[str] | None
    wallets: list[str] | None
    min_usd: float | None
    """US dollars."""
    enabled: bool
    state: Literal["active", "disabled", "over_budget", "pending"]
    """`pending`: the receiver has not repeated the challenge, and nothing else is sent to it; `over_budget`: the
    account's messages of the day are used up, and deliveries wait for the next day (UTC).
    """
    verified_at: int | None
    """When the receiver first repeated a challenge."""
    disabled_reason: str | None
    """The reason, if the service disabled it."""
    disabled_at: int | None
    """Unix seconds."""
    rotating: bool
    """A secret rotation is in progress: both secrets sign."""
    waiting: int
    """Number of pending deliveries."""
    next_at: int | None
    """When the first of them is attempted: Unix seconds."""
    created_at: int
    """Unix seconds."""
    updated_at: int
    """Unix seconds."""
    secret: str | None = None
    """Verifies signatures. Shown only once."""


class WebhookPage(Record, kw_only=True):
    """The account's webhooks, in order of creation."""

    data: Records[Webhook]
    next_cursor: str
    has_more: bool

    def __post_init__(self) -> None:
        self.data = _record.Records(self.data, Webhook)
