"""Entries of the truth log, which are also the socket's messages: each becomes a line when it is read or written."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar, TypeAlias

import msgspec

from upstream.sandbox.common.book import BUY, Side
from upstream.sandbox.kalshi.exchange.listings import KalshiMarket
from upstream.sandbox.kalshi.formats import contracts, dollars, rfc3339
from upstream.transport.micro import ONE

Body: TypeAlias = dict[str, Any]


class KalshiFact(msgspec.Struct, omit_defaults=True):
    """One line: an event of the exchange, its message as the socket sends it, and how many subscriptions got it.

    `kind` is the message's type; `status` for a change of status that the socket does not tell of; `fault` for what a
    fault did.
    """

    n: int
    kind: str
    ts_ms: int
    sent: int
    msg: Body
    size_fp: str = ""  # of a level after its change


class _Entry(msgspec.Struct, gc=False):
    """An entry with one line."""

    ts_ms: int
    n: int = 0
    sent: int = 0

    kind: ClassVar[str] = ""
    lines: ClassVar[int] = 1

    @abstractmethod
    def body(self, *, yes: bool = True) -> Body:
        """Return the message; with `yes` prices of the NO side are YES prices."""

    def facts(self) -> list[KalshiFact]:
        """Return the line."""
        return [KalshiFact(self.n, self.kind, self.ts_ms, self.sent, self.body())]


class Delta(_Entry, kw_only=True):
    """A level's change. `price` is the YES price, whichever side; `size` is what the level holds now."""

    kind: ClassVar[str] = "orderbook_delta"

    market: KalshiMarket
    side: Side
    price: int
    delta: int
    size: int

    def body(self, *, yes: bool = True) -> Body:
        """Return the message."""
        bid = self.side == BUY
        return {
            "market_ticker": self.market.ticker,
            "market_id": self.market.id,
            "price_dollars": dollars(self.price if bid or yes else ONE - self.price),
            "delta_fp": contracts(self.delta),
            "side": "yes" if bid else "no",
            "ts": rfc3339(self.ts_ms),
            "ts_ms": self.ts_ms,
        }

    def facts(self) -> list[KalshiFact]:
        """Return the line, with the level's size after the change."""
        line = KalshiFact(self.n, self.kind, self.ts_ms, self.sent, self.body(), contracts(self.size))
        return [line]


class KalshiTrade(_Entry, kw_only=True):
    """A trade with one resting level."""

    kind: ClassVar[str] = "trade"

    market: KalshiMarket
    id: str
    price: int
    size: int
    takes_yes: bool
    block: bool = False
    number: int = 0

    def body(self, *, yes: bool = True) -> Body:  # noqa: ARG002 - trades give both prices
        """Return the message."""
        return {"market_ticker": self.market.ticker, **self._common(), "ts": self.ts_ms // 1000, "ts_ms": self.ts_ms}

    def rest(self) -> Body:
        """Return the trade as the REST API shows it."""
        return {"ticker": self.market.ticker, **self._common(), "created_time": rfc3339(self.ts_ms)}

    def _common(self) -> Body:
        side = "yes" if self.takes_yes else "no"
        return {
            "trade_id": self.id,
            "yes_price_dollars": dollars(self.price),
            "no_price_dollars": dollars(ONE - self.price),
            "count_fp": contracts(self.size),
            "taker_side": side,
            "taker_outcome_side": side,
            "taker_book_side": "bid" if self.takes_yes else "ask",
            "is_block_trade": self.block,
        }


class Ticker(_Entry, kw_only=True):
    """A market's figures, after any of them has changed."""

    kind: ClassVar[str] = "ticker"

    market: KalshiMarket
    price: int
    top: tuple[int, int, int, int]
    last_size: int
    volume: int
    dollar_volume: int
    open_interest: int

    @classmethod
    def of(cls, market: KalshiMarket, ts_ms: int) -> Ticker:
        """Return a market's figures of now."""
        return cls(
            ts_ms=ts_ms,
            market=market,
            price=market.last_price,
            top=market.top,
            last_size=market.last_size,
            volume=market.volume,
            dollar_volume=market.dollar_volume,
            open_interest=market.open_interest,
        )

    def body(self, *, yes: bool = True) -> Body:  # noqa: ARG002 - of the YES side alone
        """Return the message."""
        bid, bid_size, ask, ask_size = self.top
        return {
            "market_id": self.market.id,
            "market_ticker": self.market.ticker,
            "price_dollars": dollars(self.price),
            "yes_bid_dollars": dollars(bid),
            "yes_ask_dollars": dollars(ask),
            "yes_bid_size_fp": contracts(bid_size),
            "yes_ask_size_fp": contracts(ask_size),
            "last_trade_size_fp": contracts(self.last_size),
            "volume_fp": contracts(self.volume),
            "open_interest_fp": contracts(self.open_interest),
            "dollar_volume": self.dollar_volume // ONE,
            "dollar_open_interest": self.open_interest * self.price // ONE // ONE,
            "ts": self.ts_ms // 1000,
            "ts_ms": self.ts_ms,
            "time": rfc3339(self.ts_ms // 1000 * 1000),
        }


class Notice(_Entry, kw_only=True):
    """A message of a lifecycle channel, a silent change of status, or what a fault did."""

    type: str
    msg: Body

    @property
    def kind(self) -> str:  # type: ignore[override] # the others have one kind each
        """Return the message's type."""
        return self.type

    def body(self, *, yes: bool = True) -> Body:  # noqa: ARG002 - it has no prices of a side
        """Return the message."""
        return self.msg


KalshiEntry: TypeAlias = Delta | KalshiTrade | Ticker | Notice
