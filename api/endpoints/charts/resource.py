"""A data feed for TradingView's charting library (UDF): what is not known is said in the protocol's own words."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from api.endpoints.base.resource import ForCharts
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
from api.schemas.requests import EARLIEST, MOST_BUCKETS
from sql.queries import candles, udf

if TYPE_CHECKING:
    from collections.abc import Callable

    import falcon

    from api.data.lookup import Market
    from api.endpoints.charts.requests import Asked, BarsOf, MarksOf, SeveralSymbols, SymbolOf, SymbolsLike
    from api.schemas.requests import Parameters

RESOLUTIONS = ["1S", "1", "5", "15", "30", "60", "240", "1D"]
KIND, EXCHANGE = "prediction", "Polymarket"
MOST_QUOTES = 50
MOST_MARKS, LOOKED_AT, LARGE_USD = 50, 20_000, 10_000 * 1_000_000
DAY = 86_400
LOOKS = (1, 30, 1000)  # counting back, how many times the time that so many bars take without a gap


class Source(NamedTuple):
    """What bars of a resolution are made of."""

    step_s: int
    bars: Callable[..., Any]
    last: Callable[..., Any]


def source(resolution: str) -> Source:
    """Tell what bars of a resolution are made of."""
    if resolution == "1S":
        return Source(1, udf.seconds, udf.last_trade)
    step_s = DAY if resolution.endswith("D") else int(resolution) * 60
    if step_s < 3600:
        return Source(step_s, udf.minutes, candles.last_bars_1m)
    return Source(step_s, udf.hours, candles.last_bars_1h)


class Chart(ForCharts):
    """Whoever asks, the answer is the same: the key is no part of the question."""

    def given(self, req: falcon.Request) -> Parameters:
        """Check what was asked, and put the key away."""
        given: Asked = super().given(req)  # type: ignore[assignment]
        return msgspec.structs.replace(given, api_key=None)

    def symbol(self, name: str) -> tuple[Market, int] | None:
        """Find the market and outcome of a symbol, however it is spelt."""
        bare = name.partition(":")[2] if name.lower().startswith("polymarket:") else name
        head, _, tail = bare.rpartition(".")
        outcome = int(tail) if head and tail.isascii() and tail.isdigit() and len(tail) < 4 else 0
        for slug in dict.fromkeys((head if outcome or tail == "0" else bare, bare)):
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


class Config(Chart):
    """What the data feed can do."""

    def answer(self, given: Asked, **path: str) -> bytes:
        """Say it."""
        return msgspec.json.encode(
            ChartConfig(
                supports_search=True,
                supports_group_request=False,
                supports_marks=True,
                supports_timescale_marks=True,
                supports_time=True,
                exchanges=[Choice("", "All exchanges"), Choice("polymarket", EXCHANGE, EXCHANGE)],
                symbols_types=[Choice("", "All types"), Choice(KIND, "Prediction market")],
                supported_resolutions=RESOLUTIONS,
            )
        )


class Symbols(Chart):
    """A symbol described."""

    def answer(self, given: SymbolOf, **path: str) -> bytes:
        """Give the description."""
        found = self.symbol(given.symbol)
        if found is None:
            return unknown()
        market, outcome = found
        slug, question, status, end_time, tick_size = self.read(udf.symbol, market_key=market.key)
        ticker = ticker_of(slug or market.market_id, outcome)
        ended = status != "ACTIVE"
        return msgspec.json.encode(
            ChartSymbol(
                name=ticker,
                ticker=ticker,
                description=f"{question} {market.outcomes[outcome]}" if market.outcomes else question,
                type=KIND,
                session="24x7",
                timezone="Etc/UTC",
                exchange=EXCHANGE,
                listed_exchange=EXCHANGE,
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


class SymbolSearch(Chart):
    """Symbols by words; without words, the busiest."""

    def answer(self, given: SymbolsLike, **path: str) -> bytes:
        """Give an array: of each market its first outcome."""
        if given.query.strip():
            rows = search(self, given.query.strip(), limit=given.limit)
        else:
            rows = [(record,) for record in self.read(TOP["volume", "24h"], limit=given.limit)[1]]
        found = []
        for row in rows:
            market = msgspec.json.decode(row[-1])
            ticker = ticker_of(market["slug"] or market["market_id"], 0)
            found.append(FoundSymbol(ticker, f"{EXCHANGE}:{ticker}", market["question"], EXCHANGE, ticker, KIND))
        return msgspec.json.encode(found)


class Bars(Chart):
    """Bars of a symbol."""

    def answer(self, given: BarsOf, **path: str) -> bytes:
        """Give the bars of the range, or as many as counted back; if there are none, say when the last one was."""
        found = self.symbol(given.symbol)
        if found is None:
            return unknown()
        market, outcome = found
        of = {"market_key": market.key, "outcome": outcome}
        made = source(given.resolution)
        until = EARLIEST + timedelta(seconds=given.to)
        limit = given.countback or MOST_BUCKETS
        starts = [ceiling(EARLIEST + timedelta(seconds=given.from_), made.step_s)]
        if given.countback is not None:
            starts = [ceiling(back(until, made.step_s * limit * times), made.step_s) for times in LOOKS]
        text, count = "", 0
        for since in starts:
            text, count = self.read(
                made.bars, step=f"{made.step_s} seconds", since=since, until=until, limit=limit, **of
            )
            if count >= limit:
                break
        if count:
            return str(text).encode()
        last = self._last(made, min(starts[-1], until), of)
        return b'{"s":"no_data"}' if last is None else b'{"s":"no_data","nextTime":%d}' % last

    def _last(self, made: Source, before: datetime, of: dict[str, int]) -> int | None:
        if made.step_s == 1:
            last = self.read(made.last, until=before, **of)
        else:
            last = None
            for days in (31, 3660):
                last = last or self.read(made.last, since=back(before, days * DAY), until=before, **of)
        return None if last is None else last - last % made.step_s


class ServerTime(Chart):
    """The server's clock, as the protocol has it."""

    def answer(self, given: Asked, **path: str) -> bytes:
        """Give Unix seconds as text."""
        return str(int(time.time())).encode()


class Quotes(Chart):
    """What several symbols cost."""

    def answer(self, given: SeveralSymbols, **path: str) -> bytes:
        """Give a quote for each, in the order asked for."""
        names = several(given.symbols, MOST_QUOTES, "symbols")
        found = {name: place for name in names if (place := self.symbol(name)) is not None}
        rows = self.rows(
            udf.quotes,
            symbols=list(found),
            market_keys=[market.key for market, _ in found.values()],
            outcomes=[outcome for _, outcome in found.values()],
        )
        told = dict(zip(found, (text for (text,) in rows), strict=True))
        quotes = [
            told.get(name) or msgspec.json.encode(ChartQuote("error", name, QuoteValues())).decode() for name in names
        ]
        return f'{{"s":"ok","d":[{",".join(quotes)}]}}'.encode()


class Marks(Chart):
    """Marks on a chart's bars: changes of state and large trades."""

    def answer(self, given: MarksOf, **path: str) -> bytes:
        """Give them column by column; a symbol that is not known has none."""
        found = self.symbol(given.symbol)
        rows = []
        if found is not None:
            market, outcome = found
            since, until = span(given)
            rows = self.rows(
                udf.marks,
                market_key=market.key,
                outcome=outcome,
                since=since,
                until=until,
                most=MOST_MARKS,
                looked_at=LOOKED_AT,
                least_usd=LARGE_USD,
            )
        ids, times, colors, texts, labels = ([row[column] for row in rows] for column in range(5))
        return msgspec.json.encode(
            ChartMarks(ids, times, colors, texts, labels, ["white"] * len(rows), [14] * len(rows))
        )


class TimescaleMarks(Chart):
    """Marks on a chart's time scale: when the market began, ends and was resolved."""

    def answer(self, given: MarksOf, **path: str) -> bytes:
        """Give an array; a symbol that is not known has none."""
        found = self.symbol(given.symbol)
        if found is None:
            return b"[]"
        since, until = span(given)
        rows = self.rows(udf.milestones, market_key=found[0].key, since=since, until=until)
        return msgspec.json.encode([TimeMark(name, at, color, label, [text]) for name, at, color, label, text in rows])


def ticker_of(name: str, outcome: int) -> str:
    """Give the symbol of an outcome."""
    return f"{name}.{outcome}" if outcome else name


def span(given: MarksOf) -> tuple[datetime, datetime]:
    """Give the moments of a range, its last second included."""
    return datetime.fromtimestamp(given.from_, UTC), EARLIEST + timedelta(seconds=given.to + 1)


def unknown() -> bytes:
    """Say that there is no such symbol."""
    return b'{"s":"error","errmsg":"unknown_symbol"}'
