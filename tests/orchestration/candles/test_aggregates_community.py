"""Refreshing continuous aggregates, which only the Community licence has."""

import re
from datetime import datetime, timedelta

import psycopg
import pytest

from orchestration.candles import aggregates
from orchestration.candles.aggregates import LateHours, RefreshError, StatsWindow
from tests.sql import candles
from tests.sql.candles import START, Trade

FOR_EVER = timedelta(days=3650)
MATERIALISED = """
    select _timescaledb_functions.to_timestamp(_timescaledb_functions.cagg_watermark(mat_hypertable_id))::text
    from _timescaledb_catalog.continuous_agg order by user_view_name desc
"""


def instant(value):
    """Parse a time, which that connection returns as text."""
    is_instant = isinstance(value, str) and re.match(r"\d{4}-\d\d-\d\dT", value)
    return datetime.fromisoformat(value) if is_instant else value


class CommunityConnection:
    """The Community database behind the few calls of a connection that queries make.

    It has no background workers: what they would run is called.
    """

    def __init__(self, community, conn):
        self.community = community
        self.writing = psycopg.ClientCursor(conn)  # puts parameters into the text
        self.rows = []

    def cursor(self):
        return self

    def close(self):
        pass

    def execute(self, statement, parameters=()):
        if "start_candles_refresh" in statement:
            self.community.run_job()
        else:
            self.rows = self.community.execute(self.writing.mogrify(statement, parameters))
        return self

    def fetchone(self):
        return [instant(value) for value in self.rows[0]] if self.rows else None

    def __iter__(self):
        return ([instant(value) for value in row] for row in self.rows)

    @property
    def rowcount(self):
        return len(self.rows)


@pytest.fixture
def spoken(community, conn):
    return CommunityConnection(community, conn)


def kept(community):
    return [community.execute(candles.kept(table)) for table in candles.TABLES]


def computed(community):
    return [community.execute(candles.computed(table)) for table in candles.TABLES]


def passed(community, instant):
    community.execute(f"update stage_clocks set beat_at = '{instant}' where stage = 'aggregates'")


def test_what_is_settled_is_materialised_and_the_rest_computed_when_read(spoken, community):
    now = START + timedelta(hours=3, minutes=7, seconds=20)  # 01:47:20
    community.execute(candles.insert(candles.random_trades(seed=5, count=300, hours=3.1)))

    refreshed = aggregates.refresh_candles(spoken, now)

    (_, since, until), (_, _, until_hour) = refreshed
    assert START <= since < START + timedelta(minutes=5)
    assert (f"{until:%H:%M}", f"{until_hour:%H:%M}") == ("01:45", "01:00")
    minutes, hours = (datetime.fromisoformat(row[0]) for row in community.execute(MATERIALISED))
    assert now - timedelta(minutes=5) < minutes <= until
    assert hours == until_hour
    assert kept(community) == computed(community)


def test_a_late_trade_is_in_its_candle_after_the_next_pass(spoken, community):
    now = START + timedelta(hours=1)
    community.execute(candles.insert(candles.random_trades(seed=6, count=100, hours=1)))
    aggregates.refresh_candles(spoken, now)
    passed(community, now)

    late = [Trade(1800 + n, 1, 0, 10_000 + n, 10_000 + n, 990_000, 7_000_000) for n in range(3)]
    community.execute(candles.insert(late))
    stale = kept(community)
    aggregates.refresh_candles(spoken, now + timedelta(minutes=1))

    assert stale != computed(community)
    assert kept(community) == computed(community)


def test_what_came_very_late_is_in_its_candle_after_the_next_pass(spoken, community):
    now = START + timedelta(days=12, minutes=5)
    community.execute(candles.insert(candles.random_trades(seed=8, count=200, hours=30)))
    aggregates.refresh_candles(spoken, now)
    aggregates.refresh_due(spoken, now, kept=FOR_EVER)
    passed(community, now)

    community.execute(candles.insert([Trade(1800, 1, 0, 10_000, 10_000, 990_000, 7_000_000)]))
    aggregates.refresh_candles(spoken, now + timedelta(minutes=1))
    stale = kept(community)
    due = aggregates.refresh_due(spoken, now + timedelta(minutes=1), kept=FOR_EVER)

    assert stale != computed(community)
    assert kept(community) == computed(community)
    assert due == LateHours(refreshed=1)
    assert community.execute("select count(*) from candles_due") == [(0,)]


def test_hours_left_when_time_is_up_are_seen_to_by_the_next_pass(spoken, community):
    now = START + timedelta(days=12)
    community.execute(candles.insert(candles.random_trades(seed=8, count=200, hours=4)))
    spent = iter([False, True])

    first = aggregates.refresh_due(spoken, now, kept=FOR_EVER, should_stop=lambda: next(spent))
    second = aggregates.refresh_due(spoken, now, kept=FOR_EVER)

    assert (first, second) == (LateHours(refreshed=1, left=4), LateHours(refreshed=4))
    assert kept(community) == computed(community)


def test_candles_of_dropped_trades_stay(spoken, community):
    now = START + timedelta(days=4)
    community.execute(candles.insert(candles.random_trades(seed=9, count=200, hours=90)))
    aggregates.refresh_candles(spoken, now)
    before = kept(community)
    passed(community, now - timedelta(hours=1))

    community.execute(f"select drop_chunks('trades', older_than => timestamptz '{now - timedelta(days=2)}')")
    aggregates.refresh_candles(spoken, now, kept=timedelta(days=2))
    aggregates.refresh_due(spoken, now, kept=timedelta(days=2))

    assert len(computed(community)[0][0][0]) < len(before[0][0][0])
    assert kept(community) == before


def test_the_last_24_hours_equal_a_plain_group_by(spoken, community):
    now = START + timedelta(hours=20, minutes=3)
    community.execute("""
        insert into markets (market_key, market_id, slug, question, status, outcomes, token_ids, created_at)
        overriding system value
        select n, 'm' || n, 'm' || n, '?', 'ACTIVE', '{Yes,No}', array['y' || n, 'n' || n], now()
        from generate_series(1, 6) as n
    """)
    community.execute(candles.insert(candles.random_trades(seed=7, count=500, hours=20)))
    aggregates.refresh_candles(spoken, now - timedelta(hours=3))
    window = StatsWindow.at(now)

    aggregates.compute_stats(spoken, now)

    plain = f"""
        select market_key, outcome, first(price, seq), max(price), min(price), last(price, seq),
               sum(size)::text, count(*)
        from trades where ts >= '{window.start}' and ts < '{window.end}' group by 1, 2 order by 1, 2
    """
    held = (
        "select market_key, outcome, open, high, low, close, volume::text, trades from market_stats_24h order by 1, 2"
    )
    assert community.execute(held) == community.execute(plain)


def test_a_refresh_that_fails_fails_the_pass_with_its_reason_and_the_next_ones_go_on(spoken, community):
    now = START + timedelta(hours=1)
    community.execute(candles.insert(candles.random_trades(seed=6, count=100, hours=1)))
    community.execute("alter materialized view candles_1m rename to candles_away")

    with pytest.raises(RefreshError, match=r"candles_1m .*its process ended; see timescaledb_information.job_errors"):
        aggregates.refresh_candles(spoken, now)
    community.execute("alter materialized view candles_away rename to candles_1m")
    aggregates.refresh_candles(spoken, now)

    assert kept(community) == computed(community)
    assert community.execute("select from candle_refreshes") == []


def test_a_job_that_does_not_run_fails_the_pass_and_is_told_of(spoken, community, monkeypatch):
    monkeypatch.setattr(community, "run_job", lambda: None)
    monkeypatch.setattr(aggregates, "START_TIMEOUT_S", 0)
    community.execute(candles.insert(candles.random_trades(seed=6, count=100, hours=1)))

    with pytest.raises(RefreshError, match=r"not run its job refresh_candles: .* timescaledb\.max_background_workers"):
        aggregates.refresh_candles(spoken, START + timedelta(hours=1))

    assert community.execute("select from candle_refreshes") == []


def test_whoever_died_while_waiting_leaves_nothing_that_stays(spoken, community):
    old = "insert into candle_refreshes (candles, since, until, forced, requested_at) values "
    community.execute(
        f"{old} ('candles_1m', '{START}', '{START + timedelta(hours=1)}', false, now() - interval '2 hours')"
    )

    community.run_job()

    assert community.execute("select from candle_refreshes") == []
