"""Prices, candles and order books, live and historical.

Generated from the OpenAPI document: do not edit; run `make client`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from presage_client import _endpoints
from presage_client._operations.base import BaseOperations
from presage_client._transport import joined, seconds

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from presage_client import records
    from presage_client._record import Records
    from presage_client._transport import Instant


class PricesOperations(BaseOperations):
    """Prices, candles and order books, live and historical."""

    def market_liquidity(self, id: str, *, outcome: str | int | None = None) -> records.Liquidity:
        """Liquidity of an outcome.

        The live order book, under the same conditions as `/orderbook`.

        Credits: 1.

        Args:
            id: The market: its market_id, its slug, or the exchange's numeric id.
            outcome: The outcome: its index from 0 or its name. Default: 0.
        """
        return self._call(_endpoints.MARKET_LIQUIDITY, {"id": id}, {"outcome": outcome})

    def market_price(self, id: str, *, outcome: str | int | None = None) -> records.Price:
        """Live price of an outcome.

        Returned only while reliable: the market is active, its book agrees with the exchange's best prices, and the
        live feed is alive. Otherwise 404, with the reason in `hint`. A quiet market keeps its price, however old.

        Credits: 1.

        Args:
            id: The market: its market_id, its slug, or the exchange's numeric id.
            outcome: The outcome: its index from 0 or its name. Default: 0.
        """
        return self._call(_endpoints.MARKET_PRICE, {"id": id}, {"outcome": outcome})

    def prices(self, ids: str | Iterable[str]) -> dict[str, records.Price | None]:
        """Live prices of several markets.

        Keyed by the requested id; null where there is no live price (see `/v1/markets/{id}/price`). Ids that match
        no market are also null, and listed in `X-Unknown-Ids`. Prices are of the first outcome.

        Credits: 1 for each started 25 ids.

        Args:
            ids: Up to 100 markets, separated by commas: ids or slugs.
        """
        return self._call(_endpoints.PRICES, {}, {"ids": joined(ids)})

    def market_price_history(
        self,
        id: str,
        *,
        outcome: str | int | None = None,
        from_: Instant | None = None,
        to: Instant | None = None,
        resolution: Literal["1h", "1m", "1s", "5m"] | None = None,
        limit: int | None = None,
        fill: Literal["none", "previous"] | None = None,
    ) -> Records[records.Candle]:
        """Candles of an outcome, oldest first.

        The newest `limit` candles that begin at or after `from` and before `to`.

        Credits: 1 for each started 1,000 of `limit`.

        Args:
            id: The market: its market_id, its slug, or the exchange's numeric id.
            outcome: The outcome: its index from 0 or its name. Default: 0.
            from_: Only from this moment on: RFC 3339 or Unix milliseconds.
            to: Only before this moment: RFC 3339 or Unix milliseconds; default: now.
            resolution: The width of a candle. Default: 1m.
            limit: Maximum number of candles: the newest of the range. Default: 500. At most 20000.
            fill: `previous`: a bucket without trades repeats the last close; `none`: it is omitted. Default: none.
        """
        return self._call(
            _endpoints.MARKET_PRICE_HISTORY,
            {"id": id},
            {"outcome": outcome, "from": from_, "to": to, "resolution": resolution, "limit": limit, "fill": fill},
        )

    def market_candles(
        self,
        id: str,
        *,
        outcome: str | int | None = None,
        resolution: Literal["1", "60"] | None = None,
        from_: int | datetime | None = None,
        to: int | datetime | None = None,
    ) -> records.Bars:
        """Candles in UDF column format.

        The column format of a UDF data feed. Without `from`, the range is the width of 500 bars.

        Credits: 1.

        Args:
            id: The market: its market_id, its slug, or the exchange's numeric id.
            outcome: The outcome: its index from 0 or its name. Default: 0.
            resolution: Bar width in minutes. Default: 1.
            from_: From this moment on: Unix seconds.
            to: Only before this moment: Unix seconds; default: now.
        """
        return self._call(
            _endpoints.MARKET_CANDLES,
            {"id": id},
            {"outcome": outcome, "resolution": resolution, "from": seconds(from_), "to": seconds(to)},
        )

    def market_orderbook(
        self, id: str, *, outcome: str | int | None = None, at: Instant | None = None
    ) -> records.Orderbook:
        """Order book of an outcome.

        Complete and verified: there is no book for a market that has ended, while it disagrees with the exchange's
        own best prices, or while the live feed is late. With `at`, the book at a past moment; `integrity` says how
        reliable it is.

        Credits: 1, or 5 for each book of the past.

        Args:
            id: The market: its market_id, its slug, or the exchange's numeric id.
            outcome: The outcome: its index from 0 or its name. Default: 0.
            at: The book at this moment: RFC 3339 or Unix milliseconds; default: now.
        """
        return self._call(_endpoints.MARKET_ORDERBOOK, {"id": id}, {"outcome": outcome, "at": at})

    def market_orderbook_history(
        self,
        id: str,
        *,
        outcome: str | int | None = None,
        from_: Instant | None = None,
        to: Instant | None = None,
        step: int | None = None,
        depth: int | None = None,
    ) -> records.BookHistory:
        """Order book history of an outcome.

        Books at even steps from `from` (default: an hour ago) to `to`; at most one day and 1,000 books. Moments
        before the first stored full book are omitted.

        Credits: 5.

        Args:
            id: The market: its market_id, its slug, or the exchange's numeric id.
            outcome: The outcome: its index from 0 or its name. Default: 0.
            from_: Only from this moment on: RFC 3339 or Unix milliseconds.
            to: Up to and including this moment: RFC 3339 or Unix milliseconds; default: now.
            step: Seconds from one book to the next. Default: 60.
            depth: Levels of each side in the response; 0: only the figures. Default: 10.
        """
        return self._call(
            _endpoints.MARKET_ORDERBOOK_HISTORY,
            {"id": id},
            {"outcome": outcome, "from": from_, "to": to, "step": step, "depth": depth},
        )
