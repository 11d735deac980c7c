"""Trades, in which REST and the socket differ by a field's name only."""

from __future__ import annotations

import msgspec

from upstream.kalshi.fields import SIZES, message_ms, past_ms, taker_side, ticker, trade_id, trade_price
from upstream.transport.numbers import Number


class KalshiTrade(msgspec.Struct, frozen=True, gc=False):
    """A trade, from its taker's side and in terms of YES: buying NO at 0.30 is selling YES at 0.70."""

    trade_id: str
    ticker: str
    ts_ms: int
    side: int
    """1 BUY, -1 SELL of YES; of NO it is the other one, at 1 less the price."""
    price: int
    size: int
    """Micro-contracts."""
    block: bool
    """Agreed upon beside the order book: no part of the last price."""


class WireTrade(msgspec.Struct, gc=False):
    """Over REST {"trade_id":"56932642-f55c-41a6-1cad-35b95c27373b","ticker":"KXPGATOUR-USO26-JDAY","count_fp":"7.77",
    "yes_price_dollars":"0.0300","no_price_dollars":"0.9700","taker_side":"yes","taker_outcome_side":"yes",
    "taker_book_side":"bid","is_block_trade":false,"created_time":"2026-06-15T15:48:42.609997Z"}

    On the socket {"trade_id":…,"market_ticker":"HIGHNY-22DEC23-B53.5",…,"ts":1669149841,"ts_ms":1669149841000}
    """  # noqa: D205

    trade_id: str
    count_fp: Number
    ticker: str = ""
    market_ticker: str = ""
    yes_price_dollars: Number | None = None
    no_price_dollars: Number | None = None
    taker_outcome_side: str | None = None
    taker_book_side: str | None = None
    taker_side: str | None = None
    is_block_trade: bool | None = None
    created_time: str | None = None
    ts_ms: int | None = None
    ts: int | float | str | None = None

    def trade(self) -> KalshiTrade:
        """Return the trade in our units; ValueError for what cannot be."""
        size = SIZES[self.count_fp]
        if not size:
            raise ValueError("a trade of nothing")
        return KalshiTrade(
            trade_id(self.trade_id),
            ticker(self.ticker or self.market_ticker),
            past_ms(self.created_time) if self.created_time else message_ms(self.ts_ms, self.ts),
            taker_side(self.taker_outcome_side, self.taker_book_side, self.taker_side),
            trade_price(self.yes_price_dollars, self.no_price_dollars),
            size,
            self.is_block_trade is True,
        )


_trade = msgspec.json.Decoder(WireTrade)


def read_trade(piece: msgspec.Raw | bytes) -> KalshiTrade:
    """Parse one row of /markets/trades; raises `upstream.transport.errors.FAULTS`."""
    return _trade.decode(piece).trade()
