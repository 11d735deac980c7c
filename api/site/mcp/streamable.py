"""Streamable HTTP: each request stands on its own, so that any process may answer any of them."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from starlette.requests import Request

from api.site.feeds import failure
from api.site.mcp.access import LATER, Keys, key_in_header
from api.site.mcp.holder import Holder, holder

if TYPE_CHECKING:
    from starlette.responses import Response
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

LONGEST_S = 30.0
MOST_AT_WORK = 64


class Streamable:
    """`POST /api/mcp`: without a key what anyone may ask, with one everything."""

    def __init__(self, anyone: ASGIApp, holders: ASGIApp, keys: Keys) -> None:
        self._anyone, self._holders, self._keys = anyone, holders, keys
        self._at_work = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        request = Request(scope)
        key = key_in_header(request)
        if (no := await self._refused(request.method, key)) is not None:
            await no(scope, receive, send)
            return
        began = False

        async def answering(message: Message) -> None:
            nonlocal began
            if not began:  # at work until the answer begins: one who reads slowly takes no room from others
                began, self._at_work = True, self._at_work - 1
            await send(message)

        token = holder.set(Holder(key) if key else None)
        self._at_work += 1
        try:
            async with asyncio.timeout(LONGEST_S):
                await (self._holders if key else self._anyone)(scope, receive, answering)
        except TimeoutError:
            if began:
                raise  # the client does not read: the server lets it go
            no = failure(504, "overloaded", "The call took too long", hint="Try again, or ask for less")
            await no(scope, receive, answering)
        finally:
            self._at_work -= not began
            holder.reset(token)

    async def _refused(self, method: str, key: str) -> Response | None:
        if method != "POST":
            said = f"{method} is not possible here"
            return failure(405, "method_not_allowed", said, hint="POST JSON-RPC messages", headers={"Allow": "POST"})
        if key and (unknown := await self._keys.refused(key)) is not None:
            return unknown
        if self._at_work >= MOST_AT_WORK:
            return failure(503, "overloaded", "Too many calls are at work", hint=LATER, headers={"Retry-After": "1"})
        return None
