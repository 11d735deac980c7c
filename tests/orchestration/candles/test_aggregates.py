"""The last 24 hours and the ranking, against a plain GROUP BY over the trades."""

import random
from datetime import UTC, datetime, timedelta

import pytest

from orchestration.candles import aggregates
from orchestration.candles.aggregates import StatsPass, StatsWindow

PLAIN = """
    select market_key, outcome, first(price, seq), max(price), min(price), last(price, seq), sum(size),
           sum(value_usd), count(*)
    from trades where ts >= %s and ts < %s group by 1, 2 order by 1, 2
"""
HELD = """
    select market_key, outcome, open, high, low, close, volume, value_usd, trades from market_stats_24h order by 1, 2
"""


@pytest.fixture
def now():
    """Return an instant of yesterday, so that every trade lies in the past."""
    return datetime.now(UTC).replace(minute=37, second=41, microsecond=5) - timedelta(days=1)


def scattered(now, count=400, seed=3):
    chance = random.Random(seed)
    moments = [now - timedelta(seconds=chance.uniform(0, 26 * 3600)) for _ in range(count)]
    edges = [
        StatsWindow.at(now).start,
        StatsWindow.at(now).first_hour,
        StatsWindow.at(now).last_hour,
        StatsWindow.at(now).end,
    ]
    moments += [edge + timedelta(microseconds=shift) for edge in edges for shift in (-1, 0, 1)]
    return [
        {"ts": ts, "price": f"{chance.uniform(0.01, 0.99):.3f}", "size": chance.randint(1, 50)}
        for ts in sorted(moments)
    ]


@pytest.mark.parametrize(
    ("moment", "start", "first_hour", "last_hour", "end"),
    [
        ("10:37:41", "10:38:00", "11:00:00", "10:00:00", "10:38:00"),
        ("10:59:59", "11:00:00", "11:00:00", "11:00:00", "11:00:00"),
        ("11:00:00", "11:01:00", "12:00:00", "11:00:00", "11:01:00"),
    ],
)
def test_the_window_ends_with_the_running_minute(moment, start, first_hour, last_hour, end):
    def at(day, clock):
        return datetime.fromisoformat(f"2026-05-0{day}T{clock}+00:00")

    assert StatsWindow.at(at(2, moment)) == StatsWindow(at(1, start), at(1, first_hour), at(2, last_hour), at(2, end))


def test_the_last_24_hours_equal_a_plain_group_by(conn, add_market, add_trades, now):
    for number in range(3):
        market = add_market()
        add_trades(market, scattered(now, seed=number))
        add_trades(market, scattered(now, seed=number + 10), outcome=1)
    window = StatsWindow.at(now)

    stats = aggregates.compute_stats(conn, now)

    plain = conn.execute(PLAIN, [window.start, window.end]).fetchall()
    assert conn.execute(HELD).fetchall() == plain
    assert stats == StatsPass(outcomes=6, written=6, gone=0)
    assert conn.execute("select distinct window_start, window_end from market_stats_24h").fetchall() == [
        (window.start, window.end)
    ]


def test_figures_that_stand_are_left_alone_for_five_minutes(conn, add_market, add_trades, now):
    add_trades(add_market(), [{"ts": now - timedelta(hours=3)}])
    busy = add_market()
    add_trades(busy, [{"ts": now - timedelta(hours=3)}])
    aggregates.compute_stats(conn, now)

    add_trades(busy, [{"ts": now}])
    minute_later = aggregates.compute_stats(conn, now + timedelta(minutes=1))
    six_later = aggregates.compute_stats(conn, now + timedelta(minutes=7))

    assert minute_later == StatsPass(outcomes=2, written=1, gone=0)
    assert six_later == StatsPass(outcomes=2, written=2, gone=0)


def test_an_outcome_without_a_trade_in_the_window_is_taken_out(conn, add_market, add_trades, now):
    add_trades(add_market(), [{"ts": now - timedelta(hours=23, minutes=50)}])
    aggregates.compute_stats(conn, now)

    assert aggregates.compute_stats(conn, now + timedelta(minutes=20)) == StatsPass(outcomes=0, written=0, gone=1)
    assert conn.execute(HELD).fetchall() == []


def test_figures_are_counted_by_exchange(conn, add_market, add_trades):
    now = datetime.now(UTC)
    for exchange, count in (("polymarket", 2), ("kalshi", 1)):
        add_trades(
            add_market(exchange=exchange), [{"ts": now - timedelta(hours=3), "price": "0.5", "size": 10}] * count
        )

    for moment in (now, now + timedelta(minutes=7)):
        assert aggregates.compute_stats(conn, moment) == StatsPass(outcomes=2, written=2, gone=0)
        by_exchange = "select exchange, value_usd, trades from market_stats_24h order by trades"
        assert conn.execute(by_exchange).fetchall() == [("kalshi", 5_000_000, 1), ("polymarket", 10_000_000, 2)]


def ranking(conn, generation):
    rows = conn.execute(
        "select slug from market_rankings join markets using (market_key) where generation = %s order by rank",
        [generation],
    )
    return [row[0] for row in rows]


def test_markets_are_ranked_by_value_then_by_newest_activity(conn, add_market, add_trades):
    now = datetime.now(UTC)
    quiet, small, large, older, add = (add_market(slug) for slug in ("quiet", "small", "large", "older", "never-moved"))
    add_trades(small, [{"ts": now, "size": 10}])
    add_trades(large, [{"ts": now, "size": 10}])
    add_trades(large, [{"ts": now, "size": 20}], outcome=1)
    for market, age in ((quiet, "1 minute"), (older, "2 hours"), (add, "2 days")):
        conn.execute(
            "insert into live_prices (market_key, outcome, ts) values (%s, 0, now() - %s::interval)",
            [market["market_key"], age],
        )
    aggregates.compute_stats(conn, now)

    generation, ranked = aggregates.rank(conn, now)

    assert ranking(conn, generation) == ["large", "small", "quiet", "older"]
    assert ranked == 4


def test_a_generation_stands_still_and_is_kept_for_an_hour(conn, add_market, add_trades):
    now = datetime.now(UTC)
    first, second = add_market("first"), add_market("second")
    add_trades(first, [{"ts": now, "size": 20}])
    add_trades(second, [{"ts": now, "size": 10}])
    aggregates.compute_stats(conn, now)
    old, _ = aggregates.rank(conn, now)

    add_trades(second, [{"ts": now, "size": 100}])
    aggregates.compute_stats(conn, now)
    new, _ = aggregates.rank(conn, now + timedelta(minutes=59))
    assert (ranking(conn, old), ranking(conn, new)) == (["first", "second"], ["second", "first"])

    aggregates.rank(conn, now + timedelta(minutes=61))
    assert (ranking(conn, old), ranking(conn, new)) == ([], ["second", "first"])


@pytest.mark.license("apache")
def test_trigger_kept_candles_need_no_refresh(conn):
    assert aggregates.refresh_candles(conn, datetime.now(UTC)) == []
