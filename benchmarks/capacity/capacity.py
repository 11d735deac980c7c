"""Measures the live feed as it runs alone: exchange, database, a leader and a standby for each shard."""

from __future__ import annotations

import os
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from benchmarks import document
from benchmarks.capacity import rows
from benchmarks.capacity.exchange import Exchange, discover
from benchmarks.capacity.feeds import Feeds
from benchmarks.capacity.measuring import DATABASE, EXCHANGE, LEADER, SETTLE_S, STANDBY, Measurement, ProgressReporter
from benchmarks.capacity.subscriber import Subscriber
from benchmarks.database import fresh
from benchmarks.figures import Target, figure
from benchmarks.served import api
from cli.stack.processes.program import StartError
from cli.stack.processes.supervisor import Supervisor
from upstream.transport.errors import UpstreamError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import psycopg

    from benchmarks.capacity.measuring import MeasuredWindow
    from benchmarks.capacity.rows import Rows
    from benchmarks.database import Bench
    from benchmarks.figures import Figure
    from benchmarks.harness import Options

    Connection = psycopg.Connection[Any]

MARKETS = 200_000
PATIENCE_S, MARKETS_A_SECOND = 120.0, 100  # each step of starting may take so long, and a second for so many markets
MAX_CPU_US = {LEADER: 30, STANDBY: 8, DATABASE: 12}
MAX_MEMORY_MB = 1_000  # of a leader: of one of four shards at 400,000 tokens
MAX_LAG_S = 1.0
MAX_PASSES = 4
MAX_GROWTH_MB_PER_MIN, LONG_S = 1.0, 600.0  # measured for so long at least: caches grow at first
MAX_CAUGHT_UP_S = 60.0
AWAY_S = 60.0  # of the subscriber, at most a third of the measurement
KEPT = 0.98  # of the rate, and of what was sent
# A feed writes figures every few seconds: those written in the window, and its first ones after that.
LAG = """
    select lag_counts, lag_p99_ms, lag_max_ms, extract(epoch from ts)::float8 from feed_stats s
    where ts > to_timestamp(%(from_s)s) and not exists (
        select from feed_stats e where e.feed = s.feed and e.ts >= to_timestamp(%(to_s)s) and e.ts < s.ts
    )
"""
GAPS = """
    select cause, count(*), count(*) filter (where filled_at is not null)
    from coverage_gaps where created_at >= to_timestamp(%s) group by cause order by cause
"""


def run(options: Options, report: Callable[[str], None]) -> Iterator[Figure]:
    """Start everything, measure, and write the document if requested."""
    load = os.getloadavg()
    figures: list[Figure] = []
    for each in measured(options, report):
        figures.append(each)
        yield each
    if options.markdown is not None:
        document.write(options.markdown, "capacity", figures, load)


def measured(options: Options, report: Callable[[str], None]) -> Iterator[Figure]:
    """Start everything, wait until every book is synced, and measure for the configured time."""
    from sql.database import connect

    markets = options.markets or MARKETS
    limit_s = PATIENCE_S + markets / MARKETS_A_SECOND
    progress = ProgressReporter(report)
    report("the database is starting")
    with (
        fresh(report) as bench,
        connect(bench.url, autocommit=True, name="presage bench") as conn,
        Supervisor(report, restart=False) as supervisor,
    ):
        exchange = Exchange(bench.folder, progress, rate=options.rate, markets=markets, ready_within_s=limit_s)
        feeds = Feeds(conn, options.shards, progress)
        measurement = Measurement(conn, supervisor, exchange, feeds, progress)
        supervisor.start(exchange.program)
        supervisor.wait(exchange.program.name)
        try:
            read_catalogue(conn, exchange, limit_s, progress)
        except UpstreamError as error:
            supervisor.check_started()  # says so if the exchange has ended
            raise StartError(f"discovery failed: {error}") from error
        if not options.quiet_start:
            exchange.play()
        feeds.prepare(
            bench.folder,
            {"DATABASE_URL": bench.url, **exchange.environment()},
            window_s=limit_s
            + options.warm_up
            + options.seconds
            + 3 * SETTLE_S,  # the lead does not pass on in the measurement
            ready_within_s=limit_s,
        )
        supervisor.start(*feeds.programs.values())
        supervisor.wait(*(program.name for program in feeds.programs.values()))
        if options.quiet_start:
            exchange.play()
        warm_up(supervisor, options.warm_up, progress)
        subscriber = subscribed(bench, supervisor, options.seconds) if options.subscriber else None
        window = measurement.measure(options.seconds, options.burst)
        compared = rows.compare(
            conn,
            exchange.log,
            window.log_offset,
            from_ms=window.before.clock_ms,
            to_ms=window.after.clock_ms,
        )
        yield from costs(options, window, compared)
        yield lag(conn, window)
        yield from state(conn, feeds, window, compared)
        if options.burst is not None:
            yield catching_up(window)
        if subscriber is not None:
            yield received(conn, subscriber)
        if options.quality_pass:
            yield quality_pass(bench.url, supervisor, progress)


def warm_up(supervisor: Supervisor, seconds: float, progress: ProgressReporter) -> None:
    """Let the exchange trade for so long before anything is measured."""
    until = time.monotonic() + seconds
    while (left := until - time.monotonic()) > 0:
        time.sleep(min(left, 1.0))
        supervisor.check_started()
        progress(f"{seconds - left:.0f} of {seconds:.0f} s until it is measured")


def read_catalogue(conn: Connection, exchange: Exchange, limit_s: float, progress: ProgressReporter) -> None:
    """Store the exchange's markets by the product's own discovery."""
    began, total = time.monotonic(), 0

    def read(count: int) -> None:
        nonlocal total
        total += count
        took = time.monotonic() - began
        if took > limit_s:
            raise StartError(f"discovery has not read the catalogue in {limit_s:.0f} s, but {total:,} markets")
        progress(f"discovery has read {total:,} markets in {took:.0f} s")

    discover(conn, f"{exchange.url}/gamma", read)
    stored, there = conn.execute("select count(*) from markets").fetchall()[0][0], exchange.open_markets()
    if stored != there:
        raise StartError(f"discovery has stored {stored:,} of the exchange's {there:,} open markets")
    conn.execute("analyze markets, tokens")
    progress.report(f"catalogue read by discovery in {time.monotonic() - began:.1f} s")


def costs(options: Options, window: MeasuredWindow, compared: Rows) -> Iterator[Figure]:
    """Yield events and CPU time. An event is a message of the exchange, committed as far as its rows are stored."""
    if not compared.sent:
        raise StartError(f"the exchange has sent no trade and no change of a book in {window.seconds:.0f} s")
    sent = window.after.messages - window.before.messages
    events = sent * (1 - compared.lost / compared.sent)
    times, burst_s = options.burst or (1.0, 0.0)
    asked = options.rate * (1 + (times - 1) * min(burst_s / window.seconds, 1))
    yield figure(
        "changes and prints/s sent",
        (window.after.paced - window.before.paced) / window.seconds,
        "events/s",
        target=Target("value", ">=", KEPT * asked),
        detail={
            "rate": asked,
            "markets": options.markets or MARKETS,
            "shards": options.shards,
            "seconds": window.seconds,
        },
    )
    yield figure(
        "events/s committed",
        events / window.seconds,
        "events/s",
        rival=("what the exchange sent", sent / window.seconds),
        target=Target("ratio", ">=", KEPT),
        detail={"rows/s": compared.stored / window.seconds},
    )
    for name in (LEADER, STANDBY, DATABASE, EXCHANGE):
        cpu_s, most = window.cpu_s[name], MAX_CPU_US.get(name)
        yield figure(
            f"{name} CPU per event",
            cpu_s * 1e6 / events if events else float("inf"),
            "µs",
            target=Target("value", "<=", most) if most else None,
            detail={"cores": cpu_s / window.seconds, **(wal(window, events) if name == DATABASE else {})},
        )


def wal(window: MeasuredWindow, events: float) -> dict[str, float]:
    """Return what the database wrote to its write-ahead log, and for how long it wrote checkpoints."""
    return {
        "WAL MB/s": window.wal_bytes / 1e6 / window.seconds,
        "whole pages in it an event": window.wal_pages / events,
        "seconds in which a checkpoint wrote": window.checkpoint_s,
    }


def lag(conn: Connection, window: MeasuredWindow) -> Figure:
    """Return the lag from the exchange's timestamp to the commit, from the feed's own histograms."""
    from orchestration.ingest import lag as histogram

    found = conn.execute(LAG, {"from_s": window.from_s, "to_s": window.to_s}).fetchall()
    counts = histogram.merged(row[0] for row in found)
    p50, p99 = histogram.quantile(counts, 0.5), histogram.quantile(counts, 0.99)
    intervals = [(p99_ms / 1000, most_ms / 1000, at) for _, p99_ms, most_ms, at in found if p99_ms is not None]
    slowest_s, _, slowest_at = max(intervals, default=(0.0, 0.0, window.from_s))
    return figure(
        "lag p99",
        float("inf") if p99 is None else p99 / 1000,
        "s",
        target=Target("value", "<", MAX_LAG_S),
        detail={
            **({} if p50 is None else {"p50": p50 / 1000}),
            "greatest": max((most_s for _, most_s, _ in intervals), default=0),
            "intervals": len(intervals),  # of a few seconds each: one late interval is a pause, many are a lack of CPU
            "intervals with a p99 of a second or more": sum(p99_s >= MAX_LAG_S for p99_s, _, _ in intervals),
            "greatest p99 of an interval": slowest_s,
            "seconds until that interval's end": slowest_at - window.from_s,
        },
    )


def subscribed(bench: Bench, supervisor: Supervisor, seconds: float) -> Subscriber:
    """Start the API and a subscriber that is away for a part of the measurement, from its first third on."""
    program, port, path = api(bench, gives_way=True)
    supervisor.start(program)
    supervisor.wait(program.name)
    subscriber = Subscriber(f"ws://127.0.0.1:{port}{path}", leaves_after_s=seconds / 3, away_s=min(AWAY_S, seconds / 3))
    subscriber.start()
    return subscriber


def received(conn: Connection, subscriber: Subscriber) -> Figure:
    """Return how many messages the subscriber misses of all that were committed."""
    got = subscriber.end(conn.execute("select last_seq from stream_head").fetchall()[0][0])
    return figure(
        "messages that a resumed subscriber misses",
        got.missing + got.behind,
        "messages",
        target=Target("value", "==", 0),
        detail={
            "received": got.messages,
            "received since it resumed": got.resumed,
            "replays called incomplete": got.incomplete,
        },
    )


def catching_up(window: MeasuredWindow) -> Figure:
    """Return how long after the burst commits were late no more."""
    return figure(
        "seconds to catch up after the burst",
        float("inf") if window.caught_up_s is None else window.caught_up_s,
        "s",
        target=Target("value", "<=", MAX_CAUGHT_UP_S),
    )


def quality_pass(url: str, supervisor: Supervisor, progress: ProgressReporter) -> Figure:
    """Validate in turns, as the product does, while the feeds go on: the first pass that follows one within the period.

    The first of all validates the rows of ten minutes. None that follows one in time: the last of MAX_PASSES.
    """
    from config.settings import Settings
    from orchestration.quality import passes

    period_s = Settings.model_fields["quality_every_s"].default
    took: list[float] = []
    while True:
        progress.report(f"quality pass {len(took) + 1}")
        began = time.monotonic()
        passed = passes.run(url, datetime.now(UTC))
        took.append(time.monotonic() - began)
        if len(took) == MAX_PASSES or (len(took) > 1 and took[-2] <= period_s):
            break
        while time.monotonic() < began + period_s:
            time.sleep(1.0)
            supervisor.check_started()
    return figure(
        "a quality pass",
        took[-1],
        "s",
        target=Target("value", "<=", period_s),
        detail={
            "rows": sum(passed.rows.values()),
            "% of the markets": 100 * passed.share.groups / passes.GROUPS,
            "checks that failed": len(passed.failed),
            "seconds of the first pass": took[0],
            "passes": len(took),
            **{f"seconds of {table}": seconds for table, seconds in passed.seconds.items() if seconds >= 1},
            **{f"failed: {result.name}": result.rows_failed for result in passed.failed},
        },
    )


def state(conn: Connection, feeds: Feeds, window: MeasuredWindow, compared: Rows) -> Iterator[Figure]:
    """Yield memory, the time until ready, and what is missing."""
    yield figure(
        "memory",
        max(window.memory_mb.values(), default=float("inf")),
        "MB",
        target=Target("value", "<=", MAX_MEMORY_MB),
        detail={f"leader of shard {shard}": value for shard, value in window.memory_mb.items()},
    )
    yield figure(
        "growth of all leaders' memory",
        window.growth_mb_per_min[0],
        "MB/min",
        detail={"in the second half": window.growth_mb_per_min[1]},
        target=Target("value", "<", MAX_GROWTH_MB_PER_MIN) if window.seconds >= LONG_S else None,
    )
    yield figure("seconds to ready", max(feeds.seconds_to_ready.values()), "s", detail=dict(feeds.seconds_to_ready))
    yield figure("tokens followed", sum(lease.tokens for lease in feeds.leaders().values()), "tokens")
    causes = conn.execute(GAPS, [window.from_s]).fetchall()
    yield figure(
        "gaps recorded",
        sum(gaps for _, gaps, _ in causes),
        "gaps",
        detail={
            "filled": sum(filled for _, _, filled in causes),
            "changes of the lead": window.lead_changes,
            **{f"of cause {cause}": gaps for cause, gaps, _ in causes},
        },
    )
    yield figure(
        "rows lost",
        compared.lost,
        "rows",
        target=Target("value", "==", 0),
        detail={
            "rows sent": compared.sent,
            "of markets with a recorded gap": compared.known,
            "sent to nobody": compared.unheard,
        },
    )
