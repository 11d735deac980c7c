"""What the service holds, as it holds it."""

from __future__ import annotations

from functools import partial
from typing import Any

from api.endpoints.base.endpoint import Endpoint
from api.endpoints.debug.resource import Debug, DebugBook, DebugMarkets, DebugSignals, DebugSignalsOf, DebugTrades
from api.endpoints.signals.requests import HeldSignalsOf
from sql.queries import debug, signals

_debug = partial(Endpoint, tag="Debug", key="debug", credits=0)
_of_market = partial(_debug, errors=("not_found",), missing="There is no such market")

ENDPOINTS: tuple[Endpoint, ...] = (
    _debug(
        name="debug_markets",
        path="/debug/markets",
        resource=DebugMarkets,
        query=debug.markets,
        answers=dict[str, Any],
        summary="What is tracked: the feed's runs, the stages, and the outcomes of the 500 most active markets",
    ),
    _of_market(
        name="debug_market",
        path="/debug/markets/{id}",
        resource=Debug,
        query=debug.market,
        answers=dict[str, Any],
        summary="Everything that is held of one market",
    ),
    _debug(
        name="debug_trades",
        path="/debug/trades",
        resource=DebugTrades,
        query=debug.trades,
        answers=list[dict[str, Any]],
        summary="The 100 newest trades",
    ),
    _of_market(
        name="debug_orderbook",
        path="/debug/orderbook/{id}",
        resource=DebugBook,
        query=debug.orderbook,
        answers=dict[str, Any],
        summary="Books of one market, those in doubt included, with their newest changes",
    ),
    _debug(
        name="debug_signals",
        path="/debug/signals",
        resource=DebugSignals,
        query=signals.raw,
        answers=list[dict[str, Any]],
        summary="The 1,000 newest signals",
    ),
    _of_market(
        name="debug_market_signals",
        path="/debug/signals/{id}",
        resource=DebugSignalsOf,
        query=signals.raw_of_market,
        parameters=HeldSignalsOf,
        answers=list[dict[str, Any]],
        summary="The 1,000 newest signals of one market",
    ),
)
