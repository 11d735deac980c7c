"""`/stream`: an ordinary resource, that takes the socket once key and limits allow."""

from __future__ import annotations

import re
import secrets
import time
from typing import TYPE_CHECKING

import gevent
import msgspec
import psycopg

from api.errors import Problem
from api.handler import ACCEPT, BadHandshake
from api.parameters import Connect, parse
from api.resource import Resource
from api.stream import messages
from api.stream.hub import HOLD_S
from api.stream.socket import TRY_LATER
from api.stream.subscriber import Filter, Subscriber
from sql.queries import stream as queries

if TYPE_CHECKING:
    from collections.abc import Callable

    import falcon

    from api.keys import Key
    from api.stream.hub import Hub
    from api.stream.socket import Socket

CONDITION = re.compile(r"0x[0-9a-f]{64}\Z")


class Stream(Resource):
    """Events as they happen."""

    def on_get(self, req: falcon.Request, resp: falcon.Response, **path: str) -> None:  # noqa: ARG002
        """Check the key, count the connection, switch to WebSocket, and stay until the client goes."""
        key = self.holder(req)
        given = parse(Connect, req.params)
        accept = req.env.get(ACCEPT)
        if accept is None:
            raise Problem(
                "invalid_parameter", "This is a WebSocket: ask for an upgrade", headers={"Upgrade": "websocket"}
            )
        hub = self.service.hub
        grant = self.charge(req, key, self.endpoint.credits)
        if not self.service.host.connections.acquire(key.key_id, key.max_connections):
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
                raise Problem("invalid_parameter", f"The WebSocket handshake is malformed: {error}") from None
            self._serve(hub, socket, given, lambda: self.service.keys.find(given.api_key) is not None)
        finally:
            self.service.host.connections.release(key.key_id)

    def holder(self, req: falcon.Request) -> Key:
        """Tell whose key the query names."""
        text = req.params.get("api_key")
        key = self.service.keys.find(text) if isinstance(text, str) else None
        if key is None:
            raise Problem(
                "forbidden", "The stream needs a valid api_key in its query", hint="POST /register gives a key"
            )
        return key

    def _serve(self, hub: Hub, socket: Socket, given: Connect, allowed: Callable[[], bool]) -> None:
        try:
            subscriber = hub.add(lambda last: Subscriber(socket, last, allowed))
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
            while (text := socket.receive()) is not None:
                try:
                    self._heed(hub, subscriber, text)
                except Problem as error:
                    subscriber.tell(messages.error(error.problem, error.description or ""))
                except psycopg.Error:
                    subscriber.tell(messages.error("overloaded", "The database does not answer: ask again"))
        except psycopg.Error:
            socket.close(TRY_LATER, "the stream cannot be read right now")
        finally:
            hub.remove(subscriber)

    def _heed(self, hub: Hub, subscriber: Subscriber, text: str) -> None:
        """Do what a client asks."""
        try:
            wish = messages.read(text)
        except msgspec.ValidationError as error:
            raise Problem("invalid_parameter", str(error)) from None
        except (msgspec.DecodeError, RecursionError):
            raise Problem("invalid_body", "Expected a JSON object with an `action`") from None
        if isinstance(wish, messages.Ping):
            subscriber.tell(messages.say("pong", ts=int(time.time() * 1000)))
            return
        named = self._market_ids(wish.markets)
        if isinstance(wish, messages.Unsubscribe):
            wants = subscriber.wants.less(named)
        else:
            wants = subscriber.wants.more(named, wish.types)
        if len(wants.markets or ()) > messages.MOST_MARKETS:
            raise Problem("invalid_parameter", f"At most {messages.MOST_MARKETS} markets; or all")
        said = {
            "markets": "all" if wants.markets is None else sorted(wants.markets),
            "types": "all" if wants.types is None else sorted(wants.types),
        }
        subscriber.tell(messages.say("subscribed", **said))
        if isinstance(wish, messages.Subscribe) and wish.resume_from is not None:
            hub.resume(subscriber, wants, wish.resume_from)
        else:
            hub.restart(subscriber, wants)

    def _market_ids(self, given: list[str] | None) -> list[str] | None:
        """Give condition ids; slugs and the exchange's numbers are looked up."""
        if given is None:
            return None
        lowered = [name.lower() for name in given]
        found = {name: name for name in lowered if CONDITION.match(name)}
        others = [name for name in given if name.lower() not in found]
        if any("\0" in name for name in others):
            raise Problem("not_found", "No such market")
        if others:
            found |= dict(self.rows(queries.market_ids, ids=others))
            if missing := [name for name in others if name not in found]:
                raise Problem("not_found", f"No such market: {', '.join(missing[:10])[:300]}")
        return list(dict.fromkeys(found.values()))
