"""Falcon's middleware that counts: the outermost, so that it sees what an answer came to in the end."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from api.counts import CODES, PLACES, Number
from api.endpoints import ENDPOINTS
from api.errors import CATALOGUE

if TYPE_CHECKING:
    import falcon

    from api.counts import Counts

NAMES = [*(endpoint.name for endpoint in ENDPOINTS), "none"]  # of places; the last is where there is no endpoint
NOWHERE = len(ENDPOINTS)
CODE = {code: number for number, code in enumerate(CATALOGUE)}

_PLACE: dict[tuple[str, str], int] = {
    (endpoint.method, endpoint.path): place for place, endpoint in enumerate(ENDPOINTS)
}
_PLACE |= {("HEAD", path): place for (method, path), place in _PLACE.items() if method == "GET"}

assert len(NAMES) <= PLACES
assert len(CODE) <= CODES


class Counted:
    """Counts requests by endpoint and status, how long they took, and what they cost."""

    def __init__(self, counts: Counts) -> None:
        self._counts = counts

    def process_request(self, req: falcon.Request, resp: falcon.Response) -> None:  # noqa: ARG002
        """Begin."""
        req.context.began = time.perf_counter()
        req.context.problem = None  # its code, when there is one
        self._counts.add(Number.IN_FLIGHT)

    def process_response(self, req: falcon.Request, resp: falcon.Response, resource: Any, succeeded: bool) -> None:  # noqa: ARG002, FBT001
        """Count what it came to; a stream ends when its client goes, which is no duration of ours."""
        context = req.context
        place = _PLACE.get((req.method, req.uri_template or ""), NOWHERE)
        cost = 0 if context.grant is None else context.grant.cost
        if "wsgi.websocket" in req.env:
            self._counts.answer(place, 101, None, cost)
        else:
            self._counts.answer(place, resp.status_code, time.perf_counter() - context.began, cost)
        if context.problem is not None:
            self._counts.problem(CODE[context.problem])
