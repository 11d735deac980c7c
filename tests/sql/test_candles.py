"""Candles kept by triggers equal a GROUP BY, whatever happens to trades and whoever writes at once."""

from __future__ import annotations

import random
import threading
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sql import database
from tests.sql import candles
from tests.sql.candles import Trade


def kept(conn, **bounds):
    return [conn.execute(candles.kept(table, **bounds)).fetchone()[0] for table in candles.TABLES]


def computed(conn, **bounds):
    return [conn.execute(candles.computed(table, **bounds)).fetchone()[0] for table in candles.TABLES]


def test_a_candle_opens_and_closes_by_seq_and_adds_up(conn):
    conn.execute(
        candles.insert(
            [
                Trade(0, 1, 0, 11, 103, 520_000, 2_000_000),  # the last of the minute, though three share its instant
                Trade(0, 1, 0, 12, 101, 500_000, 1_000_000),
                Trade(0, 1, 0, 13, 102, 540_000, 4_000_000),
                Trade(60, 1, 0, 14, 104, 510_000, 8_000_000),
            ]
        )
    )

    minutes = conn.execute(f"select {candles.COLUMNS} from candles_1m order by bucket").fetchall()
    hours = conn.execute(f"select {candles.COLUMNS} from candles_1h").fetchall()

    assert [row[1:] for row in minutes] == [
        (1, 0, 500_000, 540_000, 500_000, 520_000, 7_000_000, 3_700_000, 3, 101, 103),
        (1, 0, 510_000, 510_000, 510_000, 510_000, 8_000_000, 4_080_000, 1, 104, 104),
    ]
    assert [row[1:] for row in hours] == [
        (1, 0, 500_000, 540_000, 500_000, 510_000, 15_000_000, 7_780_000, 4, 101, 104)
    ]
    assert [row[0].strftime("%H:%M") for row in [*minutes, *hours]] == ["22:40", "22:41", "22:00"]


def test_candles_equal_a_group_by_after_every_step(conn):
    for step in candles.steps():
        before = kept(conn)
        for statement in step.statements:
            conn.execute(statement)

        assert kept(conn) == computed(conn), step.name
        assert (kept(conn) == before) == step.unchanged, step.name


def test_candles_outlive_the_trades_that_retention_drops(conn):
    conn.execute(candles.insert(candles.random_trades(seed=1, count=300)))
    before = kept(conn)

    conn.execute(candles.DROP)
    assert conn.execute("select count(*) from trades where ts < %s", [candles.RETENTION]).fetchone() == (0,)
    assert kept(conn) == before

    first_day = kept(conn, until=candles.RETENTION)
    conn.execute(candles.AFTER)
    assert kept(conn, until=candles.RETENTION) == first_day != ["[]", "[]"]
    assert kept(conn, since=candles.RETENTION) == computed(conn, since=candles.RETENTION) != ["[]", "[]"]


def test_emptying_trades_empties_the_candles(conn):
    conn.execute(candles.insert(candles.random_trades(seed=1, count=10)))

    conn.execute("truncate trades")

    assert kept(conn) == ["[]", "[]"]


def test_trades_copied_in_are_in_the_candles(conn):
    with conn.cursor().copy(
        "copy trades (ts, market_key, outcome, trade_id, seq, side, price, size, value_usd) from stdin"
    ) as copy:
        for number in range(500):
            ts = f"2026-11-01 22:{number % 60:02}:00Z"
            copy.write_row((ts, number % 7, 0, number, number, 1, number * 1000, number, number))

    assert kept(conn) == computed(conn) != ["[]", "[]"]


def test_a_statement_that_is_rolled_back_leaves_no_trace(conn):
    conn.execute(candles.insert(candles.random_trades(seed=1, count=50)))
    before = kept(conn)

    with conn.transaction(force_rollback=True):
        conn.execute("delete from trades where market_key = 1")
        conn.execute(candles.insert(candles.random_trades(seed=2, count=50, first_id=100)))

    assert kept(conn) == before
    conn.execute(candles.insert(candles.random_trades(seed=3, count=50, first_id=200)))
    assert kept(conn) == computed(conn)


INSTANTS = [0.0, 59.999, 60.0, 1199.5, 1200.0, 4799.0, 4800.0]


@st.composite
def trades(draw):
    """A trade of a few possible ones; no two have the same place in a token's order."""
    instant, market_key, trade_id = draw(st.integers(0, 6)), draw(st.integers(1, 2)), draw(st.integers(1, 6))
    seq = draw(st.integers(0, 2**40)) * 100 + instant * 12 + market_key * 6 + trade_id
    price, size = draw(st.integers(0, 1_000_000)), draw(st.integers(0, 10**12))
    return Trade(INSTANTS[instant], market_key, 0, trade_id, seq, price, size)


batches = st.lists(
    trades(), min_size=1, max_size=6, unique_by=lambda trade: (trade.market_key, trade.at, trade.trade_id)
)
numbers = st.integers(1, 6)
CORRECT = "(market_key, outcome, ts, trade_id) do update set price = excluded.price"
MOVE = """
    update trades set size = size + 1, market_key = 2
    where trade_id = {} and market_key = 1
        and not exists (select from trades as t where t.market_key = 2 and t.trade_id = trades.trade_id)
"""
changes = st.one_of(
    batches.map(candles.insert),
    batches.map(lambda batch: candles.insert(batch, CORRECT)),
    numbers.map("delete from trades where trade_id = {}".format),
    numbers.map("update trades set price = price / 2 where trade_id <= {}".format),
    numbers.map(MOVE.format),
)


@given(st.lists(changes, max_size=8))
def test_property_any_changes_in_any_order_leave_exact_candles(template_conn, statements):
    with template_conn.transaction(force_rollback=True):
        for statement in statements:
            template_conn.execute(statement)

        assert kept(template_conn) == computed(template_conn)


@pytest.fixture(scope="module")
def template_conn(new_database):
    with new_database() as url, database.connect(url) as connection:
        yield connection


def test_writers_at_once_neither_lose_a_trade_nor_wait_in_a_circle(database_url):
    """Three write overlapping batches, two delete and change; each statement is a transaction, none is tried again."""
    pool = candles.random_trades(seed=5, count=3000, hours=0.5)
    ends_at = time.monotonic() + 6
    failures: list[Exception] = []
    done: list[int] = []

    def work(number: int) -> None:
        chance = random.Random(number)
        statements = 0
        try:
            with database.connect(database_url, autocommit=True, lock_timeout="30s") as conn:
                while time.monotonic() < ends_at:
                    if number < 3:
                        conn.execute(candles.insert(chance.sample(pool, 40)))
                    else:
                        # Each changes its own trades, in everyone's candles: in which order a statement locks trades
                        # is its author's business.
                        trade_id = chance.randrange(0, 3000, 2) + number - 3
                        where = f"where trade_id between {trade_id} and {trade_id + 20} and trade_id % 2 = {number - 3}"
                        change = (
                            "delete from trades" if chance.random() < 0.5 else "update trades set price = price + 1"
                        )
                        conn.execute(f"{change} {where}")
                    statements += 1
        except Exception as error:  # noqa: BLE001 (told below, in the main thread)
            failures.append(error)
        done.append(statements)

    threads = [threading.Thread(target=work, args=[number]) for number in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert failures == []
    assert min(done) > 10
    with database.connect(database_url) as conn:
        assert kept(conn) == computed(conn) != ["[]", "[]"]


def test_a_change_that_waits_for_a_writer_counts_what_it_wrote(database_url):
    first, second = Trade(0, 1, 0, 1, 1, 500_000, 10), Trade(1, 1, 0, 2, 2, 600_000, 10)
    with database.connect(database_url) as writer, database.connect(database_url, autocommit=True) as changer:
        writer.execute(candles.insert([first]))
        writer.commit()
        writer.execute(candles.insert([second]))

        deletion = threading.Thread(target=changer.execute, args=["delete from trades where trade_id = 1"])
        deletion.start()
        deletion.join(0.3)
        assert deletion.is_alive(), "it has to wait: the writer holds the candle"
        writer.commit()
        deletion.join()

        assert kept(writer) == computed(writer)
        assert writer.execute("select trades, open from candles_1m").fetchall() == [(1, 600_000)]
