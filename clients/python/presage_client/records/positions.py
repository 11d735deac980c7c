"""Records that the operations of positions return.

Generated from the OpenAPI document: do not edit; run `make client`.
"""

from __future__ import annotations

from typing import ClassVar

from presage_client._record import Record


class ClosedPosition(Record, kw_only=True):
    """A closed position."""

    INSTANTS: ClassVar[dict[str, str]] = {"closed_at": "s"}

    wallet: str
    market_id: str
    """The condition id; of Kalshi the ticker."""
    token_id: str
    """The outcome's token: a decimal number of up to 78 digits; of Kalshi `TICKER:yes` or `TICKER:no`."""
    outcome: int | None = None
    """Index of the outcome, from 0."""
    outcome_name: str | None = None
    avg_price: float | None = None
    """0 to 1, as the exchange computes it."""
    cur_price: float | None = None
    """0 to 1, as the exchange computes it."""
    total_bought: float
    """Shares."""
    realized_pnl_usd: float
    """US dollars."""
    closed_at: int | None = None
    """Unix seconds."""
    opposite_outcome_name: str | None = None
    """The other outcome's name, where there are two."""
    opposite_token_id: str | None = None
    """The other outcome's token, where there are two."""
    title: str | None = None
    slug: str | None = None
    event_slug: str | None = None
    end_date: str | None = None


class MarketPosition(Record, kw_only=True):
    """A position in the requested market. Without `wallet`, only the shares held."""

    wallet: str
    market_id: str
    """The condition id; of Kalshi the ticker."""
    token_id: str
    """The outcome's token: a decimal number of up to 78 digits; of Kalshi `TICKER:yes` or `TICKER:no`."""
    outcome: int | None = None
    """Index of the outcome, from 0."""
    outcome_name: str | None = None
    size: float
    """Shares."""
    avg_price: float | None = None
    """0 to 1, as the exchange computes it."""
    cur_price: float | None = None
    """0 to 1, as the exchange computes it."""
    initial_value_usd: float | None = None
    """US dollars."""
    current_value_usd: float | None = None
    """US dollars."""
    cash_pnl_usd: float | None = None
    """US dollars."""
    percent_pnl: float | None = None
    """Percent."""
    realized_pnl_usd: float | None = None
    """US dollars."""
    percent_realized_pnl: float | None = None
    """Percent."""
    total_bought: float | None = None
    """Shares."""
    redeemable: bool | None = None
    """The market is resolved and the shares can be redeemed."""
    mergeable: bool | None = None
    """The opposite outcome is also held: pairs can be merged for a dollar each."""
    opposite_outcome_name: str | None = None
    """The other outcome's name, where there are two."""
    opposite_token_id: str | None = None
    """The other outcome's token, where there are two."""
    neg_risk: bool | None = None
    """The market belongs to an event in which exactly one market resolves to Yes."""
    title: str | None = None
    slug: str | None = None
    event_slug: str | None = None
    end_date: str | None = None


class Position(Record, kw_only=True):
    """An open position. Fields that the exchange does not report are null."""

    wallet: str
    market_id: str
    """The condition id; of Kalshi the ticker."""
    token_id: str
    """The outcome's token: a decimal number of up to 78 digits; of Kalshi `TICKER:yes` or `TICKER:no`."""
    outcome: int | None = None
    """Index of the outcome, from 0."""
    outcome_name: str | None = None
    size: float
    """Shares."""
    avg_price: float | None = None
    """0 to 1, as the exchange computes it."""
    cur_price: float | None = None
    """0 to 1, as the exchange computes it."""
    initial_value_usd: float | None = None
    """US dollars."""
    current_value_usd: float | None = None
    """US dollars."""
    cash_pnl_usd: float | None = None
    """US dollars."""
    percent_pnl: float | None = None
    """Percent."""
    realized_pnl_usd: float | None = None
    """US dollars."""
    percent_realized_pnl: float | None = None
    """Percent."""
    total_bought: float | None = None
    """Shares."""
    redeemable: bool | None = None
    """The market is resolved and the shares can be redeemed."""
    mergeable: bool | None = None
    """The opposite outcome is also held: pairs can be merged for a dollar each."""
    opposite_outcome_name: str | None = None
    """The other outcome's name, where there are two."""
    opposite_token_id: str | None = None
    """The other outcome's token, where there are two."""
    neg_risk: bool | None = None
    """The market belongs to an event in which exactly one market resolves to Yes."""
    title: str | None = None
    slug: str | None = None
    event_slug: str | None = None
    end_date: str | None = None
