"""Middleware: refuses secrets in paths, adds each response's request id, credit and CORS headers, counts requests."""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING, Any

import falcon

from api.errors import new_id, refuse_secrets
from api.metrics.counts import Counter
from api.metrics.slots import CODE_SLOT
from config.logging import request_id

if TYPE_CHECKING:
    from collections.abc import Mapping

    from api.metering.meter import Grant, Meter
    from api.metrics.counts import SharedCounters
    from api.metrics.slots import EndpointSlots

REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}\Z")
EXPOSED = (
    "X-Credits-Limit, X-Credits-Remaining, X-Credits-Used, X-Credits-Reset, X-Request-Id, X-Request-Cost, "
    "RateLimit-Policy, RateLimit, Retry-After, ETag, Last-Modified, X-Unknown-Ids, X-Replica-Lag"
)
PREFLIGHT = {
    "Access-Control-Allow-Methods": "GET, HEAD, POST, PATCH, DELETE, OPTIONS",
    "Access-Control-Allow-Headers": "X-API-Key, Content-Type, If-None-Match, X-Request-Id",
    "Access-Control-Max-Age": "86400",
}


class ApiResponse(falcon.Response):
    """A response that sets many headers at once; Falcon checks each, which costs as much as charging credits."""

    __slots__ = ()

    def add_headers(self, headers: Mapping[str, str]) -> None:
        """Add headers unchecked; names must be in lower case."""
        self._headers.update(headers)


class ResponseMiddleware:
    """The service's only Falcon middleware, since each one costs a microsecond per request."""

    def __init__(self, meter: Meter, counts: SharedCounters, slots: EndpointSlots) -> None:
        self._meter, self._counts, self._slots = meter, counts, slots

    def process_request(self, req: falcon.Request, resp: falcon.Response) -> None:
        """Set the request id, the client's own if it sent one."""
        context, given = req.context, req.env.get("HTTP_X_REQUEST_ID")
        context.began = time.perf_counter()
        context.id = given if given and REQUEST_ID.match(given) else new_id()
        context.grant = context.problem = None  # `problem` is an error code
        request_id.set(context.id)
        self._counts.add(Counter.IN_FLIGHT)

    def process_resource(
        self, _req: falcon.Request, _resp: falcon.Response, _resource: Any, params: dict[str, Any]
    ) -> None:
        """Refuse a path with a secret in it, before anything is asked with it."""
        for name, value in params.items():
            if isinstance(value, str):
                refuse_secrets(name, value)

    def process_response(self, req: falcon.Request, resp: ApiResponse, resource: Any, succeeded: bool) -> None:  # noqa: FBT001
        """Add the headers; refund a request that returned no data."""
        context, status = req.context, resp.status_code
        grant: Grant | None = context.grant
        try:
            if grant is not None:
                if status >= 300:
                    self._meter.refund(grant)
                headers = grant.headers()
            else:
                headers = self._meter.unpaid_headers()
            headers["x-request-id"] = context.id
            headers["access-control-allow-origin"] = "*"
            resp.add_headers(headers)
            if "HTTP_ORIGIN" in req.env:
                resp.set_header("Access-Control-Expose-Headers", EXPOSED)
                if req.method == "OPTIONS":
                    resp.set_headers(PREFLIGHT)
        except Exception:  # Falcon answers it with a 500
            status, context.problem = 500, "internal"
            raise
        finally:
            place, cost = self._slots.of(req.method, req.uri_template), 0 if grant is None else grant.cost
            if "wsgi.websocket" in req.env:  # a stream lasts as long as its client stays connected
                self._counts.answer(place, 101, None, cost)
            else:
                self._counts.answer(place, status, time.perf_counter() - context.began, cost)
            if context.problem is not None:
                self._counts.problem(CODE_SLOT[context.problem])
