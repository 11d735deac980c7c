"""Renders the API reference page from an OpenAPI document."""

from __future__ import annotations

import base64
import hashlib
import json
from html import escape
from importlib import resources
from typing import TYPE_CHECKING, Any

from api.openapi.schema_html import code, example, kind, limits, line, prose

if TYPE_CHECKING:
    from collections.abc import Sequence

Document = dict[str, Any]


class ReferencePage:
    """The HTML page of a document and its Content-Security-Policy."""

    def __init__(self, document: Document) -> None:
        files = resources.files(__package__)
        style, script = ((files / name).read_text() for name in ("style.css", "script.js"))
        self._document = document
        self.html = self._whole(style, script).encode()
        self.policy = "; ".join(
            (
                "default-src 'none'",
                f"style-src {_digest(style)}",
                f"script-src {_digest(script)}",
                "connect-src 'self'",
                "base-uri 'none'",
                "form-action 'none'",
                "frame-ancestors 'none'",
            )
        )

    def _whole(self, style: str, script: str) -> str:
        info = self._document["info"]
        operations = {
            tag["name"]: [each for each in self._operations() if tag["name"] in each[2]["tags"]]
            for tag in self._document["tags"]
        }
        about = {tag["name"]: tag.get("description", "") for tag in self._document["tags"]}
        sections = "".join(
            f'<section><h2 id="tag-{escape(tag)}">{escape(tag)}</h2>{prose(about[tag])}'
            + "".join(self._operation(*each) for each in found)
            + "</section>"
            for tag, found in operations.items()
            if found
        )
        return (
            '<!doctype html><html lang="en"><head><meta charset="utf-8">'
            '<meta name="viewport" content="width=device-width, initial-scale=1">'
            f"<title>{escape(info['title'])}: API reference</title><style>{style}</style></head><body>"
            f"{self._contents(operations)}<main><header><h1>{escape(info['title'])}"
            f" <small>{escape(info['version'])}</small></h1>{prose(info['description'])}"
            '<p><a href="/openapi.json">openapi.json</a></p>'
            '<label class="key">API key <input id="key" type="password" autocomplete="off" spellcheck="false"'
            ' placeholder="psg_…"></label> <small>stays in this tab</small></header>'
            f"{sections}{self._schemas()}</main><script>{script}</script></body></html>"
        )

    def _operations(self) -> list[tuple[str, str, dict[str, Any]]]:
        return [
            (method.upper(), path, operation)
            for path, methods in self._document["paths"].items()
            for method, operation in methods.items()
        ]

    def _contents(self, operations: dict[str, list[tuple[str, str, dict[str, Any]]]]) -> str:
        lists = "".join(
            f'<h3><a href="#tag-{escape(tag)}">{escape(tag)}</a></h3><ul>'
            + "".join(
                f'<li><a href="#{operation["operationId"]}" title="{escape(method)} {escape(path)}">'
                f"{escape(operation['summary'])}</a></li>"
                for method, path, operation in found
            )
            + "</ul>"
            for tag, found in operations.items()
            if found
        )
        return f'<nav><input id="find" type="search" placeholder="Find" aria-label="Find">{lists}</nav>'

    def _operation(self, method: str, path: str, operation: dict[str, Any]) -> str:
        name = operation["operationId"]
        parameters = [self._resolved(each) for each in operation.get("parameters", [])]
        body = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema")
        parts = [
            f'<article id="{name}"><h3><span class="{method.lower()}">{method}</span> {code(path)}</h3>',
            f"<p><strong>{line(operation['summary'])}</strong></p>{prose(operation.get('description', ''))}",
            f"<p><small>Credits: {line(str(operation['x-credits']))}. {self._secured(operation)}</small></p>",
        ]
        if parameters:
            parts.append(_table(("Parameter", "Type", "", "Meaning"), [_parameter(each) for each in parameters]))
        if body is not None:
            parts.append(f"<p>Body: {kind(body)}</p>")
        parts.append(self._answers(operation))
        if "x-messages" in operation:
            messages = _json(operation["x-messages"])
            parts.append(f"<details><summary>Messages</summary><pre>{messages}</pre></details>")
        else:
            parts.append(self._form(method, path, parameters, body, operation))
        return "".join(parts) + "</article>"

    def _secured(self, operation: dict[str, Any]) -> str:
        schemes = self._document["components"]["securitySchemes"]
        security = operation["security"] if "security" in operation else self._document["security"]
        names = [
            f"{code(schemes[name]['name'])} in the {escape(schemes[name]['in'])}" for each in security for name in each
        ]
        return f"Needs {' or '.join(names)}." if names else "Needs no key."

    def _answers(self, operation: dict[str, Any]) -> str:
        rows = []
        for status, response in operation["responses"].items():
            whole = self._resolved(response)
            content = whole.get("content", {})
            of = ", ".join(
                f"{kind(each.get('schema', {}))} <small>{escape(media)}</small>" for media, each in content.items()
            )
            shown = "".join(f"<pre>{_json(each['example'])}</pre>" for each in content.values() if "example" in each)
            rows.append((code(status), line(whole["description"]), of + shown))
        return f"<details><summary>Answers</summary>{_table(('Status', '', 'Body'), rows)}</details>"

    def _form(
        self, method: str, path: str, parameters: list[Document], body: Document | None, operation: Document
    ) -> str:
        fields = "".join(
            f'<label>{escape(each["name"])}{"*" if each["required"] else ""} <input name="{escape(each["name"])}"'
            f' data-in="{escape(each["in"])}" placeholder="{escape(example(each["schema"]))}"></label>'
            for each in parameters
        )
        if body is not None:
            given = {
                name: example(field)
                for name, field in self._resolved(body)["properties"].items()
                if name in self._resolved(body).get("required", ())
            }
            fields += (
                f'<label>body <textarea name="body" rows="5">{escape(json.dumps(given, indent=2))}</textarea></label>'
            )
        debug = any("DebugToken" in each for each in operation.get("security", ()))
        if debug:
            fields += '<label>X-Debug-Token <input name="X-Debug-Token" data-in="header" type="password"></label>'
        return (
            f'<details><summary>Try it</summary><form data-method="{method}" data-path="{escape(path)}">'
            f'{fields}<button>Send</button></form><pre class="answer" hidden></pre></details>'
        )

    def _schemas(self) -> str:
        return (
            "<section><h2>Records</h2>"
            + "".join(self._schema(name, schema) for name, schema in self._document["components"]["schemas"].items())
            + "</section>"
        )

    def _schema(self, name: str, schema: Document) -> str:
        beyond = [part for part in schema.get("allOf", ()) if "$ref" in part]
        own = next((part for part in schema.get("allOf", ()) if "$ref" not in part), schema)
        fields = [
            (code(field), kind(of), limits(of), line(of.get("description", "")))
            for field, of in own.get("properties", {}).items()
        ]
        also = f"<p>All of {', '.join(map(kind, beyond))}, and:</p>" if beyond else ""
        return (
            f'<article id="schema-{escape(name)}"><h3>{escape(name)}</h3>{prose(schema.get("description", ""))}{also}'
            f"{_table(('Field', 'Type', '', 'Meaning'), fields)}</article>"
        )

    def _resolved(self, part: Document) -> Document:
        while "$ref" in part:
            found: Any = self._document
            for name in part["$ref"].split("/")[1:]:
                found = found[name]
            part = found
        return part


def _parameter(parameter: Document) -> tuple[str, str, str, str]:
    schema = parameter["schema"]
    name = f"{code(parameter['name'])}{' <em>required</em>' if parameter['required'] else ''}"
    return name, kind(schema), limits(schema), line(parameter.get("description", ""))


def _table(heads: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    head = "".join(f"<th>{each}</th>" for each in heads)
    body = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _json(value: Any) -> str:
    return escape(json.dumps(value, indent=2, ensure_ascii=False))


def _digest(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
