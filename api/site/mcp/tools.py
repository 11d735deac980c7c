"""MCP tools from the operations of the API's OpenAPI document, called with the caller's own key."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import msgspec
from fastmcp.exceptions import ToolError
from fastmcp.tools import Tool, ToolResult
from mcp_types import TextContent, ToolAnnotations
from pydantic import PrivateAttr

from api.site.mcp import provenance, schemas, tool_descriptions
from api.site.mcp.holder import holder

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from api.site.backend import ApiResponse, Backend
    from api.site.mcp.schemas import Input

# Keys and secrets in use must not enter a model's context; the document is available as a resource.
EXCLUDED = {"register", "recover_key", "confirm_mail", "rotate_key", "rotate_webhook_secret", "openapi"}
# Public tools without a key, for what the site shows: the service as a whole, lists of markets, one market.
PUBLIC = {
    *("health", "time", "stats", "pipeline_status", "coverage"),
    *("categories", "top_markets", "trending_markets", "breaking_markets", "search_markets", "market"),
}
MAX_FREE_LIMIT = 20  # records in a response without a key
PUBLIC_MAX_AGE_S = 5.0  # cache time of responses without a key
MAX_RESPONSE_BYTES = 2 << 20  # the API's largest response is several times that, and no model reads it
# Secrets of answers that must not enter a model's context.
WITHHELD = {"create_webhook": "secret"}
READ_ONLY = (
    "forbidden: this connection is read-only. The user can allow tools that change something in the configuration of "
    "the client: with the header X-MCP-Write: true, or write=true in the address of /sse"
)
CREDIT_HEADERS = {"cost": "x-request-cost", "remaining": "x-credits-remaining", "reset": "x-credits-reset"}


class OperationTool(Tool):
    """One operation of the API as a tool."""

    _backend: Backend = PrivateAttr()
    _method: str = PrivateAttr()
    _path: str = PrivateAttr()
    _input: Input = PrivateAttr()
    _provenance: dict[str, Any] = PrivateAttr()

    @classmethod
    def of(cls, backend: Backend, method: str, path: str, operation: dict[str, Any], components: Any) -> OperationTool:
        """Create a tool from an operation of the document."""
        name, input_ = operation["operationId"], schemas.input_of(operation, components)
        output = schemas.output_of(operation, components)
        if output is not None and name in WITHHELD:
            output["properties"].pop(WITHHELD[name])
        from_exchange = "502" in operation["responses"]
        third_party = [provenance.ANY] if from_exchange else provenance.fields(output)
        tool = cls(
            name=name,
            title=tool_descriptions.title(name),
            description=f"{tool_descriptions.description(name, operation)} {provenance.sentence(third_party)}".strip(),
            tags=set(operation["tags"]),
            parameters=input_.schema,
            output_schema=output,
            meta=provenance.meta(third_party) or None,
            annotations=ToolAnnotations(
                title=tool_descriptions.title(name),
                read_only_hint=method == "get",
                destructive_hint=method in {"patch", "delete"},
                idempotent_hint=method in {"get", "patch", "delete"},
                # It returns what third parties wrote, queries the exchange itself, or sends something to others.
                open_world_hint=bool(third_party) or (method != "get" and "Webhooks" in operation["tags"]),
            ),
        )
        tool._backend, tool._method, tool._path, tool._input = backend, method.upper(), path, input_
        tool._provenance = provenance.meta(third_party)
        return tool

    async def run(self, arguments: dict[str, Any]) -> ToolResult:
        """Call the API; tools that change something only where the client was configured to allow it."""
        caller = holder.get()
        if self._method != "GET" and not (caller and caller.may_write):
            return ToolResult(content=[_text_content(READ_ONLY)], is_error=True)
        given = {name: value for name, value in arguments.items() if value is not None}
        path = re.sub(r"{(\w+)}", lambda place: _segment(place[1], given), self._path)
        body = {name: arguments[name] for name in self._input.in_body & arguments.keys()}  # here null has a meaning
        params = {name: _text(value) for name, value in given.items() if name not in body}
        if caller is None:
            answer = await self._backend.get(path, self._with_limit(params), max_age_s=PUBLIC_MAX_AGE_S)
        else:
            sent = msgspec.json.encode(body) if self._input.in_body else None
            answer = await self._backend.request(self._method, path, params, key=caller.key, body=sent)
        return self._result(answer, paid=caller is not None)

    def _with_limit(self, params: dict[str, str]) -> dict[str, str]:
        """Return the parameters of a call without a key, `limit` checked and set."""
        limit = self._input.schema["properties"].get("limit")
        if limit is None:
            return params
        asked = params.get("limit", str(min(limit["default"], MAX_FREE_LIMIT)))
        if asked.isdecimal() and int(asked) > MAX_FREE_LIMIT:
            raise ToolError(f"invalid_parameter: without a key, `limit` may be at most {MAX_FREE_LIMIT}")
        return params | {"limit": asked}

    def _result(self, answer: ApiResponse, *, paid: bool) -> ToolResult:
        credits_ = {name: answer.headers[header] for name, header in CREDIT_HEADERS.items() if header in answer.headers}
        meta = {"presage/credits": credits_} if paid and credits_ else None
        marked = {**self._provenance, **(meta or {})} or None
        if not answer.ok:
            return ToolResult(content=[_text_content(_error_text(answer))], meta=meta, is_error=True)
        if len(answer.body) > MAX_RESPONSE_BYTES:
            size = f"The response has {len(answer.body):,} bytes; the maximum is {MAX_RESPONSE_BYTES:,}"
            return ToolResult(
                content=[_text_content(f"{size}: request less, with `limit` or a shorter range")], is_error=True
            )
        if not answer.body:
            return ToolResult(content=[_text_content("Done")], meta=meta)
        data, said = answer.data, answer.body
        if self.name in WITHHELD:
            data = {name: value for name, value in data.items() if name != WITHHELD[self.name]}
            said = msgspec.json.encode(data)
        wrapped = self.output_schema is None or schemas.WRAPPED in self.output_schema
        structured = {"result": data} if wrapped else data
        result = ToolResult(content=[_text_content(said.decode())], meta=marked)
        result.structured_content = structured  # set afterwards: the constructor would copy it, value by value
        return result


def from_document(document: dict[str, Any], backend: Backend) -> Iterator[OperationTool]:
    """Yield a tool for each operation of the document that a key can call and that returns data."""
    components = document["components"]
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            schemes = {name for each in operation.get("security", ()) for name in each}
            if operation["operationId"] in EXCLUDED or "DebugToken" in schemes or not _is_data(operation):
                continue
            yield OperationTool.of(backend, method, path, operation, components)


def _is_data(operation: dict[str, Any]) -> bool:
    """Return whether an operation answers JSON or no body, rather than a page, file or stream."""
    success = next((response for status, response in operation["responses"].items() if status.startswith("2")), None)
    return success is not None and all(
        media == "application/json" or content["schema"].get("type") == "integer"
        for media, content in success.get("content", {}).items()
    )


def _segment(name: str, given: dict[str, Any]) -> str:
    value = _text(given.pop(name, ""))
    if not value.strip("."):  # empty, or `..`, which would leave the path
        raise ToolError(f"missing_parameter: `{name}` is required")
    return quote(value, safe="")


def _text(value: Any) -> str:
    """Return a value as query text; models send numbers and lists where text is expected."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return ",".join(map(_text, value)) if isinstance(value, list) else str(value)


def _text_content(text: str) -> TextContent:
    return TextContent(type="text", text=text)


def _error_text(answer: ApiResponse) -> str:
    """Return an error response as a sentence with its hint."""
    try:
        problem: Mapping[str, Any] = msgspec.json.decode(answer.body, type=dict)
    except msgspec.DecodeError:
        problem = {}
    said = f"{problem.get('code', answer.status)}: {problem.get('detail', 'The API returned an unexpected response')}"
    if hint := problem.get("hint"):
        said += f". {hint}"
    if after := answer.headers.get("retry-after"):
        said += f". Retry after {after} s"
    if request_id := problem.get("request_id"):
        said += f" (request {request_id})"
    return said
