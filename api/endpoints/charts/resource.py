"""A UDF data feed for TradingView's charting library; unknown symbols are answered as the protocol defines."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from api.data import complements
from api.endpoints.base.resource import ChartResource
from api.endpoints.charts.records import (
    ChartConfig,
    ChartMarks,
    ChartQuote,
    ChartSymbol,
    Choice,
    FoundSymbol,
    QuoteValues,
    TimeMark,
)
from api.endpoints.markets.lists import TOP, search
from api.endpoints.prices.resource import back, ceiling, several
from api.errors import Problem
from api.schemas.requests import EARLIEST, MAX_BUCKETS
from config.exchanges import DEFAULT, EXCHANGES
from sql.queries import candles, udf

if TYPE_CHECKING:
    from collections.abc import Callable

    import falcon

    from api.data.lookup import MarketRef
    from api.endpoints.charts.requests import (
        ChartBarsParameters,
        ChartParameters,
        MarksParameters,
        QuotesParameters,
        SymbolParameters,
        SymbolSearchParameters,
    )
    from api.schemas.requests import Parameters

RESOLUTIONS = ["1S", "1", "5", "15", "30", "60", "240", "1D"]
KIND = "prediction"
MAX_QUOTES = 50
MAX_MARKS, MARKED_TRADES, LARGE_USD = 50, 20_000, 10_000 * 1_000_000
DAY = 86_400
WINDOWS = (1, 30, 1000)  # window sizes tried when counting back, as multiples of the gapless time of that many bars


class BarSource(NamedTuple):
    """The queries that bars of a resolution are built from."""

    step_s: int
    bars: Callable[..., Any]
    last: Callable[..., Any]


def source(resolution: str) -> BarSource:
    """Return the step and queries of a resolution."""
    if resolution == "1S":
        return BarSource(1, udf.seconds, udf.last_trade)
    step_s = DAY if resolution.endswith("D") else int(resolution) * 60
    if step_s < 3600:
        return BarSource(step_s, udf.minutes, candles.last_bars_1m)
    return BarSource(step_s, udf.hours, candles.last_bars_1h)


class UdfResource(ChartResource):
    """A UDF endpoint. Responses do not depend on the key, so it is not part of the cache key."""

    def parse(self, req: falcon.Request) -> Parameters:
        """Parse the parameters and remove the API key."""
        given: ChartParameters = super().parse(req)  # type: ignore[assignment]
        return msgspec.structs.replace(given, api_key=None)

    def symbol(self, name: str) -> tuple[MarketRef, int] | None:
        """Return the market and outcome of a symbol, with or without exchange prefix; None if unknown."""
        prefix, _, rest = name.partition(":")
        bare = rest if prefix.lower() in EXCHANGES else name
        head, _, tail = bare.rpartition(".")
        outcome = int(tail) if head and tail.isascii() and tail.isdigit() and len(tail) < 4 else 0
        # The whole first: a ticker of Kalshi may end like an outcome's number.
        for slug in dict.fromkeys((bare, head if outcome or tail == "0" else bare)):
            for spelt in dict.fromkeys((slug, slug.lower())):
                try:
                    market = self.service.markets.of(spelt)
                except Problem as problem:
                    if problem.problem != "not_found":
                        raise
                    continue
                place = outcome if slug != bare else 0
                return (market, place) if place < len(market.outcomes) else None
        return None


class UdfConfig(UdfResource):
    """The data feed's configuration."""

    def answer(self, given: ChartParameters, **path: str) -> bytes:
        """Return the configuration."""
        return msgspec.json.encode(
            ChartConfig(
                supports_search=True,
                supports_group_request=False,
                supports_marks=True,
                supports_timescale_marks=True,
                supports_time=True,
                exchanges=[Choice(each.name, each.title, each.title) for each in EXCHANGES.values()],
                symbols_types=[Choice("", "All types"), Choice(KIND, "Prediction market")],
                supported_resolutions=RESOLUTIONS,
            )
        )


class UdfSymbol(UdfResource):
    """The description of a symbol."""

    def answer(self, given: SymbolParameters, **path: str) -> bytes:
        """Return the symbol's description."""
        found = self.symbol(given.symbol)
        if found is None:
            return unknown()
        market, outcome = found
        slug, question, status, end_time, tick_size = self.read(udf.symbol, market_key=market.key)
        ticker = ticker_of(slug or market.market_id, outcome)
        ended, title = status != "ACTIVE", EXCHANGES[market.exchange].title
        return msgspec.json.encode(
            ChartSymbol(
                name=ticker,
                ticker=ticker,
                description=f"{question} {market.outcomes[outcome]}" if market.outcomes else question,
                type=KIND,
                session="24x7",
                timezone="Etc/UTC",
                exchange=title,
                listed_exchange=title,
                format="price",
                currency_code="USD",
                minmov=1,
                minmovement=1,
                pricescale=max(100, 1_000_000 // max(1, tick_size)),
                has_intraday=True,
                has_seconds=True,
                has_daily=True,
                seconds_multipliers=["1"],
                intraday_multipliers=["1", "5", "15", "30", "60", "240"],
                daily_multipliers=["1"],
                supported_resolutions=RESOLUTIONS,
                volume_precision=2,
                data_status="endofday" if ended else "streaming",
                expired=True if ended and end_time else None,
                expiration_date=end_time if ended else None,
            )
        )


class UdfSearch(UdfResource):
    """Symbol search; without a query, the most traded markets."""

    def answer(self, given: SymbolSearchParameters, **path: str) -> bytes:
        """Return an array with the first outcome of each market."""
        exchange = EXCHANGES[given.exchange.lower() or DEFAULT.name]
        if given.query.strip():
            rows = search(self, given.query.strip(), limit=given.limit, exchange=exchange.name)
        else:
            _, top = self.read(TOP["volume", "24h"], exchange=exchange.name, limit=given.limit)
            rows = [(record,) for record in top]
        found = []
        for row in rows:
            market = msgspec.json.decode(row[-1])
            ticker = ticker_of(market["slug"] or market["market_id"], 0)
            found.append(
                FoundSymbol(ticker, f"{exchange.title}:{ticker}", market["question"], exchange.title, ticker, KIND)
            )
        return msgspec.json.encode(found)


class UdfBars(UdfResource):
    """Bars of a symbol."""

    def answer(self, given: ChartBarsParameters, **path: str) -> bytes:
        """Return the bars of the range or the `countback` last ones; if there are none, the time of the last bar."""
        found = self.symbol(given.symbol)
        if found is None:
            return unknown()
        market, outcome = found
        outcome, is_other = market.traded(outcome)
        of = {"market_key": market.key, "outcome": outcome}
        made = source(given.resolution)
        until = EARLIEST + timedelta(seconds=given.to)
        limit = given.countback or MAX_BUCKETS
        starts = [ceiling(EARLIEST + timedelta(seconds=given.from_), made.step_s)]
        if given.countback is not None:
            starts = [ceiling(back(until, made.step_s * limit * times), made.step_s) for times in WINDOWS]
        text, count = "", 0
        for since in starts:
            text, count = self.read(
                made.bars, step=f"{made.step_s} seconds", since=since, until=until, limit=limit, **of
            )
            if count >= limit:
                break
        past = self.service.expired_trades
        if count < limit and made.step_s == 1:
            step, since = f"{made.step_s} seconds", starts[-1]
            found_past = past.newest(made.bars, market, outcome, since=since, until=until, limit=limit, step=step)
            text, count = found_past or (text, count)
        if count:
            return (complements.bars(text) if is_other else str(text)).encode()
        last = self._last(made, min(starts[-1], until), of)
        if last is None and made.step_s == 1:
            last = past.last(made.last, market, outcome, until=min(starts[-1], until))
        return b'{"s":"no_data"}' if last is None else b'{"s":"no_data","nextTime":%d}' % last

    def _last(self, made: BarSource, before: datetime, of: dict[str, int]) -> int | None:
        if made.step_s == 1:
            last = self.read(made.last, until=before, **of)
        else:
            last = None
            for days in (31, 3660):
                last = last or self.read(made.last, since=back(before, days * DAY), until=before, **of)
        return None if last is None else last - last % made.step_s


class UdfTime(UdfResource):
    """The server's clock, in the protocol's format."""

    def answer(self, given: ChartParameters, **path: str) -> bytes:
        """Return Unix seconds as text."""
        return str(int(time.time())).encode()


class UdfQuotes(UdfResource):
    """Quotes of several symbols."""

    def answer(self, given: QuotesParameters, **path: str) -> bytes:
        """Return a quote for each symbol, in the requested order."""
        names = several(given.symbols, MAX_QUOTES, "symbols")
        found = {name: place for name in names if (place := self.symbol(name)) is not None}
        rows = self.read(
            udf.quotes,
            symbols=list(found),
            market_keys=[market.key for market, _ in found.values()],
            outcomes=[outcome for _, outcome in found.values()],
            traded=[market.traded(outcome)[0] for market, outcome in found.values()],
        )
        known = dict(zip(found, (text for (text,) in rows), strict=True))
        quotes = [
            known.get(name) or msgspec.json.encode(ChartQuote("error", name, QuoteValues())).decode() for name in names
        ]
        return f'{{"s":"ok","d":[{",".join(quotes)}]}}'.encode()


class UdfMarks(UdfResource):
    """Marks on a chart's bars: status changes and large trades."""

    def answer(self, given: MarksParameters, **path: str) -> bytes:
        """Return the marks in columns; an unknown symbol has none."""
        found = self.symbol(given.symbol)
        rows = []
        if found is not None:
            market, outcome = found
            since, until = span(given)
            traded, is_other = market.traded(outcome)
            rows = self.read(
                udf.marks,
                market_key=market.key,
                traded=traded,
                is_other=is_other,
                since=since,
                until=until,
                most=MAX_MARKS,
                looked_at=MARKED_TRADES,
                least_usd=LARGE_USD,
            )
        ids, times, colors, texts, labels = ([row[column] for row in rows] for column in range(5))
        return msgspec.json.encode(
            ChartMarks(ids, times, colors, texts, labels, ["white"] * len(rows), [14] * len(rows))
        )


class UdfTimescaleMarks(UdfResource):
    """Marks on a chart's time scale: the market's start, end and resolution."""

    def answer(self, given: MarksParameters, **path: str) -> bytes:
        """Return an array of marks; an unknown symbol has none."""
        found = self.symbol(given.symbol)
        if found is None:
            return b"[]"
        since, until = span(given)
        rows = self.read(udf.milestones, market_key=found[0].key, since=since, until=until)
        return msgspec.json.encode([TimeMark(name, at, color, label, [text]) for name, at, color, label, text in rows])


def ticker_of(name: str, outcome: int) -> str:
    """Return the symbol of an outcome."""
    return f"{name}.{outcome}" if outcome else name


def span(given: MarksParameters) -> tuple[datetime, datetime]:
    """Return the start and end of a range, its last second included."""
    return datetime.fromtimestamp(given.from_, UTC), EARLIEST + timedelta(seconds=given.to + 1)


def unknown() -> bytes:
    """Return the protocol's error for an unknown symbol."""
    return b'{"s":"error","errmsg":"unknown_symbol"}'
