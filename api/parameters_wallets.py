"""What wallets and leaderboards can be asked for."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from api.parameters import Parameters


class LatestOf(Parameters, frozen=True, kw_only=True):
    """The newest of a wallet's trades."""

    limit: Annotated[int, Meta(ge=1, le=200, description="Trades in one answer")] = 50


class MarketsOf(Parameters, frozen=True, kw_only=True):
    """What a wallet traded last."""

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
        Literal["volume", "pnl"],
        Meta(
            description="`volume`: US dollars traded; `pnl`: profit, realized and not, with what was traded in the "
            "window"
        ),
    ] = "volume"
    limit: Annotated[int, Meta(ge=1, le=100, description="Wallets in one answer")] = 20
