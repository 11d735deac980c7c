"""The route of the stream."""

from __future__ import annotations

from api.endpoints.base.credits import PAST_COST
from api.endpoints.base.endpoint import Endpoint
from api.endpoints.stream.requests import StreamParameters
from api.endpoints.stream.resource import Stream, cost_of_stream

ENDPOINTS: tuple[Endpoint, ...] = (
    Endpoint(
        name="stream",
        path="/stream",
        resource=Stream,
        parameters=StreamParameters,
        answers=None,
        key="query",
        cost=cost_of_stream,
        cost_rule=f"1, or {PAST_COST} with `replay_from`",
        status=101,
        errors=("forbidden", "invalid_parameter"),
        tag="Stream",
        summary="Live events (WebSocket)",
        description="By default: all markets, all types. A frame holds one or more JSON messages, separated by "
        "newlines. "
        "With `replay_from` it replays past events, of the markets that the client subscribes to.",
    ),
)
