"""Signals: values beyond their thresholds.

Generated from the OpenAPI document: do not edit; run `make client`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from presage_client import _endpoints
from presage_client._operations.base import BaseOperations

if TYPE_CHECKING:
    from presage_client import records
    from presage_client._record import Records
    from presage_client._transport import Instant


class SignalsOperations(BaseOperations):
    """Signals: values beyond their thresholds."""

    def market_signals(
        self,
        id: str,
        *,
        type: Literal["book_imbalance", "momentum", "price_reversal", "spread_widening", "volume_spike", "whale_alert"]
        | None = None,
        from_: Instant | None = None,
        to: Instant | None = None,
        limit: int | None = None,
    ) -> Records[records.Signal]:
        """Latest signals of a market, newest first.

        The newest `limit` signals from `from` on and before `to`. For the next page, set `to` to the oldest `ts`.
        Types: `momentum` (a price move), `volume_spike` (unusual volume in the last hour), `whale_alert` (a large
        settlement), `spread_widening`, `book_imbalance` and `price_reversal`; docs/signals.md defines each.

        Credits: 1.

        Args:
            id: The market: its market_id, its slug, or the exchange's numeric id.
            type: Only signals of this type.
            from_: Only from this moment on: RFC 3339 or Unix milliseconds; default: 30 days ago.
            to: Only before this moment: RFC 3339 or Unix milliseconds.
            limit: Maximum number of signals in the response; others with the last one's `ts` are included. Default:
                100. At most 500.
        """
        return self._call(
            _endpoints.MARKET_SIGNALS, {"id": id}, {"type": type, "from": from_, "to": to, "limit": limit}
        )

    def top_signals(
        self,
        *,
        exchange: Literal["kalshi", "polymarket"] | None = None,
        type: Literal["book_imbalance", "momentum", "price_reversal", "spread_widening", "volume_spike", "whale_alert"]
        | None = None,
        limit: int | None = None,
    ) -> records.TopSignals:
        """Strongest signals of the last 24 hours.

        By `score`, the value divided by its threshold; ties: newest first. Types: `momentum` (a price move),
        `volume_spike` (unusual volume in the last hour), `whale_alert` (a large settlement), `spread_widening`,
        `book_imbalance` and `price_reversal`; docs/signals.md defines each.

        Credits: 2.

        Args:
            exchange: The exchange that lists them. Default: polymarket.
            type: Only signals of this type.
            limit: Maximum number of signals in the response. Default: 20. At most 200.
        """
        return self._call(_endpoints.TOP_SIGNALS, {}, {"exchange": exchange, "type": type, "limit": limit})
