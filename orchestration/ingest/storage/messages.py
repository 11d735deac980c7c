"""Stream messages of written rows: trades, prices and books as the API serves them."""

from collections.abc import Iterable
from typing import Literal

import msgspec

from orchestration.ingest.storage.rows import Change, LiveBook, LivePrice, TradeRow
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
    token, ts_ms, bid, ask = row.token, row.ts_ms, row.bid, row.ask
    mid, spread = _mid_and_spread(bid, ask)
    data = PriceData(
        MARKET,
        token.outcome,
        TOKEN,
        mid,
        None if bid is None else bid / MICRO,
        None if ask is None else ask / MICRO,
        spread,
        _number(row.bid_size),
        _number(row.ask_size),
        _number(row.last),
        row.last_ms,
        _number(row.volume_24h_usd),
        ts_ms,
        max(0, now_ms - ts_ms),
    )
    return outcome_message("price", ts_ms, token.market_key, token.outcome, data)


def snapshot(row: LiveBook) -> StreamMessage:
    """Return the message of a whole book."""
    bids = [BookLevel(at / MICRO, size / MICRO) for at, size in zip(row.bid_prices, row.bid_sizes, strict=True)]
    asks = [BookLevel(at / MICRO, size / MICRO) for at, size in zip(row.ask_prices, row.ask_sizes, strict=True)]
    bid = row.bid_prices[0] if row.bid_prices else None
    ask = row.ask_prices[0] if row.ask_prices else None
    return _book(row, "snapshot", bids, asks, bid, ask)


def deltas(rows: Iterable[Change]) -> list[StreamMessage]:
    """Return messages of changed levels: one per token, with the final totals."""
    groups: dict[str, list[Change]] = {}
    for row in rows:
        token_id = row.token.token_id
        group = groups.get(token_id)
        if group is None:
            groups[token_id] = [row]
        else:
            group.append(row)
    return [_delta(group) for group in groups.values()]


def _delta(rows: list[Change]) -> StreamMessage:
    """Return the message of one token's changes."""
    last = rows[-1]
    bids: list[BookLevel] = []
    asks: list[BookLevel] = []
    if len(rows) == 1 and last.price:  # as most are
        (bids if last.side > 0 else asks).append(BookLevel(last.price / MICRO, last.size / MICRO))
    else:
        totals = {row.side * row.price: row.size for row in rows}
        for at in sorted(totals, reverse=True):
            if at > 0:
                bids.append(BookLevel(at / MICRO, totals[at] / MICRO))
            elif at < 0:
                asks.append(BookLevel(-at / MICRO, totals[at] / MICRO))
    return _book(last, "delta", bids, asks, last.bid, last.ask)


def _book(  # noqa: PLR0917 (private to this module)
    row: LiveBook | Change,
    kind: Literal["snapshot", "delta"],
    bids: list[BookLevel],
    asks: list[BookLevel],
    bid: int | None,
    ask: int | None,
) -> StreamMessage:
    token, ts_ms, tick_size = row.token, row.ts_ms, row.tick_size
    outcome = token.outcome
    mid, spread = _mid_and_spread(bid, ask)
    data = BookData(
        MARKET,
        outcome,
        TOKEN,
        kind,
        bids,
        asks,
        None if bid is None else bid / MICRO,
        None if ask is None else ask / MICRO,
        mid,
        spread,
        row.depth // MICRO / MICRO,
        None if tick_size is None else tick_size / MICRO,
        row.hash or None,
        str(row.seq),
        ts_ms,
    )
    return outcome_message("orderbook", ts_ms, token.market_key, outcome, data)


def _number(micro: int | None) -> float | None:
    return None if micro is None else micro / MICRO


def _mid_and_spread(bid: int | None, ask: int | None) -> tuple[float | None, float | None]:
    return (None, None) if bid is None or ask is None else ((bid + ask) // 2 / MICRO, (ask - bid) / MICRO)
