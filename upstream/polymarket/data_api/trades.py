"""Trades of the Data API, in either of its two formats (v1 camelCase, v2 snake_case)."""

from collections import Counter, OrderedDict
from collections.abc import Iterable, Iterator
from datetime import datetime

import msgspec

from upstream.polymarket.fields import SIDES, named, outcome_place, transaction
from upstream.transport.numbers import Number, micro, of_seconds, price

MAX_REMEMBERED_TRANSACTIONS = 10_000
"""Transactions remembered for numbering repeats: one transaction's rows are close together in any listing."""


class DataApiTrade(msgspec.Struct, frozen=True):
    """A trade, from its taker's side (or, when makers were requested too, from each side)."""

    token_id: str
    market: str
    """Condition id."""
    ts: datetime
    """To the second."""
    side: int
    """1 BUY, -1 SELL."""
    price: int
    size: int
    tx_hash: str | None
    """0x and 64 lower-case hex digits."""
    wallet: str
    """Lower case."""
    outcome: int | None = None
    """The outcome's index; None when the exchange does not know it."""
    outcome_name: str | None = None
    slug: str | None = None
    event_slug: str | None = None
    title: str | None = None
    n: int = 0
    """Number among trades of one transaction that are otherwise identical; 0 for the first."""


class _V1(msgspec.Struct, rename="camel"):
    """{"proxyWallet":"0xac48…","side":"BUY","asset":"3618…","conditionId":"0xace3…","size":30974.624038,"price":0.968534758,
    "timestamp":1784327295,"title":"Will …?","slug":"…","eventSlug":"…","outcome":"No","outcomeIndex":1,"transactionHash":"0x08ca…"}
    """  # noqa: D205, E501

    asset: str
    condition_id: str
    side: str
    size: Number
    price: Number
    timestamp: int | float | str
    proxy_wallet: str = ""
    transaction_hash: str | None = None
    title: str | None = None
    slug: str | None = None
    event_slug: str | None = None
    outcome: str | None = None
    outcome_index: int | None = None


class _V2(msgspec.Struct):
    """{"proxy_wallet":"0xac48…","side":"BUY","token_id":"3618…","condition_id":"0xace3…","size":30974.624038,"price":0.968534758,
    "timestamp":1784327295,"transaction_hash":"0x08ca…","slug":"…","event_slug":"…","outcome":"No","outcome_index":1}
    """  # noqa: D205

    token_id: str
    condition_id: str
    side: str
    size: Number
    price: Number
    timestamp: int | float | str
    proxy_wallet: str = ""
    transaction_hash: str | None = None
    title: str | None = None
    slug: str | None = None
    event_slug: str | None = None
    outcome: str | None = None
    outcome_index: int | None = None


_v1 = msgspec.json.Decoder(_V1)
_v2 = msgspec.json.Decoder(_V2)


def read_v1(piece: msgspec.Raw | bytes) -> DataApiTrade:
    """Parse one row of /trades; raises `upstream.transport.errors.FAULTS`."""
    sent = _v1.decode(piece)
    return _trade(sent, sent.asset)


def read_v2(piece: msgspec.Raw | bytes) -> DataApiTrade:
    """Parse one row of /v2/trades."""
    sent = _v2.decode(piece)
    return _trade(sent, sent.token_id)


def _trade(sent: _V1 | _V2, token_id: str) -> DataApiTrade:
    return DataApiTrade(
        token_id=named(token_id),
        market=sent.condition_id.lower(),
        ts=of_seconds(sent.timestamp),
        side=SIDES[sent.side],
        price=price(sent.price),
        size=micro(sent.size),
        tx_hash=transaction(sent.transaction_hash),
        wallet=sent.proxy_wallet.lower(),
        outcome=outcome_place(sent.outcome_index),
        outcome_name=sent.outcome or None,
        slug=sent.slug or None,
        event_slug=sent.event_slug or None,
        title=sent.title or None,
    )


def number_repeats(trades: Iterable[DataApiTrade]) -> Iterator[DataApiTrade]:
    """Number exact repeats within one transaction n = 1, 2, …: different fills that nothing else distinguishes."""
    transactions: OrderedDict[object, Counter[tuple[object, ...]]] = OrderedDict()
    for trade in trades:
        transaction_id = trade.tx_hash or trade.ts
        alike = transactions.setdefault(transaction_id, Counter())
        transactions.move_to_end(transaction_id)
        if len(transactions) > MAX_REMEMBERED_TRANSACTIONS:
            transactions.popitem(last=False)
        key = (trade.token_id, trade.side, trade.price, trade.size)
        yield trade if not alike[key] else msgspec.structs.replace(trade, n=alike[key])
        alike[key] += 1
