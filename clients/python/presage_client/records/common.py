"""Records that operations of several tags return.

Generated from the OpenAPI document: do not edit; run `make client`.
"""

# ruff: noqa: F821, TC001, UP037 - msgspec reads the types when it runs, and `Literal` as str

from __future__ import annotations

from typing import Any, ClassVar

from presage_client._field_types import Literal
from presage_client._record import Record


class Market(Record, kw_only=True):
    """A market, as the exchange lists it."""

    INSTANTS: ClassVar[dict[str, str]] = {
        "start_time": "s",
        "end_time": "s",
        "created_at": "s",
        "resolved_at": "s",
        "updated_at": "s",
    }

    market_id: str
    """The condition id; of Kalshi the ticker."""
    slug: str | None
    question: str
    status: Literal["ACTIVE", "CLOSED", "RESOLVED"]
    exchange: str
    event_id: str | None
    category: str | None
    series: str | None
    tags: list[str]
    outcomes: list[str]
    token_ids: list[str]
    outcome_prices: list[float]
    """The exchange's own prices, in the order of the outcomes."""
    start_time: int | None
    """Unix seconds."""
    end_time: int | None
    """Planned end: Unix seconds."""
    created_at: int | None
    """Unix seconds."""
    resolved_at: int | None
    """Unix seconds."""
    winning_outcome: int | None
    """Index of the outcome, from 0."""
    volume_usd: float | None
    """US dollars traded in total, as counted by the exchange."""
    volume_24h_usd: float | None
    """US dollars traded in the last 24 hours over all outcomes, as recorded here; computed once a minute; null with
    `source=polymarket`.
    """
    exchange_volume_24h_usd: float | None
    """US dollars traded in 24 hours, as last reported by the exchange."""
    liquidity_usd: float | None
    """US dollars in the order books, as reported by the exchange."""
    neg_risk: bool
    image: str | None
    url: str | None
    updated_at: int
    """Unix seconds."""
    source: str
    """exchange, tape or simulated."""


class Price(Record, kw_only=True):
    """An outcome's live price, while its market is active, its book verified and the feed alive."""

    INSTANTS: ClassVar[dict[str, str]] = {"last_ts": "ms", "ts": "ms"}

    market_id: str
    """The condition id; of Kalshi the ticker."""
    outcome: int
    """Index of the outcome, from 0."""
    token_id: str
    """The outcome's token: a decimal number of up to 78 digits; of Kalshi `TICKER:yes` or `TICKER:no`."""
    mid: float | None
    """A probability, 0 to 1."""
    bid: float | None
    """A probability, 0 to 1."""
    ask: float | None
    """A probability, 0 to 1."""
    spread: float | None
    bid_size: float | None
    """Shares."""
    ask_size: float | None
    """Shares."""
    last: float | None
    """A probability, 0 to 1."""
    last_ts: int | None
    """Unix milliseconds."""
    volume_24h_usd: float | None
    """US dollars traded in the last 24 hours over all outcomes, as recorded here; computed once a minute; null in
    replays.
    """
    ts: int
    """Unix milliseconds."""
    age_ms: int
    """Age in milliseconds."""


class Signal(Record, kw_only=True):
    """A signal: a value beyond its threshold."""

    INSTANTS: ClassVar[dict[str, str]] = {"ts": "ms"}

    id: str
    """Decimal number; stable when the same signal is detected again."""
    type: Literal["book_imbalance", "momentum", "price_reversal", "spread_widening", "volume_spike", "whale_alert"]
    market_id: str
    """The condition id; of Kalshi the ticker."""
    outcome: int
    """Index of the outcome, from 0."""
    value: float
    """The measured value, in the unit of the signal's type."""
    threshold: float
    """The value from which it counts as a signal."""
    score: float
    """value / threshold."""
    direction: Literal["down", "up"] | None
    """Direction of the outcome's price; null: no direction."""
    window_s: int
    """Length of the measured window before `ts`, in seconds."""
    detail: dict[str, Any]
    """The figures that it was computed from."""
    ts: int
    """Unix milliseconds."""
