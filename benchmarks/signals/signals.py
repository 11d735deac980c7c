"""Signals benchmark: a minute of analysis beside a plain pandas loop over the markets, on the data of a busy hour.

Both read the same database and use the same definitions. The loop queries each market's rows and computes with
data frames; it covers some of the markets, and its time is scaled to all.
"""

from __future__ import annotations

import resource
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.database import fresh
from benchmarks.figures import Target, figure
from benchmarks.harness import interleaved
from cli.stack.processes.program import StartError
from config.tunables import TUNABLES
from orchestration.signals import passes
from orchestration.signals.measures import Parameters, read
from sql import database

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import pandas as pd
    import psycopg

    from benchmarks.figures import Figure
    from benchmarks.harness import Options

MARKETS, TRADED_SHARE, RECENT_SHARE = 200_000, 0.43, 0.1075  # all, those that traded in a day, and in an hour
FEW = 46_500  # markets
MAX_S, MAX_S_OF_FEW = 5, 2  # of a minute's analysis
LOOPED = 100  # markets of the plain loop
AT = datetime(2026, 3, 10, 15, 30, tzinfo=UTC)
DATA = Path(__file__).with_name("data.sql")
COUNTS = ("markets", "trades", "quotes", "book_events")


def run(options: Options, report: Callable[[str], None]) -> Iterator[Figure]:
    """Measure passes, their memory, and the loop."""
    with fresh(report) as bench, database.connect(bench.url, autocommit=True, name="presage bench") as conn:
        markets = options.markets or MARKETS
        fill(conn, markets)
        report(", ".join(f"{conn.execute(f'select count(*) from {name}').fetchone()[0]:,} {name}" for name in COUNTS))  # type: ignore[index]  # noqa: S608
        given = Parameters.of({name: parameter.default for name, parameter in TUNABLES.items()})
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        measured = read(conn, AT, given)
        grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
        busy = [each.market_key for each in measured]
        report(f"{len(busy):,} markets traded enough to be judged")
        if not busy:
            raise StartError("no market traded enough to be judged: give --markets a larger number")
        looped = busy[:: max(1, len(busy) // LOOPED)][:LOOPED]
        minutes = iter(range(1, 100_000))
        medians = interleaved(
            {
                "analysis, a minute": lambda: one_pass(conn, AT + timedelta(seconds=60 * next(minutes))),
                "pandas, market by market": lambda: loop(conn, looped, given) * len(busy) / len(looped),
            },
            options.repetitions,
            report,
        )
        ours, theirs = medians.values()
        yield figure(
            "analysis, a minute of all markets",
            ours,
            "s",
            target=Target("value", "<=", MAX_S_OF_FEW if markets <= FEW else MAX_S),
        )
        yield figure("how much faster than a pandas loop", theirs / ours, "times", target=Target("value", ">=", 20))
        yield figure("the pandas loop, for as many markets", theirs, "s")
        yield figure("memory that a pass adds", grown, "MiB", target=Target("value", "<=", 1024))


def fill(conn: psycopg.Connection[Any], markets: int) -> None:
    """Generate the data; the script's braces are numbers and a time of our own."""
    script = DATA.read_text()
    if database.license(conn) == "timescale":  # continuous aggregates are computed when read
        before, _, rest = script.partition("-- candles:")
        script = before + rest.partition("-- end of candles")[2]
    traded, recent = round(markets * TRADED_SHARE), round(markets * RECENT_SHARE)
    for name, value in {"markets": markets, "traded": traded, "recent": recent, "at": AT.isoformat()}.items():
        script = script.replace(f"{{{name}}}", str(value))
    conn.execute(script.encode())


def one_pass(conn: psycopg.Connection[Any], now: datetime) -> float:
    """Analyse the minute at AT, as each minute's run does; return the seconds."""
    conn.execute("update stage_clocks set detail = '{}' where stage = 'analysis'")
    conn.execute("delete from signals")
    began = time.perf_counter()
    passed = passes.analyse(conn, now)
    took = time.perf_counter() - began
    assert passed.minutes == 1
    assert passed.until == AT
    return took


def loop(conn: psycopg.Connection[Any], market_keys: list[int], given: Parameters) -> float:
    """Analyse some markets one by one with data frames; return the seconds."""
    began = time.perf_counter()
    for key in market_keys:
        judge(conn, key, given)
    return time.perf_counter() - began


def judge(conn: psycopg.Connection[Any], key: int, given: Parameters) -> list[str]:
    """Return a market's signals, by a straightforward implementation."""
    at = AT.timestamp()
    trades = frame(
        conn,
        "select date_part('epoch', ts) as ts, outcome, price, value_usd from trades "
        "where market_key = %s and ts >= %s and ts < %s order by seq",
        [key, AT - timedelta(hours=24), AT],
    )
    quotes = frame(
        conn,
        "select date_part('epoch', ts) as ts, bid, ask from quotes "
        "where market_key = %s and outcome = 0 and ts >= %s and ts < %s order by ts",
        [key, AT - timedelta(hours=24), AT],
    )
    books = frame(
        conn,
        "select date_part('epoch', ts) as ts, bid_sizes, ask_sizes from book_events "
        "where market_key = %s and outcome = 0 and side is null and ts >= %s and ts < %s order by seq",
        [key, AT - timedelta(minutes=70), AT],
    )
    found = []
    hour, yes = trades[trades.ts >= at - 3600], trades[trades.outcome == 0]
    hourly = yes.groupby(yes.ts // 3600).price.agg(["first", "last"])
    usual = (hourly["last"] - hourly["first"]).abs().mean()
    middle = ((quotes.bid + quotes.ask) / 2)[(quotes.ask - quotes.bid <= 100_000) & (quotes.ts >= at - 3900)]
    if len(middle) and abs(middle.iloc[-1] - middle.iloc[0]) >= max(50_000, given.momentum_factor * usual):
        found.append("momentum")
    if hour.value_usd.sum() >= given.volume_spike_ratio * trades.value_usd.sum() / 24:
        found.append("volume_spike")
    lasted = quotes.ts.shift(-1).fillna(at) - quotes.ts
    now, before = quotes.ts >= at - 300, (quotes.ts < at - 300) & (quotes.ts >= at - 3900)
    spreads = [
        ((quotes.ask - quotes.bid) * lasted)[which].sum() / max(1e-9, lasted[which].sum()) for which in (now, before)
    ]
    if spreads[0] >= max(30_000, given.spread_widening_factor * spreads[1]):
        found.append("spread_widening")
    leans = books.apply(lambda row: lean(row.bid_sizes, row.ask_sizes), axis=1) if len(books) else books.ts
    if len(leans) and abs(leans.tail(5).mean()) >= given.book_imbalance_lean:
        found.append("book_imbalance")
    way = yes[yes.ts >= at - 3600]
    closes = way.groupby(way.ts // 60).price.last()
    if len(closes) >= 4:
        run = max(closes.max() - closes.iloc[0], closes.iloc[0] - closes.min())
        if run >= max(50_000, given.price_reversal_factor * usual):
            found.append("price_reversal")
    return found


def lean(bids: list[int], asks: list[int]) -> float:
    """Return bids minus asks, over their sum."""
    held = sum(bids[:5]) + sum(asks[:5])
    return (sum(bids[:5]) - sum(asks[:5])) / held if held else 0.0


def frame(conn: psycopg.Connection[Any], query: Any, given: list[Any]) -> pd.DataFrame:
    """Return rows as a data frame."""
    import pandas as pd

    cursor = conn.execute(query, given)
    return pd.DataFrame(cursor.fetchall(), columns=[column.name for column in cursor.description or ()])
