"""Server-sent events for callers with a key: one session per connection; count, idle time and backlog are limited."""

from __future__ import annotations

import asyncio
import secrets
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from starlette.datastructures import QueryParams
from starlette.requests import Request

from api.openapi.document import TAGS
from api.site.feeds import error_response
from api.site.mcp.access import RETRY_HINT, KeyChecker, key_in_header, write_refusal
from api.site.mcp.holder import Holder, holder

if TYPE_CHECKING:
    from starlette.responses import Response
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

MAX_SESSIONS_PER_KEY = 10
MAX_PENDING = 64  # messages accepted and not answered yet
IDLE_S = 3600.0
SEND_TIMEOUT_S = 30.0  # how long a client may leave sent data unread
RECEIVE_TIMEOUT_S = 30.0  # how long receiving a message may take
PING = b": ping"
QUERY_KEY = "presage.query"  # key in the request's scope
TOPICS = {tag.lower() for tag in TAGS}


@dataclass
class SseSession:
    """One open connection."""

    holder: Holder
    receive: Receive
    send: Send
    pending: int = 0
    over: bool = False  # on our side; the client may still be connected
    stuck: bool = False  # the client does not read
    draining: bool = False  # it ends as soon as nothing is pending
    _until: asyncio.Timeout | None = None  # timeout that ends it

    def message_received(self) -> None:
        """Record a message from the client."""
        self.pending += 1
        self._end_in(IDLE_S)

    async def received(self) -> Message:
        """Wait for the client to disconnect; report a disconnect after IDLE_S without a message."""
        try:
            async with asyncio.timeout(IDLE_S) as self._until:
                return await self.receive()
        except TimeoutError:
            self.over = True
            return {"type": "http.disconnect"}
        finally:
            self._until = None

    async def sent(self, message: Message) -> None:
        """Send to the client, and end the session of one that does not read."""
        if self.over:
            return
        try:
            async with asyncio.timeout(SEND_TIMEOUT_S):
                await self.send(message)
        except TimeoutError:
            self.over = self.stuck = True
            self._end_in(0.0)
        else:
            if message["type"] == "http.response.body":
                # A client that reads pings has no answers waiting; this also clears notifications, which get no answer.
                self.pending = 0 if message.get("body", b"").startswith(PING) else max(0, self.pending - 1)
                if self.draining:
                    self.drain()

    def drain(self) -> None:
        """End the session as soon as its messages are answered."""
        self.draining = True
        if not self.pending:
            self._end_in(0.0)

    def _end_in(self, seconds: float) -> None:
        if self._until is not None and not self._until.expired():
            self._until.reschedule(asyncio.get_running_loop().time() + seconds)


class SseSessions:
    """`GET /sse?key=` opens a session; its client sends messages to `POST /sse/SESSION/messages/`."""

    def __init__(self, app: ASGIApp, keys: KeyChecker, *, max_sessions: int) -> None:
        self._app, self._keys, self._max_sessions = app, keys, max_sessions
        self._open: dict[str, SseSession] = {}
        self._of_key: Counter[str] = Counter()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Open a session."""
        hide_query(scope)
        request, asked = Request(scope), QueryParams(scope[QUERY_KEY])
        key = asked.get("key") or key_in_header(request)
        topics = frozenset(asked.get("topics", "").lower().replace(",", " ").split())
        write = asked.get("write")
        if (no := write_refusal(write) or await self._refused(request.method, key, topics)) is not None:
            await no(scope, receive, send)
            return
        name, session = secrets.token_urlsafe(18), SseSession(Holder(key, topics, write == "true"), receive, send)
        self._open[name] = session
        self._of_key[key] += 1
        inside = _inside(scope, name)
        inside["path"] = f"{inside['root_path']}/open"
        try:
            await self._app(inside, session.received, session.sent)
            if session.over and not session.stuck:
                await send({"type": "http.response.body", "body": b"", "more_body": False})
        finally:
            del self._open[name]
            self._of_key[key] -= 1
            self._of_key += Counter()  # removes zero counts

    def drain(self) -> None:
        """End the sessions, each as soon as its messages are answered."""
        for session in self._open.values():
            session.drain()

    async def message(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Accept a client's message; it is answered on the session's own connection."""
        session = self._open.get(scope["path_params"]["session"])
        if session is None:
            no = error_response(404, "not_found", "There is no such session", hint="It has ended: open a new one")
            await no(scope, receive, send)
        elif session.pending >= MAX_PENDING:
            said, soon = f"{MAX_PENDING} calls are in progress", {"Retry-After": "1"}
            no = error_response(429, "burst_exceeded", said, hint="Read the answers first", headers=soon)
            await no(scope, receive, send)
        else:
            session.message_received()
            token = holder.set(session.holder)
            try:
                async with asyncio.timeout(RECEIVE_TIMEOUT_S):
                    await self._app(_inside(scope, scope["path_params"]["session"]), receive, send)
            except TimeoutError:
                session.pending -= 1
            finally:
                holder.reset(token)

    async def _refused(self, method: str, key: str, topics: frozenset[str]) -> Response | None:
        if method != "GET":
            hint, allpending = "GET opens a session", {"Allow": "GET"}
            return error_response(
                405, "method_not_allpending", f"{method} is not supported here", hint=hint, headers=allpending
            )
        if unknown := topics - TOPICS:
            hint = f"Topics: {', '.join(sorted(TOPICS))}"
            return error_response(400, "invalid_parameter", f"`topics`: there is no {min(unknown)[:50]!r}", hint=hint)
        return await self._keys.refusal(key) or self._full(key)

    def _full(self, key: str) -> Response | None:
        later = {"Retry-After": "10"}
        if self._of_key[key] >= MAX_SESSIONS_PER_KEY:
            said = f"The key has {MAX_SESSIONS_PER_KEY} sessions open"
            return error_response(429, "burst_exceeded", said, hint="Close one of them first", headers=later)
        if len(self._open) >= self._max_sessions:
            said = "The maximum number of sessions is open"
            return error_response(503, "overloaded", said, hint=RETRY_HINT, headers=later)
        return None


class QueryHidden:
    """Outermost middleware: keeps keys in queries out of the server's request log, whatever the response."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Hide the query of a request to `/sse`."""
        if scope["type"] == "http" and scope["path"].rstrip("/") == "/sse":
            hide_query(scope)
        await self._app(scope, receive, send)


def hide_query(scope: Scope) -> None:
    """Move the query to where the server's log does not read it."""
    if QUERY_KEY not in scope:
        scope[QUERY_KEY], scope["query_string"] = scope["query_string"], b""


def _inside(scope: Scope, name: str) -> Scope:
    """Return the request's scope below the session's own path, which the transport announces to its client."""
    return {**scope, "root_path": f"{scope.get('root_path', '')}/sse/{name}"}
