"""ASGI middleware that injects HTTP faults; it wraps the application, except /sandbox."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Any

from upstream.sandbox.common.answers import answer

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.responses import Response
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from upstream.sandbox.common.faults import FaultPlan, PlannedFault

CDN_PAGE = b"""<!DOCTYPE html>
<html><head><title>%d</title></head>
<body><center><h1>%d</h1></center><hr><center>cloudflare</center></body></html>
"""
OTHER_SHAPE = b'{"status":"ok","result":{"items":"none","page":0}}'
POLL_S = 0.05
PIECE, PIECES = b" " * (1 << 20), 256


def retry_after(seconds: float) -> Response:
    """Return the refusal of a request beyond a limit, and when to send it again."""
    return answer({"error": "Too Many Requests"}, 429, {"Retry-After": f"{seconds:g}"})


class FaultyHttp:
    """ASGI middleware: applies the fault, if any, to each request."""

    def __init__(
        self,
        app: ASGIApp,
        faults: FaultPlan[Any],
        stopping: Callable[[], bool],
        *,
        rate_limited: Callable[[float], Response] = retry_after,
    ) -> None:
        self._app, self._faults, self._stopping, self._rate_limited = app, faults, stopping, rate_limited

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        fault = None
        if scope["type"] == "http" and self._faults.planned and not scope["path"].startswith("/sandbox"):
            fault = self._faults.http(scope["path"])
        if fault is None:
            await self._app(scope, receive, send)
        else:
            await self._apply_fault(fault, scope, receive, send)

    async def _apply_fault(self, fault: PlannedFault, scope: Scope, receive: Receive, send: Send) -> None:
        kind = fault.kind
        if kind == "error":
            status = fault.status or 503
            await _answer(send, status, CDN_PAGE % (status, status), b"text/html")
        elif kind == "rate_limit":
            await self._rate_limited(fault.retry_after_s)(scope, receive, send)
        elif kind == "html":
            await _answer(send, 200, CDN_PAGE % (200, 200), b"text/html")
        elif kind == "wrong_json":
            await _answer(send, 200, OTHER_SHAPE, b"application/json")
        elif kind == "hang":
            await self._hang(fault, receive, send)
        elif kind == "slow":
            await asyncio.sleep(fault.delay_s)
            await self._app(scope, receive, send)
        elif kind == "oversized":
            await self._bloat(scope, receive, send)
        elif kind == "repeat":
            scope.setdefault("state", {})["repeat"] = True
            await self._app(scope, receive, send)
        else:
            await self._shorten(fault, scope, receive, send)

    async def _hang(self, fault: PlannedFault, receive: Receive, send: Send) -> None:
        """Send nothing while the fault lasts, unless the client disconnects first."""
        while not self._stopping() and not fault.over(self._faults.now()) and fault in self._faults.planned:
            with contextlib.suppress(TimeoutError):
                message = await asyncio.wait_for(receive(), POLL_S)
                if message["type"] == "http.disconnect":
                    return
        await _answer(send, 504, CDN_PAGE % (504, 504), b"text/html")

    async def _shorten(self, fault: PlannedFault, scope: Scope, receive: Receive, send: Send) -> None:
        """Send half of the response: as if complete (truncate), or with the rest missing (cut)."""
        start: Message = {}
        body = b""

        async def gather(message: Message) -> None:
            nonlocal start, body
            if message["type"] == "http.response.start":
                start = message
            else:
                body += message.get("body", b"")

        await self._app(scope, receive, gather)
        half = body[: len(body) // 2]
        length = len(half) if fault.kind == "truncate" else len(body)
        headers = [(name, value) for name, value in start["headers"] if name != b"content-length"]
        await send({**start, "headers": [*headers, (b"content-length", str(length).encode())]})
        await send({"type": "http.response.body", "body": half, "more_body": fault.kind == "cut"})

    async def _bloat(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send an oversized run of blanks before the response."""

        async def swell(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = [(name, value) for name, value in message["headers"] if name != b"content-length"]
                await send({**message, "headers": headers})
                for _ in range(PIECES):
                    if self._stopping():
                        return
                    await send({"type": "http.response.body", "body": PIECE, "more_body": True})
            else:
                await send(message)

        with contextlib.suppress(OSError):
            await self._app(scope, receive, swell)


async def _answer(send: Send, status: int, body: bytes, media: bytes) -> None:
    length = str(len(body)).encode()
    await send(
        {
            "type": "http.response.start",
            "status": status,
            "headers": [(b"content-type", media), (b"content-length", length)],
        }
    )
    await send({"type": "http.response.body", "body": body})
