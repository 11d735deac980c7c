"""Responses of the wallet endpoints.

The JSON is built by `sql/timescale/positions.sql`, `sql/queries/wallets.sql` and `leaderboards.sql`.
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

from api.endpoints.exchange.records import Address
from api.schemas.records import (
    Count,
    MarketId,
    Outcome,
    OutcomeName,
    Price01,
    Question,
    Shares,
    Slug,
    TokenId,
    UnixMs,
    UnixSeconds,
    Usd,
)
from api.schemas.requests import Status

Hash = Annotated[str, Meta(pattern="^0x[0-9a-f]{64}$", examples=["0x" + "c4" * 32])]
Net = Annotated[
    float,
    Meta(
        description="Shares held according to indexed data; negative: some were acquired before indexing began",
        examples=[150.5],
    ),
]
NextCursor = Annotated[str, Meta(description="Pass as `cursor` to get the next page; empty on the last page")]
Note = Annotated[str, Meta(description="The blocks and times that this is based on")]
KnownMarket = Annotated[MarketId | None, Meta(description="Null while the token is not in the catalogue")]
Earned = Annotated[float, Meta(description="US dollars, net of fees", examples=[12.5])]
MarkSource = Annotated[
    Literal["resolution", "market", "exchange"] | None,
    Meta(description="`resolution`: the payout; `market`: the live price; `exchange`: the exchange's last price"),
]


class Watching(Struct):
    """Whether a wallet is watched."""

    address: Address
    watching: bool


class Watched(Struct):
    """The wallets that the key's account watches."""

    wallets: list[Address]
    count: Count


class OnchainTrade(Struct):
    """A settled fill, from the requested wallet's perspective."""

    tx_hash: Hash
    log_index: Count
    block_number: Count
    block_hash: Hash | None
    market_id: KnownMarket
    token_id: TokenId
    outcome: Outcome | None
    maker: Address
    taker: Address
    side: Annotated[Literal["BUY", "SELL"], Meta(description="The wallet's side")]
    price: Price01 | None
    size: Shares
    value_usd: Usd
    fee_usd: Annotated[float, Meta(description="Fee paid by the wallet, in US dollars")]
    exchange_contract: Address
    is_taker_order: bool
    finalized: Annotated[bool, Meta(description="False: a chain reorganisation could still revert it")]
    ts: UnixMs
    address: Address
    role: Annotated[
        Literal["maker", "taker"],
        Meta(description="If a taker was matched with several makers, `maker` is the one with the largest share"),
    ]
    price_matched: bool


class Activity(Struct):
    """Recorded fills of a watched wallet, newest first."""

    address: Address
    watching: bool
    data: list[OnchainTrade]
    count: Count
    next_cursor: NextCursor
    has_more: bool


class Onchain(Struct):
    """A wallet's fills, newest first."""

    address: Address
    data: list[OnchainTrade]
    count: Count
    since: Annotated[UnixMs, Meta(description="Start of the range: 14 days ago, or a later `from`")]
    next_cursor: NextCursor
    has_more: bool


class Fills(Struct):
    """Fills of one side."""

    count: Count
    volume_usd: Usd


class WalletSummary(Struct):
    """Totals of a wallet's fills."""

    address: Address
    watching: bool
    trades: Count
    volume_usd: Usd
    buys: Fills
    sells: Fills
    markets: Count
    first_seen: UnixMs | None
    last_seen: UnixMs | None
    note: Note


class WalletMarket(Struct):
    """A wallet's trading in one outcome of a market."""

    market_id: KnownMarket
    outcome: Outcome | None
    outcome_name: OutcomeName | None
    token_id: TokenId
    question: Question | None
    slug: Slug | None
    status: Status | None
    bought: Shares
    sold: Shares
    net_position: Net
    bought_usd: Usd
    sold_usd: Usd
    trades: Count
    first_trade: UnixMs
    last_trade: UnixMs


class WalletMarkets(Struct):
    """The outcomes that a wallet traded, latest first."""

    address: Address
    data: list[WalletMarket]
    count: Count
    note: Note
    next_cursor: NextCursor
    has_more: bool


class OpenPosition(Struct):
    """An open position of a wallet."""

    market_id: KnownMarket
    outcome: Outcome | None
    outcome_name: OutcomeName | None
    token_id: TokenId
    question: Question | None
    slug: Slug | None
    status: Status | None
    bought: Shares
    sold: Shares
    net_position: Net
    avg_cost: Annotated[float | None, Meta(description="US dollars per share, including fees")]
    mark_price: Price01 | None
    mark_source: MarkSource
    value_usd: Usd | None
    has_cost_basis: bool
    trades: Count
    last_trade: UnixMs | None


class OpenPositions(Struct):
    """A wallet's open positions."""

    address: Address
    data: list[OpenPosition]
    count: Count
    source: Annotated[str, Meta(examples=["settlements"])]
    note: Note


class Profit(Struct):
    """A wallet's profit in one outcome."""

    market_id: KnownMarket
    outcome: Outcome | None
    outcome_name: OutcomeName | None
    token_id: TokenId
    question: Question | None
    slug: Slug | None
    bought: Shares
    sold: Shares
    net_position: Net
    avg_cost: Annotated[float | None, Meta(description="US dollars per share, including fees")]
    realized_pnl: Earned
    unrealized_pnl: Annotated[float | None, Meta(description="Null while a share's value is unknown")]
    mark_price: Price01 | None
    mark_source: MarkSource
    settled: Annotated[bool, Meta(description="The market is resolved: held shares count as realized at their payout")]
    has_cost_basis: Annotated[
        bool, Meta(description="False: part of the cost is unknown, and the row is not in the totals")
    ]


class WalletPnl(Struct):
    """A wallet's profit, by average cost."""

    address: Address
    data: list[Profit]
    count: Count
    total_realized_pnl: Earned
    total_unrealized_pnl: Earned
    total_pnl: Earned
    markets_missing_cost_basis: Count
    note: Note


class Leader(Struct):
    """A wallet's rank."""

    rank: Annotated[int, Meta(ge=1)]
    address: Address
    volume_usd: Usd
    trades: Count
    markets: Count
    pnl_usd: Annotated[
        float | None,
        Meta(
            description="Realized and unrealized profit of the positions that the wallet traded in the window, since "
            "they "
            "were opened; null on boards by volume, and for wallets that traded none"
        ),
    ]
    window_pnl_usd: Annotated[
        float | None,
        Meta(
            description="Profit made within the window: realized, and from changes in the value of positions; null "
            "on boards by volume, and where a position's value at the start or now is unknown"
        ),
    ]


class Leaderboard(Struct):
    """The top of a leaderboard."""

    window: Annotated[str, Meta(examples=["7d"])]
    by: Annotated[str, Meta(examples=["volume"])]
    data: list[Leader]
    count: Count
    window_start: Annotated[
        UnixMs | None,
        Meta(
            description="Null: since indexing began. With `window_pnl`, profit counts from here, later than the "
            "window's start where older settlements are no longer stored"
        ),
    ]
    computed_at: UnixSeconds | None
    note: Note
