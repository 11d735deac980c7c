"""The service's stored state in raw form, for operators.

Generated from the OpenAPI document: do not edit; run `make client`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from presage_client import _endpoints
from presage_client._operations.base import BaseOperations

if TYPE_CHECKING:
    from presage_client._record import Records


class DebugOperations(BaseOperations):
    """The service's stored state in raw form, for operators."""

    def debug_markets(self) -> dict[str, Any]:
        """Feed runs, stages, and the outcomes of the 500 most active tracked markets.

        Credits: 0.
        """
        return self._call(_endpoints.DEBUG_MARKETS, {}, {})

    def debug_market(self, id: str) -> dict[str, Any]:
        """All stored state of one market.

        Credits: 0.

        Args:
            id: The market: its market_id, its slug, or the exchange's numeric id.
        """
        return self._call(_endpoints.DEBUG_MARKET, {"id": id}, {})

    def debug_trades(self) -> Records[dict[str, Any]]:
        """The 100 newest trades.

        Credits: 0.
        """
        return self._call(_endpoints.DEBUG_TRADES, {}, {})

    def debug_orderbook(self, id: str) -> dict[str, Any]:
        """Books of one market, including unverified ones, with their newest changes.

        Credits: 0.

        Args:
            id: The market: its market_id, its slug, or the exchange's numeric id.
        """
        return self._call(_endpoints.DEBUG_ORDERBOOK, {"id": id}, {})

    def debug_signals(self) -> Records[dict[str, Any]]:
        """The 1,000 newest signals.

        Credits: 0.
        """
        return self._call(_endpoints.DEBUG_SIGNALS, {}, {})

    def debug_market_signals(
        self,
        id: str,
        *,
        type: Literal["book_imbalance", "momentum", "price_reversal", "spread_widening", "volume_spike", "whale_alert"]
        | None = None,
    ) -> Records[dict[str, Any]]:
        """The 1,000 newest signals of one market.

        Credits: 0.

        Args:
            id: The market: its market_id, its slug, or the exchange's numeric id.
            type: Only signals of this type.
        """
        return self._call(_endpoints.DEBUG_MARKET_SIGNALS, {"id": id}, {"type": type})
