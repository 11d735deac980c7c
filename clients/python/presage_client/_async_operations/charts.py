"""A data feed for TradingView's charting library (UDF protocol).

Generated from the OpenAPI document: do not edit; run `make client`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from presage_client import _endpoints
from presage_client._async_operations.base import AsyncBaseOperations
from presage_client._transport import joined, seconds

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from presage_client import records
    from presage_client._record import Records


class AsyncChartsOperations(AsyncBaseOperations):
    """A data feed for TradingView's charting library (UDF protocol)."""

    async def udf_config(self) -> records.ChartConfig:
        """UDF configuration.

        Configure TradingView's UDF client with `/v1/udf` as its base URL and the key as `api_key`.

        Credits: 1.
        """
        return await self._call(_endpoints.UDF_CONFIG, {}, {})

    async def udf_symbols(
        self, symbol: str, *, currency_code: str | None = None, unit_id: str | None = None
    ) -> records.ChartSymbol:
        """UDF symbol description.

        Credits: 1.

        Args:
            symbol: A market's slug or market_id; the suffix `.1` selects its second outcome.
            currency_code: Sent by the library and ignored.
            unit_id: Sent by the library and ignored.
        """
        return await self._call(
            _endpoints.UDF_SYMBOLS, {}, {"symbol": symbol, "currencyCode": currency_code, "unitId": unit_id}
        )

    async def udf_search(
        self,
        *,
        query: str | None = None,
        type: Literal["", "prediction"] | None = None,
        exchange: Literal["", "KALSHI", "Kalshi", "POLYMARKET", "Polymarket", "kalshi", "polymarket"] | None = None,
        limit: int | None = None,
    ) -> Records[records.FoundSymbol]:
        """UDF symbol search.

        Credits: 2.

        Args:
            query: Part of a title or slug; empty: the most traded markets.
            type: Symbol type; there is only one.
            exchange: The exchange; empty: Polymarket.
            limit: Maximum number of symbols in the response. Default: 30. At most 100.
        """
        return await self._call(
            _endpoints.UDF_SEARCH, {}, {"query": query, "type": type, "exchange": exchange, "limit": limit}
        )

    async def udf_history(
        self,
        symbol: str,
        resolution: Literal["1", "15", "1D", "1S", "240", "30", "5", "60", "D"],
        to: int | datetime,
        *,
        currency_code: str | None = None,
        unit_id: str | None = None,
        from_: int | datetime | None = None,
        countback: int | None = None,
    ) -> records.ChartBars:
        """UDF bars of a symbol.

        Credits: 1.

        Args:
            symbol: A market's slug or market_id; the suffix `.1` selects its second outcome.
            currency_code: Sent by the library and ignored.
            unit_id: Sent by the library and ignored.
            resolution: Bar width in minutes; `1S`: one second, `1D`: one day.
            from_: From this moment on: Unix seconds. Default: 0.
            to: Only before this moment: Unix seconds.
            countback: Number of bars before `to`; overrides `from`.
        """
        return await self._call(
            _endpoints.UDF_HISTORY,
            {},
            {
                "symbol": symbol,
                "currencyCode": currency_code,
                "unitId": unit_id,
                "resolution": resolution,
                "from": seconds(from_),
                "to": seconds(to),
                "countback": countback,
            },
        )

    async def udf_time(self) -> int:
        """UDF server time in Unix seconds.

        Credits: 1.
        """
        return await self._call(_endpoints.UDF_TIME, {}, {})

    async def udf_quotes(self, symbols: str | Iterable[str]) -> records.ChartQuotes:
        """UDF quotes of several symbols.

        Credits: 1.

        Args:
            symbols: Up to 50 symbols, separated by commas.
        """
        return await self._call(_endpoints.UDF_QUOTES, {}, {"symbols": joined(symbols)})

    async def udf_marks(
        self,
        symbol: str,
        to: int | datetime,
        *,
        currency_code: str | None = None,
        unit_id: str | None = None,
        resolution: Literal["1", "15", "1D", "1S", "240", "30", "5", "60", "D"] | None = None,
        from_: int | datetime | None = None,
    ) -> records.ChartMarks:
        """UDF marks: status changes and large trades.

        The 50 largest trades of at least 10,000 USD among the newest 20,000 of the range.

        Credits: 1.

        Args:
            symbol: A market's slug or market_id; the suffix `.1` selects its second outcome.
            currency_code: Sent by the library and ignored.
            unit_id: Sent by the library and ignored.
            resolution: The chart's resolution; marks do not depend on it. Default: 1.
            from_: From this moment on: Unix seconds. Default: 0.
            to: Up to this moment: Unix seconds.
        """
        return await self._call(
            _endpoints.UDF_MARKS,
            {},
            {
                "symbol": symbol,
                "currencyCode": currency_code,
                "unitId": unit_id,
                "resolution": resolution,
                "from": seconds(from_),
                "to": seconds(to),
            },
        )

    async def udf_timescale_marks(
        self,
        symbol: str,
        to: int | datetime,
        *,
        currency_code: str | None = None,
        unit_id: str | None = None,
        resolution: Literal["1", "15", "1D", "1S", "240", "30", "5", "60", "D"] | None = None,
        from_: int | datetime | None = None,
    ) -> Records[records.TimeMark]:
        """UDF time scale marks: a market's start, end and resolution.

        Credits: 1.

        Args:
            symbol: A market's slug or market_id; the suffix `.1` selects its second outcome.
            currency_code: Sent by the library and ignored.
            unit_id: Sent by the library and ignored.
            resolution: The chart's resolution; marks do not depend on it. Default: 1.
            from_: From this moment on: Unix seconds. Default: 0.
            to: Up to this moment: Unix seconds.
        """
        return await self._call(
            _endpoints.UDF_TIMESCALE_MARKS,
            {},
            {
                "symbol": symbol,
                "currencyCode": currency_code,
                "unitId": unit_id,
                "resolution": resolution,
                "from": seconds(from_),
                "to": seconds(to),
            },
        )
