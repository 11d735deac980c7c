"""The data feed for TradingView's charting library."""

from __future__ import annotations

from functools import partial

from api.endpoints.base.endpoint import Endpoint
from api.endpoints.charts import records
from api.endpoints.charts import requests as asked
from api.endpoints.charts import resource as udf

# The library knows one address and cannot send a header.
_chart = partial(Endpoint, tag="Charts", key="either")
RAIN = "will-it-rain-tomorrow"

ENDPOINTS: tuple[Endpoint, ...] = (
    _chart(
        name="udf_config",
        path="/v1/udf/config",
        resource=udf.Config,
        parameters=asked.Asked,
        answers=records.ChartConfig,
        summary="What the data feed can do",
        description="Give TradingView's UDF client `/v1/udf` as its address, and the key as `api_key`.",
    ),
    _chart(
        name="udf_symbols",
        path="/v1/udf/symbols",
        resource=udf.Symbols,
        parameters=asked.SymbolOf,
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
            "supported_resolutions": udf.RESOLUTIONS,
            "data_status": "streaming",
        },
        cache_s=5,
        summary="A symbol described",
    ),
    _chart(
        name="udf_search",
        path="/v1/udf/search",
        resource=udf.SymbolSearch,
        parameters=asked.SymbolsLike,
        answers=list[records.FoundSymbol],
        credits=2,
        cache_s=2,
        summary="Symbols by words",
    ),
    _chart(
        name="udf_history",
        path="/v1/udf/history",
        resource=udf.Bars,
        parameters=asked.BarsOf,
        answers=records.ChartBars,
        example={"s": "ok", "t": [1795262400], "o": [0.5], "h": [0.53], "l": [0.49], "c": [0.52], "v": [150.5]},
        summary="Bars of a symbol",
    ),
    _chart(
        name="udf_time",
        path="/v1/udf/time",
        resource=udf.ServerTime,
        parameters=asked.Asked,
        answers=int,
        media="text/plain",
        summary="The server's clock: Unix seconds",
    ),
    _chart(
        name="udf_quotes",
        path="/v1/udf/quotes",
        resource=udf.Quotes,
        parameters=asked.SeveralSymbols,
        answers=records.ChartQuotes,
        example={
            "s": "ok",
            "d": [{"s": "ok", "n": RAIN, "v": {"ch": 0.02, "chp": 4, "lp": 0.52, "ask": 0.53, "bid": 0.51}}],
        },
        summary="What several symbols cost",
    ),
    _chart(
        name="udf_marks",
        path="/v1/udf/marks",
        resource=udf.Marks,
        parameters=asked.MarksOf,
        answers=records.ChartMarks,
        cache_s=2,
        summary="Changes of state and large trades, as marks on a chart",
        description="Trades of 10,000 USD and more among the newest 20,000 of the range; the 50 largest.",
    ),
    _chart(
        name="udf_timescale_marks",
        path="/v1/udf/timescale_marks",
        resource=udf.TimescaleMarks,
        parameters=asked.MarksOf,
        answers=list[records.TimeMark],
        cache_s=2,
        summary="When a market began, ends and was resolved, as marks on a chart's time scale",
    ),
)
