"""What TradingView's charting library asks a data feed for (UDF)."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, field

from api.schemas.requests import LONGEST_LIST, Parameters, Seconds

Resolution = Literal["1S", "1", "5", "15", "30", "60", "240", "1D", "D"]
Symbol = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=250,
        description="A market's slug or market_id; `.1` after it means its second outcome",
        examples=["will-it-rain-tomorrow", "will-it-rain-tomorrow.1"],
    ),
]
Ignored = Annotated[
    Annotated[str, Meta(max_length=50)] | None, Meta(description="Sent by the library; there is one only")
]


class Asked(Parameters, frozen=True, kw_only=True):
    """The library cannot send a header, so the key may stand here."""

    api_key: Annotated[str | None, Meta(description="The API key")] = None


class SymbolOf(Asked, frozen=True, kw_only=True):
    """One symbol."""

    symbol: Symbol
    currency_code: Ignored = field(default=None, name="currencyCode")
    unit_id: Ignored = field(default=None, name="unitId")


class SymbolsLike(Asked, frozen=True, kw_only=True):
    """Symbols by words."""

    query: Annotated[str, Meta(max_length=200, description="Part of a title or slug; empty: the busiest markets")] = ""
    type: Annotated[Literal["", "prediction"], Meta(description="Of what kind; there is one only")] = ""
    exchange: Annotated[
        Literal["", "polymarket", "POLYMARKET", "Polymarket"], Meta(description="From which exchange; there is one")
    ] = ""
    limit: Annotated[int, Meta(ge=1, le=100, description="Symbols in one answer")] = 30


class BarsOf(SymbolOf, frozen=True, kw_only=True):
    """Bars of a symbol."""

    resolution: Annotated[Resolution, Meta(description="Minutes of a bar; `1S`: a second, `1D`: a day")]
    from_: Annotated[Seconds, Meta(description="From this moment on: Unix seconds")] = field(default=0, name="from")
    to: Annotated[Seconds, Meta(description="Only before this moment: Unix seconds", examples=[1795262400])]
    countback: Annotated[
        Annotated[int, Meta(ge=1, le=20_000)] | None,
        Meta(description="How many bars to give before `to`; then `from` is of no matter"),
    ] = None


class SeveralSymbols(Asked, frozen=True, kw_only=True):
    """Several symbols."""

    symbols: Annotated[
        str,
        Meta(
            min_length=1,
            max_length=LONGEST_LIST,
            description="Up to 50 symbols, separated by commas",
            examples=["will-it-rain-tomorrow"],
        ),
    ]


class MarksOf(SymbolOf, frozen=True, kw_only=True):
    """Marks of a symbol."""

    resolution: Annotated[Resolution, Meta(description="Of the chart; marks do not depend on it")] = "1"
    from_: Annotated[Seconds, Meta(description="From this moment on: Unix seconds")] = field(default=0, name="from")
    to: Annotated[Seconds, Meta(description="Up to this moment: Unix seconds", examples=[1795262400])]
