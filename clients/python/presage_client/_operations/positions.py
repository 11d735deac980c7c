"""Positions, as reported by the exchange.

Generated from the OpenAPI document: do not edit; run `make client`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from presage_client import _endpoints
from presage_client._operations.base import BaseOperations

if TYPE_CHECKING:
    from presage_client import records
    from presage_client._record import Records


class PositionsOperations(BaseOperations):
    """Positions, as reported by the exchange."""

    def positions(self, wallet: str) -> Records[records.Position]:
        """Open positions of a wallet, live from the exchange.

        Requested live from the exchange; at most the 2,000 largest positions.

        Credits: 2.

        Args:
            wallet: The wallet's full address.
        """
        return self._call(_endpoints.POSITIONS, {}, {"wallet": wallet})

    def closed_positions(self, wallet: str) -> Records[records.ClosedPosition]:
        """Closed positions of a wallet, live from the exchange.

        Requested live from the exchange; at most 2,000 positions, highest profit first.

        Credits: 2.

        Args:
            wallet: The wallet's full address.
        """
        return self._call(_endpoints.CLOSED_POSITIONS, {}, {"wallet": wallet})

    def market_positions(self, id: str, *, wallet: str | None = None) -> Records[records.MarketPosition]:
        """Positions in a market, live from the exchange.

        Requested live from the exchange. With `wallet`: its positions, as in `/v1/positions`. Without: the largest
        holders of each outcome, for whom the exchange reports only the shares.

        Credits: 2.

        Args:
            id: The market: its market_id, its slug, or the exchange's numeric id.
            wallet: Only this wallet: its full address.
        """
        return self._call(_endpoints.MARKET_POSITIONS, {"id": id}, {"wallet": wallet})
