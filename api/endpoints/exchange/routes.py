"""What the exchange says right now: its events, and who holds what."""

from __future__ import annotations

from typing import Any

from api.endpoints.base.endpoint import Endpoint
from api.endpoints.exchange import records
from api.endpoints.exchange.requests import EventsOf, InMarket, OfWallet
from api.endpoints.exchange.resource import ClosedPositions, Events, MarketPositions, Positions

ENDPOINTS: tuple[Endpoint, ...] = (
    Endpoint(
        name="events",
        path="/v1/events",
        resource=Events,
        parameters=EventsOf,
        answers=list[dict[str, Any]],
        example=[{"id": "12345", "slug": "weather-of-may", "title": "The weather of May", "markets": []}],
        credits=2,
        errors=("upstream_unavailable",),
        tag="Taxonomy",
        summary="Events, as the exchange lists them right now",
        description="The exchange's own objects. Parameters that are not listed here are passed on to it.",
    ),
    Endpoint(
        name="positions",
        path="/v1/positions",
        resource=Positions,
        parameters=OfWallet,
        answers=list[records.Position],
        credits=2,
        errors=("upstream_unavailable",),
        tag="Positions",
        summary="What a wallet holds",
        description="Asked of the exchange right now: the 2,000 largest positions at most.",
    ),
    Endpoint(
        name="closed_positions",
        path="/v1/positions/closed",
        resource=ClosedPositions,
        parameters=OfWallet,
        answers=list[records.ClosedPosition],
        credits=2,
        errors=("upstream_unavailable",),
        tag="Positions",
        summary="What a wallet held",
        description="Asked of the exchange right now: 2,000 positions at most, those with the highest profit first.",
    ),
    Endpoint(
        name="market_positions",
        path="/v1/markets/{id}/positions",
        resource=MarketPositions,
        parameters=InMarket,
        answers=list[records.MarketPosition],
        credits=2,
        errors=("not_found", "upstream_unavailable"),
        missing="There is no such market",
        tag="Positions",
        summary="Who holds something in a market",
        description="Asked of the exchange right now. With `wallet`: its positions, as `/v1/positions` has them. "
        "Without: those who hold most of each outcome, of whom the exchange tells no more than their shares.",
    ),
)
