"""Who may come in: no page of others, no endless body, and with a key only one that the API knows."""

from __future__ import annotations

import asyncio
import re
import time
from collections import OrderedDict
from http import HTTPStatus
from typing import TYPE_CHECKING

from fastmcp.server.http import HostOriginGuardMiddleware
from mcp.server.transport_security import RequestBodyLimitMiddleware
from starlette.datastructures import Headers, MutableHeaders
from starlette.middleware.cors import CORSMiddleware

from api.site.feeds import failure

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from api.site.backend import Backend

A_KEY = re.compile(r"psg_[\w-]{1,100}", re.ASCII)
KNOWN_S, UNKNOWN_S = 30.0, 5.0  # how long a key is remembered, and that there is none
MOST_KEYS = 10_000
LONGEST_BODY = 64 << 10
BODY_WITHIN_S = 20.0
LATER = "Try again in a moment"
REFUSALS = {
    403: ("forbidden", "Pages of other origins are let in by PRESAGE_MCP_ORIGINS"),
    404: ("not_found", "The session has ended: open another one"),
    405: ("method_not_allowed", "POST JSON-RPC messages"),
    413: ("body_too_large", f"A message has {LONGEST_BODY >> 10} KiB at most"),
    421: ("misdirected", "Ask by the site's own address, or name the host in PRESAGE_MCP_HOSTS"),
}
EXPOSED = ["MCP-Protocol-Version", "Retry-After"]


def guarded(app: ASGIApp, hosts: Collection[str], origins: Collection[str]) -> ASGIApp:
    """Let in only who asks for a host of ours, and no page of others: a browser may be led here by a name of theirs."""
    app = RequestBodyLimitMiddleware(app, LONGEST_BODY)
    app = _InOurWords(HostOriginGuardMiddleware(_Prompt(app), [*hosts], [*origins], mode="strict"))
    if not origins:
        return app
    return CORSMiddleware(
        app, allow_origins=[*origins], allow_methods=["GET", "POST"], allow_headers=["*"], expose_headers=EXPOSED
    )


class _InOurWords:
    """Says what the layers within refuse by a bare text as the site says it."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        bare: Message | None = None

        async def said(message: Message) -> None:
            nonlocal bare
            if message["type"] == "http.response.start" and message["status"] >= 400 and not _is_json(message):
                bare = message
                return
            if bare is None:
                await send(message)
                return
            status, headers = bare["status"], MutableHeaders(raw=bare["headers"])
            code, hint = REFUSALS.get(status, ("invalid_body", "See /guides/mcp"))
            no = failure(status, code, message.get("body", b"").decode() or HTTPStatus(status).phrase, hint=hint)
            del no.headers["Access-Control-Allow-Origin"]  # pages of others learn nothing here
            if "allow" in headers:
                no.headers["Allow"] = headers["allow"]
            await no(scope, receive, send)

        await self._app(scope, receive, said)


def _is_json(start: Message) -> bool:
    return "json" in Headers(raw=start["headers"]).get("content-type", "")


class _Prompt:
    """Waits for a body only so long, and reads headers as they are meant."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        until = asyncio.get_running_loop().time() + BODY_WITHIN_S
        # Blanks around a value are not part of it; not every server takes them away.
        scope["headers"] = [(name, value.strip(b" \t")) for name, value in scope["headers"]]
        whole = False

        async def received() -> Message:
            nonlocal whole
            if whole:
                return await receive()
            async with asyncio.timeout_at(until):
                message = await receive()
            whole = not message.get("more_body", False)
            return message

        try:
            await self._app(scope, received, send)
        except TimeoutError:
            if whole:
                raise
            await failure(408, "invalid_body", "The body did not come", hint="Send it at once")(scope, receive, send)


def key_in_header(request: Request) -> str:
    """Give the API key of a request; empty where it has none."""
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    return request.headers.get("x-api-key") or (token.strip() if scheme.lower() == "bearer" else "")


class Keys:
    """Which keys are valid, as the API says."""

    def __init__(self, backend: Backend, clock: Callable[[], float] = time.monotonic) -> None:
        self._backend, self._clock = backend, clock
        self._known: OrderedDict[str, tuple[float, bool]] = OrderedDict()

    def known(self, key: str) -> bool:
        """Tell whether a key was valid a moment ago."""
        until, valid = self._known.get(key, (0.0, False))
        return valid and until > self._clock()

    async def refused(self, key: str | None) -> Response | None:
        """Say why a key does not open; None where it does. The question costs its holder no credit."""
        if not key:
            hint = "POST /register gives a key; then open /sse?key=KEY"
            return failure(401, "invalid_api_key", "The API key is missing", hint=hint)
        no = failure(401, "invalid_api_key", "The API key is not valid", hint="POST /register gives one")
        if not A_KEY.fullmatch(key):
            return no
        until, valid = self._known.get(key, (0.0, False))
        if until <= self._clock():
            answer = await self._backend.request("GET", "/v1/time", key=key)
            if answer.status >= 500:
                return failure(503, "overloaded", "The API does not answer", hint=LATER, headers={"Retry-After": "2"})
            valid = answer.ok or answer.status in {402, 429}  # of one whose credits are used up
            self._remember(key, valid=valid)
        return None if valid else no

    def _remember(self, key: str, *, valid: bool) -> None:
        self._known[key] = self._clock() + (KNOWN_S if valid else UNKNOWN_S), valid
        if len(self._known) > MOST_KEYS:
            self._known.popitem(last=False)
