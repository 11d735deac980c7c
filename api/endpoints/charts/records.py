"""Responses for TradingView's charting library (UDF). Field names are the protocol's."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

from api.schemas.records import Price01, Shares, UnixSeconds

Ticker = Annotated[str, Meta(examples=["will-it-rain-tomorrow"])]


class Choice(Struct):
    """An option that a user of the chart can choose."""

    value: str
    name: str
    desc: str = ""


class ChartConfig(Struct):
    """The data feed's capabilities."""

    supports_search: bool
    supports_group_request: bool
    supports_marks: bool
    supports_timescale_marks: bool
    supports_time: bool
    exchanges: list[Choice]
    symbols_types: list[Choice]
    supported_resolutions: list[str]


class ChartSymbol(Struct, omit_defaults=True):
    """A symbol; an unknown one has only `s` and `errmsg`."""

    s: Literal["error"] | None = None
    errmsg: str | None = None
    name: str | None = None
    ticker: str | None = None
    description: str | None = None
    type: str | None = None
    session: str | None = None
    timezone: str | None = None
    exchange: str | None = None
    listed_exchange: str | None = None
    format: str | None = None
    currency_code: str | None = None
    minmov: int | None = None
    minmovement: int | None = None
    pricescale: int | None = None
    has_intraday: bool | None = None
    has_seconds: bool | None = None
    has_daily: bool | None = None
    seconds_multipliers: list[str] | None = None
    intraday_multipliers: list[str] | None = None
    daily_multipliers: list[str] | None = None
    supported_resolutions: list[str] | None = None
    volume_precision: int | None = None
    data_status: str | None = None
    expired: bool | None = None
    expiration_date: UnixSeconds | None = None


class FoundSymbol(Struct):
    """A symbol found by a search."""

    symbol: Ticker
    full_name: Annotated[str, Meta(examples=["Polymarket:will-it-rain-tomorrow"])]
    description: Annotated[str, Meta(examples=["Will it rain tomorrow?"])]
    exchange: Annotated[str, Meta(examples=["Polymarket"])]
    ticker: Ticker
    type: Annotated[str, Meta(examples=["prediction"])]


class ChartBars(Struct, omit_defaults=True):
    """Bars in columns, oldest first."""

    s: Literal["ok", "no_data", "error"]
    errmsg: str | None = None
    nextTime: Annotated[UnixSeconds | None, Meta(description="With `no_data`: the last bar before the range")] = None  # noqa: N815
    t: list[UnixSeconds] | None = None
    o: list[Price01] | None = None
    h: list[Price01] | None = None
    l: list[Price01] | None = None  # noqa: E741 (the protocol's name)
    c: list[Price01] | None = None
    v: list[Shares] | None = None


class QuoteValues(Struct, omit_defaults=True):
    """A symbol's prices; empty if unknown."""

    ch: Annotated[float | None, Meta(description="Price change in 24 hours")] = None
    chp: Annotated[float | None, Meta(description="Price change in percent")] = None
    short_name: str | None = None
    exchange: str | None = None
    description: str | None = None
    lp: Annotated[Price01 | None, Meta(description="The last price")] = None
    ask: Price01 | None = None
    bid: Price01 | None = None
    spread: float | None = None
    open_price: Price01 | None = None
    high_price: Price01 | None = None
    low_price: Price01 | None = None
    prev_close_price: Price01 | None = None
    volume: Shares | None = None


class ChartQuote(Struct):
    """A symbol's quote, or an error if the symbol does not exist."""

    s: Literal["ok", "error"]
    n: str
    v: QuoteValues


class ChartQuotes(Struct):
    """Quotes of several symbols."""

    s: Literal["ok"]
    d: list[ChartQuote]


class ChartMarks(Struct):
    """Marks on a chart's bars, in columns: status changes and large trades."""

    id: list[str]
    time: list[UnixSeconds]
    color: list[str]
    text: list[str]
    label: list[str]
    labelFontColor: list[str]  # noqa: N815
    minSize: list[int]  # noqa: N815


class TimeMark(Struct):
    """A mark on a chart's time scale: the market's start, end or resolution."""

    id: str
    time: UnixSeconds
    color: str
    label: str
    tooltip: list[str]
