"""Builds the OpenAPI 3.1 document from the endpoint table: `python -m api.openapi.document` prints it."""

from __future__ import annotations

import inspect
from functools import cache
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, get_args, get_origin

import msgspec

from api.endpoints.base.endpoint import JSON
from api.endpoints.table import ENDPOINTS
from api.errors import CATALOGUE, MEDIA_TYPE
from api.openapi import examples
from api.schemas import records
from api.schemas.requests import fields, schema_of
from api.stream import messages

if TYPE_CHECKING:
    from collections.abc import Iterable

    from api.endpoints.base.endpoint import Endpoint

REF = "#/components/schemas/{name}"
PATH_DESCRIPTIONS = {
    "id": "The market: its market_id, its slug, or the exchange's numeric id",
}
ADDRESS = {"type": "string", "pattern": "^0x[0-9a-fA-F]{40}$", "examples": ["0x" + "5d" * 20]}
USUAL = ("invalid_parameter", "unknown_parameter")  # of a bad request
# Responses to requests that are refused before routing.
UNREAD = {414: "The request line is longer than 8,192 bytes", 431: "The headers are longer than 16,384 bytes"}
ALSO = {"upstream_unavailable": (504,)}  # when the exchange does not respond in time
TAGS = {
    "Keys": "Registering and rotating API keys.",
    "Service": "The service itself: health, time, totals, data freshness and coverage.",
    "Markets": "Markets: lists, search, rankings and detail.",
    "Prices": "Prices, candles and order books, live and historical.",
    "Trades": "Trades of a market or of all markets.",
    "Charts": "A data feed for TradingView's charting library (UDF protocol).",
    "Signals": "Signals: values beyond their thresholds.",
    "Taxonomy": "Events, categories, tags and series.",
    "Equivalents": "Markets of other exchanges that may ask the same question.",
    "Positions": "Positions, as reported by the exchange.",
    "Wallets": "On-chain activity, positions and profit of wallets.",
    "Stream": "Live events and replays over WebSocket.",
    "Webhooks": "Events delivered to your own URL, signed and in order.",
    "Exports": "Full days as Parquet and CSV files.",
    "Debug": "The service's stored state in raw form, for operators.",
}
HEADERS: dict[str, dict[str, Any]] = {
    "X-Credits-Limit": {"description": "Credits of the key in a month", "schema": {"type": "string"}},
    "X-Credits-Remaining": {"description": "Credits left this month", "schema": {"type": "string"}},
    "X-Credits-Used": {"description": "Credits used this month", "schema": {"type": "string"}},
    "X-Credits-Reset": {"description": "When the next month begins: Unix seconds, UTC", "schema": {"type": "string"}},
    "X-Request-Cost": {"description": "Credits that this request cost", "schema": {"type": "string"}},
    "X-Request-Id": {"description": "The request's id, to quote in a report", "schema": {"type": "string"}},
    "X-Replica-Lag": {
        "description": "Seconds that the database's replica was behind lately; absent if the primary answered",
        "schema": {"type": "string", "examples": ["0.214"]},
    },
    "RateLimit-Policy": {
        "description": "Credits of the key per second (q); absent if unlimited",
        "schema": {"type": "string", "examples": ['"burst";q=25;w=1']},
    },
    "RateLimit": {
        "description": "Credits left in this second (r), and seconds until the next one (t)",
        "schema": {"type": "string", "examples": ['"burst";r=24;t=1']},
    },
    "Retry-After": {"description": "Seconds until a retry may succeed", "schema": {"type": "string"}},
}
WAITING = {402, 429, 502, 503, 504}  # statuses that carry Retry-After
INTRODUCTION = """Complete recorded history and live data of prediction markets.

Every `/v1` path needs an API key in the header `X-API-Key`; `POST /register` issues one. Each request costs credits
(`x-credits`), limited per second and per month; response headers show what is left. Failed requests and 304 responses
are free.

Prices are probabilities from 0 to 1 and sizes are shares, as JSON numbers; fields that end in `_usd` are US dollars.
`null` means unknown. Fields that end in `_at` or `_time` are Unix seconds, those named `ts` Unix milliseconds. Errors
are `application/problem+json` (RFC 9457); programs should check `code`.
"""


@cache
def document() -> dict[str, Any]:
    """Return the document, made once a process; readers do not change it."""
    paths: dict[str, dict[str, Any]] = {}
    for endpoint in ENDPOINTS:
        paths.setdefault(endpoint.path, {})[endpoint.method.lower()] = _operation(endpoint)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Presage",
            "version": "1.0.0",
            "description": INTRODUCTION,
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "/"}],
        "tags": [{"name": name, "description": text} for name, text in TAGS.items()],
        "security": [{"ApiKey": []}],
        "paths": paths,
        "components": {
            "schemas": _schemas(),
            "parameters": _shared_parameters(),
            "headers": HEADERS,
            "responses": _shared_responses(),
            "securitySchemes": {
                "ApiKey": {"type": "apiKey", "in": "header", "name": "X-API-Key"},
                "ApiKeyQuery": {"type": "apiKey", "in": "query", "name": "api_key"},
                "DebugToken": {"type": "apiKey", "in": "header", "name": "X-Debug-Token"},
            },
        },
    }


@cache
def encoded() -> bytes:
    """Return the document as JSON, encoded once."""
    return msgspec.json.encode(document())


def _operation(endpoint: Endpoint) -> dict[str, Any]:
    said: dict[str, Any] = {
        "operationId": endpoint.name,
        "tags": [endpoint.tag],
        "summary": endpoint.summary,
        "x-credits": endpoint.cost_rule or endpoint.credits,
        "responses": _responses(endpoint),
    }
    if endpoint.description:
        said["description"] = endpoint.description
    if parameters := _parameters(endpoint):
        said["parameters"] = parameters
    if endpoint.body is not None:
        schema = {"$ref": REF.format(name=endpoint.body.__name__)}
        needed = any(field.required for field in msgspec.structs.fields(endpoint.body))
        said["requestBody"] = {"required": needed, "content": {"application/json": {"schema": schema}}}
    if endpoint.key == "none":
        said["security"] = []
    elif endpoint.key == "either":
        said["security"] = [{"ApiKey": []}, {"ApiKeyQuery": []}]
    elif endpoint.key == "debug":
        said["security"] = [{"DebugToken": []}]
    elif endpoint.key == "query":
        said["security"] = [{"ApiKeyQuery": []}]
        said["x-messages"] = _messages()
    return said


def _parameters(endpoint: Endpoint) -> list[dict[str, Any]]:
    said = []
    for parameter in _described(endpoint):
        shared = _shared_parameters().get(parameter["name"])
        said.append({"$ref": f"#/components/parameters/{parameter['name']}"} if parameter == shared else parameter)
    return said


@cache
def _shared_parameters() -> dict[str, dict[str, Any]]:
    """Return the most common definition of each parameter name that several endpoints share."""
    met: dict[str, list[dict[str, Any]]] = {}
    for endpoint in ENDPOINTS:
        for parameter in _described(endpoint):
            met.setdefault(parameter["name"], []).append(parameter)
    usual = {name: max(alike, key=alike.count) for name, alike in met.items()}
    return {name: parameter for name, parameter in sorted(usual.items()) if met[name].count(parameter) > 1}


def _described(endpoint: Endpoint) -> list[dict[str, Any]]:
    said: list[dict[str, Any]] = [
        {
            "name": name,
            "in": "path",
            "required": True,
            "description": endpoint.path_descriptions.get(name) or PATH_DESCRIPTIONS[name],
            "schema": ADDRESS if name == "address" else {"type": "string", "minLength": 1, "maxLength": 500},
        }
        for name in endpoint.path_parameters
    ]
    required = {field.encode_name for field in msgspec.structs.fields(endpoint.parameters) if field.required}
    for name, described in fields(endpoint.parameters).items():
        if endpoint.key in {"query", "either"} and name == "api_key":
            continue  # described by the security scheme
        schema = _without_null(described)
        parameter = {"name": name, "in": "query", "required": name in required, "schema": schema}
        if text := schema.pop("description", None):
            parameter["description"] = text
        said.append(parameter)
    return said


def _without_null(described: dict[str, Any]) -> dict[str, Any]:
    """Return an optional parameter's schema without null, which a query string cannot express."""
    schema = dict(described)
    if options := schema.pop("anyOf", None):
        schema |= next(option for option in options if option.get("type") != "null")
    if schema.get("default", ...) is None:
        del schema["default"]
    if values := schema.get("enum"):
        schema["type"] = "string"
        schema["enum"] = sorted(values)
    return schema


def _responses(endpoint: Endpoint) -> dict[str, Any]:
    said: dict[str, Any] = {str(endpoint.status): _success(endpoint)}
    if endpoint.method == "GET" and endpoint.status == 200:
        said["304"] = {"$ref": "#/components/responses/NotModified"}
    for status, codes in _failures(endpoint):
        said[str(status)] = {"$ref": f"#/components/responses/{_name(status, codes)}"}
    return said


def _failures(endpoint: Endpoint) -> list[tuple[int, tuple[str, ...]]]:
    """Return the error statuses of an endpoint, each with its codes."""
    by_status: dict[int, tuple[str, ...]] = dict.fromkeys(UNREAD, ("invalid_parameter",))
    for code in _codes(endpoint):
        for status in (CATALOGUE[code][0], *ALSO.get(code, ())):
            by_status[status] = (*by_status.get(status, ()), code)
    return sorted(by_status.items())


def _name(status: int, codes: tuple[str, ...]) -> str:
    """Return a response's name: its codes, and its status if that is not the usual one."""
    words = [word for code in codes if code != USUAL[1] for word in code.split("_")]
    return "".join(word.capitalize() for word in words) + ("" if status == CATALOGUE[codes[0]][0] else str(status))


def _failed(status: int, codes: tuple[str, ...]) -> dict[str, Any]:
    description = UNREAD.get(status) or "; ".join(f"`{code}`: {CATALOGUE[code][1].lower()}" for code in codes)
    return {
        "description": description,
        "headers": _headers(status),
        "content": {
            MEDIA_TYPE: {
                "schema": {"$ref": REF.format(name="Problem")},
                "examples": {code: {"value": _example(code, status)} for code in codes},
            }
        },
    }


def _shared_responses() -> dict[str, Any]:
    said = {_name(*failure): _failed(*failure) for endpoint in ENDPOINTS for failure in _failures(endpoint)}
    said["NotModified"] = {"description": "Not modified since the client's copy (If-None-Match)", "headers": _headers()}
    return dict(sorted(said.items()))


def _success(endpoint: Endpoint) -> dict[str, Any]:
    own = {name: {"description": text, "schema": {"type": "string"}} for name, text in endpoint.headers.items()}
    said: dict[str, Any] = {"description": HTTPStatus(endpoint.status).phrase, "headers": _headers() | own}
    if endpoint.answers is not None:
        schema, named = _schema(endpoint.answers)
        said["content"] = {endpoint.media: {"schema": schema}}
        if endpoint.media == JSON:
            said["content"][JSON]["example"] = endpoint.example or examples.of(schema, named)
    return said


def _headers(status: int = 200) -> dict[str, Any]:
    names = [name for name in HEADERS if name != "Retry-After" or status in WAITING]
    return {name: {"$ref": f"#/components/headers/{name}"} for name in names}


def _codes(endpoint: Endpoint) -> Iterable[str]:
    """Return the error codes of an endpoint."""
    codes = [*USUAL]
    codes += (
        []
        if not any(field.required for field in msgspec.structs.fields(endpoint.parameters))
        else ["missing_parameter"]
    )
    codes += {
        "header": ["invalid_api_key", "quota_exhausted", "burst_exceeded"],
        "either": ["invalid_api_key", "quota_exhausted", "burst_exceeded"],
        "query": ["quota_exhausted", "burst_exceeded"],
        "debug": ["forbidden"],
        "none": [],
    }[endpoint.key]
    codes += endpoint.errors
    return dict.fromkeys([*codes, "internal", "overloaded"])


def _example(code: str, status: int) -> dict[str, Any]:
    _, title = CATALOGUE[code]
    return {
        "type": f"urn:presage:problem:{code}",
        "title": title,
        "status": status,
        "detail": title,
        "code": code,
        "hint": None,
        "request_id": "9f86d081884c7d65",
    }


def _schema(kind: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return a type's schema, and the named schemas that it refers to."""
    (schema,), named = msgspec.json.schema_components([kind], ref_template=REF, schema_hook=schema_of)
    return schema, named


def _schemas() -> dict[str, Any]:
    kinds = {records.Problem, *(endpoint.body for endpoint in ENDPOINTS if endpoint.body)}
    for endpoint in ENDPOINTS:
        kinds |= _structs(endpoint.answers)
    _, components = msgspec.json.schema_components(
        sorted(kinds, key=lambda kind: kind.__name__), ref_template=REF, schema_hook=schema_of
    )
    whole = {name: _beyond(records.Market, schema, components) for name, schema in components.items()}
    return dict(sorted(whole.items()))


def _beyond(base: type[msgspec.Struct], schema: dict[str, Any], components: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of a record that extends `base` as `allOf` with a reference."""
    shared = components[base.__name__]["properties"]
    properties = schema.get("properties", {})
    if shared == properties or any(properties.get(name) != field for name, field in shared.items()):
        return schema
    more = {"properties": {name: field for name, field in properties.items() if name not in shared}}
    required = [name for name in schema["required"] if name not in shared]
    about: dict[str, Any] = {name: schema[name] for name in ("title", "description") if name in schema}
    return {
        **about,
        "allOf": [{"$ref": REF.format(name=base.__name__)}, {"type": "object", **more, "required": required}],
    }


def _structs(kind: Any) -> set[Any]:
    if inspect.isclass(kind) and issubclass(kind, msgspec.Struct):
        return {kind}
    return {found for part in get_args(kind) for found in _structs(part)} if get_origin(kind) else set()


def _messages() -> dict[str, Any]:
    """Return examples of the stream's messages."""
    return {
        "client": {
            "subscribe": {"action": "subscribe", "markets": ["0x…"], "types": ["trade", "price"], "resume_from": 1234},
            "unsubscribe": {"action": "unsubscribe", "markets": ["0x…"]},
            "subscribe_wallet": {"action": "subscribe_wallet", "wallets": ["0x…"]},
            "unsubscribe_wallet": {"action": "unsubscribe_wallet", "wallets": ["0x…"]},
            "ping": {"action": "ping"},
        },
        "types": list(get_args(messages.Type)),
        "event": {"type": "trade", "seq": 1235, "ts": 1795262400123, "market_id": "0x…", "data": {"…": "the record"}},
        "control": ["hello", "subscribed", "replay_completed", "pong", "error"],
    }


if __name__ == "__main__":
    print(msgspec.json.format(encoded()).decode())
