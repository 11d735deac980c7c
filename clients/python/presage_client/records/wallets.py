"""Records that the operations of wallets return.

Generated from the OpenAPI document: do not edit; run `make client`.
"""

# ruff: noqa: F821, TC001, UP037 - msgspec reads the types when it runs, and `Literal` as str

from __future__ import annotations

from typing import ClassVar

from presage_client import _record
from presage_client._field_types import Literal, Records
from presage_client._record import Record


class Activity(Record, kw_only=True):
    """Recorded fills of a watched wallet, newest first."""

    address: str
    watching: bool
    data: Records[OnchainTrade]
    count: int
    next_cursor: str
    """Pass as `cursor` to get the next page; empty on the last page."""
    has_more: bool

    def __post_init__(self) -> None:
        self.data = _record.Records(self.data, OnchainTrade)


class Fills(Record, kw_only=True):
    """Fills of one side."""

    count: int
    volume_usd: float
    """US dollars."""


class Leader(Record, kw_only=True):
    """A wallet's rank."""

    rank: int
    address: str
    volume_usd: float
    """US dollars."""
    trades: int
    markets: int
    pnl_usd: float | None
    """Realized and unrealized profit of the positions that the wallet traded in the window, since they were opened;
    null on boards by volume, and for wallets that traded none.
    """
    window_pnl_usd: float | None
    """Profit made within the window: realized, and from changes in the value of positions; null on boards by volume,
    and where a position's value at the start or now is unknown.
    """


class Leaderboard(Record, kw_only=True):
    """The top of a leaderboard."""

    INSTANTS: ClassVar[dict[str, str]] = {"window_start": "ms", "computed_at": "s"}

    window: str
    by: str
    data: Records[Leader]
    count: int
    window_start: int | None
    """Null: since indexing began. With `window_pnl`, profit counts from here, later than the window's start where
    older settlements are no longer stored.
    """
    computed_at: int | None
    """Unix seconds."""
    note: str
    """The blocks and times that this is based on."""

    def __post_init__(self) -> None:
        self.data = _record.Records(self.data, Leader)


class Onchain(Record, kw_only=True):
    """A wallet's fills, newest first."""

    address: str
    data: Records[OnchainTrade]
    count: int
    since: int
    """Start of the range: 14 days ago, or a later `from`."""
    next_cursor: str
    """Pass as `cursor` to get the next page; empty on the last page."""
    has_more: bool

    def __post_init__(self) -> None:
        self.data = _record.Records(self.data, OnchainTrade)


class OnchainTrade(Record, kw_only=True):
    """A settled fill, from the requested wallet's perspective."""

    INSTANTS: ClassVar[dict[str, str]] = {"ts": "ms"}

    tx_hash: str
    log_index: int
    block_number: int
    block_hash: str | None
    market_id: str | None
    """Null while the token is not in the catalogue."""
    token_id: str
    """The outcome's token: a decimal number of up to 78 digits; of Kalshi `TICKER:yes` or `TICKER:no`."""
    outcome: int | None
    """Index of the outcome, from 0."""
    maker: str
    taker: str
    side: Literal["BUY", "SELL"]
    """The wallet's side."""
    price: float | None
    """A probability, 0 to 1."""
    size: float
    """Shares."""
    value_usd: float
    """US dollars."""
    fee_usd: float
    """Fee paid by the wallet, in US dollars."""
    exchange_contract: str
    is_taker_order: bool
    finalized: bool
    """False: a chain reorganisation could still revert it."""
    ts: int
    """Unix milliseconds."""
    address: str
    role: Literal["maker", "taker"]
    """If a taker was matched with several makers, `maker` is the one with the largest share."""
    price_matched: bool


class OpenPosition(Record, kw_only=True):
    """An open position of a wallet."""

    INSTANTS: ClassVar[dict[str, str]] = {"last_trade": "ms"}

    market_id: str | None
    """Null while the token is not in the catalogue."""
    outcome: int | None
    """Index of the outcome, from 0."""
    outcome_name: str | None
    """Name of the outcome."""
    token_id: str
    """The outcome's token: a decimal number of up to 78 digits; of Kalshi `TICKER:yes` or `TICKER:no`."""
    question: str | None
    slug: str | None
    status: Literal["ACTIVE", "CLOSED", "RESOLVED"] | None
    bought: float
    """Shares."""
    sold: float
    """Shares."""
    net_position: float
    """Shares held according to indexed data; negative: some were acquired before indexing began."""
    avg_cost: float | None
    """US dollars per share, including fees."""
    mark_price: float | None
    """A probability, 0 to 1."""
    mark_source: Literal["exchange", "market", "resolution"] | None
    """`resolution`: the payout; `market`: the live price; `exchange`: the exchange's last price."""
    value_usd: float | None
    """US dollars."""
    has_cost_basis: bool
    trades: int
    last_trade: int | None
    """Unix milliseconds."""


class OpenPositions(Record, kw_only=True):
    """A wallet's open positions."""

    address: str
    data: Records[OpenPosition]
    count: int
    source: str
    note: str
    """The blocks and times that this is based on."""

    def __post_init__(self) -> None:
        self.data = _record.Records(self.data, OpenPosition)


class Profit(Record, kw_only=True):
    """A wallet's profit in one outcome."""

    market_id: str | None
    """Null while the token is not in the catalogue."""
    outcome: int | None
    """Index of the outcome, from 0."""
    outcome_name: str | None
    """Name of the outcome."""
    token_id: str
    """The outcome's token: a decimal number of up to 78 digits; of Kalshi `TICKER:yes` or `TICKER:no`."""
    question: str | None
    slug: str | None
    bought: float
    """Shares."""
    sold: float
    """Shares."""
    net_position: float
    """Shares held according to indexed data; negative: some were acquired before indexing began."""
    avg_cost: float | None
    """US dollars per share, including fees."""
    realized_pnl: float
    """US dollars, net of fees."""
    unrealized_pnl: float | None
    """Null while a share's value is unknown."""
    mark_price: float | None
    """A probability, 0 to 1."""
    mark_source: Literal["exchange", "market", "resolution"] | None
    """`resolution`: the payout; `market`: the live price; `exchange`: the exchange's last price."""
    settled: bool
    """The market is resolved: held shares count as realized at their payout."""
    has_cost_basis: bool
    """False: part of the cost is unknown, and the row is not in the totals."""


class WalletMarket(Record, kw_only=True):
    """A wallet's trading in one outcome of a market."""

    INSTANTS: ClassVar[dict[str, str]] = {"first_trade": "ms", "last_trade": "ms"}

    market_id: str | None
    """Null while the token is not in the catalogue."""
    outcome: int | None
    """Index of the outcome, from 0."""
    outcome_name: str | None
    """Name of the outcome."""
    token_id: str
    """The outcome's token: a decimal number of up to 78 digits; of Kalshi `TICKER:yes` or `TICKER:no`."""
    question: str | None
    slug: str | None
    status: Literal["ACTIVE", "CLOSED", "RESOLVED"] | None
    bought: float
    """Shares."""
    sold: float
    """Shares."""
    net_position: float
    """Shares held according to indexed data; negative: some were acquired before indexing began."""
    bought_usd: float
    """US dollars."""
    sold_usd: float
    """US dollars."""
    trades: int
    first_trade: int
    """Unix milliseconds."""
    last_trade: int
    """Unix milliseconds."""


class WalletMarkets(Record, kw_only=True):
    """The outcomes that a wallet traded, latest first."""

    address: str
    data: Records[WalletMarket]
    count: int
    note: str
    """The blocks and times that this is based on."""
    next_cursor: str
    """Pass as `cursor` to get the next page; empty on the last page."""
    has_more: bool

    def __post_init__(self) -> None:
        self.data = _record.Records(self.data, WalletMarket)


class WalletPnl(Record, kw_only=True):
    """A wallet's profit, by average cost."""

    address: str
    data: Records[Profit]
    count: int
    total_realized_pnl: float
    """US dollars, net of fees."""
    total_unrealized_pnl: float
    """US dollars, net of fees."""
    total_pnl: float
    """US dollars, net of fees."""
    markets_missing_cost_basis: int
    note: str
    """The blocks and times that this is based on."""

    def __post_init__(self) -> None:
        self.data = _record.Records(self.data, Profit)


class WalletSummary(Record, kw_only=True):
    """Totals of a wallet's fills."""

    INSTANTS: ClassVar[dict[str, str]] = {"first_seen": "ms", "last_seen": "ms"}

    address: str
    watching: bool
    trades: int
    volume_usd: float
    """US dollars."""
    buys: Fills
    sells: Fills
    markets: int
    first_seen: int | None
    """Unix milliseconds."""
    last_seen: int | None
    """Unix milliseconds."""
    note: str
    """The blocks and times that this is based on."""


class Watched(Record, kw_only=True):
    """The wallets that the key's account watches."""

    wallets: list[str]
    count: int


class Watching(Record, kw_only=True):
    """Whether a wallet is watched."""

    address: str
    watching: bool
