"""Schemas of the OpenAPI document, and the Python types of their values."""

from __future__ import annotations

from typing import Any

Schema = dict[str, Any]

BUILTIN = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "object": "dict[str, Any]"}


def python_type(schema: Schema, prefix: str, array: str = "list") -> str:
    """Return the Python type of a schema. `prefix` is put before the name of a record."""
    if "$ref" in schema:
        return prefix + referred(schema)
    if "enum" in schema:
        return "Literal[" + ", ".join(f'"{value}"' for value in schema["enum"]) + "]"
    options = [option for option in schema.get("anyOf", []) if "type" in option or "$ref" in option or "enum" in option]
    if options:
        kinds = [python_type(option, prefix, array) for option in options if option.get("type") != "null"]
        return " | ".join([*kinds, *(["None"] if len(kinds) < len(options) else [])])
    if schema.get("type") == "array":
        return f"{array}[{python_type(schema['items'], prefix, array)}]"
    if isinstance(schema.get("additionalProperties"), dict):
        return f"dict[str, {python_type(schema['additionalProperties'], prefix, array)}]"
    return BUILTIN[schema["type"]]


def referred(schema: Schema) -> str:
    """Return the name of the component that a reference is to."""
    name: str = schema["$ref"].rpartition("/")[2]
    return name


def resolved(document: Schema, schema: Schema) -> Schema:
    """Return the schema that a reference is to."""
    found: Schema = document["components"]["schemas"][referred(schema)]
    return found


def reachable(document: Schema, schema: Any) -> set[str]:
    """Return the names of the schemas that one refers to, directly or through others."""
    found: set[str] = set()

    def follow(part: Any) -> None:
        if isinstance(part, dict):
            if "$ref" in part and (name := referred(part)) not in found:
                found.add(name)
                follow(resolved(document, part))
            part = list(part.values())
        if isinstance(part, list):
            for each in part:
                follow(each)

    follow(schema)
    return found


def option_description(schema: Schema) -> str:
    """Return the description that one of a schema's alternatives has."""
    return next((option["description"] for option in schema.get("anyOf", []) if "description" in option), "")
