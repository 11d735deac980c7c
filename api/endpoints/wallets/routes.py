"""Routes of the wallet and leaderboard endpoints."""

from __future__ import annotations

from api.endpoints.base.endpoint import Endpoint
from api.endpoints.wallets import records
from api.endpoints.wallets.requests import LeaderboardParameters, WalletMarketParameters, WalletTradeParameters
from api.endpoints.wallets.resource import (
    ActivityResource,
    LeaderboardResource,
    Markets,
    OnchainResource,
    SummaryResource,
    Unwatch,
    WalletRow,
    Watch,
    WatchBody,
    WatchedResource,
)
from sql.queries import wallets

WALLET = {"address": "The wallet's address: 0x and 40 hexadecimal digits, case-insensitive"}
WALKED = "Following `next_cursor` returns each trade of the range once, even while new ones are added."

ENDPOINTS: tuple[Endpoint, ...] = (
    Endpoint(
        name="leaderboard",
        path="/v1/leaderboard",
        resource=LeaderboardResource,
        query=wallets.leaderboard,
        parameters=LeaderboardParameters,
        answers=records.Leaderboard,
        credits=2,
        cache_s=2,
        tag="Wallets",
        summary="Leaderboard of wallets",
        description="From finalized settlements: a fill's value counts for both sides. Recomputed once a minute, by "
        "profit every five minutes or, with much data, less often; `computed_at` says when. Positions with fills "
        "of unknown cost count by volume only.",
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
        description="From the next block on, its fills are stored for 90 days and published on the stream as "
        "`wallet_activity`. Up to 1,000 wallets per account.",
    ),
    Endpoint(
        name="watched_wallets",
        path="/v1/wallets/watched",
        resource=WatchedResource,
        answers=records.Watched,
        tag="Wallets",
        summary="List watched wallets",
    ),
    Endpoint(
        name="unwatch_wallet",
        method="DELETE",
        path="/v1/wallets/{address}/watch",
        resource=Unwatch,
        answers=records.Watching,
        errors=("invalid_parameter",),
        path_descriptions=WALLET,
        tag="Wallets",
        summary="Stop watching a wallet",
        description="Stored fills are kept for their 90 days. Idempotent: a wallet that is not watched gives the "
        "same response.",
    ),
    Endpoint(
        name="wallet_activity",
        path="/v1/wallets/{address}/activity",
        resource=ActivityResource,
        query=wallets.activity,
        parameters=WalletTradeParameters,
        answers=records.Activity,
        errors=("invalid_parameter", "invalid_cursor", "not_found"),
        missing="The market does not exist",
        path_descriptions=WALLET,
        tag="Wallets",
        summary="Activity of a watched wallet",
        description=f"Its fills since watching began, stored for 90 days, newest first. {WALKED}",
    ),
    Endpoint(
        name="wallet_onchain",
        path="/v1/wallets/{address}/onchain",
        resource=OnchainResource,
        query=wallets.onchain,
        parameters=WalletTradeParameters,
        answers=records.Onchain,
        credits=5,
        errors=("invalid_parameter", "invalid_cursor", "not_found"),
        missing="The market does not exist",
        path_descriptions=WALLET,
        tag="Wallets",
        summary="A wallet's settled trades of the last 14 days",
        description=f"As maker or taker, newest first; of any wallet, watched or not. {WALKED}",
    ),
    Endpoint(
        name="wallet_summary",
        path="/v1/wallets/{address}/summary",
        resource=SummaryResource,
        query=wallets.summary,
        answers=records.WalletSummary,
        credits=5,
        errors=("invalid_parameter",),
        path_descriptions=WALLET,
        tag="Wallets",
        summary="Totals of a wallet",
        description="Over all its fills since indexing began, whether it is watched or not; `note` names the blocks.",
    ),
    Endpoint(
        name="wallet_markets",
        path="/v1/wallets/{address}/markets",
        resource=Markets,
        query=wallets.markets,
        parameters=WalletMarketParameters,
        answers=records.WalletMarkets,
        credits=5,
        errors=("invalid_parameter", "invalid_cursor", "not_found"),
        missing="The market does not exist",
        path_descriptions=WALLET,
        tag="Wallets",
        summary="Outcomes that a wallet traded, latest first",
        description="One row per outcome. `bought` and `sold` are shares from fills; `net_position` also includes "
        "splits, merges, conversions, redemptions and transfers. `from` and `to` apply to the last trade of "
        "each. Following `next_cursor` returns each row once; an outcome that is traded meanwhile moves to the front.",
    ),
    Endpoint(
        name="wallet_open_positions",
        path="/v1/wallets/{address}/positions/open",
        resource=WalletRow,
        query=wallets.open_positions,
        answers=records.OpenPositions,
        credits=5,
        errors=("invalid_parameter",),
        path_descriptions=WALLET,
        tag="Wallets",
        summary="Open positions of a wallet, from settlements",
        description="Outcomes with a positive net position since indexing began: an approximation, since earlier "
        "holdings "
        "are unknown. `GET /v1/positions` requests positions from the exchange.",
    ),
    Endpoint(
        name="wallet_pnl",
        path="/v1/wallets/{address}/pnl",
        resource=WalletRow,
        query=wallets.pnl,
        answers=records.WalletPnl,
        credits=10,
        errors=("invalid_parameter",),
        path_descriptions=WALLET,
        tag="Wallets",
        summary="Profit and loss of a wallet",
        description="By average cost, including fees, one row per outcome. Resolved markets are settled at the stored "
        "outcome prices. Rows whose cost is partly unknown are flagged and not in the totals.",
    ),
)
