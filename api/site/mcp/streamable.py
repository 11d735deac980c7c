"""Stateless StreamableHttp HTTP: any process may answer any request."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from starlette.requests import Request

from api.site.feeds import error_response
from api.site.mcp.access import RETRY_HINT, KeyChecker, key_in_header, write_refusal
from api.site.mcp.holder import Holder, holder

if TYPE_CHECKING:
    from starlette.responses import Response
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

WRITE_HEADER = "x-mcp-write"
MAX_CALL_S = 30.0
MAX_CONCURRENT_CALLS = 64


class StreamableHttp:
    """`POST /api/mcp`: the public server without a key, the complete one with a key."""

    def __init__(self, anyone: ASGIApp, holders: ASGIApp, keys: KeyChecker) -> None:
        self._anyone, self._holders, self._keys = anyone, holders, keys
        self._active = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """ApiResponse one request."""
        request = Request(scope)
        key = key_in_header(request)
        write = request.headers.get(WRITE_HEADER)
        if (no := write_refusal(write) or await self._refused(request.method, key)) is not None:
            await no(scope, receive, send)
            return
        began = False

        async def answering(message: Message) -> None:
            nonlocal began
            if not began:  # counted until the response starts: slow readers take no capacity
                began, self._active = True, self._active - 1
            await send(message)

        token = holder.set(Holder(key, may_write=write == "true") if key else None)
        self._active += 1
        try:
            async with asyncio.timeout(MAX_CALL_S):
                await (self._holders if key else self._anyone)(scope, receive, answering)
        except TimeoutError:
            if began:
                raise  # the client does not read: the server disconnects it
            no = error_response(504, "overloaded", "The call took too long", hint="Try again, or request less")
            await no(scope, receive, answering)
        finally:
            self._active -= not began
            holder.reset(token)

    async def _refused(self, method: str, key: str) -> Response | None:
        if method != "POST":
            said = f"{method} is not supported here"
            return error_response(
                405, "method_not_allowed", said, hint="POST JSON-RPC messages", headers={"Allow": "POST"}
            )
        if key and (unknown := await self._keys.refusal(key)) is not None:
            return unknown
        if self._active >= MAX_CONCURRENT_CALLS:
            return error_response(
                503, "overloaded", "Too many calls are in progress", hint=RETRY_HINT, headers={"Retry-After": "1"}
            )
        return None
