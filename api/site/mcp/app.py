"""The site's MCP endpoints: `/api/mcp`, public or with a key, and `/sse?key=` for older clients."""

from __future__ import annotations

from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from starlette.routing import Route

from api.site.mcp import servers
from api.site.mcp.access import KeyChecker, guarded
from api.site.mcp.sse import SseSessions
from api.site.mcp.streamable import StreamableHttp

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from fastmcp import FastMCP
    from fastmcp.server.http import StarletteWithLifespan

    from api.site.backend import Backend
    from api.site.guides import Guides
    from config.settings import Settings


class Mcp:
    """Both endpoints: add `routes` to the site's application and enter `running` in its lifespan."""

    def __init__(self, backend: Backend, guides: Guides, given: Settings) -> None:
        keys, complete = KeyChecker(backend), servers.complete(backend, guides)
        anyone, holders = over_http(servers.public(backend, guides)), over_http(complete)
        over_sse = complete.http_app(path="/open", transport="sse")
        self._apps = [anyone, holders, over_sse]
        self._sessions = sessions = SseSessions(over_sse, keys, max_sessions=given.mcp_sessions)
        hosts = {*_listed(given.mcp_hosts), urlsplit(given.public_site_url).hostname or ""} - {""}
        origins = _listed(given.mcp_origins)
        self.routes = [
            Route("/api/mcp", guarded(StreamableHttp(anyone, holders, keys), hosts, origins)),
            *(Route(path, guarded(sessions, hosts, origins)) for path in ("/sse", "/sse/")),
            Route("/sse/{session}/messages/", guarded(sessions.message, hosts, origins)),
        ]

    def drain(self) -> None:
        """End the sessions, each as soon as its messages are answered."""
        self._sessions.drain()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Run the lifespans of the endpoints' applications."""
        async with AsyncExitStack() as stack:
            for app in self._apps:
                await stack.enter_async_context(app.lifespan(app))
            yield


def over_http(server: FastMCP[Any]) -> StarletteWithLifespan:
    """Serve over stateless StreamableHttp HTTP. `guarded` wraps it, so its own host protection is off."""
    return server.http_app(path="/api/mcp", stateless_http=True, json_response=True, host_origin_protection=False)


def _listed(text: str) -> list[str]:
    return text.replace(",", " ").split()
