"""Errors of nodes, by name, as Polygon's public and paid endpoints send them.

`RPC` are errors of one call, in its own JSON-RPC response; `HTTP` are those of a whole request.
"""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

from upstream.sandbox.chain.refusals import REFUSALS, refusal

if TYPE_CHECKING:
    from collections.abc import Callable
    from http.server import BaseHTTPRequestHandler

Rpc = dict[str, Any]


def _refused(name: str) -> Callable[[Rpc], Rpc]:
    def refused(call: Rpc) -> Rpc:
        asked = call["params"][0] if call.get("params") and isinstance(call["params"][0], dict) else {}
        ends = [asked.get(end, "0x0") for end in ("fromBlock", "toBlock")]
        first, last = (int(end, 16) if end.startswith("0x") else 0 for end in ends)
        return refusal(name, first, last)

    return refused


RPC: dict[str, Callable[[Rpc], Rpc]] = {name: _refused(name) for name in REFUSALS}
# Cured by a smaller range.
RANGE = ("too_many_results", "response_size", "range_too_large", "range_limited", "tier_limited", "query_timeout")

HALF_A_MINUTE = 30
PIECE = b" " * (1 << 20)
OVERSIZED = 256  # pieces


def _send(handler: BaseHTTPRequestHandler, status: int, body: bytes, **headers: str) -> None:
    handler.send_response(status)
    handler.send_header("Content-Type", headers.pop("kind", "application/json"))
    handler.send_header("Content-Length", headers.pop("length", str(len(body))))
    for name, value in headers.items():
        handler.send_header(name.replace("_", "-"), value)
    handler.end_headers()
    handler.wfile.write(body)


def _rate_limited(handler: BaseHTTPRequestHandler, _: bytes, retry_after: str) -> None:
    body = json.dumps({"jsonrpc": "2.0", "error": {"code": 429, "message": "Too many requests"}, "id": None})
    _send(handler, 429, body.encode(), Retry_After=retry_after)


def _page(status: int, text: str) -> Callable[[BaseHTTPRequestHandler, bytes, str], None]:
    body = f"<html><head><title>{text}</title></head><body><center><h1>{text}</h1></center></body></html>".encode()
    return lambda handler, _answer, _retry: _send(handler, status, body, kind="text/html")


def _silence(handler: BaseHTTPRequestHandler, _: bytes, __: str) -> None:
    """Send nothing, until the client disconnects or half a minute has passed."""
    handler.close_connection = True
    handler.connection.settimeout(0.05)
    until = time.monotonic() + HALF_A_MINUTE
    while time.monotonic() < until and not getattr(handler.server, "closing", False):
        try:
            if not handler.connection.recv(1):
                return
        except TimeoutError:
            continue
        except OSError:
            return


def _reset(handler: BaseHTTPRequestHandler, _: bytes, __: str) -> None:
    handler.close_connection = True


def _truncated(handler: BaseHTTPRequestHandler, answer: bytes, _: str) -> None:
    """Send half of the promised bytes, then close the connection."""
    _send(handler, 200, answer[: len(answer) // 2], length=str(len(answer)))
    handler.close_connection = True


def _cut(handler: BaseHTTPRequestHandler, answer: bytes, _: str) -> None:
    """Send half of the JSON, as if complete."""
    _send(handler, 200, answer[: len(answer) // 2])


def _oversized(handler: BaseHTTPRequestHandler, answer: bytes, _: str) -> None:
    """Send the response after a quarter of a gigabyte of blanks."""
    handler.close_connection = True
    try:
        _send(handler, 200, b"", length=str(len(PIECE) * OVERSIZED + len(answer)))
        for _piece in range(OVERSIZED):
            handler.wfile.write(PIECE)
        handler.wfile.write(answer)
    except OSError:  # the client disconnected
        pass


def _empty(handler: BaseHTTPRequestHandler, _: bytes, __: str) -> None:
    _send(handler, 200, b"")


def _one_for_all(handler: BaseHTTPRequestHandler, _: bytes, __: str) -> None:
    """Send one error object, whether or not the request was a batch."""
    body = json.dumps({"jsonrpc": "2.0", "error": {"code": -32600, "message": "batch too large"}, "id": None})
    _send(handler, 200, body.encode())


HTTP: dict[str, Callable[[BaseHTTPRequestHandler, bytes, str], None]] = {
    "http_429": _rate_limited,
    "http_500": _page(500, "500 Internal Server Error"),
    "http_502": _page(502, "502 Bad Gateway"),
    "http_503": _page(503, "503 Service Temporarily Unavailable"),
    "html": _page(200, "Just a moment..."),
    "silence": _silence,
    "reset": _reset,
    "truncated": _truncated,
    "cut_json": _cut,
    "oversized": _oversized,
    "empty_body": _empty,
    "one_for_all": _one_for_all,
}
ALL = (*RPC, *HTTP)
