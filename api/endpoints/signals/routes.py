"""Signals."""

from __future__ import annotations

from api.endpoints.base.endpoint import Endpoint
from api.endpoints.base.lists import Listing
from api.endpoints.signals import records
from api.endpoints.signals.requests import SignalsOf, StrongestSignals
from api.endpoints.signals.resource import OfMarket
from sql.queries import signals

TYPES = (
    "Types: `momentum` (the price moves), `volume_spike` (the last hour stands out), `whale_alert` (a large "
    "settlement), `spread_widening`, `book_imbalance` and `price_reversal`; docs/signals.md defines each."
)

ENDPOINTS: tuple[Endpoint, ...] = (
    Endpoint(
        name="market_signals",
        path="/v1/markets/{id}/signals",
        resource=OfMarket,
        query=signals.of_market,
        parameters=SignalsOf,
        answers=list[records.Signal],
        errors=("not_found",),
        missing="There is no such market",
        tag="Signals",
        summary="The latest signals of a market, newest first",
        description=f"The newest `limit` from `from` on and before `to`: to go on, ask again with `to` set to the "
        f"oldest `ts`. "
        f"{TYPES}",
    ),
    Endpoint(
        name="top_signals",
        path="/v1/signals/top",
        resource=Listing,
        query=signals.top,
        parameters=StrongestSignals,
        answers=records.TopSignals,
        credits=2,
        cache_s=1,
        tag="Signals",
        summary="The strongest signals of the last 24 hours",
        description=f"By `score`, the value over its threshold; of two alike the newer one comes first. {TYPES}",
    ),
)
