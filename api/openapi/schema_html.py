"""Renders JSON schemas as HTML text."""

from __future__ import annotations

import re
from html import escape
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

CODE = re.compile(r"`([^`]+)`")
BOUNDS = {
    "minimum": "at least {}",
    "exclusiveMinimum": "more than {}",
    "maximum": "at most {}",
    "minLength": "{} characters or more",
    "maxLength": "up to {} characters",
    "pattern": "matches {}",
    "format": "{}",
}


def prose(text: str) -> str:
    """Return a description as HTML: backticks mark code, an empty line separates paragraphs."""
    paragraphs = [CODE.sub(r"<code>\1</code>", escape(part)) for part in text.split("\n\n") if part.strip()]
    return "".join(f"<p>{paragraph}</p>" for paragraph in paragraphs)


def line(text: str) -> str:
    """Return a description as inline HTML."""
    return CODE.sub(r"<code>\1</code>", escape(text))


def code(value: object) -> str:
    """Return a value as a code element."""
    return f"<code>{escape(str(value))}</code>"


def kind(schema: dict[str, Any]) -> str:
    """Return a schema's type as HTML; a record is linked by name."""
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


def bounds(schema: dict[str, Any], write: Callable[[object], str]) -> list[str]:
    """Return a schema's bounds and default in words; `write` formats each value."""
    parts = [
        pattern.format(write(option[name]))
        for option in (schema, *schema.get("anyOf", ()))
        for name, pattern in BOUNDS.items()
        if name in option
    ]
    return [*parts, f"default {write(schema['default'])}"] if "default" in schema else parts


def limits(schema: dict[str, Any]) -> str:
    """Return a schema's bounds and default as HTML."""
    return ", ".join(bounds(schema, code))


def example(schema: dict[str, Any]) -> str:
    """Return a schema's first example, or an empty string."""
    examples = schema.get("examples") or [None]
    return "" if examples[0] is None else str(examples[0])
