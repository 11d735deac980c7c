"""The one place where answering is done: key, parameters, credits, cache, conditional answer."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

import xxhash

from api.data.statements import run
from api.errors import Problem
from api.metering.meter import CannotPay, Stale
from api.metrics.counts import Number
from api.schemas.requests import OfOutcome, Parameters, parse

if TYPE_CHECKING:
    from collections.abc import Callable

    import falcon

    from api.data.lookup import Market
    from api.endpoints.base.endpoint import Endpoint
    from api.metering.key import Key
    from api.metering.meter import Grant
    from api.server.middleware import Answer
    from api.service import Service


def names(asked: str, tag: str) -> bool:
    """Tell whether `If-None-Match` names an entity tag, strong or weak, or all of them (RFC 9110, section 13.1.2)."""
    tags = [candidate.strip().removeprefix("W/") for candidate in asked.split(",")]
    return tag in tags or tags == ["*"]


class Resource:
    """An endpoint at work: what reading and writing ones have in common."""

    def __init__(self, endpoint: Endpoint, service: Service) -> None:
        self.endpoint, self.service = endpoint, service
        try:
            self.plain: Parameters | None = parse(endpoint.parameters, {})
        except Problem:  # it needs some
            self.plain = None

    def admit(self, req: falcon.Request) -> Any:
        """Check key and parameters, and take the credits."""
        key = self.holder(req)
        if key is None:
            return self.given(req)
        try:
            given = self.given(req)
            cost = self.endpoint.price(given)
        except Problem:
            self.charge(req, key, 0)  # a mistake is free, yet not to be made without end
            raise
        self.charge(req, key, cost)
        return given

    def holder(self, req: falcon.Request) -> Key | None:
        """Tell whose key this is; None where none is needed."""
        if self.endpoint.key not in {"header", "either"}:
            return None
        sent = req.env.get("HTTP_X_API_KEY")
        if sent is None and self.endpoint.key == "either":
            sent = req.get_param("api_key")
        return self.service.keys.of(sent)

    def given(self, req: falcon.Request) -> Parameters:
        """Check what was asked."""
        return parse(self.endpoint.parameters, req.params) if req.params or self.plain is None else self.plain

    def charge(self, req: falcon.Request, key: Key, cost: int) -> Grant:
        """Take the credits; the answer shows how the key stands, also when it cannot pay."""
        meter = self.service.meter
        while True:
            try:
                grant = req.context.grant = meter.admit(key, cost)
            except Stale:
                key = self.holder(req) or key
            except CannotPay as refusal:
                req.context.grant = refusal.grant
                window = Number.REFUSED_SECOND if refusal.problem == "burst_exceeded" else Number.REFUSED_MONTH
                self.service.host.counts.add(window)
                raise
            except Exception:
                req.context.grant = meter.standing(key)
                raise
            else:
                return grant

    def read(self, query: Callable[..., Any] | None = None, **arguments: Any) -> Any:
        """Run a query: the endpoint's own unless told otherwise."""
        query = query or self.endpoint.query
        assert query is not None
        return self.service.reads.read(lambda conn: run(conn, query, arguments))

    def rows(self, query: Callable[..., Any], **arguments: Any) -> list[tuple[Any, ...]]:
        """Run a query of many rows."""
        rows: list[tuple[Any, ...]] = self.service.reads.read(lambda conn: run(conn, query, arguments))
        return rows

    def planned(self, query: Callable[..., Any], **arguments: Any) -> list[tuple[Any, ...]]:
        """Run a query that is planned for its values each time: what a filter leaves, no general plan knows."""

        def work(conn: Any) -> list[tuple[Any, ...]]:
            usual, conn.prepare_threshold = conn.prepare_threshold, None
            try:
                return list(query(conn, **arguments))
            finally:
                conn.prepare_threshold = usual

        return self.service.reads.read(work)

    def found(self, text: str | None, hint: str | None = None) -> bytes:
        """Give a row's text, or say that there is none."""
        if text is None:
            raise Problem("not_found", self.endpoint.missing, hint=hint or self.endpoint.hint or None)
        return text.encode()


class Reading(Resource, ABC):
    """An endpoint that answers a question. A kind of endpoint says in `answer` what is different about it."""

    def __init__(self, endpoint: Endpoint, service: Service) -> None:
        super().__init__(endpoint, service)
        self.caching = f"private, max-age={endpoint.cache_s:.0f}" if endpoint.cache_s >= 1 else "private, no-cache"

    def on_get(self, req: falcon.Request, resp: Answer, **path: str) -> None:
        """Answer a question."""
        given = self.admit(req)
        if self.endpoint.cache_s:
            question = (self.endpoint.name, given, *path.values())
            body, tag = self.service.cache.get(question, self.endpoint.cache_s, self._tagged, given, path)
        else:
            body, tag = self._tagged(given, path)
        self.tell(req, resp, body, tag)

    def tell(self, req: falcon.Request, resp: Answer, body: bytes, tag: str) -> None:
        """Give an answer, or say that the client has it."""
        if (asked := req.env.get("HTTP_IF_NONE_MATCH")) and names(asked, tag):
            resp.carry({"etag": tag, "cache-control": self.caching})
            resp.status = "304 Not Modified"
            return
        resp.carry({"etag": tag, "cache-control": self.caching, "content-type": self.endpoint.media})
        resp.data = body

    def on_head(self, req: falcon.Request, resp: Answer, **path: str) -> None:
        """Answer with the headers alone; falcon leaves the body out."""
        self.on_get(req, resp, **path)

    @abstractmethod
    def answer(self, given: Any, **path: str) -> bytes:
        """Give the answer's body."""

    def _tagged(self, given: Parameters, path: dict[str, str]) -> tuple[bytes, str]:
        body = self.answer(given, **path)
        return body, f'"{xxhash.xxh3_128_hexdigest(body)}"'  # a tenth of SHA-1's time; it tells answers apart, no more


class ForCharts(Reading):
    """What charting libraries ask: they look for a failure in the body, in words of their own."""

    def on_get(self, req: falcon.Request, resp: Answer, **path: str) -> None:
        """Answer, or say in both ways what is wrong."""
        try:
            super().on_get(req, resp, **path)
        except Problem as problem:
            problem.more = {"s": "error", "errmsg": problem.description}
            raise


class OfMarketRow(Reading):
    """One row about a market."""

    def answer(self, given: Any, **path: str) -> bytes:
        """Give the row."""
        return self.found(self.read(market_key=self.service.markets.of(path["id"]).key))


class AboutOutcome(Reading):
    """Something about an outcome of a market."""

    def outcome(self, given: OfOutcome, path: dict[str, str]) -> tuple[Market, int]:
        """Tell which market and outcome are meant."""
        market = self.service.markets.of(path["id"])
        return market, market.outcome(given.outcome)
