"""What tools take and give, as JSON schemas that stand alone: cut from the API's own document."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

Schema = dict[str, Any]
SCHEMAS, PARAMETERS = "#/components/schemas/", "#/components/parameters/"
WRAPPED = "x-fastmcp-wrap-result"  # clients of fastmcp unwrap `result` by it


@dataclass(frozen=True)
class Input:
    """What a tool takes, and where in the request each of it goes; the rest goes into the query."""

    schema: Schema
    in_path: frozenset[str]
    in_body: frozenset[str]


def taken(operation: Schema, components: Schema) -> Input:
    """Describe an operation's parameters and its body as one object."""
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
        body = _looked_up(operation["requestBody"]["content"]["application/json"]["schema"], components)
        required += body.get("required", [])
    whole = {
        "type": "object",
        "properties": properties | body.get("properties", {}),
        "required": required,
        "additionalProperties": False,
    }
    return Input(standing_alone(whole, components), frozenset(in_path), frozenset(body.get("properties", ())))


def given(operation: Schema, components: Schema) -> Schema | None:
    """Describe what an operation answers: an object, as the protocol wants it; None where it is not JSON."""
    success = next(said for status, said in operation["responses"].items() if status.startswith("2"))
    for content in success.get("content", {}).values():
        schema = content["schema"]
        whole = _looked_up(schema, components)
        if whole.get("type") == "object" or "allOf" in whole:
            return standing_alone({**whole, "type": "object"}, components)
        if whole.get("type") != "string":
            wrapped = {"type": "object", "properties": {"result": schema}, "required": ["result"], WRAPPED: True}
            return standing_alone(wrapped, components)
    return None


def standing_alone(schema: Schema, components: Schema) -> Schema:
    """Give a schema with all that it refers to inside of it."""
    needed: Schema = {}

    def moved(part: Any) -> Any:
        if isinstance(part, list):
            return [moved(each) for each in part]
        if not isinstance(part, dict):
            return part
        if isinstance(reference := part.get("$ref"), str):
            name = reference.removeprefix(SCHEMAS)
            if name not in needed:
                needed[name] = {}  # one that refers to itself is met again
                needed[name] = moved(components["schemas"][name])
            return {**part, "$ref": f"#/$defs/{name}"}
        return {key: moved(value) for key, value in part.items()}

    whole: Schema = moved(schema)
    return {**whole, "$defs": dict(sorted(needed.items()))} if needed else whole


def _looked_up(schema: Schema, components: Schema) -> Schema:
    found: Schema = components["schemas"][schema["$ref"].removeprefix(SCHEMAS)] if "$ref" in schema else schema
    return found


def _description(parameter: Schema) -> Schema:
    return {"description": parameter["description"]} if "description" in parameter else {}
