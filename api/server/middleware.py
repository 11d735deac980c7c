"""What every answer carries: who asked, what it cost, and that any page may read it; and that each is counted."""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING, Any

import falcon

from api.errors import new_id
from api.metrics.counts import Number
from api.metrics.slots import CODE_SLOT
from config import logging as logs

if TYPE_CHECKING:
    from collections.abc import Mapping

    from api.metering.meter import Grant, Meter
    from api.metrics.counts import Counts
    from api.metrics.slots import EndpointSlots

SANE = re.compile(r"[A-Za-z0-9._-]{1,64}\Z")
EXPOSED = (
    "X-Credits-Limit, X-Credits-Remaining, X-Credits-Used, X-Credits-Reset, X-Request-Id, X-Request-Cost, "
    "RateLimit-Policy, RateLimit, Retry-After, ETag, Last-Modified, X-Unknown-Ids"
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
    """Falcon's middleware of the service: one, as falcon takes a microsecond for each."""

    def __init__(self, meter: Meter, counts: Counts, slots: EndpointSlots) -> None:
        self._meter, self._counts, self._slots = meter, counts, slots

    def process_request(self, req: falcon.Request, resp: falcon.Response) -> None:
        """Give the request a name, the client's own if it has one."""
        context, given = req.context, req.env.get("HTTP_X_REQUEST_ID")
        context.began = time.perf_counter()
        context.id = given if given and SANE.match(given) else new_id()
        context.grant = context.problem = None  # of a problem the code
        logs.request_id.set(context.id)
        self._counts.add(Number.IN_FLIGHT)

    def process_response(self, req: falcon.Request, resp: Answer, resource: Any, succeeded: bool) -> None:  # noqa: FBT001
        """Add the headers; what did not give the client anything costs nothing."""
        context, status = req.context, resp.status_code
        grant: Grant | None = context.grant
        try:
            if grant is not None:
                if status >= 300:
                    self._meter.refund(grant)
                headers = grant.headers()
            else:
                headers = self._meter.nothing()
            headers["x-request-id"] = context.id
            headers["access-control-allow-origin"] = "*"
            resp.carry(headers)
            if "HTTP_ORIGIN" in req.env:
                resp.set_header("Access-Control-Expose-Headers", EXPOSED)
                if req.method == "OPTIONS":
                    resp.set_headers(PREFLIGHT)
        except Exception:  # falcon makes a 500 of it
            status, context.problem = 500, "internal"
            raise
        finally:
            place, cost = self._slots.of(req.method, req.uri_template), 0 if grant is None else grant.cost
            if "wsgi.websocket" in req.env:  # a stream ends when its client goes, which is no duration of ours
                self._counts.answer(place, 101, None, cost)
            else:
                self._counts.answer(place, status, time.perf_counter() - context.began, cost)
            if context.problem is not None:
                self._counts.problem(CODE_SLOT[context.problem])
