"""MCP servers over the same document and the same responses: ours, and fastmcp's generated from the document."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import httpx
import httpx2
from fastmcp import FastMCP
from starlette.applications import Starlette

from api.openapi import document as openapi
from api.site.backend import Backend
from api.site.guides import Guides
from api.site.mcp.app import Mcp, over_http
from config.settings import Settings

if TYPE_CHECKING:
    from api.site.credentials import Credentials

PRICE = {
    "market_id": "0x" + "5d" * 32,
    "outcome": 0,
    "token_id": "7" * 77,
    "mid": 0.52,
    "bid": 0.51,
    "ask": 0.53,
    "spread": 0.02,
    "bid_size": 1200.5,
    "ask_size": 800,
    "last": 0.52,
    "last_ts": 1795262400123,
    "volume_24h_usd": 51200.25,
    "ts": 1795262400123,
    "age_ms": 12,
}
TRADE = {
    "id": "9223372036854775807",
    "market_id": "0x" + "5d" * 32,
    "token_id": "7" * 77,
    "outcome": 0,
    "price": 0.52,
    "size": 10.5,
    "value_usd": 5.46,
    "side": "BUY",
    "tx_hash": "0x" + "ab" * 32,
    "ts": 1795262400123,
}
ANSWERS = {"price": json.dumps(PRICE).encode(), "trades": json.dumps([TRADE] * 100).encode()}


class Api(httpx.AsyncBaseTransport):
    """Transport that responds at once."""

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Return the response named by the path's last part."""
        return httpx.Response(200, content=ANSWERS.get(request.url.path.rpartition("/")[2], b"{}"))


class RivalsApi(httpx2.AsyncBaseTransport):
    """The same for the rival, which uses another HTTP client."""

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Return the response named by the path's last part."""
        headers = {"content-type": "application/json"}
        return httpx2.Response(200, headers=headers, content=ANSWERS.get(request.url.path.rpartition("/")[2], b"{}"))


class _Key:
    def key(self) -> str:
        return "psg_bench"

    def mark_refused(self, key: str) -> bool:
        return bool(key != self.key())


def ours() -> Starlette:
    """Return our app."""
    credentials: Credentials = _Key()  # type: ignore[assignment]
    mcp = Mcp(Backend("http://api", credentials, transport=Api()), Guides(), Settings())
    return Starlette(routes=mcp.routes, lifespan=lambda _: mcp.running())


def rival() -> Any:
    """Return fastmcp's app."""
    document = openapi.document() | {"servers": [{"url": "http://api"}]}
    client = httpx2.AsyncClient(base_url="http://api", transport=RivalsApi(), headers={"X-API-Key": "psg_bench"})
    return over_http(FastMCP.from_openapi(document, client=client, name="rival"))
