"""What the API offers its clients, as lines: operations, parameters, and fields of answers.

`python -m tests.api.openapi.contract > tests/api/openapi/released.txt` when a release is made.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from api.openapi.document import document

if TYPE_CHECKING:
    from collections.abc import Iterator

REQUIRED = " required"


def contract(described: dict[str, Any]) -> set[str]:
    """Return the lines of an OpenAPI document."""
    return {*_operations(described["paths"]), *_fields(described["components"]["schemas"])}


def _operations(paths: dict[str, Any]) -> Iterator[str]:
    for path, methods in paths.items():
        for method, operation in methods.items():
            if not isinstance(operation, dict) or "responses" not in operation:
                continue
            name = f"{method.upper()} {path}"
            for status, answer in operation["responses"].items():
                for media, content in answer.get("content", {}).items():
                    if status.startswith("2"):
                        yield f"{name} {status} {media} {_type(content.get('schema', {}))}"
            yield name
            for given in operation.get("parameters", []):
                if "$ref" not in given:
                    required = REQUIRED if given.get("required") else ""
                    yield f"{name} {given['in']} {given['name']}{required}"


def _fields(schemas: dict[str, Any]) -> Iterator[str]:
    for name, schema in schemas.items():
        for field, of in schema.get("properties", {}).items():
            yield f"{name}.{field} {_type(of)}"


def _type(schema: dict[str, Any]) -> str:
    """Return a schema's type, without what only describes it."""
    if "$ref" in schema:
        return str(schema["$ref"].rpartition("/")[2])
    if several := schema.get("anyOf") or schema.get("oneOf"):
        return "|".join(sorted({_type(each) for each in several}))
    if "items" in schema and isinstance(schema["items"], dict):
        return f"[{_type(schema['items'])}]"
    kind = schema.get("type", "text" if "enum" in schema else "any")
    return "|".join(sorted(kind)) if isinstance(kind, list) else str(kind)


if __name__ == "__main__":
    print("\n".join(sorted(contract(document()))))
