"""`/stream`: a resource that accepts the WebSocket after checking key, origin and limits."""

from __future__ import annotations

import secrets
import time
from typing import TYPE_CHECKING, Any

import gevent
import psycopg

from api.endpoints.base.credits import PAST_COST
from api.endpoints.base.resource import Resource
from api.endpoints.stream import stream_replay
from api.endpoints.stream.commands import CommandHandler
from api.errors import Problem
from api.replay.span import replay_span
from api.schemas.requests import parse
from api.server.handler import ACCEPT, BadHandshake
from api.stream import messages
from api.stream.frames import TRY_LATER
from api.stream.hub import HOLD_S
from api.stream.subscriber import Subscriber, SubscriptionFilter

if TYPE_CHECKING:
    import falcon

    from api.endpoints.stream.requests import StreamParameters
    from api.metering.key import Key
    from api.stream.socket import Socket


def cost_of_stream(given: StreamParameters) -> int:
    """Return the credits of a stream: a replay reads at least as much as a past book."""
    return 1 if given.replay_from is None else PAST_COST


class Stream(Resource):
    """The live event stream."""

    def on_get(self, req: falcon.Request, resp: falcon.Response, **path: str) -> None:
        """Check the key, count the connection, switch to WebSocket, and serve until the client disconnects."""
        key = self.authenticate(req)
        given = parse(self.endpoint.parameters, req.params)
        self.check(given)
        accept = req.env.get(ACCEPT)
        if accept is None:
            raise Problem(
                "invalid_parameter",
                "This is a WebSocket endpoint: send an upgrade request",
                headers={"Upgrade": "websocket"},
            )
        self._admit_origin(req.get_header("Origin"))
        grant = self.charge(req, key, self.endpoint.price(given))
        connections = self.service.connections
        if not connections.acquire(key.key_id, key.max_connections):
            raise Problem(
                "burst_exceeded",
                f"The key already has {key.max_connections} open connections",
                hint="Close one first; one connection can follow many markets",
                headers={"Retry-After": "1"},
            )
        try:
            answer = [*grant.headers().items(), ("X-Request-Id", req.context.id)]
            try:
                socket = accept(answer)
            except BadHandshake as error:
                raise Problem(
                    "invalid_parameter",
                    f"The WebSocket handshake is malformed: {error}",
                    headers={"Sec-WebSocket-Version": "13"},
                ) from None
            self.serve(socket, given, key)
        finally:
            connections.release(key.key_id)

    def authenticate(self, req: falcon.Request) -> Key:
        """Return the key of the `api_key` parameter."""
        text = req.params.get("api_key")
        key = self.service.keys.find(text if isinstance(text, str) else None, req)
        if key is None:
            raise Problem(
                "forbidden", "The stream needs a valid `api_key` query parameter", hint="POST /register issues a key"
            )
        return key

    def check(self, given: Any) -> None:
        """Validate the parameters before the WebSocket is accepted."""
        replay_span(given.replay_from, given.replay_to, given.speed)

    def _admit_origin(self, origin: str | None) -> None:
        """Refuse pages of origins that are not listed; clients other than browsers send no Origin."""
        allowed = self.service.stream_origins
        if allowed and origin is not None and origin.lower() not in allowed:
            raise Problem("forbidden", "Pages from this origin may not open the stream")

    def serve(self, socket: Socket, given: Any, key: Key) -> None:
        """Serve live events or a replay until the client disconnects."""
        if given.replay_from is not None:
            stream_replay.serve(self.service, self.read, socket, given)
        else:
            self._follow(socket, given, key)

    def _follow(self, socket: Socket, given: StreamParameters, key: Key) -> None:
        hub = self.service.hub
        keys, text = self.service.keys, given.api_key
        try:
            subscriber = hub.add(
                lambda last: Subscriber(socket, last, key.account_id, lambda: keys.find(text) is not None)
            )
        except Problem:
            socket.close(TRY_LATER, "the stream cannot be read right now")
            return
        try:
            hello = {"session": secrets.token_hex(8), "seq": hub.last, "oldest_seq": hub.oldest}
            subscriber.send(messages.encode("hello", **hello, ts=int(time.time() * 1000)))
            if given.resume_from is not None:
                hub.resume(subscriber, SubscriptionFilter(), given.resume_from)
            else:
                gevent.spawn_later(HOLD_S, hub.release, subscriber)
            commands = CommandHandler(self.service, subscriber)
            while (said := socket.receive()) is not None:
                commands.handle(said)
        except (psycopg.Error, Problem):
            socket.close(TRY_LATER, "the stream cannot be read right now")
        finally:
            hub.remove(subscriber)
