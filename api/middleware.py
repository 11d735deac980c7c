"""What every answer carries: who asked, what it cost, and that any page may read it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import falcon

import logs
from api.errors import new_id

if TYPE_CHECKING:
    from collections.abc import Mapping

    from api.metering import Grant, Meter

SANE = re.compile(r"[A-Za-z0-9._-]{1,64}\Z")
EXPOSED = (
    "X-Credits-Limit, X-Credits-Remaining, X-Credits-Used, X-Credits-Reset, X-Request-Id, X-Request-Cost, "
    "RateLimit-Policy, RateLimit, Retry-After, ETag"
)
PREFLIGHT = {
    "Access-Control-Allow-Methods": "GET, HEAD, POST, PATCH, DELETE, OPTIONS",
    "Access-Control-Allow-Headers": "X-API-Key, Content-Type, If-None-Match, X-Request-Id",
    "Access-Control-Max-Age": "86400",
}


class Answer(falcon.Response):
    """An answer that takes many headers at once: falcon looks at each, which costs as much as counting the credits."""

    __slots__ = ()

    def carry(self, headers: Mapping[str, str]) -> None:
        """Add headers as they are: their names in lower case."""
        self._headers.update(headers)


class EveryAnswer:
    """Falcon's middleware of the service."""

    def __init__(self, meter: Meter) -> None:
        self._meter = meter

    def process_request(self, req: falcon.Request, resp: falcon.Response) -> None:  # noqa: ARG002
        """Give the request a name, the client's own if it has one."""
        given = req.env.get("HTTP_X_REQUEST_ID")
        req.context.id = given if given and SANE.match(given) else new_id()
        logs.request_id.set(req.context.id)
        req.context.grant = None

    def process_response(self, req: falcon.Request, resp: Answer, resource: Any, succeeded: bool) -> None:  # noqa: ARG002, FBT001
        """Add the headers; what did not give the client anything costs nothing."""
        grant: Grant | None = req.context.grant
        if grant is not None:
            if resp.status_code >= 300:
                self._meter.refund(grant)
            headers = grant.headers()
        else:
            headers = self._meter.nothing()
        headers["x-request-id"] = req.context.id
        headers["access-control-allow-origin"] = "*"
        resp.carry(headers)
        if "HTTP_ORIGIN" in req.env:
            resp.set_header("Access-Control-Expose-Headers", EXPOSED)
            if req.method == "OPTIONS":
                resp.set_headers(PREFLIGHT)
