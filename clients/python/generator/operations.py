"""Operations of the OpenAPI document: rows of `_endpoints.py`, and methods of both clients."""

from __future__ import annotations

import textwrap
from functools import cached_property
from typing import NamedTuple

from generator.arguments import Argument, in_body, in_path, in_query, mapping
from generator.schemas import Schema, python_type, resolved
from generator.text import WIDTH, docstring, sentence

WEBSOCKET = "101"  # such operations are written by hand, in client.py and async_client.py
DESCRIPTIONS = {  # instead of the document's
    "export_file": "Held in memory as a whole; `download_file` writes it to disk and resumes after a lost connection."
}


class Variant(NamedTuple):
    """What the synchronous and the asynchronous client differ in."""

    package: str
    prefix: str  # of its classes
    iterator: str
    define: str
    wait: str


VARIANTS = (
    Variant("_operations", "", "Iterator", "def", ""),
    Variant("_async_operations", "Async", "AsyncIterator", "async def", "await "),
)


class Operation:
    """One operation of the document."""

    def __init__(self, document: Schema, method: str, path: str, described: Schema) -> None:
        self.document, self.method, self.path, self.described = document, method.upper(), path, described
        self.name: str = described["operationId"]
        self.tag: str = described["tags"][0]
        self.constant = self.name.upper()
        self.status, self.success = next((s, a) for s, a in described["responses"].items() if s < "3")

    @cached_property
    def parameters(self) -> list[Schema]:
        """Its parameters, references resolved."""
        shared = self.document["components"]["parameters"]
        given: list[Schema] = self.described.get("parameters", [])
        return [shared[p["$ref"].rpartition("/")[2]] if "$ref" in p else p for p in given]

    @cached_property
    def path_arguments(self) -> list[Argument]:
        return [in_path(parameter) for parameter in self.parameters if parameter["in"] == "path"]

    @cached_property
    def query_arguments(self) -> list[Argument]:
        return [in_query(parameter) for parameter in self.parameters if parameter["in"] == "query"]

    @cached_property
    def body_arguments(self) -> list[Argument]:
        if "requestBody" not in self.described:
            return []
        schema = resolved(self.document, self.described["requestBody"]["content"]["application/json"]["schema"])
        required = schema.get("required", [])
        return [in_body(name, field, required=name in required) for name, field in schema["properties"].items()]

    @cached_property
    def media(self) -> tuple[str, Schema]:
        """The media type of its answers, and their schema."""
        ((media, content),) = self.success["content"].items()
        return media, content["schema"]

    @cached_property
    def answers(self) -> str:
        """The type of its answers, as msgspec decodes it."""
        media, schema = self.media
        if media.startswith("application/octet-stream"):
            return "bytes"
        return python_type(schema, "records.", "list")

    @cached_property
    def item(self) -> str | None:
        """The type of the elements of an answer that is an array."""
        return python_type(self.media[1]["items"], "records.") if self.media[1].get("type") == "array" else None

    @property
    def returns(self) -> str:
        return f"Records[{self.item}]" if self.item else self.answers

    @property
    def auth(self) -> str:
        default: list[Schema] = self.document["security"]
        schemes = {name for option in self.described.get("security", default) for name in option}
        return "debug" if "DebugToken" in schemes else "key" if schemes else "none"

    @property
    def page_item(self) -> str | None:
        """The type that a list with a cursor iterates over."""
        if not any(argument.wire == "cursor" for argument in self.query_arguments):
            return None
        page = resolved(self.document, self.media[1])
        return python_type(page["properties"]["data"]["items"], "records.")

    @property
    def row(self) -> str:
        """Its row in `_endpoints.py`."""
        more = [f"item={self.item if self.item.startswith('records.') else 'dict'}"] if self.item else []
        more += [f'auth="{self.auth}"'] if self.auth != "key" else []
        more += ["json=False"] if self.answers in {"str", "bytes"} else []
        given = ", ".join([f'"{self.method}"', f'"{self.path}"', self.answers, *more])
        return f"{self.constant}: Endpoint[{self.returns}] = Endpoint({given})"

    def methods(self, variant: Variant) -> str:
        """Return its method, and its iterator if it has a cursor."""
        given = self._given(self.query_arguments)
        given += f", {mapping(self.body_arguments)}" if "requestBody" in self.described else ""
        arguments = [*self.path_arguments, *self.query_arguments, *self.body_arguments]
        method = _method(
            f"{variant.define} {self.name}",
            arguments,
            self.returns,
            self._docstring(arguments),
            f"return {variant.wait}self._call({given})",
        )
        if self.page_item is None:
            return method
        query = [argument for argument in self.query_arguments if argument.wire != "offset"]
        return method + _method(
            f"def iter_{self.name}",
            [*self.path_arguments, *query],
            f"{variant.iterator}[{self.page_item}]",
            [f"Iterate over all pages of `{self.name}`: `limit` is the size of a page."],
            f"return self._pages({self._given(query)})",
        )

    def _given(self, query: list[Argument]) -> str:
        return f"_endpoints.{self.constant}, {mapping(self.path_arguments)}, {mapping(query)}"

    def _docstring(self, arguments: list[Argument]) -> list[str]:
        text = [sentence(self.described["summary"])]
        if about := DESCRIPTIONS.get(self.name, self.described.get("description")):
            text += ["", *textwrap.wrap(about, WIDTH - 8)]
        text += ["", *textwrap.wrap(f"Credits: {self.described['x-credits']}.", WIDTH - 8)]
        if any(argument.about for argument in arguments):
            text += ["", "Args:"]
        for argument in arguments:
            if argument.about:
                line = f"    {argument.name}: {argument.about}"
                text += textwrap.wrap(line, WIDTH - 8, subsequent_indent=" " * 8)
        return text


def operations_of(document: Schema) -> list[Operation]:
    """Return the operations that are requests, in the document's order."""
    operations = [
        Operation(document, method, path, described)
        for path, methods in document["paths"].items()
        for method, described in methods.items()
    ]
    return [operation for operation in operations if operation.status != WEBSOCKET]


def _method(begin: str, arguments: list[Argument], returns: str, text: list[str], body: str) -> str:
    first = [argument.declared for argument in arguments if argument.default is None]
    rest = [argument.declared for argument in arguments if argument.default is not None]
    signature = ", ".join(["self", *first, *(["*", *rest] if rest else [])])
    return f"\n    {begin}({signature}) -> {returns}:\n{docstring(text, 8)}        {body}\n"
