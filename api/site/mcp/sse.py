"""Server-sent events for whoever has a key: one session a connection, bounded in number, in idleness and in arrears."""

from __future__ import annotations

import asyncio
import secrets
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from starlette.datastructures import QueryParams
from starlette.requests import Request

from api.openapi.document import TAGS
from api.site.feeds import failure
from api.site.mcp.access import LATER, Keys, key_in_header
from api.site.mcp.holder import Holder, holder

if TYPE_CHECKING:
    from starlette.responses import Response
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

MOST_OF_A_KEY = 10
MOST_OWED = 64  # messages taken and not answered yet
IDLE_S = 3600.0
UNREAD_S = 30.0  # how long a client may leave what it is sent
TAKEN_S = 30.0  # how long a message may be in coming
PING = b": ping"
HIDDEN = "presage.query"  # of the request's scope
TOPICS = {tag.lower() for tag in TAGS}


@dataclass
class Session:
    """One open connection."""

    holder: Holder
    receive: Receive
    send: Send
    owed: int = 0
    over: bool = False  # for us; its client may still be there
    stuck: bool = False  # it does not read
    _until: asyncio.Timeout | None = None  # then it is ended

    def heard(self) -> None:
        """Note that the client said something."""
        self.owed += 1
        self._end_in(IDLE_S)

    async def received(self) -> Message:
        """Wait for the client to go; after a time without a word, say that it has."""
        try:
            async with asyncio.timeout(IDLE_S) as self._until:
                return await self.receive()
        except TimeoutError:
            self.over = True
            return {"type": "http.disconnect"}
        finally:
            self._until = None

    async def sent(self, message: Message) -> None:
        """Send to the client, and let go of one that does not read."""
        if self.over:
            return
        try:
            async with asyncio.timeout(UNREAD_S):
                await self.send(message)
        except TimeoutError:
            self.over = self.stuck = True
            self._end_in(0.0)
        else:
            if message["type"] == "http.response.body":
                # One that reads its pings has no answers waiting: notifications, which get none, are forgotten by it.
                self.owed = 0 if message.get("body", b"").startswith(PING) else max(0, self.owed - 1)

    def _end_in(self, seconds: float) -> None:
        if self._until is not None and not self._until.expired():
            self._until.reschedule(asyncio.get_running_loop().time() + seconds)


class Sessions:
    """`GET /sse?key=` opens one; `POST /sse/SESSION/messages/` is where its client speaks."""

    def __init__(self, app: ASGIApp, keys: Keys, *, most: int) -> None:
        self._app, self._keys, self._most = app, keys, most
        self._open: dict[str, Session] = {}
        self._of_key: Counter[str] = Counter()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Open a session."""
        hide(scope)
        request, asked = Request(scope), QueryParams(scope[HIDDEN])
        key = asked.get("key") or key_in_header(request)
        topics = frozenset(asked.get("topics", "").lower().replace(",", " ").split())
        if (no := await self._refused(request.method, key, topics)) is not None:
            await no(scope, receive, send)
            return
        name, session = secrets.token_urlsafe(18), Session(Holder(key, topics), receive, send)
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
            self._of_key += Counter()  # forgets those at nought

    async def message(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Take what a session's client says; it is answered on the session's own connection."""
        session = self._open.get(scope["path_params"]["session"])
        if session is None:
            no = failure(404, "not_found", "There is no such session", hint="It has ended: open another one")
            await no(scope, receive, send)
        elif session.owed >= MOST_OWED:
            said, soon = f"{MOST_OWED} calls are at work", {"Retry-After": "1"}
            no = failure(429, "burst_exceeded", said, hint="Read what is answered first", headers=soon)
            await no(scope, receive, send)
        else:
            session.heard()
            token = holder.set(session.holder)
            try:
                async with asyncio.timeout(TAKEN_S):
                    await self._app(_inside(scope, scope["path_params"]["session"]), receive, send)
            except TimeoutError:
                session.owed -= 1
            finally:
                holder.reset(token)

    async def _refused(self, method: str, key: str, topics: frozenset[str]) -> Response | None:
        if method != "GET":
            hint, allowed = "GET opens a session", {"Allow": "GET"}
            return failure(405, "method_not_allowed", f"{method} is not possible here", hint=hint, headers=allowed)
        if unknown := topics - TOPICS:
            hint = f"Topics: {', '.join(sorted(TOPICS))}"
            return failure(400, "invalid_parameter", f"`topics`: there is no {min(unknown)[:50]!r}", hint=hint)
        return await self._keys.refused(key) or self._full(key)

    def _full(self, key: str) -> Response | None:
        later = {"Retry-After": "10"}
        if self._of_key[key] >= MOST_OF_A_KEY:
            said = f"The key has {MOST_OF_A_KEY} sessions open"
            return failure(429, "burst_exceeded", said, hint="Close one of them first", headers=later)
        if len(self._open) >= self._most:
            said = "As many sessions are open as there may be"
            return failure(503, "overloaded", said, hint=LATER, headers=later)
        return None


class Unlogged:
    """The outermost layer of the site: whatever it answers, no key stands in the server's log of requests."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Hide what was asked of `/sse`."""
        if scope["type"] == "http" and scope["path"].rstrip("/") == "/sse":
            hide(scope)
        await self._app(scope, receive, send)


def hide(scope: Scope) -> None:
    """Keep the query where the server's log does not look."""
    if HIDDEN not in scope:
        scope[HIDDEN], scope["query_string"] = scope["query_string"], b""


def _inside(scope: Scope, name: str) -> Scope:
    """Put a request below the session's own path: the transport tells its client to speak there."""
    return {**scope, "root_path": f"{scope.get('root_path', '')}/sse/{name}"}
