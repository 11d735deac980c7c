"""The two MCP servers: a public one without a key, and the complete one for callers with a key."""

from __future__ import annotations

import logging
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
from fastmcp import FastMCP
from fastmcp.exceptions import ToolError
from fastmcp.resources import TextResource
from fastmcp.server.middleware import Middleware
from mcp_types import ToolAnnotations
from pydantic import AnyUrl, Field

from api.openapi import document as openapi
from api.site.mcp import documents, provenance, tools
from api.site.mcp.holder import holder

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fastmcp.server.middleware import CallNext, MiddlewareContext
    from fastmcp.tools import Tool

    from api.site.backend import Backend
    from api.site.guides import Guide, Guides

LIST_CACHE_S = 300  # lists change only with a release
INSTRUCTIONS = f"""Completely recorded data of prediction markets: prices, order books, trades, candles, signals and
wallets.
Prices are probabilities from 0 to 1, sizes are shares, fields ending in _usd are US dollars, null means unknown. Times
named ts are Unix milliseconds, those ending in _at or _time Unix seconds. A market is identified by its market_id
or its slug: use search_markets to find it.
{provenance.INSTRUCTIONS}"""
COMPLETE_INSTRUCTIONS = f"""{INSTRUCTIONS}
Tools that change something (webhooks, watched wallets) are available only where the user has configured the client for
them: see docs://mcp."""
PUBLIC_INSTRUCTIONS = f"""{INSTRUCTIONS}
Without a key, tools cover the service as a whole, lists of markets, market search and one market's detail (20 records
at most), and the documentation. With an API key, at /sse?key=KEY or here with the header X-API-Key, all tools are
available: see docs://mcp."""
SEARCH_DESCRIPTION = """Search the documentation for sections that contain most of the words. Use it to learn what a
figure means, how the stream, webhooks or exports work, or how the service is run; then read the page. Credits: 0."""
READ_DESCRIPTION = """Return a documentation page as Markdown. Use it for a page that a search returned, or to
get started (`api`). Credits: 0."""
READ_ONLY = ToolAnnotations(read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False)


class ListFilter(Middleware):
    """Lists only the tools that the session may use, and of its topics, because each takes up a model's context."""

    async def on_list_tools(self, context: MiddlewareContext[Any], call_next: CallNext[Any, Any]) -> Sequence[Tool]:
        """Filter the list; tools of other topics can still be called."""
        listed: Sequence[Tool] = await call_next(context)
        caller = holder.get()
        if caller is None:
            return listed
        if not caller.may_write:
            listed = [tool for tool in listed if tool.annotations and tool.annotations.read_only_hint]
        if not caller.topics:
            return listed
        return [tool for tool in listed if not tool.tags or {tag.lower() for tag in tool.tags} & caller.topics]


def public(backend: Backend, guides: Guides) -> FastMCP[Any]:
    """Create the public server."""
    server = _server("Presage", PUBLIC_INSTRUCTIONS, cache_scope="public")
    for tool in tools.from_document(_document(), backend):
        if tool.name in tools.PUBLIC:
            server.add_tool(tool)
    return _with_documentation(server, guides)


def complete(backend: Backend, guides: Guides) -> FastMCP[Any]:
    """Create the server for callers with a key."""
    server = _server("Presage", COMPLETE_INSTRUCTIONS, cache_scope="private", middleware=[ListFilter()])
    operations = {tool.name: tool for tool in tools.from_document(_document(), backend)}
    for tool in operations.values():
        server.add_tool(tool)
    third_party = provenance.fields(operations["market"].output_schema)

    @server.resource(
        "market://{id}",
        name="market",
        title="A market",
        mime_type="application/json",
        description="A market with its price, book and last 24 hours, by its market_id or slug. "
        + provenance.sentence(third_party),
        meta=provenance.meta(third_party),
    )
    async def market(id: str) -> str:  # noqa: A002 (as the API names it)
        """Return a market with its price, book and last 24 hours, by its market_id or slug."""
        result = await operations["market"].run({"id": id})
        text = result.content[0].text  # type: ignore[union-attr]
        if result.is_error:
            raise ToolError(text)
        return str(text)

    return _with_documentation(server, guides)


def _document() -> dict[str, Any]:
    document: dict[str, Any] = msgspec.json.decode(openapi.encoded())  # built once per process
    return document


def _server(name: str, instructions: str, **how: Any) -> FastMCP[Any]:
    _use_process_logging()
    return FastMCP(
        name,
        instructions,
        version="1.0.0",
        cache_ttl=LIST_CACHE_S,
        mask_error_details=True,
        dereference_schemas=False,  # dereferencing would repeat a record wherever it is used
        **how,
    )


def _with_documentation(server: FastMCP[Any], guides: Guides) -> FastMCP[Any]:
    """Add the documentation's resources and tools."""
    pages = {guide.name: guide for guide in guides.listed}
    for guide in pages.values():
        server.add_resource(_resource(guide, guides.markdown(guide)))
    server.add_resource(
        TextResource(
            uri=AnyUrl("docs://openapi"),
            name="openapi",
            title="OpenAPI document",
            description="Every endpoint of the HTTP API, for writing a client.",
            mime_type="application/json",
            text=openapi.encoded().decode(),
        )
    )

    @server.tool(title="Search the documentation", description=SEARCH_DESCRIPTION, annotations=READ_ONLY)
    async def search_documentation(
        query: Annotated[str, Field(min_length=2, max_length=200, description="A few search words")],
        limit: Annotated[int, Field(ge=1, le=20, description="Maximum number of sections")] = 5,
    ) -> list[dict[str, str]]:
        return [asdict(passage) for passage in documents.search(pages.values(), query, limit)]

    @server.tool(title="Read the documentation", description=READ_DESCRIPTION, annotations=READ_ONLY)
    async def read_documentation(
        page: Annotated[str, Field(max_length=100, description="Page name as returned by a search: api, stream, …")],
    ) -> str:
        if page not in pages:
            raise ToolError(f"not_found: there is no page {page[:50]!r}. Pages: {', '.join(pages)}")
        return guides.markdown(pages[page])

    # Otherwise each call would list all tools to find its own and check headers that none of them declares.
    server._mcp_server.get_tool_input_schema = lambda _: None  # noqa: SLF001
    return server


def _resource(guide: Guide, text: str) -> TextResource:
    return TextResource(
        uri=AnyUrl(documents.uri(guide)),
        name=guide.name,
        title=guide.title,
        description=guide.summary,
        mime_type="text/markdown",
        text=text,
    )


def _use_process_logging() -> None:
    """Remove fastmcp's own log handlers, which draw boxes on a terminal."""
    log = logging.getLogger("fastmcp")
    log.handlers.clear()
    log.propagate = True
