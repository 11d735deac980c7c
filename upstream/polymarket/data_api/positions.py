"""Wallet rows of the Data API: open positions, closed positions and activity."""

from datetime import datetime

import msgspec

from upstream.polymarket.fields import SIDES, outcome_place, transaction
from upstream.transport.numbers import Number, micro, of_seconds, price


class DataApiPosition(msgspec.Struct, rename="camel"):
    """An open position, as sent. Amounts are the exchange's numbers: money may be negative here."""

    proxy_wallet: str
    asset: str
    condition_id: str
    size: Number
    avg_price: Number
    initial_value: Number | None = None
    current_value: Number | None = None
    cash_pnl: Number | None = None
    percent_pnl: Number | None = None
    total_bought: Number | None = None
    realized_pnl: Number | None = None
    percent_realized_pnl: Number | None = None
    cur_price: Number | None = None
    redeemable: bool | None = None
    mergeable: bool | None = None
    title: str | None = None
    slug: str | None = None
    event_slug: str | None = None
    outcome: str | None = None
    outcome_index: int | None = None
    opposite_outcome: str | None = None
    opposite_asset: str | None = None
    end_date: str | None = None
    negative_risk: bool | None = None


class DataApiClosedPosition(msgspec.Struct, rename="camel"):
    """A closed position, as sent."""

    proxy_wallet: str
    asset: str
    condition_id: str
    avg_price: Number
    total_bought: Number
    realized_pnl: Number
    cur_price: Number | None = None
    timestamp: int | float | None = None
    title: str | None = None
    slug: str | None = None
    event_slug: str | None = None
    outcome: str | None = None
    outcome_index: int | None = None
    opposite_outcome: str | None = None
    opposite_asset: str | None = None
    end_date: str | None = None


class Holder(msgspec.Struct, rename="camel"):
    """A wallet and its holding of an outcome, as sent."""

    proxy_wallet: str
    amount: Number
    asset: str
    outcome_index: int | None = None


class _Holders(msgspec.Struct):
    """{"token":"7132…","holders":[{"proxyWallet":"0x…","amount":12.5,"asset":"7132…","outcomeIndex":0,…}]}"""

    holders: list[Holder]


class DataApiActivity(msgspec.Struct, frozen=True):
    """One action of a wallet: TRADE, SPLIT, MERGE, REDEEM, REWARD, CONVERSION, …"""

    wallet: str
    type: str
    ts: datetime
    market: str
    """Condition id; "" when missing."""
    token_id: str
    """"" when missing."""
    side: int | None
    price: int | None
    size: int
    usd: int | None
    tx_hash: str | None
    outcome: int | None


class _SentActivity(msgspec.Struct, rename="camel"):
    proxy_wallet: str
    type: str
    timestamp: int | float | str
    condition_id: str = ""
    asset: str = ""
    side: str = ""
    price: Number | None = None
    size: Number | None = None
    usdc_size: Number | None = None
    transaction_hash: str | None = None
    outcome_index: int | None = None


_position = msgspec.json.Decoder(DataApiPosition)
_closed = msgspec.json.Decoder(DataApiClosedPosition)
_activity = msgspec.json.Decoder(_SentActivity)
_holders = msgspec.json.Decoder(_Holders)


def read_position(piece: msgspec.Raw | bytes) -> DataApiPosition:
    """Parse one row of /positions."""
    return _position.decode(piece)


def read_closed_position(piece: msgspec.Raw | bytes) -> DataApiClosedPosition:
    """Parse one row of /closed-positions."""
    return _closed.decode(piece)


def read_holders(piece: msgspec.Raw | bytes) -> list[Holder]:
    """Parse one row of /holders: the holders of one outcome."""
    return _holders.decode(piece).holders


def read_activity(piece: msgspec.Raw | bytes) -> DataApiActivity:
    """Parse one row of /activity; side and price are None if it is not a trade."""
    sent = _activity.decode(piece)
    is_trade = sent.side in SIDES
    return DataApiActivity(
        wallet=sent.proxy_wallet.lower(),
        type=sent.type,
        ts=of_seconds(sent.timestamp),
        market=sent.condition_id.lower(),
        token_id=sent.asset,
        side=SIDES[sent.side] if is_trade else None,
        price=price(sent.price) if is_trade and sent.price is not None else None,
        size=micro(sent.size or 0),
        usd=None if sent.usdc_size is None else micro(sent.usdc_size),
        tx_hash=transaction(sent.transaction_hash),
        outcome=outcome_place(sent.outcome_index),
    )
