"""Input and output JSON schemas of tools: self-contained, extracted from the API's OpenAPI document."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

Schema = dict[str, Any]
SCHEMAS, PARAMETERS = "#/components/schemas/", "#/components/parameters/"
WRAPPED = "x-fastmcp-wrap-result"  # tells fastmcp clients to unwrap `result`


@dataclass(frozen=True)
class Input:
    """A tool's input schema, and which arguments go into the path and body; the rest go into the query."""

    schema: Schema
    in_path: frozenset[str]
    in_body: frozenset[str]


def input_of(operation: Schema, components: Schema) -> Input:
    """Return an operation's parameters and body as one object schema."""
    properties: Schema = {}
    required: list[str] = []
    in_path: set[str] = set()
    for given in operation.get("parameters", ()):
        parameter = components["parameters"][given["$ref"].removeprefix(PARAMETERS)] if "$ref" in given else given
        name = parameter["name"]
        properties[name] = {**parameter["schema"], **_description(parameter)}
        if parameter["required"]:
            required.append(name)
        if parameter["in"] == "path":
            in_path.add(name)
    body: Schema = {}
    if "requestBody" in operation:
        body = _resolved(operation["requestBody"]["content"]["application/json"]["schema"], components)
        required += body.get("required", [])
    whole = {
        "type": "object",
        "properties": properties | body.get("properties", {}),
        "required": required,
        "additionalProperties": False,
    }
    return Input(self_contained(whole, components), frozenset(in_path), frozenset(body.get("properties", ())))


def output_of(operation: Schema, components: Schema) -> Schema | None:
    """Return an operation's response as an object schema, which the protocol requires; None if it is not JSON."""
    success = next(response for status, response in operation["responses"].items() if status.startswith("2"))
    for content in success.get("content", {}).values():
        schema = content["schema"]
        whole = _resolved(schema, components)
        if whole.get("type") == "object" or "allOf" in whole:
            return self_contained({**whole, "type": "object"}, components)
        if whole.get("type") != "string":
            wrapped = {"type": "object", "properties": {"result": schema}, "required": ["result"], WRAPPED: True}
            return self_contained(wrapped, components)
    return None


def self_contained(schema: Schema, components: Schema) -> Schema:
    """Return a schema with everything that it refers to in `$defs`."""
    needed: Schema = {}

    def moved(part: Any) -> Any:
        if isinstance(part, list):
            return [moved(each) for each in part]
        if not isinstance(part, dict):
            return part
        if isinstance(reference := part.get("$ref"), str):
            name = reference.removeprefix(SCHEMAS)
            if name not in needed:
                needed[name] = {}  # placeholder, so that a self-reference ends the recursion
                needed[name] = moved(components["schemas"][name])
            return {**part, "$ref": f"#/$defs/{name}"}
        return {key: moved(value) for key, value in part.items()}

    whole: Schema = moved(schema)
    return {**whole, "$defs": dict(sorted(needed.items()))} if needed else whole


def _resolved(schema: Schema, components: Schema) -> Schema:
    found: Schema = components["schemas"][schema["$ref"].removeprefix(SCHEMAS)] if "$ref" in schema else schema
    return found


def _description(parameter: Schema) -> Schema:
    return {"description": parameter["description"]} if "description" in parameter else {}
