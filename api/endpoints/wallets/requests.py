"""Parameters of the wallet and leaderboard endpoints."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from api.schemas.requests import CursorText, Instant, Parameters, Text


class WalletHistoryParameters(Parameters, frozen=True, kw_only=True):
    """A range of a wallet's history, newest first."""

    from_: Annotated[Instant | None, Meta(description="Only from this moment on: RFC 3339 or Unix milliseconds")] = (
        msgspec.field(default=None, name="from")
    )
    to: Annotated[Instant | None, Meta(description="Only before this moment: RFC 3339 or Unix milliseconds")] = None
    market_id: Annotated[Text | None, Meta(description="Only this market: its market_id, slug or numeric id")] = None
    cursor: Annotated[CursorText | None, Meta(description="`next_cursor` of the previous page")] = None


class WalletTradeParameters(WalletHistoryParameters, frozen=True, kw_only=True):
    """A wallet's trades."""

    limit: Annotated[int, Meta(ge=1, le=200, description="Maximum number of trades in the response")] = 50


class WalletMarketParameters(WalletHistoryParameters, frozen=True, kw_only=True):
    """The outcomes that a wallet traded; `from` and `to` apply to the last trade of each."""

    limit: Annotated[int, Meta(ge=1, le=100, description="Maximum number of outcomes in the response")] = 20


class LeaderboardParameters(Parameters, frozen=True, kw_only=True):
    """The top of a leaderboard."""

    window: Annotated[
        Literal["1d", "7d", "30d", "all"],
        Meta(
            description="`1d`: the last 24 hours, to the hour; `7d` and `30d`: 7 or 30 full days (UTC) and today; "
            "`all`: since indexing began"
        ),
    ] = "7d"
    by: Annotated[
        Literal["volume", "pnl", "window_pnl"],
        Meta(
            description="`volume`: US dollars traded in the window; `pnl`: realized and unrealized profit of the "
            "positions "
            "traded in the window, since they were opened; `window_pnl`: profit made within the window"
        ),
    ] = "volume"
    limit: Annotated[int, Meta(ge=1, le=100, description="Maximum number of wallets in the response")] = 20
