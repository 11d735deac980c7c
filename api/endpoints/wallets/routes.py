"""Wallets: watched ones, what any of them did, holds and has earned, and who is first."""

from __future__ import annotations

from api.endpoints.base.endpoint import Endpoint
from api.endpoints.wallets import records
from api.endpoints.wallets.requests import Board, MarketsOf, TradesOf
from api.endpoints.wallets.resource import (
    Activity,
    Leaderboard,
    Markets,
    Onchain,
    Summary,
    Unwatch,
    Watch,
    WatchBody,
    Watched,
    WholeOfWallet,
)
from sql.queries import wallets

WALLET = {"address": "The wallet's address: 0x and 40 hexadecimal digits, upper and lower case alike"}
WALKED = "Following `next_cursor` gives each trade of the range once, whatever comes meanwhile."

ENDPOINTS: tuple[Endpoint, ...] = (
    Endpoint(
        name="leaderboard",
        path="/v1/leaderboard",
        resource=Leaderboard,
        query=wallets.leaderboard,
        parameters=Board,
        answers=records.Leaderboard,
        credits=2,
        cache_s=2,
        tag="Wallets",
        summary="Who traded most",
        description="From final settlements: both sides of a fill count with its value. Computed once a minute, by "
        "profit every five or, where there is much to count, less often; `computed_at` says when. Positions with fills "
        "whose cost is unknown count by volume only.",
    ),
    Endpoint(
        name="watch_wallet",
        method="POST",
        path="/v1/wallets/watch",
        resource=Watch,
        body=WatchBody,
        answers=records.Watching,
        errors=("invalid_body", "missing_parameter", "body_too_large"),
        tag="Wallets",
        summary="Watch a wallet",
        description="From the next block on its fills are kept for 90 days, and told on the stream as "
        "`wallet_activity`. Up to 1,000 wallets an account.",
    ),
    Endpoint(
        name="watched_wallets",
        path="/v1/wallets/watched",
        resource=Watched,
        answers=records.Watched,
        tag="Wallets",
        summary="The wallets that are watched",
    ),
    Endpoint(
        name="unwatch_wallet",
        method="DELETE",
        path="/v1/wallets/{address}/watch",
        resource=Unwatch,
        answers=records.Watching,
        errors=("invalid_parameter",),
        explained=WALLET,
        tag="Wallets",
        summary="Watch a wallet no more",
        description="What was kept stays for its 90 days. Again, or of a wallet that was not watched: the same answer.",
    ),
    Endpoint(
        name="wallet_activity",
        path="/v1/wallets/{address}/activity",
        resource=Activity,
        query=wallets.activity,
        parameters=TradesOf,
        answers=records.Activity,
        errors=("invalid_parameter", "invalid_cursor", "not_found"),
        missing="There is no such market",
        explained=WALLET,
        tag="Wallets",
        summary="What a watched wallet did",
        description=f"Its fills from when watching began, kept for 90 days, newest first. {WALKED}",
    ),
    Endpoint(
        name="wallet_onchain",
        path="/v1/wallets/{address}/onchain",
        resource=Onchain,
        query=wallets.onchain,
        parameters=TradesOf,
        answers=records.Onchain,
        credits=5,
        errors=("invalid_parameter", "invalid_cursor", "not_found"),
        missing="There is no such market",
        explained=WALLET,
        tag="Wallets",
        summary="A wallet's settled trades of the last 14 days",
        description=f"As maker or taker, newest first; of any wallet, watched or not. {WALKED}",
    ),
    Endpoint(
        name="wallet_summary",
        path="/v1/wallets/{address}/summary",
        resource=Summary,
        query=wallets.summary,
        answers=records.WalletSummary,
        credits=5,
        errors=("invalid_parameter",),
        explained=WALLET,
        tag="Wallets",
        summary="A wallet in a few numbers",
        description="Of all its fills since indexing began, whether it is watched or not; `note` says which blocks.",
    ),
    Endpoint(
        name="wallet_markets",
        path="/v1/wallets/{address}/markets",
        resource=Markets,
        query=wallets.markets,
        parameters=MarketsOf,
        answers=records.WalletMarkets,
        credits=5,
        errors=("invalid_parameter", "invalid_cursor", "not_found"),
        missing="There is no such market",
        explained=WALLET,
        tag="Wallets",
        summary="What a wallet traded, last first",
        description="One row an outcome. `bought` and `sold` are shares of its fills; `net_position` also has what "
        "splits, merges, conversions, redemptions and transfers changed. `from` and `to` are about the last trade of "
        "each. Following `next_cursor` gives each row once; an outcome that is traded meanwhile moves to the front.",
    ),
    Endpoint(
        name="wallet_open_positions",
        path="/v1/wallets/{address}/positions/open",
        resource=WholeOfWallet,
        query=wallets.open_positions,
        answers=records.OpenPositions,
        credits=5,
        errors=("invalid_parameter",),
        explained=WALLET,
        tag="Wallets",
        summary="What a wallet holds, by its settlements",
        description="Outcomes of which more came than went, since indexing began: an approximation, as what a wallet "
        "had before is not known. `GET /v1/positions` asks the exchange.",
    ),
    Endpoint(
        name="wallet_pnl",
        path="/v1/wallets/{address}/pnl",
        resource=WholeOfWallet,
        query=wallets.pnl,
        answers=records.WalletPnl,
        credits=10,
        errors=("invalid_parameter",),
        explained=WALLET,
        tag="Wallets",
        summary="What a wallet has earned",
        description="By average cost, fees included, one row an outcome. Resolved markets are settled at the stored "
        "outcome prices. Rows whose cost is not wholly known say so, and are not in the totals.",
    ),
)
