"""The catalogue of error codes, answered as RFC 9457 `application/problem+json`."""

from __future__ import annotations

import logging
import random
import re
import time
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

import falcon
import msgspec

from api.months import Month, unpaid

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

MEDIA_TYPE = "application/problem+json"
# API keys and secrets of webhooks, in a path or a value, where they do not belong: whole ones, and what may be a part.
SECRETS = "(psg)(?:_|%5[Ff])[A-Za-z0-9_-]{{{0},}}|(whsec)(?:_|%5[Ff])[A-Za-z0-9_+/=%-]{{{0},}}"
SECRET, PART_OF_SECRET = re.compile(SECRETS.format(32)), re.compile(SECRETS.format(1))
log = logging.getLogger("presage.api")

# code: (usual status, title)
CATALOGUE: dict[str, tuple[int, str]] = {
    "invalid_parameter": (400, "A parameter has a value that is not allowed"),
    "unknown_parameter": (400, "A parameter is unknown"),
    "missing_parameter": (400, "A required parameter is missing"),
    "invalid_cursor": (400, "The cursor cannot be used"),
    "invalid_body": (400, "The request body is not valid"),
    "invalid_api_key": (401, "The API key is missing or not valid"),
    "quota_exhausted": (402, "The month's credits are used up"),
    "forbidden": (403, "Access is not allowed"),
    "not_found": (404, "The resource does not exist"),
    "method_not_allowed": (405, "The method is not allowed"),
    "body_too_large": (413, "The request body is too large"),
    "burst_exceeded": (429, "Too many requests"),
    "internal": (500, "Something went wrong on our side"),
    "upstream_unavailable": (502, "The exchange is unavailable"),
    "overloaded": (503, "The service cannot answer right now"),
}
# Codes for the errors that Falcon raises itself.
_CODES = {404: "not_found", 405: "method_not_allowed", 413: "body_too_large", 503: "overloaded"}


class Problem(falcon.HTTPError):
    """An error response to the client; raised anywhere, rendered by `serialize`."""

    def __init__(
        self,
        code: str,
        detail: str,
        *,
        hint: str | None = None,
        errors: Sequence[Mapping[str, Any]] = (),
        status: int | None = None,
        headers: dict[str, str] | None = None,
    ) -> None:
        usual, title = CATALOGUE[code]
        super().__init__(status or usual, title=title, description=detail, headers=headers)
        self.problem, self.hint, self.errors = code, hint, errors
        self.more: dict[str, Any] = {}  # members in addition to the common ones


def invalid(name: str, what: str, allowed: str) -> Problem:
    """Return the Problem of one invalid parameter."""
    return Problem(
        "invalid_parameter",
        f"`{name}` {what}",
        hint=f"Allowed: {allowed}",
        errors=[{"name": name, "detail": what, "allowed": allowed}],
    )


def document(
    code: str,
    detail: str | None,
    request_id: str | None,
    *,
    status: int | None = None,
    hint: str | None = None,
    errors: Sequence[Mapping[str, Any]] = (),
    more: Mapping[str, Any] | None = None,
) -> bytes:
    """Encode a problem document. It may repeat what was sent, but no API key and no secret of a webhook."""
    usual, title = CATALOGUE[code]
    problem: dict[str, Any] = {
        "type": f"urn:presage:problem:{code}",
        "title": title,
        "status": status or usual,
        "detail": detail or title,
        "code": code,
        "hint": hint,
        "request_id": request_id,
    }
    if errors:
        problem["errors"] = list(errors)
    problem.update(more or {})
    return without_secrets(msgspec.json.encode(problem).decode()).encode()


def without_secrets(text: str, *, parts: bool = True) -> str:
    """Return a text with the API keys and secrets of webhooks in it redacted, and what may be a part of one."""
    return (PART_OF_SECRET if parts else SECRET).sub(lambda found: f"{found[1] or found[2]}_REDACTED", text)


def refuse_secrets(name: str, value: str) -> None:
    """Refuse a value that has an API key or a webhook's secret in it: the database may log what it is asked."""
    if ("psg_" in value or "whsec_" in value) and SECRET.search(value):
        raise Problem("invalid_parameter", f"`{name[:50]}` contains a secret", hint="Send an API key as X-API-Key")


def on_the_wire(status: int, code: str, detail: str) -> bytes:
    """Return a complete HTTP response, for a request that could not be parsed."""
    request_id = new_id()
    body = document(code, detail, request_id, status=status)
    headers = {
        "Content-Type": MEDIA_TYPE,
        "Content-Length": str(len(body)),
        "Connection": "close",
        "X-Request-Id": request_id,
        "Access-Control-Allow-Origin": "*",
        **unpaid(Month.of(time.time())),
    }
    head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    return f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\n{head}\r\n".encode() + body


def new_id() -> str:
    """Return a new request id."""
    return f"{random.getrandbits(64):016x}"


def serialize(req: falcon.Request, resp: falcon.Response, error: falcon.HTTPError) -> None:
    """Render an error, including Falcon's own."""
    hint: str | None = None
    errors: Sequence[Mapping[str, Any]] = ()
    more: Mapping[str, Any] = {}
    if isinstance(error, Problem):
        code, hint, errors, more = error.problem, error.hint, error.errors, error.more
    else:
        code = _CODES.get(error.status_code, "invalid_parameter" if error.status_code < 500 else "internal")
    req.context.problem = code
    detail = error.description
    if code == "not_found" and isinstance(error, falcon.HTTPRouteNotFound):
        detail, hint = f"There is no endpoint {req.path[:200]}", "GET /openapi.json lists all endpoints"
    elif code == "method_not_allowed":
        detail, hint = f"{req.method} is not allowed here", f"Allowed: {dict(error.headers or {}).get('Allow', 'GET')}"
    resp.content_type = MEDIA_TYPE
    request_id = getattr(req.context, "id", None)
    resp.data = document(code, detail, request_id, status=error.status_code, hint=hint, errors=errors, more=more)


def unexpected(req: falcon.Request, resp: falcon.Response, error: Exception, params: dict[str, Any]) -> None:  # noqa: ARG001
    """Answer an unexpected error: the traceback is logged, the client gets a request id to quote."""
    request_id = getattr(req.context, "id", None)
    log.error("%s %s failed (request %s)", req.method, without_secrets(req.path), request_id, exc_info=error)
    raise Problem("internal", "The error was logged", hint="Quote the request_id when you report it")


def install(app: falcon.App[Any, Any]) -> None:
    """Install the error serializer and handlers in the application."""
    app.set_error_serializer(serialize)
    app.add_error_handler(Exception, unexpected)
