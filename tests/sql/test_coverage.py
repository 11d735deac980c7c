"""Since when an exchange has been recorded."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

BEGAN = datetime(2026, 11, 1, tzinfo=UTC)
ROW = """
    insert into feed_stats (ts, feed, run_id, messages, rows, lag_counts)
    select %s + n * interval '5 seconds', %s, '', %s, 0, '{}' from generate_series(0, %s - 1) as n
"""


def recorded_since(conn, exchange):
    return conn.execute("select recorded_since(%s)", [exchange]).fetchone()[0]


@pytest.mark.parametrize("exchange", ["polymarket", "kalshi"])
def test_an_exchange_is_recorded_since_all_its_shards_have_received_something(conn, exchange):
    other = {"polymarket": "kalshi", "kalshi": "polymarket"}[exchange]
    for shard, (waiting, messages) in {"1of2": (3, 9), "2of2": (60, 9), "1of3": (0, 9), "2of3": (0, 0)}.items():
        conn.execute(ROW, [BEGAN, f"{exchange}/{shard}", 0, waiting])
        conn.execute(ROW, [BEGAN + timedelta(seconds=5 * waiting), f"{exchange}/{shard}", messages, 10])

    assert recorded_since(conn, exchange) == BEGAN + timedelta(minutes=5)
    assert recorded_since(conn, other) is None

    conn.execute(ROW, [BEGAN + timedelta(minutes=1), exchange, 1, 1])
    assert recorded_since(conn, exchange) == BEGAN + timedelta(minutes=1)


def test_figures_of_one_exchange_are_not_read_for_another_that_was_never_recorded(conn):
    for shard in ("1of2", "2of2"):
        conn.execute(ROW, [BEGAN, f"polymarket/{shard}", 9, 20_000])
    conn.execute("analyze feed_stats")
    assert recorded_since(conn, "kalshi") is None

    assert blocks(conn, "select recorded_since('kalshi')") * 5 < blocks(conn, "select count(rows) from feed_stats")


def blocks(conn, query):
    """Return how many blocks a query reads."""
    (plan,) = conn.execute(f"explain (analyze, buffers, format json) {query}").fetchone()[0]
    return plan["Plan"]["Shared Hit Blocks"] + plan["Plan"]["Shared Read Blocks"]
