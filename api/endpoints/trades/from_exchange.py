"""Trades requested live from the exchange."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

import msgspec

from api.schemas import records
from sql.database import MICRO
from upstream.polymarket.identity import ASSIGNED, trade_id

if TYPE_CHECKING:
    from api.data.lookup import MarketRef
    from api.data.proxy import ExchangeProxy
    from api.endpoints.trades.requests import TradeParameters
    from upstream.polymarket.data_api.client import DataApiTrade


def traded(exchange: ExchangeProxy, market: MarketRef, outcome: int | None, given: TradeParameters) -> bytes:
    """Return trades of an outcome (None: all): those of all takers, or all trades of one wallet."""
    places = {token: place for place, token in enumerate(market.token_ids) if outcome in {None, place}}
    wallet = given.wallet.lower() if given.wallet else None

    def ask() -> bytes:
        walk = exchange.data_api.trades(
            [market.market_id], given.from_, given.to, user=wallet, taker_only=wallet is None
        )
        found = (
            _trade(each, places[each.token_id])
            for each in exchange.until_deadline(walk)
            if each.token_id in places and (given.to is None or each.ts < given.to)
        )
        return msgspec.json.encode(list(islice(found, given.limit)))

    return exchange.fetch(("trades", market.market_id, outcome, given), "data_api", ask)


def _trade(sent: DataApiTrade, outcome: int) -> records.Trade:
    ts_ms = int(sent.ts.timestamp() * 1000)
    return records.Trade(
        id=str(trade_id(sent.token_id, sent.tx_hash, ts_ms, sent.side, sent.price, sent.size, sent.n)),
        market_id=sent.market,
        token_id=sent.token_id,
        outcome=outcome,
        price=sent.price / MICRO,
        size=sent.size / MICRO,
        value_usd=round(sent.price * sent.size / MICRO) / MICRO,
        side="BUY" if sent.side > 0 else "SELL",
        tx_hash=None if sent.tx_hash is None or sent.tx_hash.startswith(ASSIGNED) else sent.tx_hash,
        ts=ts_ms,
    )
