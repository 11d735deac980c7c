"""The API reference: one Markdown page per operation, generated from the OpenAPI document."""

from __future__ import annotations

import json
from shlex import quote
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlencode

from api.openapi import examples
from api.openapi.schema_html import bounds

if TYPE_CHECKING:
    from collections.abc import Iterable

Document = dict[str, Any]


class ReferenceOperation(NamedTuple):
    """An operation of the API, as the document describes it."""

    name: str
    method: str
    path: str
    tag: str
    summary: str
    spec: Document

    @property
    def url(self) -> str:
        """Return the path of its page."""
        return f"/reference/{self.name}"

    @property
    def credits(self) -> str:
        """Return its cost in credits."""
        return str(self.spec["x-credits"])


class Reference:
    """The operations, by tag and by name."""

    def __init__(self, document: Document) -> None:
        self.document = document
        self.operations = {each.name: each for each in _operations(document)}
        self.tags = {tag["name"]: tag.get("description", "") for tag in document["tags"]}

    @property
    def groups(self) -> list[tuple[str, str, list[ReferenceOperation]]]:
        """List the operations by tag."""
        found = (
            (tag, about, [each for each in self.operations.values() if each.tag == tag])
            for tag, about in self.tags.items()
        )
        return [group for group in found if group[2]]

    def markdown(self, operation: ReferenceOperation, api_url: str) -> str:
        """Return one operation's page as Markdown."""
        spec = operation.spec
        parts = [
            f"# {operation.summary}",
            f"`{operation.method} {operation.path}`",
            spec.get("description", ""),
            f"Credits: {spec['x-credits']}. {self._secured(spec)}",
        ]
        parameters = [self._resolved(each) for each in spec.get("parameters", [])]
        if parameters:
            parts += [
                "## Parameters",
                _table(("Name", "In", "Type", "Bounds", "Meaning"), map(self._parameter, parameters)),
            ]
        body = self._body(spec)
        if body:
            rows = self._fields(body, body.get("required", ()))
            parts += ["## Body", _table(("Field", "Type", "Bounds", "Meaning"), rows)]
        parts += ["## Example", self._example(operation, parameters, body, api_url)]
        parts += ["## Responses", *self._answers(spec)]
        if "x-messages" in spec:
            parts += ["## Messages", _code("json", json.dumps(spec["x-messages"], indent=2, ensure_ascii=False))]
        return "\n\n".join(part for part in parts if part) + "\n"

    def _secured(self, spec: Document) -> str:
        schemes = self.document["components"]["securitySchemes"]
        security = spec["security"] if "security" in spec else self.document["security"]
        names = [f"`{schemes[name]['name']}` ({schemes[name]['in']})" for each in security for name in each]
        return f"Needs {' or '.join(names)}." if names else "Needs no key."

    def _parameter(self, parameter: Document) -> tuple[str, ...]:
        schema = parameter["schema"]
        required = "required" if parameter["required"] else ""
        limits = ", ".join(each for each in (required, _limits(schema)) if each)
        return f"`{parameter['name']}`", parameter["in"], _type(schema), limits, _line(parameter.get("description", ""))

    def _body(self, spec: Document) -> Document:
        schema = spec.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema", {})
        return self._resolved(schema)

    def _fields(self, schema: Document, required: Iterable[str] = ()) -> list[tuple[str, ...]]:
        rows: list[tuple[str, ...]] = []
        for name, field in self._properties(schema).items():
            limits = ", ".join(each for each in ("required" if name in set(required) else "", _limits(field)) if each)
            rows.append((f"`{name}`", _type(field), limits, _line(field.get("description", ""))))
        return rows

    def _answers(self, spec: Document) -> list[str]:
        parts, failures = [], []
        for status, given in spec["responses"].items():
            response = self._resolved(given)
            schemas = [(media, each.get("schema", {})) for media, each in response.get("content", {}).items()]
            if int(status) >= 300:
                failures.append((f"`{status}`", _line(response["description"])))
                continue
            for media, schema in schemas or [("", {})]:
                of = f": {_type(schema)} (`{media}`)" if media else ""
                parts.append(f"`{status}` {response['description']}{of}")
                record = self._record(schema)
                if record and self._properties(record):
                    parts.append(_table(("Field", "Type", "Bounds", "Meaning"), self._fields(record)))
                if media == "application/json" and schema:
                    example = response["content"][media]["example"]
                    parts.append(_code("json", json.dumps(example, indent=2, ensure_ascii=False)))
        return [*parts, _table(("Status", "Meaning"), failures)] if failures else parts

    def _record(self, schema: Document) -> Document:
        """Return the record schema of a response, inside a list or by itself."""
        found = self._resolved(schema)
        inner = found.get("items") or found.get("additionalProperties")
        return self._record(inner) if isinstance(inner, dict) else found

    def _properties(self, schema: Document) -> Document:
        found: Document = {}
        for part in schema.get("allOf", ()):
            found |= self._properties(self._resolved(part))
        found |= schema.get("properties", {})
        return found

    def _example(self, operation: ReferenceOperation, parameters: list[Document], body: Document, api_url: str) -> str:
        path = operation.path
        query = {}
        for each in parameters:
            value = (each["schema"].get("examples") or [None])[0]
            if each["in"] == "path":
                usual = "will-it-rain-tomorrow" if "/markets/" in path or "/debug/" in path else each["name"].upper()
                path = path.replace(f"{{{each['name']}}}", str(value or usual))
            elif each["required"]:
                query[each["name"]] = value if value is not None else examples.of(each["schema"], {})
        security = operation.spec["security"] if "security" in operation.spec else self.document["security"]
        if operation.spec["responses"].get("101"):
            asked = urlencode({**query, "api_key": ""})
            return _code("sh", f"websocat '{api_url.replace('http', 'ws', 1)}{path}?{asked}'\"$KEY\"")
        url = f"{api_url}{path}{f'?{urlencode(query)}' if query else ''}"
        words = ["curl", "-s", *(["-X", operation.method] if operation.method != "GET" else [])]
        line = " ".join(words)
        if security and "DebugToken" in security[0]:
            line += ' -H "X-Debug-Token: $TOKEN"'
        elif security:
            line += ' -H "X-API-Key: $KEY"'
        if body:
            schemas = self.document["components"]["schemas"]
            needed = {name: examples.of(body["properties"][name], schemas) for name in body.get("required", ())}
            line += f" -H 'Content-Type: application/json' -d {quote(json.dumps(needed))}"
        return _code("sh", f"{line} {quote(url)}")

    def _resolved(self, part: Document) -> Document:
        while "$ref" in part:
            found: Any = self.document
            for name in part["$ref"].split("/")[1:]:
                found = found[name]
            part = found
        return part


def _operations(document: Document) -> Iterable[ReferenceOperation]:
    for path, methods in document["paths"].items():
        for method, spec in methods.items():
            yield ReferenceOperation(spec["operationId"], method.upper(), path, spec["tags"][0], spec["summary"], spec)


def _type(schema: Document) -> str:
    if "$ref" in schema:
        return str(schema["$ref"].rpartition("/")[2])
    if "enum" in schema:
        return ", ".join(f"`{each}`" for each in schema["enum"])
    options = schema.get("anyOf") or schema.get("oneOf")
    if options and any(option.keys() & {"type", "$ref", "enum"} for option in options):
        return " or ".join(dict.fromkeys(map(_type, options)))
    inner = schema.get("items") or schema.get("additionalProperties")
    of = str(schema.get("type", "any"))
    if of in {"array", "object"} and isinstance(inner, dict):
        return f"{'list' if of == 'array' else 'object'} of {_type(inner)}"
    return of


def _limits(schema: Document) -> str:
    return ", ".join(bounds(schema, lambda value: f"`{_line(str(value))}`"))


def _line(text: str) -> str:
    """Return Markdown text on one line, escaped for a table cell."""
    return " ".join(text.split()).replace("|", "\\|")


def _table(heads: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [heads, ("---",) * len(heads), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _code(language: str, text: str) -> str:
    return f"```{language}\n{text}\n```"
