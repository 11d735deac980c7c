"""The Starlette application: pages, data routes and static files over a given backend."""

from __future__ import annotations

import asyncio
import contextlib
from functools import cache, partial
from typing import TYPE_CHECKING, Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from api.site.feeds import DataRoutes, error_response
from api.site.mcp.app import Mcp
from api.site.mcp.sse import QueryHidden
from api.site.middleware import (
    NON_PAGE_PREFIXES,
    MarkdownSuffix,
    RateLimit,
    RequestId,
    SecretsHidden,
    SecurityHeaders,
)
from api.site.pages import PAGES, TEXTS
from api.site.passes import Allowance
from api.site.rendering import Renderer
from api.site.site import build_site
from api.site.views import recovery, registration, wallets
from api.site.visit import Refusal, Visit
from config import settings
from config.logging import configure

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from starlette.requests import Request

    from api.site.site import Site
    from api.site.visit import Page

MESSAGES = {404: "There is no such page", 405: "This page only supports GET", 500: "Internal server error"}


def create_app(
    site: Site, mcp: Mcp | None = None, *, requests_a_second: int = 20, allowance_a_day: int = 300_000
) -> Starlette:
    """Return the application with the site's routes and, if given, the MCP endpoints."""
    renderer, feeds = Renderer(site), DataRoutes(site, Allowance(allowance_a_day))

    def page(view: Callable[[Visit], Awaitable[Page]]) -> Callable[[Request], Awaitable[Response]]:
        async def answer(request: Request) -> Response:
            try:
                return renderer.respond(request, await view(Visit(request, site)))
            except Refusal as refusal:
                return renderer.refuse(request, refusal)
            except wallets.Redirect as moved:
                return RedirectResponse(moved.to + (".md" if request.scope.get("markdown") else ""), 303)

        return answer

    def text(write: Callable[[Site, Request], Response]) -> Callable[[Request], Awaitable[Response]]:
        async def answer(request: Request) -> Response:
            return write(site, request)

        return answer

    async def failed(request: Request, error: Exception) -> Response:
        code = error.status_code if isinstance(error, HTTPException) else 500
        message = MESSAGES.get(code, "The request cannot be processed")
        if request.url.path.startswith(NON_PAGE_PREFIXES):
            name = {404: "not_found", 405: "method_not_allowed"}.get(code, "internal")
            return error_response(code, name, message)
        return renderer.refuse(request, Refusal(code, message))

    app = Starlette(
        routes=[
            *(Route(path, page(view)) for path, view in PAGES.items()),
            Route("/register", page(registration.submitted), methods=["POST"]),
            Route("/recover", page(recovery.submitted), methods=["POST"]),
            Route("/confirm", page(recovery.confirmed), methods=["POST"]),
            *(Route(path, text(write)) for path, write in TEXTS.items()),
            Route("/static/{version}/{name}", site.assets.serve),
            Route("/health", feeds.health),
            Route("/live", feeds.live),
            Route("/udf/{name}", feeds.chart),
            Route("/api/platform-stats", feeds.platform_stats),
            Route("/api/ticker", feeds.ticker),
            *(mcp.routes if mcp else ()),
            Route("/api/{rest:path}", feeds.unknown, methods=["GET", "POST", "PUT", "PATCH", "DELETE"]),
        ],
        middleware=[
            Middleware(RequestId),
            Middleware(QueryHidden),
            Middleware(SecretsHidden),
            Middleware(SecurityHeaders, api_url=site.api_url),
            Middleware(RateLimit, proxies=site.proxies, a_second=requests_a_second),
            Middleware(GZipMiddleware, minimum_size=1000, compresslevel=5),
            Middleware(MarkdownSuffix),
        ],
        exception_handlers={HTTPException: failed, 500: failed},
        lifespan=partial(_lifespan, site, mcp),
    )
    app.state.drain = partial(_drain, site, mcp)  # called by `api.site.server`
    return app


def _drain(site: Site, mcp: Mcp | None) -> None:
    """End connections that would not end by themselves."""
    site.hub.drain()
    if mcp is not None:
        mcp.drain()


@contextlib.asynccontextmanager
async def _lifespan(site: Site, mcp: Mcp | None, app: Starlette) -> AsyncIterator[None]:
    """Run the stream subscription for as long as the application runs."""
    app.state.site = site
    following = asyncio.create_task(site.hub.run())
    try:
        async with mcp.running() if mcp else contextlib.nullcontext():
            yield
    finally:
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)
        await site.backend.aclose()


@cache
def _app() -> Starlette:
    configure("site")
    given = settings.get()
    site = build_site(given)
    return create_app(
        site,
        Mcp(site.backend, site.guides, given),
        requests_a_second=given.site_requests_a_second,
        allowance_a_day=given.site_allowance_a_day,
    )


def __getattr__(name: str) -> Any:
    """Create `app` on first access, so that importing this module needs no database."""
    if name == "app":
        return _app()
    raise AttributeError(name)
