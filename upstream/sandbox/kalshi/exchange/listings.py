"""Series, events and markets, as the REST API shows them."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from upstream.sandbox.common.book import BUY, SELL, SandboxBook
from upstream.sandbox.kalshi.exchange.candles import Candles
from upstream.sandbox.kalshi.exchange.grid import GRIDS, Grid
from upstream.sandbox.kalshi.formats import contracts, dollars, rfc3339
from upstream.transport.micro import ONE

if TYPE_CHECKING:
    from upstream.sandbox.common.walks import PriceWalk

Json: TypeAlias = dict[str, Any]
Status: TypeAlias = Literal[
    "initialized", "active", "inactive", "closed", "determined", "disputed", "amended", "finalized"
]

COMBOS = "KXMVE"  # prefix of the tickers of combos
NAMESPACE = uuid.UUID("6f1d1c4e-5b0e-4b43-9a6e-0c9a4b3b8e11")


@dataclass
class KalshiSeries:
    """A series; `whole` holds recorded fields that have no place of their own."""

    ticker: str
    title: str
    category: str
    tags: list[str]
    shard: int = 0
    frequency: str = "custom"
    fee_type: str = "quadratic"
    fee_multiplier: float = 1
    updated_ms: int = 0
    whole: Json = field(default_factory=dict)

    def json(self) -> Json:
        """Return the series as the API shows it."""
        return {
            "ticker": self.ticker,
            "frequency": self.frequency,
            "title": self.title,
            "category": self.category,
            "categories": [self.category],
            "tags": self.tags or None,
            "settlement_sources": [{"name": "Simulated", "url": "https://example.com"}],
            "contract_url": "https://example.com/contract.pdf",
            "contract_terms_url": "https://example.com/terms.pdf",
            "fee_type": self.fee_type,
            "fee_multiplier": self.fee_multiplier,
            "additional_prohibitions": [],
            "last_updated_ts": rfc3339(self.updated_ms),
            "exchange_index": self.shard,
            **self.whole,
        }


@dataclass
class KalshiEvent:
    """An event and its markets."""

    ticker: str
    series: KalshiSeries
    title: str
    sub_title: str
    exclusive: bool
    created_ms: int
    strike_ms: int | None = None
    updated_ms: int = 0
    fee_override: tuple[str | None, float | None] = (None, None)
    number: int = 0
    markets: list[KalshiMarket] = field(default_factory=list)
    whole: Json = field(default_factory=dict)

    @property
    def combo(self) -> bool:
        """Whether the event is a combo's."""
        return self.ticker.startswith(COMBOS)

    @property
    def collateral(self) -> str:
        """How collateral is returned."""
        return "MECNET" if self.exclusive else ""

    def json(self) -> Json:
        """Return the event as the API shows it, without markets."""
        found: Json = {
            "event_ticker": self.ticker,
            "series_ticker": self.series.ticker,
            "title": self.title,
            "sub_title": self.sub_title,
            "collateral_return_type": self.collateral,
            "mutually_exclusive": self.exclusive,
            "category": self.series.category,
            "settlement_sources": [{"name": "Simulated", "url": "https://example.com"}],
            "exchange_index": self.series.shard,
            "last_updated_ts": rfc3339(self.updated_ms or self.created_ms),
            "product_metadata": None,
        }
        if self.strike_ms is not None:
            found["strike_date"] = rfc3339(self.strike_ms)
        else:
            found["strike_period"] = self.sub_title
        kind, multiplier = self.fee_override
        if kind is not None:
            found |= {"fee_type_override": kind, "fee_multiplier_override": multiplier}
        return found | self.whole


@dataclass(slots=True, eq=False)
class KalshiMarket:
    """A market: its description, its book for both sides, and what has been traded.

    The book's bids are YES bids, its offers the NO bids at one minus their price.
    """

    ticker: str
    event: KalshiEvent
    title: str
    yes_sub_title: str
    created_ms: int
    open_ms: int
    close_ms: int
    expected_ms: int
    grid: Grid = GRIDS["linear_cent"]
    kind: str = "binary"
    timer_s: int = 300
    can_close_early: bool = False
    extra: Json = field(default_factory=dict)
    status: Status = "initialized"
    result: str = ""
    settlement: int | None = None
    settled_ms: int = 0
    updated_ms: int = 0
    listed_ms: int = 0  # in REST from then on: shortly after the socket has told of it
    number: int = 0
    book: SandboxBook = field(default_factory=SandboxBook)
    last_price: int = 0
    previous_price: int = 0
    last_size: int = 0
    volume: int = 0
    dollar_volume: int = 0
    open_interest: int = 0
    top: tuple[int, int, int, int] = (0, 0, 0, 0)  # best YES bid and its size, best YES ask and its size
    walk: PriceWalk | None = None
    rank: float = 0.0
    candles: Candles = field(default_factory=Candles)

    id: str = ""  # on the socket

    def __post_init__(self) -> None:
        self.id = self.id or str(uuid.uuid5(NAMESPACE, self.ticker))

    @property
    def combo(self) -> bool:
        """Whether the market is a combo."""
        return self.ticker.startswith(COMBOS)

    @property
    def shard(self) -> int:
        """The shard of the exchange that holds the market."""
        return self.event.series.shard

    def best_quote(self) -> tuple[int, int, int, int]:
        """Return best YES bid and its size, best YES ask and its size."""
        bids, bid_sizes = self.book.side(BUY)
        asks, ask_sizes = self.book.side(SELL)
        bid, bid_size = (bids[-1], bid_sizes[-1]) if bids else (0, 0)
        ask, ask_size = (asks[0], ask_sizes[0]) if asks else (ONE, 0)
        return bid, bid_size, ask, ask_size

    def json(self) -> Json:
        """Return the market as the API shows it."""
        bid, bid_size, ask, ask_size = self.best_quote()
        found: Json = {
            "ticker": self.ticker,
            "event_ticker": self.event.ticker,
            "market_type": self.kind,
            "title": self.title,
            "subtitle": self.yes_sub_title,
            "yes_sub_title": self.yes_sub_title,
            "no_sub_title": self.yes_sub_title,
            "created_time": rfc3339(self.created_ms),
            "updated_time": rfc3339(self.updated_ms or self.created_ms),
            "open_time": rfc3339(self.open_ms),
            "close_time": rfc3339(self.close_ms),
            "expected_expiration_time": rfc3339(self.expected_ms),
            "latest_expiration_time": rfc3339(max(self.close_ms, self.expected_ms) + 604_800_000),
            "status": self.status,
            "result": self.result,
            "expiration_value": self.result,
            "rules_primary": f"Simulated market. {self.title}",
            "rules_secondary": "",
            "can_close_early": self.can_close_early,
            "settlement_timer_seconds": self.timer_s,
            "settlement_bounds_type": "default",
            "price_level_structure": self.grid.structure,
            "price_ranges": self.grid.ranges,
            "notional_value_dollars": dollars(ONE),
            "yes_bid_dollars": dollars(bid),
            "yes_bid_size_fp": contracts(bid_size),
            "yes_ask_dollars": dollars(ask),
            "yes_ask_size_fp": contracts(ask_size),
            "no_bid_dollars": dollars(ONE - ask),
            "no_ask_dollars": dollars(ONE - bid),
            "last_price_dollars": dollars(self.last_price),
            "previous_yes_bid_dollars": dollars(bid),
            "previous_yes_ask_dollars": dollars(ask),
            "previous_price_dollars": dollars(self.previous_price),
            "volume_fp": contracts(self.volume),
            "volume_24h_fp": contracts(self.volume // 20 // 10_000 * 10_000),
            "open_interest_fp": contracts(self.open_interest),
            "exchange_index": self.shard,
            **self.extra,
        }
        if self.settlement is not None:
            found["settlement_value_dollars"] = dollars(self.settlement)
        if self.settled_ms:
            found["settlement_ts"] = rfc3339(self.settled_ms)
        return found
