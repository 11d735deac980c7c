"""What the service holds, as it holds it: for whoever runs it, and has the token."""

from __future__ import annotations

import hmac
from typing import TYPE_CHECKING, Any

from api.endpoints.base.resource import Reading
from api.errors import Problem

if TYPE_CHECKING:
    import falcon

    from api.endpoints.signals.requests import HeldSignalsOf
    from api.schemas.requests import Parameters

MOST_MARKETS, MOST_TRADES, MOST_EVENTS, MOST_SIGNALS = 500, 100, 50, 1000


class Debug(Reading):
    """Open to those who have the token, as long as there is one."""

    limit = 0

    def admit(self, req: falcon.Request) -> Any:
        """Compare the token; it costs nothing."""
        token, sent = self.service.debug_token, req.get_header("X-Debug-Token") or ""
        if not token or not hmac.compare_digest(sent.encode(), token.encode()):
            raise Problem("forbidden", "debug endpoints disabled")
        return self.given(req)

    def answer(self, given: Parameters, **path: str) -> bytes:
        """Give what is asked for, of one market where one is named."""
        asked: dict[str, Any] = {"limit": self.limit} if self.limit else {}
        if "id" in path:
            asked["market_key"] = self.service.markets.of(path["id"]).key
        return self.found(self.read(**asked))


class DebugMarkets(Debug):
    """What is tracked."""

    limit = MOST_MARKETS


class DebugTrades(Debug):
    """The newest trades."""

    limit = MOST_TRADES


class DebugBook(Debug):
    """Books of a market."""

    limit = MOST_EVENTS


class DebugSignals(Debug):
    """The newest signals."""

    limit = MOST_SIGNALS


class DebugSignalsOf(Debug):
    """The newest signals of a market."""

    def answer(self, given: HeldSignalsOf, **path: str) -> bytes:  # type: ignore[override]
        """Give an array."""
        key = self.service.markets.of(path["id"]).key
        return self.found(self.read(market_key=key, type=given.type, limit=MOST_SIGNALS))
