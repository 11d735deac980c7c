"""Stream messages of written rows: trades, prices and books as the API serves them."""

from collections.abc import Iterable
from typing import Literal

import msgspec

from orchestration.ingest.storage.rows import Change, LiveBook, LivePrice, TradeRow, mid
from orchestration.stream import outcome_message
from sql.database import MICRO
from sql.stream_blocks import MARKET, TOKEN, StreamMessage


class BookLevel(msgspec.Struct, gc=False):
    """A book level; in a delta, size 0 removes it."""

    price: float
    size: float


class TradeData(msgspec.Struct, gc=False):
    """The trade record."""

    id: str  # in decimal, as JSON numbers lose digits beyond 2^53
    market_id: str
    token_id: str
    outcome: int
    price: float
    size: float
    value_usd: float
    side: Literal["BUY", "SELL"]
    tx_hash: str | None
    ts: int


class PriceData(msgspec.Struct, gc=False):
    """The price record."""

    market_id: str
    outcome: int
    token_id: str
    mid: float | None
    bid: float | None
    ask: float | None
    spread: float | None
    bid_size: float | None
    ask_size: float | None
    last: float | None
    last_ts: int | None
    volume_24h_usd: float | None
    ts: int
    age_ms: int


class BookData(msgspec.Struct, gc=False):
    """The order book record: a whole book, or changed levels."""

    market_id: str
    outcome: int
    token_id: str
    kind: Literal["snapshot", "delta"]
    bids: list[BookLevel]
    asks: list[BookLevel]
    best_bid: float | None
    best_ask: float | None
    mid: float | None
    spread: float | None
    depth_usd: float
    tick_size: float | None
    hash: str | None
    seq: str  # in decimal, like ids
    ts: int


def trade(row: TradeRow) -> StreamMessage:
    """Return the message of a trade."""
    token = row.token
    return outcome_message(
        "trade",
        row.ts_ms,
        token.market_key,
        token.outcome,
        TradeData(
            str(row.trade_id),
            MARKET,
            TOKEN,
            token.outcome,
            row.price / MICRO,
            row.size / MICRO,
            row.value_usd / MICRO,
            "BUY" if row.side > 0 else "SELL",
            None if row.tx_hash is None else "0x" + row.tx_hash.hex(),
            row.ts_ms,
        ),
    )


def price(row: LivePrice, now_ms: int) -> StreamMessage:
    """Return the message of a price."""
    token = row.token
    return outcome_message(
        "price",
        row.ts_ms,
        token.market_key,
        token.outcome,
        PriceData(
            MARKET,
            token.outcome,
            TOKEN,
            _number(mid(row.bid, row.ask)),
            _number(row.bid),
            _number(row.ask),
            _spread(row.bid, row.ask),
            _number(row.bid_size),
            _number(row.ask_size),
            _number(row.last),
            row.last_ms,
            _number(row.volume_24h_usd),
            row.ts_ms,
            max(0, now_ms - row.ts_ms),
        ),
    )


def snapshot(row: LiveBook) -> StreamMessage:
    """Return the message of a whole book."""
    bids = [BookLevel(at / MICRO, size / MICRO) for at, size in zip(row.bid_prices, row.bid_sizes, strict=True)]
    asks = [BookLevel(at / MICRO, size / MICRO) for at, size in zip(row.ask_prices, row.ask_sizes, strict=True)]
    bid = row.bid_prices[0] if row.bid_prices else None
    ask = row.ask_prices[0] if row.ask_prices else None
    return _book(row, "snapshot", bids, asks, bid, ask)


def deltas(rows: Iterable[Change]) -> list[StreamMessage]:
    """Return messages of changed levels: one per token, with the final totals."""
    last: dict[str, Change] = {}
    levels: dict[str, dict[int, int]] = {}
    for row in rows:
        token_id = row.token.token_id
        last[token_id] = row
        levels.setdefault(token_id, {})[row.side * row.price] = row.size
    messages = []
    for token_id, row in last.items():
        totals = levels[token_id]
        bids = [BookLevel(at / MICRO, totals[at] / MICRO) for at in sorted(totals, reverse=True) if at > 0]
        asks = [BookLevel(-at / MICRO, totals[at] / MICRO) for at in sorted(totals, reverse=True) if at < 0]
        messages.append(_book(row, "delta", bids, asks, row.bid, row.ask))
    return messages


def _book(  # noqa: PLR0917 (private to this module)
    row: LiveBook | Change,
    kind: Literal["snapshot", "delta"],
    bids: list[BookLevel],
    asks: list[BookLevel],
    bid: int | None,
    ask: int | None,
) -> StreamMessage:
    token = row.token
    return outcome_message(
        "orderbook",
        row.ts_ms,
        token.market_key,
        token.outcome,
        BookData(
            MARKET,
            token.outcome,
            TOKEN,
            kind,
            bids,
            asks,
            _number(bid),
            _number(ask),
            _number(mid(bid, ask)),
            _spread(bid, ask),
            row.depth // MICRO / MICRO,
            _number(row.tick_size),
            row.hash or None,
            str(row.seq),
            row.ts_ms,
        ),
    )


def _number(micro: int | None) -> float | None:
    return None if micro is None else micro / MICRO


def _spread(bid: int | None, ask: int | None) -> float | None:
    return None if bid is None or ask is None else (ask - bid) / MICRO
