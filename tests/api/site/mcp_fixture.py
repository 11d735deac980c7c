"""The tools, resources and prompts that MCP's conformance tests require, served like our own tools."""

from __future__ import annotations

import base64
import json
from functools import partial

from fastmcp import FastMCP
from fastmcp.exceptions import ToolError
from fastmcp.prompts import Message
from fastmcp.tools import Tool, ToolResult
from mcp_types import AudioContent, EmbeddedResource, ImageContent, TextContent, TextResourceContents
from starlette.applications import Starlette
from starlette.routing import Route

from api.site.mcp.access import guarded
from api.site.mcp.app import over_http

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
SOUND = base64.b64encode(b"RIFF$\0\0\0WAVEfmt \x10\0\0\0\1\0\1\0@\x1f\0\0@\x1f\0\0\1\0\x08\0data\0\0\0\0").decode()
IMAGE = ImageContent(type="image", data=PIXEL, mime_type="image/png")
SCHEMA = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }
    },
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "email": {"type": "string"},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}


class Echo(Tool):
    async def run(self, arguments):
        return ToolResult(content=[text(json.dumps(arguments))])


def text(said):
    return TextContent(type="text", text=said)


def embedded(uri, said, mime_type="text/plain"):
    return EmbeddedResource(type="resource", resource=TextResourceContents(uri=uri, mime_type=mime_type, text=said))


def server():  # noqa: C901 (a list, not a knot)
    made = FastMCP("fixture", cache_ttl=60, dereference_schemas=False)
    tool = partial(made.tool, description="Answers with what its name says")
    prompt = partial(made.prompt, description="Says what its name says")

    @tool("test_simple_text")
    async def simple_text() -> ToolResult:
        return ToolResult(content=[text("This is a simple text response for testing.")])

    @tool("test_image_content")
    async def image_content() -> ToolResult:
        return ToolResult(content=[IMAGE])

    @tool("test_audio_content")
    async def audio_content() -> ToolResult:
        return ToolResult(content=[AudioContent(type="audio", data=SOUND, mime_type="audio/wav")])

    @tool("test_embedded_resource")
    async def embedded_resource() -> ToolResult:
        return ToolResult(content=[embedded("test://embedded-resource", "This is an embedded resource content.")])

    @tool("test_multiple_content_types")
    async def multiple_content_types() -> ToolResult:
        mixed = embedded("test://mixed-content-resource", '{"test":"data","value":123}', "application/json")
        return ToolResult(content=[text("Multiple content types test:"), IMAGE, mixed])

    @tool("test_error_handling")
    async def error_handling() -> str:
        raise ToolError("This tool intentionally returns an error for testing")

    made.add_tool(Echo(name="json_schema_2020_12_tool", description="Echoes", parameters=SCHEMA))

    @made.resource("test://static-text", mime_type="text/plain")
    async def static_text() -> str:
        return "This is the content of the static text resource."

    @made.resource("test://static-binary", mime_type="image/png")
    async def static_binary() -> bytes:
        return base64.b64decode(PIXEL)

    @made.resource("test://template/{id}/data", mime_type="application/json")
    async def template(id: str) -> str:  # noqa: A002
        return json.dumps({"id": id, "templateTest": True, "data": f"Data for ID: {id}"})

    @prompt("test_simple_prompt")
    async def simple_prompt() -> str:
        return "This is a simple prompt for testing."

    @prompt("test_prompt_with_arguments")
    async def prompt_with_arguments(arg1: str, arg2: str) -> str:
        return f"Prompt with arguments: arg1='{arg1}', arg2='{arg2}'"

    @prompt("test_prompt_with_embedded_resource")
    async def prompt_with_embedded_resource(resourceUri: str) -> list[Message]:  # noqa: N803
        held = embedded(resourceUri, "Embedded resource content for testing.")
        return [Message(held), Message("Please process the embedded resource above.")]

    @prompt("test_prompt_with_image")
    async def prompt_with_image() -> list[Message]:
        return [Message(IMAGE), Message("Please analyze the image above.")]

    @made.completion
    async def complete(ref, argument, context) -> list[str]:
        return ["paris", "park", "party"]

    return made


def app():
    """The application, served like `/api/mcp`."""
    served = over_http(server())
    route = Route("/api/mcp", guarded(served, set(), []))
    return Starlette(routes=[route], lifespan=lambda _: served.lifespan(served))
