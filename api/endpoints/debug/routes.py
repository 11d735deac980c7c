"""Routes of the debug endpoints."""

from __future__ import annotations

from functools import partial
from typing import Any

from api.endpoints.base.endpoint import Endpoint
from api.endpoints.debug.resource import Debug, DebugBook, DebugMarkets, DebugSignals, DebugSignalsOf, DebugTrades
from api.endpoints.signals.requests import RawSignalParameters
from sql.queries import debug, signals

_debug = partial(Endpoint, tag="Debug", key="debug", credits=0)
_of_market = partial(_debug, errors=("not_found",), missing="The market does not exist")

ENDPOINTS: tuple[Endpoint, ...] = (
    _debug(
        name="debug_markets",
        path="/debug/markets",
        resource=DebugMarkets,
        query=debug.markets,
        answers=dict[str, Any],
        summary="Feed runs, stages, and the outcomes of the 500 most active tracked markets",
    ),
    _of_market(
        name="debug_market",
        path="/debug/markets/{id}",
        resource=Debug,
        query=debug.market,
        answers=dict[str, Any],
        summary="All stored state of one market",
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
        summary="Books of one market, including unverified ones, with their newest changes",
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
        parameters=RawSignalParameters,
        answers=list[dict[str, Any]],
        summary="The 1,000 newest signals of one market",
    ),
)
