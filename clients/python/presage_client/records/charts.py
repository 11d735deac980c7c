"""Records that the operations of charts return.

Generated from the OpenAPI document: do not edit; run `make client`.
"""

# ruff: noqa: E741, F821, TC001, UP037 - msgspec reads the types when it runs, and `Literal` as str

from __future__ import annotations

from typing import ClassVar

from presage_client import _record
from presage_client._field_types import Literal, Records
from presage_client._record import Record


class ChartBars(Record, kw_only=True):
    """Bars in columns, oldest first."""

    INSTANTS: ClassVar[dict[str, str]] = {"nextTime": "s"}

    s: Literal["error", "no_data", "ok"]
    errmsg: str | None = None
    nextTime: int | None = None
    """With `no_data`: the last bar before the range."""
    t: list[int] | None = None
    o: list[float] | None = None
    h: list[float] | None = None
    l: list[float] | None = None
    c: list[float] | None = None
    v: list[float] | None = None


class ChartConfig(Record, kw_only=True):
    """The data feed's capabilities."""

    supports_search: bool
    supports_group_request: bool
    supports_marks: bool
    supports_timescale_marks: bool
    supports_time: bool
    exchanges: Records[Choice]
    symbols_types: Records[Choice]
    supported_resolutions: list[str]

    def __post_init__(self) -> None:
        self.exchanges = _record.Records(self.exchanges, Choice)
        self.symbols_types = _record.Records(self.symbols_types, Choice)


class ChartMarks(Record, kw_only=True):
    """Marks on a chart's bars, in columns: status changes and large trades."""

    id: list[str]
    time: list[int]
    color: list[str]
    text: list[str]
    label: list[str]
    labelFontColor: list[str]
    minSize: list[int]


class ChartQuote(Record, kw_only=True):
    """A symbol's quote, or an error if the symbol does not exist."""

    s: Literal["error", "ok"]
    n: str
    v: QuoteValues


class ChartQuotes(Record, kw_only=True):
    """Quotes of several symbols."""

    s: Literal["ok"]
    d: Records[ChartQuote]

    def __post_init__(self) -> None:
        self.d = _record.Records(self.d, ChartQuote)


class ChartSymbol(Record, kw_only=True):
    """A symbol; an unknown one has only `s` and `errmsg`."""

    INSTANTS: ClassVar[dict[str, str]] = {"expiration_date": "s"}

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
    expiration_date: int | None = None
    """Unix seconds."""


class Choice(Record, kw_only=True):
    """An option that a user of the chart can choose."""

    value: str
    name: str
    desc: str = ""


class FoundSymbol(Record, kw_only=True):
    """A symbol found by a search."""

    symbol: str
    full_name: str
    description: str
    exchange: str
    ticker: str
    type: str


class QuoteValues(Record, kw_only=True):
    """A symbol's prices; empty if unknown."""

    ch: float | None = None
    """Price change in 24 hours."""
    chp: float | None = None
    """Price change in percent."""
    short_name: str | None = None
    exchange: str | None = None
    description: str | None = None
    lp: float | None = None
    """The last price."""
    ask: float | None = None
    """A probability, 0 to 1."""
    bid: float | None = None
    """A probability, 0 to 1."""
    spread: float | None = None
    open_price: float | None = None
    """A probability, 0 to 1."""
    high_price: float | None = None
    """A probability, 0 to 1."""
    low_price: float | None = None
    """A probability, 0 to 1."""
    prev_close_price: float | None = None
    """A probability, 0 to 1."""
    volume: float | None = None
    """Shares."""


class TimeMark(Record, kw_only=True):
    """A mark on a chart's time scale: the market's start, end or resolution."""

    INSTANTS: ClassVar[dict[str, str]] = {"time": "s"}

    id: str
    time: int
    """Unix seconds."""
    color: str
    label: str
    tooltip: list[str]
