"""Access control of the MCP endpoints: origin and host checks, body limits and API key validation."""

from __future__ import annotations

import asyncio
import re
import time
from http import HTTPStatus
from typing import TYPE_CHECKING

from cachetools import TLRUCache
from fastmcp.server.http import HostOriginGuardMiddleware
from mcp.server.transport_security import RequestBodyLimitMiddleware
from starlette.datastructures import Headers, MutableHeaders
from starlette.middleware.cors import CORSMiddleware

from api.site.feeds import error_response

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from api.site.backend import Backend

KEY_PATTERN = re.compile(r"psg_[\w-]{1,100}", re.ASCII)
VALID_TTL_S, INVALID_TTL_S = 30.0, 5.0  # how long a valid or invalid key is cached
MAX_CACHED_KEYS = 10_000
MAX_BODY_BYTES = 64 << 10
BODY_TIMEOUT_S = 20.0
RETRY_HINT = "Try again in a moment"
ERRORS = {
    403: ("forbidden", "Allow other origins with PRESAGE_MCP_ORIGINS"),
    404: ("not_found", "The session has ended: open a new one"),
    405: ("method_not_allowed", "POST JSON-RPC messages"),
    413: ("body_too_large", f"A message may have at most {MAX_BODY_BYTES >> 10} KiB"),
    421: ("misdirected", "Use the site's own address, or add the host to PRESAGE_MCP_HOSTS"),
}
EXPOSED_HEADERS = ["MCP-Protocol-Version", "Retry-After"]


def guarded(app: ASGIApp, hosts: Collection[str], origins: Collection[str]) -> ASGIApp:
    """Wrap an app so that it accepts only our hosts and allowed origins, against DNS rebinding from other pages."""
    app = RequestBodyLimitMiddleware(app, MAX_BODY_BYTES)
    app = _JsonErrors(HostOriginGuardMiddleware(_BodyTimeout(app), [*hosts], [*origins], mode="strict"))
    if not origins:
        return app
    return CORSMiddleware(
        app,
        allow_origins=[*origins],
        allow_methods=["GET", "POST"],
        allow_headers=["*"],
        expose_headers=EXPOSED_HEADERS,
    )


class _JsonErrors:
    """Converts plain-text errors of the inner layers to the site's JSON errors."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        plain: Message | None = None

        async def wrapped_send(message: Message) -> None:
            nonlocal plain
            if message["type"] == "http.response.start" and message["status"] >= 400 and not _is_json(message):
                plain = message
                return
            if plain is None:
                await send(message)
                return
            status, headers = plain["status"], MutableHeaders(raw=plain["headers"])
            code, hint = ERRORS.get(status, ("invalid_body", "See /guides/mcp"))
            no = error_response(status, code, message.get("body", b"").decode() or HTTPStatus(status).phrase, hint=hint)
            del no.headers["Access-Control-Allow-Origin"]  # other origins get no readable error
            if "allow" in headers:
                no.headers["Allow"] = headers["allow"]
            await no(scope, receive, send)

        await self._app(scope, receive, wrapped_send)


def _is_json(start: Message) -> bool:
    return "json" in Headers(raw=start["headers"]).get("content-type", "")


class _BodyTimeout:
    """Limits the time for receiving a body, and strips blanks around header values."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        until = asyncio.get_running_loop().time() + BODY_TIMEOUT_S
        # Blanks around a value are not part of it; not every server strips them.
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
            await error_response(
                408, "invalid_body", "The body was not received in time", hint="Send it without delay"
            )(scope, receive, send)


def key_in_header(request: Request) -> str:
    """Return a request's API key; empty if it has none."""
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    return request.headers.get("x-api-key") or (token.strip() if scheme.lower() == "bearer" else "")


def write_refusal(given: str | None) -> Response | None:
    """Return the error for a `write` that is neither `true` nor `false`; None if it is valid or missing."""
    if given in {None, "", "true", "false"}:
        return None
    return error_response(400, "invalid_parameter", f"`write`: {given[:50]!r} is not valid", hint="true or false")


class KeyChecker:
    """Validates keys against the API, with a short cache."""

    def __init__(self, backend: Backend, clock: Callable[[], float] = time.monotonic) -> None:
        self._backend = backend
        self._known: TLRUCache[str, bool, float] = TLRUCache(MAX_CACHED_KEYS, _expiry, clock)

    def is_cached(self, key: str) -> bool:
        """Return whether a key is cached as valid."""
        return self._known.get(key, False)

    async def refusal(self, key: str | None) -> Response | None:
        """Return the error for a missing or invalid key; None if it is valid. The check costs its owner no credits."""
        if not key:
            hint = "Get a key by POST /register, then open /sse?key=KEY"
            return error_response(401, "invalid_api_key", "The API key is missing", hint=hint)
        no = error_response(401, "invalid_api_key", "The API key is not valid", hint="Get a key by POST /register")
        if not KEY_PATTERN.fullmatch(key):
            return no
        valid = self._known.get(key)
        if valid is None:
            answer = await self._backend.request("GET", "/v1/time", key=key)
            if answer.status >= 500:
                return error_response(
                    503, "overloaded", "The API does not answer", hint=RETRY_HINT, headers={"Retry-After": "2"}
                )
            # 402 and 429 mean a valid key without credits left.
            valid = self._known[key] = answer.ok or answer.status in {402, 429}
        return None if valid else no


def _expiry(_key: str, valid: bool, now: float) -> float:  # noqa: FBT001 (the cache's signature)
    return now + (VALID_TTL_S if valid else INVALID_TTL_S)
