"""Answers made up for the document: of each field its example, or the least that it may be."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

NAMED = "will-it-rain-tomorrow"  # what an answer by name is about
LEAST = {"string": "…", "integer": 1, "number": 1, "boolean": True, "array": [], "object": {}}


def of(schema: Mapping[str, Any], named: Mapping[str, Any]) -> Any:
    """Make up a value; `named` has the schemas that this one refers to.

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
            made = LEAST[schema.get("type", "object")]
    return made
