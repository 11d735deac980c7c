"""Records that the operations of trades return.

Generated from the OpenAPI document: do not edit; run `make client`.
"""

# ruff: noqa: F821, TC001, UP037 - msgspec reads the types when it runs, and `Literal` as str

from __future__ import annotations

from typing import ClassVar

from presage_client._field_types import Literal
from presage_client._record import Record


class RecentTrade(Record, kw_only=True):
    """A trade with its wallets, which are empty until the trade is settled on the chain."""

    INSTANTS: ClassVar[dict[str, str]] = {"ts": "ms"}

    id: str
    """Stable id, the same from every source."""
    market_id: str
    """The condition id; of Kalshi the ticker."""
    token_id: str
    """The outcome's token: a decimal number of up to 78 digits; of Kalshi `TICKER:yes` or `TICKER:no`."""
    outcome: int
    """Index of the outcome, from 0."""
    price: float
    """A probability, 0 to 1."""
    size: float
    """Shares."""
    value_usd: float
    """US dollars."""
    side: Literal["BUY", "SELL"]
    tx_hash: str | None
    ts: int
    """Unix milliseconds."""
    maker: str
    taker: str
    makers: list[str]
    block_number: int | None


class Trade(Record, kw_only=True):
    """A trade. The side is the taker's."""

    INSTANTS: ClassVar[dict[str, str]] = {"ts": "ms"}

    id: str
    """Stable id, the same from every source."""
    market_id: str
    """The condition id; of Kalshi the ticker."""
    token_id: str
    """The outcome's token: a decimal number of up to 78 digits; of Kalshi `TICKER:yes` or `TICKER:no`."""
    outcome: int
    """Index of the outcome, from 0."""
    price: float
    """A probability, 0 to 1."""
    size: float
    """Shares."""
    value_usd: float
    """US dollars."""
    side: Literal["BUY", "SELL"]
    tx_hash: str | None
    ts: int
    """Unix milliseconds."""
