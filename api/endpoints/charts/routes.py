"""Routes of the UDF data feed for TradingView's charting library."""

from __future__ import annotations

from functools import partial

from api.endpoints.base.endpoint import Endpoint
from api.endpoints.charts import records, requests, resource

# The library takes one base URL and cannot send a header.
_chart = partial(Endpoint, tag="Charts", key="either")
RAIN = "will-it-rain-tomorrow"

ENDPOINTS: tuple[Endpoint, ...] = (
    _chart(
        name="udf_config",
        path="/v1/udf/config",
        resource=resource.UdfConfig,
        parameters=requests.ChartParameters,
        answers=records.ChartConfig,
        summary="UDF configuration",
        description="Configure TradingView's UDF client with `/v1/udf` as its base URL and the key as `api_key`.",
    ),
    _chart(
        name="udf_symbols",
        path="/v1/udf/symbols",
        resource=resource.UdfSymbol,
        parameters=requests.SymbolParameters,
        answers=records.ChartSymbol,
        example={
            "name": RAIN,
            "ticker": RAIN,
            "description": "Will it rain tomorrow? Yes",
            "type": "prediction",
            "session": "24x7",
            "timezone": "Etc/UTC",
            "exchange": "Polymarket",
            "listed_exchange": "Polymarket",
            "format": "price",
            "minmov": 1,
            "pricescale": 100,
            "has_intraday": True,
            "supported_resolutions": resource.RESOLUTIONS,
            "data_status": "streaming",
        },
        cache_s=5,
        summary="UDF symbol description",
    ),
    _chart(
        name="udf_search",
        path="/v1/udf/search",
        resource=resource.UdfSearch,
        parameters=requests.SymbolSearchParameters,
        answers=list[records.FoundSymbol],
        credits=2,
        cache_s=2,
        summary="UDF symbol search",
    ),
    _chart(
        name="udf_history",
        path="/v1/udf/history",
        resource=resource.UdfBars,
        parameters=requests.ChartBarsParameters,
        answers=records.ChartBars,
        example={"s": "ok", "t": [1795262400], "o": [0.5], "h": [0.53], "l": [0.49], "c": [0.52], "v": [150.5]},
        summary="UDF bars of a symbol",
    ),
    _chart(
        name="udf_time",
        path="/v1/udf/time",
        resource=resource.UdfTime,
        parameters=requests.ChartParameters,
        answers=int,
        media="text/plain",
        summary="UDF server time in Unix seconds",
    ),
    _chart(
        name="udf_quotes",
        path="/v1/udf/quotes",
        resource=resource.UdfQuotes,
        parameters=requests.QuotesParameters,
        answers=records.ChartQuotes,
        example={
            "s": "ok",
            "d": [{"s": "ok", "n": RAIN, "v": {"ch": 0.02, "chp": 4, "lp": 0.52, "ask": 0.53, "bid": 0.51}}],
        },
        summary="UDF quotes of several symbols",
    ),
    _chart(
        name="udf_marks",
        path="/v1/udf/marks",
        resource=resource.UdfMarks,
        parameters=requests.MarksParameters,
        answers=records.ChartMarks,
        cache_s=2,
        summary="UDF marks: status changes and large trades",
        description="The 50 largest trades of at least 10,000 USD among the newest 20,000 of the range.",
    ),
    _chart(
        name="udf_timescale_marks",
        path="/v1/udf/timescale_marks",
        resource=resource.UdfTimescaleMarks,
        parameters=requests.MarksParameters,
        answers=list[records.TimeMark],
        cache_s=2,
        summary="UDF time scale marks: a market's start, end and resolution",
    ),
)
