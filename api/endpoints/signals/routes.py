"""Routes of the signal endpoints."""

from __future__ import annotations

from api.endpoints.base.endpoint import Endpoint
from api.endpoints.base.lists import CountedList
from api.endpoints.signals import records
from api.endpoints.signals.requests import SignalParameters, TopSignalParameters
from api.endpoints.signals.resource import MarketSignals
from sql.queries import signals

TYPES = (
    "Types: `momentum` (a price move), `volume_spike` (unusual volume in the last hour), `whale_alert` (a large "
    "settlement), `spread_widening`, `book_imbalance` and `price_reversal`; docs/signals.md defines each."
)

ENDPOINTS: tuple[Endpoint, ...] = (
    Endpoint(
        name="market_signals",
        path="/v1/markets/{id}/signals",
        resource=MarketSignals,
        query=signals.of_market,
        parameters=SignalParameters,
        answers=list[records.Signal],
        errors=("not_found",),
        missing="The market does not exist",
        tag="Signals",
        summary="Latest signals of a market, newest first",
        description=f"The newest `limit` signals from `from` on and before `to`. For the next page, set `to` to the "
        f"oldest `ts`. "
        f"{TYPES}",
    ),
    Endpoint(
        name="top_signals",
        path="/v1/signals/top",
        resource=CountedList,
        query=signals.top,
        parameters=TopSignalParameters,
        answers=records.TopSignals,
        credits=2,
        cache_s=1,
        tag="Signals",
        summary="Strongest signals of the last 24 hours",
        description=f"By `score`, the value divided by its threshold; ties: newest first. {TYPES}",
    ),
)
