"""Figures that Gamma shows of a market: best prices, the last one, and what rests in its book."""

from __future__ import annotations

from typing import TYPE_CHECKING

from upstream.sandbox.exchange.catalogue import Gamma, listed
from upstream.transport.micro import ONE, text

if TYPE_CHECKING:
    from upstream.sandbox.exchange.catalogue import SandboxMarket


def figures(market: SandboxMarket) -> Gamma:
    """Return the figures of a market with one book."""
    book = market.books[0][0]
    bids, asks = book.levels(0)
    rests = sum(price * size for price, size in bids) + sum((ONE - price) * size for price, size in asks)
    liquidity = rests / ONE / ONE
    middle = (book.best_bid + book.best_ask) // 2
    return {
        "bestBid": book.best_bid / ONE,
        "bestAsk": book.best_ask / ONE,
        "spread": (book.best_ask - book.best_bid) / ONE,
        "lastTradePrice": (market.last_price[0] or 0) / ONE,
        "outcomePrices": listed((text(middle), text(ONE - middle))),
        "liquidity": f"{liquidity:.5f}",
        "liquidityNum": round(liquidity, 5),
    }
