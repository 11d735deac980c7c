"""Two servers: for anyone, what the service as a whole can tell; for whoever has a key, all of it."""

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
from api.site.mcp import documents, tools
from api.site.mcp.holder import holder

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fastmcp.server.middleware import CallNext, MiddlewareContext
    from fastmcp.tools import Tool

    from api.site.backend import Backend
    from api.site.guides import Guide, Guides

LISTS_HOLD_S = 300  # lists change with a release only
ABOUT = """Prediction markets, recorded completely: their prices, order books, trades, candles, signals and wallets.
Prices are probabilities from 0 to 1, sizes are shares, fields ending in _usd are US dollars, null means unknown. Times
named ts are Unix milliseconds, those ending in _at or _time Unix seconds. A market is named by its market_id or its
slug: search_markets finds it."""
ANYONE = f"""{ABOUT}
Without a key there are the tools about the service as a whole, lists of markets, a search and one market's detail (20
records at most), and the documentation. With an API key, at /sse?key=KEY
or here with the header X-API-Key, there are all: docs://mcp says how."""
SEARCHING = """Sections of the documentation that hold most of the words. Use it to learn what a figure means, how the
stream, webhooks or exports work, or how the service is run; then read the page. Credits: 0."""
READING_ON = """A page of the documentation, as Markdown. Use it when a search has named the page, or to learn how to
begin (`api`). Credits: 0."""
READING = ToolAnnotations(read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False)


class OnlyTopics(Middleware):
    """Lists the tools of the topics that the session was opened for: each costs room in a model's context."""

    async def on_list_tools(self, context: MiddlewareContext[Any], call_next: CallNext[Any, Any]) -> Sequence[Tool]:
        """Leave out the others; they can still be called."""
        listed: Sequence[Tool] = await call_next(context)
        caller = holder.get()
        if caller is None or not caller.topics:
            return listed
        return [tool for tool in listed if not tool.tags or {tag.lower() for tag in tool.tags} & caller.topics]


def public(backend: Backend, guides: Guides) -> FastMCP[Any]:
    """Make the server for anyone."""
    server = _server("Presage", ANYONE, cache_scope="public")
    for tool in tools.of_document(_document(), backend):
        if tool.name in tools.PUBLIC:
            server.add_tool(tool)
    return _documented(server, guides)


def complete(backend: Backend, guides: Guides) -> FastMCP[Any]:
    """Make the server for whoever has a key."""
    server = _server("Presage", ABOUT, cache_scope="private", middleware=[OnlyTopics()])
    operations = {tool.name: tool for tool in tools.of_document(_document(), backend)}
    for tool in operations.values():
        server.add_tool(tool)

    @server.resource("market://{id}", name="market", title="A market", mime_type="application/json")
    async def market(id: str) -> str:  # noqa: A002 (as the API names it)
        """Give a market with its price, book and last 24 hours, by its market_id or slug."""
        result = await operations["market"].run({"id": id})
        text = result.content[0].text  # type: ignore[union-attr]
        if result.is_error:
            raise ToolError(text)
        return str(text)

    return _documented(server, guides)


def _document() -> dict[str, Any]:
    document: dict[str, Any] = msgspec.json.decode(openapi.encoded())  # made once in a process
    return document


def _server(name: str, instructions: str, **how: Any) -> FastMCP[Any]:
    _log_as_the_process_does()
    return FastMCP(
        name,
        instructions,
        version="1.0.0",
        cache_ttl=LISTS_HOLD_S,
        mask_error_details=True,
        dereference_schemas=False,  # a record would be written out in each place that names it
        **how,
    )


def _documented(server: FastMCP[Any], guides: Guides) -> FastMCP[Any]:
    """Add the documentation."""
    pages = {guide.name: guide for guide in guides.listed}
    for guide in pages.values():
        server.add_resource(_resource(guide, guides.markdown(guide)))
    server.add_resource(
        TextResource(
            uri=AnyUrl("docs://openapi"),
            name="openapi",
            title="OpenAPI document",
            description="Every endpoint of the HTTP API, for whoever writes a program against it.",
            mime_type="application/json",
            text=openapi.encoded().decode(),
        )
    )

    @server.tool(title="Search the documentation", description=SEARCHING, annotations=READING)
    async def search_documentation(
        query: Annotated[str, Field(min_length=2, max_length=200, description="What to look for: a few words")],
        limit: Annotated[int, Field(ge=1, le=20, description="Sections in one answer")] = 5,
    ) -> list[dict[str, str]]:
        return [asdict(passage) for passage in documents.found(pages.values(), query, limit)]

    @server.tool(title="Read the documentation", description=READING_ON, annotations=READING)
    async def read_documentation(
        page: Annotated[str, Field(max_length=100, description="Its name, as a search gives it: api, stream, …")],
    ) -> str:
        if page not in pages:
            raise ToolError(f"not_found: there is no page {page[:50]!r}. Pages: {', '.join(pages)}")
        return guides.markdown(pages[page])

    # Else a call would list all tools to find its own, to check headers that none of them declares.
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


def _log_as_the_process_does() -> None:
    """Take away the handlers that fastmcp gives its own log: it draws boxes on a terminal."""
    log = logging.getLogger("fastmcp")
    log.handlers.clear()
    log.propagate = True
