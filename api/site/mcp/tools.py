"""Tools: the operations of the API's own document, each called with the key of whoever asks."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import msgspec
from fastmcp.exceptions import ToolError
from fastmcp.tools import Tool, ToolResult
from mcp_types import TextContent, ToolAnnotations
from pydantic import PrivateAttr

from api.site.mcp import schemas
from api.site.mcp import tool_descriptions as words
from api.site.mcp.holder import holder

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from api.site.backend import Answer, Backend
    from api.site.mcp.schemas import Input

# Keys and secrets that are in use have no business in a model's context; the document is a resource.
LEFT_OUT = {"register", "rotate_key", "rotate_webhook_secret", "openapi"}
# What anyone may ask without a key, as the site shows it: about the service as a whole, lists of markets, one market.
PUBLIC = {
    *("health", "time", "stats", "pipeline_status", "coverage"),
    *("categories", "top_markets", "trending_markets", "breaking_markets", "search_markets", "market"),
}
MAX_FREE_LIMIT = 20  # records in an answer without a key
KEPT_S = 5.0  # how long anyone is given the same answer
MOST_BYTES = 2 << 20  # of one answer; the longest that the API gives is several times that, and no model reads it
TOLD = {"cost": "x-request-cost", "remaining": "x-credits-remaining", "reset": "x-credits-reset"}


class Operation(Tool):
    """One operation of the API as a tool."""

    _backend: Backend = PrivateAttr()
    _method: str = PrivateAttr()
    _path: str = PrivateAttr()
    _input: Input = PrivateAttr()

    @classmethod
    def of(cls, backend: Backend, method: str, path: str, operation: dict[str, Any], components: Any) -> Operation:
        """Make a tool of an operation as the document has it."""
        name, input_ = operation["operationId"], schemas.taken(operation, components)
        tool = cls(
            name=name,
            title=words.title(name),
            description=words.description(name, operation),
            tags=set(operation["tags"]),
            parameters=input_.schema,
            output_schema=schemas.given(operation, components),
            annotations=ToolAnnotations(
                title=words.title(name),
                read_only_hint=method == "get",
                destructive_hint=method in {"patch", "delete"},
                idempotent_hint=method in {"get", "patch", "delete"},
                # It asks the exchange itself, or has something sent to others.
                open_world_hint="502" in operation["responses"]
                or (method != "get" and "Webhooks" in operation["tags"]),
            ),
        )
        tool._backend, tool._method, tool._path, tool._input = backend, method.upper(), path, input_
        return tool

    async def run(self, arguments: dict[str, Any]) -> ToolResult:
        """Ask the API."""
        given = {name: value for name, value in arguments.items() if value is not None}
        path = re.sub(r"{(\w+)}", lambda place: _segment(place[1], given), self._path)
        body = {name: arguments[name] for name in self._input.in_body & arguments.keys()}  # there null says something
        params = {name: _text(value) for name, value in given.items() if name not in body}
        caller = holder.get()
        if caller is None:
            answer = await self._backend.get(path, self._bounded(params), fresh_s=KEPT_S)
        else:
            sent = msgspec.json.encode(body) if self._input.in_body else None
            answer = await self._backend.request(self._method, path, params, key=caller.key, body=sent)
        return self._result(answer, paid=caller is not None)

    def _bounded(self, params: dict[str, str]) -> dict[str, str]:
        """Give what is asked without a key: few records."""
        limit = self._input.schema["properties"].get("limit")
        if limit is None:
            return params
        asked = params.get("limit", str(min(limit["default"], MAX_FREE_LIMIT)))
        if asked.isdecimal() and int(asked) > MAX_FREE_LIMIT:
            raise ToolError(f"invalid_parameter: without a key `limit` is {MAX_FREE_LIMIT} at most")
        return params | {"limit": asked}

    def _result(self, answer: Answer, *, paid: bool) -> ToolResult:
        credits_ = {name: answer.headers[header] for name, header in TOLD.items() if header in answer.headers}
        meta = {"presage/credits": credits_} if paid and credits_ else None
        if not answer.ok:
            return ToolResult(content=[_words(_refusal(answer))], meta=meta, is_error=True)
        if len(answer.body) > MOST_BYTES:
            size = f"The answer has {len(answer.body):,} bytes, and {MOST_BYTES:,} are the most"
            return ToolResult(content=[_words(f"{size}: ask for less, by `limit` or a shorter range")], is_error=True)
        if not answer.body:
            return ToolResult(content=[_words("Done")], meta=meta)
        data = answer.data
        wrapped = self.output_schema is None or schemas.WRAPPED in self.output_schema
        structured = {"result": data} if wrapped else data
        result = ToolResult(content=[_words(answer.body.decode())], meta=meta)
        result.structured_content = structured  # given with the rest it is copied, value by value; it is plain JSON
        return result


def of_document(document: dict[str, Any], backend: Backend) -> Iterator[Operation]:
    """Make the tools of the API's document: those that a key opens, and that answer with data."""
    components = document["components"]
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            opened_by = {name for scheme in operation.get("security", ()) for name in scheme}
            if operation["operationId"] in LEFT_OUT or "DebugToken" in opened_by or not _is_data(operation):
                continue
            yield Operation.of(backend, method, path, operation, components)


def _is_data(operation: dict[str, Any]) -> bool:
    """Tell JSON, and answers without a body, from pages, files and streams."""
    success = next((said for status, said in operation["responses"].items() if status.startswith("2")), None)
    return success is not None and all(
        media == "application/json" or content["schema"].get("type") == "integer"
        for media, content in success.get("content", {}).items()
    )


def _segment(name: str, given: dict[str, Any]) -> str:
    value = _text(given.pop(name, ""))
    if not value.strip("."):  # nothing, or a step to another path
        raise ToolError(f"missing_parameter: `{name}` is required")
    return quote(value, safe="")


def _text(value: Any) -> str:
    """Write a value as a query string has it; models send numbers and lists where text is asked for."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return ",".join(map(_text, value)) if isinstance(value, list) else str(value)


def _words(text: str) -> TextContent:
    return TextContent(type="text", text=text)


def _refusal(answer: Answer) -> str:
    """Say in a sentence why there is no answer, and what would help."""
    try:
        problem: Mapping[str, Any] = msgspec.json.decode(answer.body, type=dict)
    except msgspec.DecodeError:
        problem = {}
    said = f"{problem.get('code', answer.status)}: {problem.get('detail', 'The API did not answer as it should')}"
    if hint := problem.get("hint"):
        said += f". {hint}"
    if after := answer.headers.get("retry-after"):
        said += f". It may work again in {after} s"
    if request_id := problem.get("request_id"):
        said += f" (request {request_id})"
    return said
