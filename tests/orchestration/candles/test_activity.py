"""Market activity: the last seven days are the sum of their hours, at any time."""

from datetime import UTC, datetime, timedelta

import pytest

from orchestration.candles import activity
from orchestration.candles.activity import WEEK_EVERY

PLAIN = """
    select market_key, sum(value_usd), sum(trades) from candles_1h
    where bucket > %s::timestamptz - interval '7 days' group by 1 order by 1
"""
HELD = "select market_key, value_7d, trades_7d from market_activity order by 1"


@pytest.fixture
def now():
    """Return an instant of yesterday, so that every trade lies in the past."""
    return datetime.now(UTC).replace(minute=20, second=41, microsecond=5) - timedelta(days=1)


@pytest.fixture
def week(conn):
    """Compute the activity, and return the stored figure beside the sum of the hours."""

    def compute(now):
        activity.bring_up_to_date(conn, now)
        return conn.execute(HELD).fetchall(), conn.execute(PLAIN, [now]).fetchall()

    return compute


@pytest.fixture
def added_up(conn):
    """Return when the older hours were last summed."""
    return lambda: conn.execute("select distinct computed_at from market_weeks").fetchall()


@pytest.mark.parametrize("later", [0, 1, 4, 6, 39, 40, 61, 600, 6 * 1440, 7 * 1440 - 30])
def test_the_week_is_the_sum_of_its_hours(week, add_market, add_trades, now, later):
    for number in range(3):
        market = add_market()
        hours = [0.01, 0.5, 1.5, 2.4, 3, 30, 100, 166, 167.4, 167.9, 168.2, 180]
        add_trades(market, [{"ts": now - timedelta(hours=hour), "size": 5 + number} for hour in reversed(hours)])
    week(now)
    add_trades(market, [{"ts": now + timedelta(seconds=30)}])

    held, plain = week(now + timedelta(minutes=later))

    assert held == plain
    assert len(plain) == 3


def test_older_hours_are_added_up_every_few_minutes_only(week, added_up, add_market, add_trades, now):
    add_trades(add_market(), [{"ts": now - timedelta(days=3)}])

    seen = []
    for minutes in (0, 1, 4, 5, 6, 39, 40):
        week(now + timedelta(minutes=minutes))
        seen.append(added_up()[0][0] - now)

    assert [int(each.total_seconds() // 60) for each in seen] == [0, 0, 0, 5, 5, 39, 40]


def test_late_trades_count_at_once_in_the_last_hours_and_soon_in_older_ones(week, add_market, add_trades, now):
    market = add_market()
    add_trades(market, [{"ts": now - timedelta(days=3), "size": 10}])
    week(now)

    add_trades(market, [{"ts": now - timedelta(hours=1, minutes=50), "size": 10}])
    held, plain = week(now + timedelta(minutes=1))
    assert held == plain

    add_trades(market, [{"ts": now - timedelta(days=2), "size": 10}])
    held, plain = week(now + timedelta(minutes=2))
    assert held[0][2] == plain[0][2] - 1
    held, plain = week(now + WEEK_EVERY)
    assert held == plain
