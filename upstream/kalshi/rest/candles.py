"""Candlesticks, in the two formats of live and of historical data."""

from __future__ import annotations

from datetime import datetime, timedelta

import msgspec

from upstream.kalshi.fields import SIZES, date, optional_price, optional_size
from upstream.transport.numbers import Number


class KalshiCandle(msgspec.Struct, frozen=True):
    """Prices of YES within one period in which it was traded, in micro-units."""

    ticker: str
    start: datetime
    period: timedelta
    open: int
    high: int
    low: int
    close: int
    mean: int | None
    volume: int
    """Micro-contracts."""
    open_interest: int | None
    """Micro-contracts."""


class _Prices(msgspec.Struct):
    open_dollars: Number | None = None
    high_dollars: Number | None = None
    low_dollars: Number | None = None
    close_dollars: Number | None = None
    mean_dollars: Number | None = None
    open: Number | None = None
    high: Number | None = None
    low: Number | None = None
    close: Number | None = None
    mean: Number | None = None


class _Candle(msgspec.Struct):
    """{"end_period_ts":1776109260,"price":{"open_dollars":"0.5600","low_dollars":…,"high_dollars":…,"close_dollars":…,
    "mean_dollars":…,"previous_dollars":"0.5600"},"yes_bid":{…},"yes_ask":{…},"volume_fp":"0.00","open_interest_fp":"10869.00"}

    Historical ones name their fields open, low, high, close, mean, previous, volume and open_interest. A period without
    trades may have `"price":{}`, nulls or the last prices: only its volume tells.
    """  # noqa: D205

    end_period_ts: int
    price: _Prices | None = None
    volume_fp: Number | None = None
    volume: Number | None = None
    open_interest_fp: Number | None = None
    open_interest: Number | None = None


_candle = msgspec.json.Decoder(_Candle)


def read_candle(piece: msgspec.Raw | bytes, ticker: str, period: timedelta) -> KalshiCandle | None:
    """Parse one candle; None for a period without trades. Raises `upstream.transport.errors.FAULTS`."""
    sent = _candle.decode(piece)
    volume = sent.volume_fp if sent.volume_fp is not None else sent.volume
    if volume is None:
        raise ValueError("a candle without a volume")
    if not SIZES[volume]:
        return None
    prices = sent.price or _Prices()
    found = [
        optional_price(new if new is not None else old)
        for new, old in (
            (prices.open_dollars, prices.open),
            (prices.high_dollars, prices.high),
            (prices.low_dollars, prices.low),
            (prices.close_dollars, prices.close),
        )
    ]
    opened, high, low, closed = found
    if opened is None or high is None or low is None or closed is None:
        raise ValueError("trades without prices")
    if not low <= min(opened, closed) <= max(opened, closed) <= high:
        raise ValueError("open or close are not between low and high")
    return KalshiCandle(
        ticker,
        date(sent.end_period_ts) - period,
        period,
        opened,
        high,
        low,
        closed,
        optional_price(prices.mean_dollars if prices.mean_dollars is not None else prices.mean),
        SIZES[volume],
        optional_size(sent.open_interest_fp if sent.open_interest_fp is not None else sent.open_interest),
    )
