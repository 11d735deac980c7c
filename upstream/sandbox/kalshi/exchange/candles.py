"""Candles of a market: prices traded and quoted, minute by minute."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec

from upstream.sandbox.kalshi.formats import contracts, dollars
from upstream.transport.micro import ONE

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

MAX_BARS = 3 * 1440
Ohlc: TypeAlias = list[int]  # open, high, low, close; empty before the first


class Bar(msgspec.Struct):
    """What happened in the period that begins with minute `start` (since 1970)."""

    start: int
    price: Ohlc
    bid: Ohlc
    ask: Ohlc
    previous: int
    volume: int = 0
    value: int = 0  # contracts times price, in micro-units of both
    open_interest: int = 0


class Candles:
    """The newest minutes of a market in which something happened."""

    __slots__ = ("bars",)

    def __init__(self) -> None:
        self.bars: deque[Bar] = deque(maxlen=MAX_BARS)

    def quoted(self, ts_ms: int, bid: int, ask: int) -> None:
        """Record new best prices."""
        bar = self._bar(ts_ms)
        _widen(bar.bid, bid)
        _widen(bar.ask, ask)

    def traded(self, ts_ms: int, price: int, size: int, open_interest: int) -> None:
        """Record a trade."""
        bar = self._bar(ts_ms)
        _widen(bar.price, price)
        bar.volume += size
        bar.value += price * size
        bar.open_interest = open_interest

    def _bar(self, ts_ms: int) -> Bar:
        minute = ts_ms // 60_000
        last = self.bars[-1] if self.bars else None
        if last is not None and last.start >= minute:
            return last
        bar = Bar(
            minute,
            [],
            [] if last is None else last.bid[3:] * 4,
            [] if last is None else last.ask[3:] * 4,
            0 if last is None else last.price[3] if last.price else last.previous,
            open_interest=0 if last is None else last.open_interest,
        )
        self.bars.append(bar)
        return bar

    def periods(self, minutes: int, start_s: int, end_s: int, now_ms: int, *, before: bool) -> Iterator[Bar]:
        """Yield the closed periods that end within a range; with `before` also the one that ended last before it."""
        earlier: Bar | None = None
        for bar in _merged(self.bars, minutes):
            end = (bar.start + minutes) * 60
            if end < start_s:
                earlier = bar
                continue
            if earlier is not None and before:
                yield earlier
            earlier = None
            if end > min(end_s, now_ms // 1000):
                return
            yield bar
        if earlier is not None and before:
            yield earlier


def _widen(ohlc: Ohlc, price: int) -> None:
    if not ohlc:
        ohlc += [price] * 4
        return
    ohlc[1], ohlc[2], ohlc[3] = max(ohlc[1], price), min(ohlc[2], price), price


def _merged(bars: Sequence[Bar], minutes: int) -> Iterator[Bar]:
    """Yield bars of so many minutes."""
    whole: Bar | None = None
    for bar in bars:
        start = bar.start // minutes * minutes
        if whole is None or whole.start != start:
            if whole is not None:
                yield whole
            whole = Bar(start, [], [], [], bar.previous)
        for into, one in ((whole.price, bar.price), (whole.bid, bar.bid), (whole.ask, bar.ask)):
            for price in one:
                _widen(into, price)
        whole.volume += bar.volume
        whole.value += bar.value
        whole.open_interest = bar.open_interest
    if whole is not None:
        yield whole


def candle(bar: Bar, minutes: int, suffix: str = "_dollars", counts: str = "_fp") -> dict[str, Any]:
    """Return a bar as the API shows it: no bid is 0, no ask is 1; historical ones have no suffixes."""

    def named(ohlc: Ohlc) -> dict[str, str]:
        return {
            f"{name}{suffix}": dollars(price)
            for name, price in zip(("open", "high", "low", "close"), ohlc, strict=False)
        }

    price = named(bar.price)
    if bar.volume:
        price[f"mean{suffix}"] = dollars(round(bar.value / bar.volume / 100) * 100)
    if bar.previous:
        price[f"previous{suffix}"] = dollars(bar.previous)
    return {
        "end_period_ts": (bar.start + minutes) * 60,
        "price": price,
        "yes_bid": named(bar.bid or [0] * 4),
        "yes_ask": named(bar.ask or [ONE] * 4),
        f"volume{counts}": contracts(bar.volume),
        f"open_interest{counts}": contracts(bar.open_interest),
    }
