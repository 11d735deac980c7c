"""`/replay/ws/market`: a replay of the exchange's market channel from stored data."""

from __future__ import annotations

from typing import TYPE_CHECKING

import gevent

from api.endpoints.stream.resource import Stream
from api.replay.market_channel import ReplayChannel
from api.replay.sessions import ReplaySession, sender
from api.replay.span import replay_span
from api.stream.frames import frame

if TYPE_CHECKING:
    from api.endpoints.replay.requests import ReplayParameters
    from api.metering.key import Key
    from api.stream.socket import Socket


class MarketChannel(Stream):
    """Replays stored events in the exchange's market channel protocol."""

    def check(self, given: ReplayParameters) -> None:
        """Validate the range before the WebSocket is accepted."""
        replay_span(given.from_, given.to, given.speed)

    def serve(self, socket: Socket, given: ReplayParameters, key: Key) -> None:
        """Play until the end of the range or until the client disconnects."""
        span = replay_span(given.from_, given.to, given.speed)
        assert span is not None
        channel = ReplayChannel(
            self.read,
            span,
            send=sender(socket),
            push=lambda message: socket.push(frame(message)),
            pause=lambda: gevent.sleep(0),
        )
        keys, text = self.service.keys, given.api_key
        session = ReplaySession(socket, channel.player, lambda: keys.find(text) is not None)
        self.service.replays.run(session, channel.receive)
