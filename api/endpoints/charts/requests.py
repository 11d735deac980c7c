"""Parameters of the UDF endpoints for TradingView's charting library."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, field

from api.schemas.requests import MAX_LIST_LENGTH, Parameters, Seconds

Resolution = Literal["1S", "1", "5", "15", "30", "60", "240", "1D", "D"]
Symbol = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=250,
        description="A market's slug or market_id; the suffix `.1` selects its second outcome",
        examples=["will-it-rain-tomorrow", "will-it-rain-tomorrow.1"],
    ),
]
Ignored = Annotated[Annotated[str, Meta(max_length=50)] | None, Meta(description="Sent by the library and ignored")]


class ChartParameters(Parameters, frozen=True, kw_only=True):
    """The API key as a parameter, since the library cannot send a header."""

    api_key: Annotated[str | None, Meta(description="The API key")] = None


class SymbolParameters(ChartParameters, frozen=True, kw_only=True):
    """One symbol."""

    symbol: Symbol
    currency_code: Ignored = field(default=None, name="currencyCode")
    unit_id: Ignored = field(default=None, name="unitId")


class SymbolSearchParameters(ChartParameters, frozen=True, kw_only=True):
    """A symbol search."""

    query: Annotated[
        str, Meta(max_length=200, description="Part of a title or slug; empty: the most traded markets")
    ] = ""
    type: Annotated[Literal["", "prediction"], Meta(description="Symbol type; there is only one")] = ""
    exchange: Annotated[
        Literal["", "polymarket", "POLYMARKET", "Polymarket", "kalshi", "KALSHI", "Kalshi"],
        Meta(description="The exchange; empty: Polymarket"),
    ] = ""
    limit: Annotated[int, Meta(ge=1, le=100, description="Maximum number of symbols in the response")] = 30


class ChartBarsParameters(SymbolParameters, frozen=True, kw_only=True):
    """Bars of a symbol."""

    resolution: Annotated[Resolution, Meta(description="Bar width in minutes; `1S`: one second, `1D`: one day")]
    from_: Annotated[Seconds, Meta(description="From this moment on: Unix seconds")] = field(default=0, name="from")
    to: Annotated[Seconds, Meta(description="Only before this moment: Unix seconds", examples=[1795262400])]
    countback: Annotated[
        Annotated[int, Meta(ge=1, le=20_000)] | None,
        Meta(description="Number of bars before `to`; overrides `from`"),
    ] = None


class QuotesParameters(ChartParameters, frozen=True, kw_only=True):
    """Several symbols."""

    symbols: Annotated[
        str,
        Meta(
            min_length=1,
            max_length=MAX_LIST_LENGTH,
            description="Up to 50 symbols, separated by commas",
            examples=["will-it-rain-tomorrow"],
        ),
    ]


class MarksParameters(SymbolParameters, frozen=True, kw_only=True):
    """Marks of a symbol."""

    resolution: Annotated[Resolution, Meta(description="The chart's resolution; marks do not depend on it")] = "1"
    from_: Annotated[Seconds, Meta(description="From this moment on: Unix seconds")] = field(default=0, name="from")
    to: Annotated[Seconds, Meta(description="Up to this moment: Unix seconds", examples=[1795262400])]
