"""The route of the market channel replay."""

from __future__ import annotations

from api.endpoints.base.credits import PAST_COST
from api.endpoints.base.endpoint import Endpoint
from api.endpoints.replay.requests import ReplayParameters
from api.endpoints.replay.resource import MarketChannel

ENDPOINTS: tuple[Endpoint, ...] = (
    Endpoint(
        name="market_channel_replay",
        path="/replay/ws/market",
        resource=MarketChannel,
        parameters=ReplayParameters,
        answers=None,
        key="query",
        credits=PAST_COST,
        status=101,
        errors=("forbidden", "invalid_parameter"),
        tag="Stream",
        summary="Replay of the exchange's market channel (WebSocket)",
        description="Recorded data in the exchange's own protocol: subscriptions, PING, `book`, `price_change`, "
        "`last_trade_price`, `tick_size_change` and `best_bid_ask` match the exchange's field by field, so that a "
        "client "
        "written for the exchange works unchanged.",
    ),
)
