"""The MCP endpoints of the site: `/api/mcp` for anyone, and with a key for all; `/sse?key=` for older clients."""

from __future__ import annotations

from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from starlette.routing import Route

from api.site.mcp import servers
from api.site.mcp.access import Keys, guarded
from api.site.mcp.sse import Sessions
from api.site.mcp.streamable import Streamable

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from fastmcp import FastMCP
    from fastmcp.server.http import StarletteWithLifespan

    from api.site.backend import Backend
    from api.site.guides import Guides
    from config.settings import Settings


class Mcp:
    """Both endpoints: `routes` belong into the site's application, `running` around its life."""

    def __init__(self, backend: Backend, guides: Guides, given: Settings) -> None:
        keys, complete = Keys(backend), servers.complete(backend, guides)
        anyone, holders = over_http(servers.public(backend, guides)), over_http(complete)
        over_sse = complete.http_app(path="/open", transport="sse")
        self._apps = [anyone, holders, over_sse]
        sessions = Sessions(over_sse, keys, most=given.mcp_sessions)
        hosts = {*_listed(given.mcp_hosts), urlsplit(given.public_site_url).hostname or ""} - {""}
        origins = _listed(given.mcp_origins)
        self.routes = [
            Route("/api/mcp", guarded(Streamable(anyone, holders, keys), hosts, origins)),
            *(Route(path, guarded(sessions, hosts, origins)) for path in ("/sse", "/sse/")),
            Route("/sse/{session}/messages/", guarded(sessions.message, hosts, origins)),
        ]

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Start what the endpoints need, and stop it."""
        async with AsyncExitStack() as stack:
            for app in self._apps:
                await stack.enter_async_context(app.lifespan(app))
            yield


def over_http(server: FastMCP[Any]) -> StarletteWithLifespan:
    """Serve over Streamable HTTP, each request on its own. The guard stands before it, not in it."""
    return server.http_app(path="/api/mcp", stateless_http=True, json_response=True, host_origin_protection=False)


def _listed(text: str) -> list[str]:
    return text.replace(",", " ").split()
