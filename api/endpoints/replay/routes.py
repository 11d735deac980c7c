"""The route of the replay."""

from __future__ import annotations

from api.endpoints.base.endpoint import Endpoint
from api.endpoints.books.resource import PAST_COST
from api.endpoints.replay.requests import Replayed
from api.endpoints.replay.resource import MarketChannel

ENDPOINTS: tuple[Endpoint, ...] = (
    Endpoint(
        name="market_channel_replay",
        path="/replay/ws/market",
        resource=MarketChannel,
        parameters=Replayed,
        answers=None,
        key="query",
        credits=PAST_COST,
        status=101,
        errors=("forbidden", "invalid_parameter"),
        tag="Stream",
        summary="The past in the exchange's own protocol (WebSocket)",
        description="Its market channel, out of what is recorded here: subscriptions, PING, `book`, `price_change`, "
        "`last_trade_price`, `tick_size_change` and `best_bid_ask` are the exchange's, field by field, so that what is "
        "written for the exchange plays the past unchanged.",
    ),
)
