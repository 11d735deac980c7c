"""What wallets and leaderboards can be asked for."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from api.schemas.requests import CursorText, Instant, Parameters, Text


class OfWallet(Parameters, frozen=True, kw_only=True):
    """A part of a wallet's history, newest first."""

    from_: Annotated[Instant | None, Meta(description="Only from this moment on: RFC 3339 or Unix milliseconds")] = (
        msgspec.field(default=None, name="from")
    )
    to: Annotated[Instant | None, Meta(description="Only before this moment: RFC 3339 or Unix milliseconds")] = None
    market_id: Annotated[Text | None, Meta(description="Only this market: its market_id, slug or numeric id")] = None
    cursor: Annotated[CursorText | None, Meta(description="`next_cursor` of the answer before, to go on after it")] = (
        None
    )


class TradesOf(OfWallet, frozen=True, kw_only=True):
    """A wallet's trades."""

    limit: Annotated[int, Meta(ge=1, le=200, description="Trades in one answer")] = 50


class MarketsOf(OfWallet, frozen=True, kw_only=True):
    """The outcomes that a wallet traded; `from` and `to` are about the last trade of each."""

    limit: Annotated[int, Meta(ge=1, le=100, description="Outcomes in one answer")] = 20


class Board(Parameters, frozen=True, kw_only=True):
    """The head of a leaderboard."""

    window: Annotated[
        Literal["1d", "7d", "30d", "all"],
        Meta(
            description="`1d`: the last 24 hours, to the hour; `7d` and `30d`: so many whole days (UTC) and today; "
            "`all`: since indexing began"
        ),
    ] = "7d"
    by: Annotated[
        Literal["volume", "pnl", "window_pnl"],
        Meta(
            description="`volume`: US dollars traded in the window; `pnl`: profit, realized and not, of the positions "
            "traded in the window, since they were opened; `window_pnl`: profit made within the window"
        ),
    ] = "volume"
    limit: Annotated[int, Meta(ge=1, le=100, description="Wallets in one answer")] = 20
