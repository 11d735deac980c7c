"""`/stream`: an ordinary resource, that takes the socket once key, origin and limits allow."""

from __future__ import annotations

import secrets
import time
from typing import TYPE_CHECKING, Any

import gevent
import psycopg

from api.endpoints.base.resource import Resource
from api.endpoints.stream import stream_replay as ours
from api.endpoints.stream.commands import Wishes
from api.errors import Problem
from api.replay.span import span_of
from api.schemas.requests import parse
from api.server.handler import ACCEPT, BadHandshake
from api.stream import messages
from api.stream.frames import TRY_LATER
from api.stream.hub import HOLD_S
from api.stream.subscriber import Filter, Subscriber

if TYPE_CHECKING:
    import falcon

    from api.metering.key import Key
    from api.schemas.requests import Connect
    from api.stream.socket import Socket


class Stream(Resource):
    """Events as they happen."""

    def on_get(self, req: falcon.Request, resp: falcon.Response, **path: str) -> None:
        """Check the key, count the connection, switch to WebSocket, and stay until the client goes."""
        key = self.holder(req)
        given = parse(self.endpoint.parameters, req.params)
        self.check(given)
        accept = req.env.get(ACCEPT)
        if accept is None:
            raise Problem(
                "invalid_parameter", "This is a WebSocket: ask for an upgrade", headers={"Upgrade": "websocket"}
            )
        self._admit_origin(req.get_header("Origin"))
        grant = self.charge(req, key, self.endpoint.price(given))
        connections = self.service.connections
        if not connections.acquire(key.key_id, key.max_connections):
            raise Problem(
                "burst_exceeded",
                f"The key has its {key.max_connections} connections open",
                hint="Close one first; a connection can follow many markets",
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

    def holder(self, req: falcon.Request) -> Key:
        """Tell whose key the query names."""
        text = req.params.get("api_key")
        key = self.service.keys.find(text) if isinstance(text, str) else None
        if key is None:
            raise Problem(
                "forbidden", "The stream needs a valid api_key in its query", hint="POST /register gives a key"
            )
        return key

    def check(self, given: Any) -> None:
        """Refuse what makes no sense, before there is a socket."""
        span_of(given.replay_from, given.replay_to, given.speed)

    def _admit_origin(self, origin: str | None) -> None:
        """Refuse pages that the operator did not list; what is not a browser sends no Origin."""
        allowed = self.service.stream_origins
        if allowed and origin is not None and origin.lower() not in allowed:
            raise Problem("forbidden", "Pages of this origin may not open the stream")

    def serve(self, socket: Socket, given: Any, key: Key) -> None:
        """Tell of everything as it happens, or of what has happened, until the client goes."""
        if given.replay_from is not None:
            ours.serve(self.service, socket, given, key)
        else:
            self._follow(socket, given, key)

    def _follow(self, socket: Socket, given: Connect, key: Key) -> None:
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
            subscriber.tell(messages.say("hello", **hello, ts=int(time.time() * 1000)))
            if given.resume_from is not None:
                hub.resume(subscriber, Filter(), given.resume_from)
            else:
                gevent.spawn_later(HOLD_S, hub.release, subscriber)
            wishes = Wishes(self.service, subscriber)
            while (said := socket.receive()) is not None:
                wishes.heed(said)
        except (psycopg.Error, Problem):
            socket.close(TRY_LATER, "the stream cannot be read right now")
        finally:
            hub.remove(subscriber)
