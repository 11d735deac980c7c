"""Routes that forward requests to the exchange: events and positions."""

from __future__ import annotations

from typing import Any

from api.endpoints.base.endpoint import Endpoint
from api.endpoints.exchange import records
from api.endpoints.exchange.requests import EventParameters, MarketPositionParameters, PositionParameters
from api.endpoints.exchange.resource import ClosedPositions, ExchangeEvents, MarketPositions, Positions

ENDPOINTS: tuple[Endpoint, ...] = (
    Endpoint(
        name="events",
        path="/v1/events",
        resource=ExchangeEvents,
        parameters=EventParameters,
        answers=list[dict[str, Any]],
        example=[{"id": "12345", "slug": "weather-of-may", "title": "The weather of May", "markets": []}],
        credits=2,
        errors=("upstream_unavailable",),
        tag="Taxonomy",
        summary="Events, live from the exchange",
        description="The exchange's own objects. Parameters that are not listed here are forwarded to it.",
    ),
    Endpoint(
        name="positions",
        path="/v1/positions",
        resource=Positions,
        parameters=PositionParameters,
        answers=list[records.Position],
        credits=2,
        errors=("upstream_unavailable",),
        tag="Positions",
        summary="Open positions of a wallet, live from the exchange",
        description="Requested live from the exchange; at most the 2,000 largest positions.",
    ),
    Endpoint(
        name="closed_positions",
        path="/v1/positions/closed",
        resource=ClosedPositions,
        parameters=PositionParameters,
        answers=list[records.ClosedPosition],
        credits=2,
        errors=("upstream_unavailable",),
        tag="Positions",
        summary="Closed positions of a wallet, live from the exchange",
        description="Requested live from the exchange; at most 2,000 positions, highest profit first.",
    ),
    Endpoint(
        name="market_positions",
        path="/v1/markets/{id}/positions",
        resource=MarketPositions,
        parameters=MarketPositionParameters,
        answers=list[records.MarketPosition],
        credits=2,
        errors=("not_found", "upstream_unavailable"),
        missing="The market does not exist",
        tag="Positions",
        summary="Positions in a market, live from the exchange",
        description="Requested live from the exchange. With `wallet`: its positions, as in `/v1/positions`. "
        "Without: the largest holders of each outcome, for whom the exchange reports only the shares.",
    ),
)
