"""Request handling common to all endpoints: key, parameters, credits, cache, conditional requests."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

import xxhash

from api.data.replica import lag_of_answer
from api.data.statements import run
from api.errors import Problem
from api.metering.meter import CannotPay, StaleKey
from api.metrics.counts import Counter
from api.schemas.requests import OutcomeParameters, Parameters, parse

if TYPE_CHECKING:
    from collections.abc import Callable

    import falcon

    from api.data.lookup import MarketRef
    from api.endpoints.base.endpoint import Endpoint
    from api.metering.key import Key
    from api.metering.meter import Grant
    from api.server.middleware import ApiResponse
    from api.service import Service


def etag_matches(asked: str, tag: str) -> bool:
    """Return whether `If-None-Match` matches an entity tag, strong or weak, or is `*` (RFC 9110, section 13.1.2)."""
    tags = [candidate.strip().removeprefix("W/") for candidate in asked.split(",")]
    return tag in tags or tags == ["*"]


class Resource:
    """The base of all endpoint resources."""

    def __init__(self, endpoint: Endpoint, service: Service) -> None:
        self.endpoint, self.service = endpoint, service
        try:
            self.defaults: Parameters | None = parse(endpoint.parameters, {})
        except Problem:  # it has required parameters
            self.defaults = None

    def admit(self, req: falcon.Request) -> Any:
        """Check the key and parameters and charge the credits; return the parameters."""
        key = self.authenticate(req)
        if key is None:
            return self.parse(req)
        try:
            given = self.parse(req)
            cost = self.endpoint.price(given)
        except Problem:
            self.charge(req, key, 0)  # an invalid request is free, but counts against the burst limit
            raise
        self.charge(req, key, cost)
        return given

    def authenticate(self, req: falcon.Request) -> Key | None:
        """Return the request's API key; None if the endpoint needs none."""
        if self.endpoint.key not in {"header", "either"}:
            return None
        sent = req.env.get("HTTP_X_API_KEY")
        if sent is None and self.endpoint.key == "either":
            sent = req.get_param("api_key")
        return self.service.keys.of(sent, req)

    def parse(self, req: falcon.Request) -> Parameters:
        """Parse and validate the query parameters."""
        return parse(self.endpoint.parameters, req.params) if req.params or self.defaults is None else self.defaults

    def charge(self, req: falcon.Request, key: Key, cost: int) -> Grant:
        """Charge the credits; the response headers show the key's usage, also when it is refused."""
        meter = self.service.meter
        while True:
            try:
                grant = req.context.grant = meter.admit(key, cost)
            except StaleKey:
                key = self.authenticate(req) or key
            except CannotPay as refusal:
                req.context.grant = refusal.grant
                window = Counter.REFUSED_SECOND if refusal.problem == "burst_exceeded" else Counter.REFUSED_MONTH
                self.service.host.counts.add(window)
                raise
            except Exception:
                req.context.grant = meter.usage(key)
                raise
            else:
                return grant

    def read(self, query: Callable[..., Any] | None = None, **arguments: Any) -> Any:
        """Run a query, by default the endpoint's own, and return its value, row or rows."""
        query = query or self.endpoint.query
        assert query is not None
        return self.service.reads.read(lambda conn: run(conn, query, arguments))

    def required(self, text: str | None, hint: str | None = None) -> bytes:
        """Return a row's text as bytes; raise `not_found` if it is None."""
        if text is None:
            raise Problem("not_found", self.endpoint.missing, hint=hint or self.endpoint.hint or None)
        return text.encode()


class ReadResource(Resource, ABC):
    """A GET endpoint. Subclasses implement `answer`, which builds the response body."""

    def __init__(self, endpoint: Endpoint, service: Service) -> None:
        super().__init__(endpoint, service)
        self.cache_control = (
            f"private, max-age={endpoint.cache_s:.0f}" if endpoint.cache_s >= 1 else "private, no-cache"
        )

    def on_get(self, req: falcon.Request, resp: ApiResponse, **path: str) -> None:
        """Answer a GET request."""
        self.reply(req, resp, self.admit(req), path)

    def reply(self, req: falcon.Request, resp: ApiResponse, given: Any, path: dict[str, str]) -> None:
        """Send the answer to an admitted request, from the cache if possible."""
        if self.endpoint.cache_s:
            question = (self.endpoint.name, given, *path.values())
            answer = self.service.cache.get(question, self.endpoint.cache_s, self._answered, given, path)
        else:
            answer = self._answered(given, path)
        self.respond(req, resp, *answer)

    def respond(
        self, req: falcon.Request, resp: ApiResponse, body: bytes, tag: str, lag_s: float | None = None
    ) -> None:
        """Send the body, or 304 if the client has it already; `lag_s` is that of the replica that it was read from."""
        resp.add_headers({"etag": tag, "cache-control": self.cache_control})
        if lag_s is not None:
            resp.set_header("x-replica-lag", f"{lag_s:.3f}")
        if (asked := req.env.get("HTTP_IF_NONE_MATCH")) and etag_matches(asked, tag):
            resp.status = "304 Not Modified"
            return
        resp.set_header("content-type", self.endpoint.media)
        resp.data = body

    def _answered(self, given: Parameters, path: dict[str, str]) -> tuple[bytes, str, float | None]:
        lag_of_answer.set(None)
        body, tag = self._with_etag(given, path)
        return body, tag, lag_of_answer.get()

    def on_head(self, req: falcon.Request, resp: ApiResponse, **path: str) -> None:
        """Answer with the headers only; Falcon drops the body."""
        self.on_get(req, resp, **path)

    @abstractmethod
    def answer(self, given: Any, **path: str) -> bytes:
        """Return the response body."""

    def _with_etag(self, given: Parameters, path: dict[str, str]) -> tuple[bytes, str]:
        body = self.answer(given, **path)
        return body, f'"{xxhash.xxh3_128_hexdigest(body)}"'  # a tenth of SHA-1's time; it only distinguishes bodies


class ChartResource(ReadResource):
    """An endpoint for charting libraries, which expect failures as `s` and `errmsg` in the body."""

    def on_get(self, req: falcon.Request, resp: ApiResponse, **path: str) -> None:
        """Answer; add `s` and `errmsg` to a Problem."""
        try:
            super().on_get(req, resp, **path)
        except Problem as problem:
            problem.more = {"s": "error", "errmsg": problem.description}
            raise


class MarketRowResource(ReadResource):
    """An endpoint that returns one row of a market."""

    def answer(self, given: Any, **path: str) -> bytes:
        """Return the row as JSON."""
        return self.required(self.read(market_key=self.service.markets.of(path["id"]).key))


class RecordedRowResource(ReadResource):
    """An endpoint that returns one row of what is recorded of a market."""

    def answer(self, given: Any, **path: str) -> bytes:
        """Return the row as JSON."""
        return self.required(self.read(market_key=self.service.markets.recorded(path["id"]).key))


class OutcomeResource(ReadResource):
    """An endpoint of one outcome of a market."""

    def outcome(self, given: OutcomeParameters, path: dict[str, str]) -> tuple[MarketRef, int]:
        """Return the market and the outcome's index."""
        market = self.service.markets.recorded(path["id"])
        return market, market.outcome(given.outcome)
