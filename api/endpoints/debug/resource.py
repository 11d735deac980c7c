"""The service's stored state in raw form, for operators with the debug token."""

from __future__ import annotations

import hmac
from typing import TYPE_CHECKING, Any

from api.endpoints.base.resource import ReadResource
from api.errors import Problem

if TYPE_CHECKING:
    import falcon

    from api.endpoints.signals.requests import RawSignalParameters
    from api.schemas.requests import Parameters

MAX_MARKETS, MAX_TRADES, MAX_EVENTS, MAX_SIGNALS = 500, 100, 50, 1000


class Debug(ReadResource):
    """A debug endpoint, enabled while a token is configured and open to those who send it."""

    limit = 0

    def admit(self, req: falcon.Request) -> Any:
        """Check the debug token; no credits are charged."""
        token, sent = self.service.debug_token, req.get_header("X-Debug-Token") or ""
        if not token or not hmac.compare_digest(sent.encode(), token.encode()):
            raise Problem("forbidden", "debug endpoints disabled")
        if token in req.relative_uri:  # the database may log what it is asked
            raise Problem("invalid_parameter", "The address contains the token", hint="Send it as X-Debug-Token")
        return self.parse(req)

    def answer(self, given: Parameters, **path: str) -> bytes:
        """Return the query's result, for one market if the path names one."""
        asked: dict[str, Any] = {"limit": self.limit} if self.limit else {}
        if "id" in path:
            asked["market_key"] = self.service.markets.of(path["id"]).key
        return self.required(self.read(**asked))


class DebugMarkets(Debug):
    """Tracked markets."""

    limit = MAX_MARKETS


class DebugTrades(Debug):
    """The newest trades."""

    limit = MAX_TRADES


class DebugBook(Debug):
    """Books of a market."""

    limit = MAX_EVENTS


class DebugSignals(Debug):
    """The newest signals."""

    limit = MAX_SIGNALS


class DebugSignalsOf(Debug):
    """The newest signals of a market."""

    def answer(self, given: RawSignalParameters, **path: str) -> bytes:  # type: ignore[override]
        """Return an array."""
        key = self.service.markets.of(path["id"]).key
        return self.required(self.read(market_key=key, type=given.type, limit=MAX_SIGNALS))
