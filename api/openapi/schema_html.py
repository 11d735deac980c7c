"""Words for what a JSON schema says, as HTML."""

from __future__ import annotations

import re
from html import escape
from typing import Any

CODE = re.compile(r"`([^`]+)`")
BOUNDS = {
    "minimum": "at least {}",
    "maximum": "at most {}",
    "minLength": "{} characters or more",
    "maxLength": "up to {} characters",
    "pattern": "matches {}",
    "format": "{}",
}


def prose(text: str) -> str:
    """Give a description: what stands in backticks is code, an empty line makes a paragraph."""
    paragraphs = [CODE.sub(r"<code>\1</code>", escape(part)) for part in text.split("\n\n") if part.strip()]
    return "".join(f"<p>{paragraph}</p>" for paragraph in paragraphs)


def line(text: str) -> str:
    """Give a description within a line."""
    return CODE.sub(r"<code>\1</code>", escape(text))


def code(value: object) -> str:
    """Give a value as it is written."""
    return f"<code>{escape(str(value))}</code>"


def kind(schema: dict[str, Any]) -> str:
    """Say of what type a value is; a record is named and linked."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return f'<a href="#schema-{escape(name)}">{escape(name)}</a>'
    if "enum" in schema:
        return " | ".join(code(value) for value in schema["enum"])
    options = schema.get("anyOf") or schema.get("oneOf")
    if options and any(option.keys() & {"type", "$ref", "enum"} for option in options):
        return " or ".join(dict.fromkeys(map(kind, options)))
    of, inner = schema.get("type", "any"), schema.get("items") or schema.get("additionalProperties")
    if of in {"array", "object"} and isinstance(inner, dict):
        return f"{'list' if of == 'array' else 'object'} of {kind(inner)}"
    return escape(of)


def limits(schema: dict[str, Any]) -> str:
    """Say what bounds a value has, and its default."""
    told = [pattern.format(code(schema[name])) for name, pattern in BOUNDS.items() if name in schema]
    for option in schema.get("anyOf", ()):
        told += [pattern.format(code(option[name])) for name, pattern in BOUNDS.items() if name in option]
    if "default" in schema:
        told.append(f"default {code(schema['default'])}")
    return ", ".join(told)


def example(schema: dict[str, Any]) -> str:
    """Give an example of a value, if there is one."""
    examples = schema.get("examples") or [None]
    return "" if examples[0] is None else str(examples[0])
