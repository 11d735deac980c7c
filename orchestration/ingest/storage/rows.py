"""Rows that the feed writes, one struct per table, and their batch. Amounts are micro-units, timestamps Unix ms."""

from collections.abc import Callable

import msgspec

from orchestration.ingest.storage.ids import change_id
from sql.database import MICRO

KINDS = ("books", "trades")
"""Kinds of data, of which something may be missing."""


class Token(msgspec.Struct, frozen=True, gc=False):
    """An outcome of a market: the exchange's ids and ours."""

    token_id: str
    market_id: str
    market_key: int
    outcome: int


class TradeRow(msgspec.Struct, frozen=True, gc=False):
    """A row of `trades`."""

    token: Token
    ts_ms: int
    trade_id: int
    seq: int
    side: int
    price: int
    size: int
    value_usd: int
    tx_hash: bytes | None


class Change(msgspec.Struct, frozen=True, gc=False):
    """A level change in `book_events`, and the book after the message that contained it."""

    token: Token
    ts_ms: int
    nth: int  # how often the same change came before at this instant
    seq: int
    side: int
    price: int
    size: int
    hash: str
    published: bool  # only changes of a verified book are streamed; a broken one gets a snapshot later
    bid: int | None
    ask: int | None
    depth: int
    tick_size: int | None

    @property
    def event_id(self) -> int:
        """Return the row's id: computed when it is written, as a standby writes few of its rows."""
        return change_id(self.token.token_id, self.ts_ms, self.hash, self.side, self.price, self.size, self.nth)


class LiveBook(msgspec.Struct, frozen=True, gc=False):
    """A row of `live_books`; best first."""

    token: Token
    bid_prices: list[int]
    bid_sizes: list[int]
    ask_prices: list[int]
    ask_sizes: list[int]
    depth: int
    tick_size: int | None
    hash: str
    seq: int
    ts_ms: int
    anchored_ms: int  # of the snapshot that it was last built from
    verified: bool
    needs_snapshot: bool  # streamed changes do not lead to it: subscribers need the whole book


class Snapshot(msgspec.Struct, frozen=True, gc=False):
    """A snapshot in `book_events`."""

    token: Token
    ts_ms: int
    event_id: int
    seq: int
    bids: list[tuple[int, int]]
    asks: list[tuple[int, int]]
    hash: str


class Tick(msgspec.Struct, frozen=True, gc=False):
    """A row of `tick_sizes`."""

    token: Token
    ts_ms: int
    before: int | None
    tick_size: int


class Quote(msgspec.Struct, frozen=True, gc=False):
    """A row of `quotes`."""

    token: Token
    ts_ms: int
    bid: int | None
    ask: int | None
    bid_size: int | None
    ask_size: int | None


class LivePrice(msgspec.Struct, frozen=True, gc=False):
    """A row of `live_prices`."""

    token: Token
    bid: int | None
    ask: int | None
    bid_size: int | None
    ask_size: int | None
    last: int | None
    last_ms: int | None
    ts_ms: int
    volume_24h_usd: int | None


class Refusal(msgspec.Struct, frozen=True, gc=False):
    """A row of `quarantine`."""

    source: str
    reason: str
    payload: str


# Bytes in memory, as measured: structs with their numbers and hashes; for a batch, its empty lists.
BATCH_BYTES, TRADE_BYTES, CHANGE_BYTES, TICK_BYTES = 1_000, 360, 450, 200
SNAPSHOT_BYTES, LEVEL_BYTES = 400, 80
QUOTE_BYTES, PRICE_BYTES, REFUSAL_BYTES = 300, 300, 300


class WriteBatch(msgspec.Struct):
    """Rows of one tick. Live prices are the state at its end, one per token."""

    trades: list[TradeRow] = []
    changes: list[Change] = []
    snapshots: list[Snapshot] = []
    ticks: list[Tick] = []
    quotes: dict[tuple[str, int], Quote] = {}
    prices: dict[str, LivePrice] = {}
    refusals: list[Refusal] = []
    received_ms: int = 0  # our clock when the batch was cut: what was received before is in this or an earlier one
    exchange_ms: int = 0  # the exchange's time then: what it sent before is in this or an earlier one
    newest_ms: int = 0  # newest exchange timestamp in it
    sent_ms: list[int] = []  # exchange timestamps that its messages lie between, where its rows do not tell

    def __len__(self) -> int:
        return len(self.trades) + len(self.changes) + len(self.snapshots) + len(self.ticks) + len(self.refusals)

    @property
    def size(self) -> int:
        """Approximate bytes in memory."""
        return (
            BATCH_BYTES
            + TRADE_BYTES * len(self.trades)
            + CHANGE_BYTES * len(self.changes)
            + TICK_BYTES * len(self.ticks)
            + QUOTE_BYTES * len(self.quotes)
            + PRICE_BYTES * len(self.prices)
            + sum(SNAPSHOT_BYTES + LEVEL_BYTES * (len(row.bids) + len(row.asks)) for row in self.snapshots)
            + sum(REFUSAL_BYTES + len(row.payload) for row in self.refusals)
        )

    def add(self, later: "WriteBatch") -> None:
        """Append a later batch."""
        self.trades += later.trades
        self.changes += later.changes
        self.snapshots += later.snapshots
        self.ticks += later.ticks
        self.quotes.update(later.quotes)
        self.prices.update(later.prices)
        self.refusals += later.refusals
        self.received_ms = max(self.received_ms, later.received_ms)
        self.exchange_ms = later.exchange_ms or self.exchange_ms
        self.newest_ms = max(self.newest_ms, later.newest_ms)

    def withhold_progress(self) -> None:
        """Tell nothing of progress: later batches have rows from before this one."""
        if self.exchange_ms:
            self.sent_ms.append(self.exchange_ms)
            self.exchange_ms = 0

    def halves(self) -> "tuple[WriteBatch, WriteBatch]":
        """Split two rows or more into halves that differ by a row at most, without live prices."""
        first, second = WriteBatch(), WriteBatch(quotes=self.quotes)
        for name in ("trades", "changes", "snapshots", "ticks", "refusals"):
            rows = getattr(self, name)
            middle = (len(rows) + (len(first) <= len(second))) // 2  # an odd row goes to the smaller half
            setattr(first, name, rows[:middle])
            setattr(second, name, rows[middle:])
        return first, second

    def only(self, wanted: Callable[[Token], bool], from_ms: int, to_ms: int) -> "WriteBatch":
        """Return the rows of some tokens within a span, without live state."""

        def within(row: TradeRow | Change | Snapshot | Tick | Quote) -> bool:
            return from_ms <= row.ts_ms <= to_ms and wanted(row.token)

        return WriteBatch(
            trades=[row for row in self.trades if within(row)],
            changes=[row for row in self.changes if within(row)],
            snapshots=[row for row in self.snapshots if within(row)],
            ticks=[row for row in self.ticks if within(row)],
            quotes={key: row for key, row in self.quotes.items() if within(row)},
            received_ms=self.received_ms,
            exchange_ms=self.exchange_ms,
            newest_ms=self.newest_ms,
        )


def value_usd(price: int, size: int) -> int:
    """Return price times size in micro-units, rounded half even."""
    whole, rest = divmod(price * size, MICRO)
    return whole + (rest > 500_000 or (rest == 500_000 and whole & 1))


def mid(bid: int | None, ask: int | None) -> int | None:
    """Return the mid price; None while a side is empty."""
    return None if bid is None or ask is None else (bid + ask) // 2
