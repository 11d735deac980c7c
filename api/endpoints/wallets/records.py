"""What wallets' endpoints answer, for the document."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

from api.endpoints.exchange.records import Address
from api.schemas.records import (
    Count,
    MarketId,
    Outcome,
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
    float, Meta(description="Shares held by all that is known; below 0: some came from before", examples=[150.5])
]
NextCursor = Annotated[str, Meta(description="Ask again with `cursor` set to this; empty at the end")]
Note = Annotated[str, Meta(description="Which blocks and instants this rests on")]
KnownMarket = Annotated[MarketId | None, Meta(description="Null while the catalogue does not know the token")]
Earned = Annotated[float, Meta(description="US dollars, net of fees", examples=[12.5])]
MarkSource = Annotated[
    Literal["resolution", "market", "exchange"] | None,
    Meta(description="`resolution`: the payout; `market`: the live price; `exchange`: the exchange's last word"),
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
    """A fill as it was settled, seen from the wallet that was asked for."""

    tx_hash: Hash
    log_index: Count
    block_number: Count
    block_hash: Hash | None
    market_id: KnownMarket
    token_id: TokenId
    outcome: Outcome | None
    maker: Address
    taker: Address
    side: Annotated[Literal["BUY", "SELL"], Meta(description="What the wallet did")]
    price: Price01 | None
    size: Shares
    value_usd: Usd
    fee_usd: Annotated[float, Meta(description="What the wallet paid, in US dollars")]
    exchange_contract: Address
    is_taker_order: bool
    finalized: Annotated[bool, Meta(description="False: a reorganisation of the chain could still take it back")]
    ts: UnixMs
    address: Address
    role: Annotated[
        Literal["maker", "taker"],
        Meta(description="A taker met several makers at once: `maker` is the one of the largest part"),
    ]
    price_matched: bool


class Activity(Struct):
    """What was kept of a watched wallet, newest first."""

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
    since: Annotated[UnixMs, Meta(description="Where the answer's range begins: 14 days ago, or at a later `from`")]
    next_cursor: NextCursor
    has_more: bool


class Fills(Struct):
    """Fills of one side."""

    count: Count
    volume_usd: Usd


class WalletSummary(Struct):
    """A wallet's fills, counted."""

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
    """What a wallet did with one outcome of a market."""

    market_id: KnownMarket
    outcome: Outcome | None
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
    """The outcomes a wallet traded, the one traded last first."""

    address: Address
    data: list[WalletMarket]
    count: Count
    note: Note
    next_cursor: NextCursor
    has_more: bool


class OpenPosition(Struct):
    """An outcome of which a wallet holds something."""

    market_id: KnownMarket
    outcome: Outcome | None
    token_id: TokenId
    question: Question | None
    slug: Slug | None
    status: Status | None
    bought: Shares
    sold: Shares
    net_position: Net
    avg_cost: Annotated[float | None, Meta(description="US dollars a share, fees included")]
    mark_price: Price01 | None
    mark_source: MarkSource
    value_usd: Usd | None
    has_cost_basis: bool
    trades: Count
    last_trade: UnixMs | None


class OpenPositions(Struct):
    """What a wallet holds."""

    address: Address
    data: list[OpenPosition]
    count: Count
    source: Annotated[str, Meta(examples=["settlements"])]
    note: Note


class Profit(Struct):
    """What a wallet has earned with one outcome."""

    market_id: KnownMarket
    outcome: Outcome | None
    token_id: TokenId
    question: Question | None
    slug: Slug | None
    bought: Shares
    sold: Shares
    net_position: Net
    avg_cost: Annotated[float | None, Meta(description="US dollars a share, fees included")]
    realized_pnl: Earned
    unrealized_pnl: Annotated[float | None, Meta(description="Null while nothing tells what a share is worth")]
    mark_price: Price01 | None
    mark_source: MarkSource
    settled: Annotated[bool, Meta(description="The market is resolved: what is held counts as realized at its payout")]
    has_cost_basis: Annotated[bool, Meta(description="False: something is left out; not in the totals")]


class WalletPnl(Struct):
    """What a wallet has earned, by average cost."""

    address: Address
    data: list[Profit]
    count: Count
    total_realized_pnl: Earned
    total_unrealized_pnl: Earned
    total_pnl: Earned
    markets_missing_cost_basis: Count
    note: Note


class Leader(Struct):
    """A wallet's place."""

    rank: Annotated[int, Meta(ge=1)]
    address: Address
    volume_usd: Usd
    trades: Count
    markets: Count
    pnl_usd: Annotated[
        float | None,
        Meta(
            description="Profit, realized and not, of the positions that the wallet traded in the window, since they "
            "were opened; null on boards by volume, and of who traded none"
        ),
    ]
    window_pnl_usd: Annotated[
        float | None,
        Meta(
            description="Profit made within the window: realized, and by the change of what positions are worth; null "
            "on boards by volume, and where nothing tells what a position was worth at the start or is worth now"
        ),
    ]


class Leaderboard(Struct):
    """The head of a leaderboard."""

    window: Annotated[str, Meta(examples=["7d"])]
    by: Annotated[str, Meta(examples=["volume"])]
    data: list[Leader]
    count: Count
    window_start: Annotated[
        UnixMs | None,
        Meta(
            description="Null: since indexing began. By `window_pnl` the profit counts from here, later than the "
            "window's start where older settlements are no longer kept"
        ),
    ]
    computed_at: UnixSeconds | None
    note: Note
