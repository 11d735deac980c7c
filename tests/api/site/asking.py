"""MCP endpoints on a real port over the API with the test's own database, and the official client."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from contextlib import asynccontextmanager

import httpx
import httpx2
import uvicorn
from mcp import Client
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client
from starlette.applications import Starlette

from api.site.guides import Guides
from api.site.mcp.app import Mcp
from config.settings import Settings
from tests.patience import PATIENCE_S

BOTH = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}


class InProcess(httpx.AsyncBaseTransport):
    """Transport that passes requests to the WSGI application and records them."""

    def __init__(self, app):
        self.wsgi = httpx.WSGITransport(app=app)
        self.asked: list[tuple[str, str, str | None]] = []
        self.answers: list[httpx.Response] = []

    async def handle_async_request(self, request):
        body = await request.aread()
        self.asked.append((request.method, request.url.raw_path.decode(), request.headers.get("x-api-key")))
        answer = self.wsgi.handle_request(
            httpx.Request(request.method, request.url, headers=request.headers, content=body)
        )
        self.answers.append(httpx.Response(answer.status_code, headers=answer.headers, content=answer.read()))
        return self.answers[-1]


class FixedCredentials:
    """Credentials with a fixed key."""

    def __init__(self, key):
        self.own = key

    def key(self):
        return self.own

    def mark_refused(self, key):
        return False


@asynccontextmanager
async def site(backend, **given):
    """Serve the endpoints; yield their URL."""
    mcp = Mcp(backend, Guides(), Settings(_env_file=None, **given))
    async with serving(Starlette(routes=mcp.routes, lifespan=lambda _: mcp.running())) as url:
        yield url


@asynccontextmanager
async def serving(app):
    """Serve an application on a free port; yield its URL."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        config = uvicorn.Config(app, lifespan="on", log_config=None, timeout_graceful_shutdown=1)
        server = uvicorn.Server(config)
        task = asyncio.create_task(server.serve(sockets=[listener]))
        while not server.started:
            assert not task.done(), await task
            await asyncio.sleep(0.005)
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            server.should_exit = True
            await task


@asynccontextmanager
async def over_http(url, key=None, *, write=None, **how):
    """The official client, connected by Streamable HTTP."""
    headers = {name: value for name, value in {"X-API-Key": key, "X-MCP-Write": write}.items() if value}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=PATIENCE_S) as http,
        Client(streamable_http_client(f"{url}/api/mcp", http_client=http), **how) as client,
    ):
        yield client


@asynccontextmanager
async def over_sse(url, key, **params):
    """The official client, connected by server-sent events."""
    more = "".join(f"&{name}={value}" for name, value in params.items())
    async with Client(sse_client(f"{url}/sse?key={key}{more}"), mode="legacy") as client:
        yield client


@contextlib.asynccontextmanager
async def raw(url, **headers):
    """A plain HTTP client."""
    async with httpx.AsyncClient(base_url=url, headers=BOTH | headers, timeout=PATIENCE_S, trust_env=False) as client:
        yield client


def message(method, id_=1, **params):
    """Return a JSON-RPC message of the pre-stateless protocol."""
    return {"jsonrpc": "2.0", "id": id_, "method": method, "params": params}
