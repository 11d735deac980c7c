"""Generates example responses for the document: each field's example, or a minimal value."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

NAMED = "will-it-rain-tomorrow"  # the key in example objects
MINIMAL = {"string": "…", "integer": 1, "number": 1, "boolean": True, "array": [], "object": {}}


def of(schema: Mapping[str, Any], named: Mapping[str, Any]) -> Any:
    """Return an example value of a schema; `named` holds the schemas that it refers to.

    >>> of({"type": "array", "items": {"$ref": "#/components/schemas/Side"}}, {"Side": {"enum": ["BUY", "SELL"]}})
    ['BUY']
    """
    made: Any
    match schema:
        case {"examples": [made, *_]}:
            pass
        case {"$ref": name}:
            made = of(named[name.rpartition("/")[2]], named)
        case {"enum": values}:
            made = next(value for value in values if value is not None)
        case {"anyOf": [first, *_]}:  # null is the last
            made = of(first, named)
        case {"properties": fields}:
            made = {
                name: of(field, named)
                for name, field in fields.items()
                if name in schema.get("required", ()) or "examples" in field or field.get("default") is not None
            }
        case {"items": dict(inner)}:
            made = [of(inner, named)]
        case {"additionalProperties": dict(inner)}:
            made = {NAMED: of(inner, named)}
        case _:
            made = MINIMAL[schema.get("type", "object")]
    return made
