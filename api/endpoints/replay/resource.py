"""`/replay/ws/market`: the exchange's market channel, out of our store."""

from __future__ import annotations

from typing import TYPE_CHECKING

import gevent

from api.endpoints.stream.resource import Stream
from api.replay.market_channel import Channel
from api.replay.sessions import Session, sender
from api.replay.span import span_of
from api.stream.frames import frame

if TYPE_CHECKING:
    from api.endpoints.replay.requests import Replayed
    from api.metering.key import Key
    from api.stream.socket import Socket


class MarketChannel(Stream):
    """A client of the exchange hears a stretch of the past as if it were now."""

    def check(self, given: Replayed) -> None:
        """Refuse what makes no sense, before there is a socket."""
        span_of(given.from_, given.to, given.speed)

    def serve(self, socket: Socket, given: Replayed, key: Key) -> None:
        """Play until the end, or until the client goes."""
        span = span_of(given.from_, given.to, given.speed)
        assert span is not None
        channel = Channel(
            self.rows,
            span,
            send=sender(socket),
            push=lambda message: socket.push(frame(message)),
            pause=lambda: gevent.sleep(0),
        )
        keys, text = self.service.keys, given.api_key
        session = Session(socket, channel.player, lambda: keys.find(text) is not None)
        self.service.replays.run(session, channel.hear)
