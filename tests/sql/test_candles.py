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


class Apache:
    """The candles that triggers keep."""

    def __init__(self, conn):
        self.conn = conn

    def execute(self, statement):
        cursor = self.conn.execute(statement)
        return cursor.fetchall() if cursor.description else []

    def refresh(self, since=None):
        pass


@pytest.fixture(params=[pytest.param("apache", marks=pytest.mark.license("apache")), "timescale"])
def db(request):
    """The same schema under either licence."""
    return (
        Apache(request.getfixturevalue("conn")) if request.param == "apache" else request.getfixturevalue("community")
    )


def kept(db, **bounds):
    return [db.execute(candles.kept(table, **bounds))[0][0] for table in candles.TABLES]


def computed(db, **bounds):
    return [db.execute(candles.computed(table, **bounds))[0][0] for table in candles.TABLES]


NONE = ["[]", "[]"]


def test_a_candle_opens_and_closes_by_seq_and_adds_up(db):
    db.execute(
        candles.insert(
            [
                Trade(0, 1, 0, 11, 103, 520_000, 2_000_000),  # the last of the minute, though three share its instant
                Trade(0, 1, 0, 12, 101, 500_000, 1_000_000),
                Trade(0, 1, 0, 13, 102, 540_000, 4_000_000),
                Trade(60, 1, 0, 14, 104, 510_000, 8_000_000),
            ]
        )
    )
    db.refresh()

    columns = f"to_char(bucket, 'HH24:MI'), {candles.COLUMNS.removeprefix('bucket, ')}"
    assert db.execute(f"select {columns} from candles_1m order by bucket") == [
        ("22:40", 1, 0, 500_000, 540_000, 500_000, 520_000, 7_000_000, 3_700_000, 3, 101, 103),
        ("22:41", 1, 0, 510_000, 510_000, 510_000, 510_000, 8_000_000, 4_080_000, 1, 104, 104),
    ]
    assert db.execute(f"select {columns} from candles_1h") == [
        ("22:00", 1, 0, 500_000, 540_000, 500_000, 510_000, 15_000_000, 7_780_000, 4, 101, 104)
    ]


def test_candles_equal_a_group_by_after_every_step(db):
    for step in candles.steps():
        before = kept(db)
        for statement in step.statements:
            db.execute(statement)
        db.refresh()

        assert kept(db) == computed(db), step.name
        assert (kept(db) == before) == step.unchanged, step.name


def test_candles_outlive_the_trades_that_retention_drops(db):
    db.execute(candles.insert(candles.random_trades(seed=1, count=300)))
    db.refresh()
    before = kept(db)

    db.execute(candles.DROP)
    assert db.execute(f"select count(*) from trades where ts < '{candles.RETENTION}'") == [(0,)]
    assert kept(db) == before

    first_day = kept(db, until=candles.RETENTION)
    db.execute(candles.AFTER)
    db.refresh(since=candles.RETENTION)
    assert kept(db, until=candles.RETENTION) == first_day != NONE
    assert kept(db, since=candles.RETENTION) == computed(db, since=candles.RETENTION) != NONE


def test_candles_are_there_as_soon_as_their_trades(db):
    """Without a refresh: on the Community licence what is not materialised yet is computed when read."""
    db.execute(candles.insert(candles.random_trades(seed=1, count=100)))
    assert kept(db) == computed(db) != NONE

    db.refresh()
    later = [Trade(86_400 + number, 1, 0, 500 + number, (1 << 62) + number, 500_000, 10) for number in range(9)]
    db.execute(candles.insert(later))
    assert kept(db) == computed(db)


def test_emptying_trades_empties_the_candles(db):
    db.execute(candles.insert(candles.random_trades(seed=1, count=10)))
    db.refresh()

    db.execute("truncate trades")
    db.refresh()

    assert kept(db) == NONE


@pytest.fixture
def apache(conn):
    return Apache(conn)


@pytest.mark.license("apache")
def test_trades_copied_in_are_in_the_candles(apache):
    with apache.conn.cursor().copy(
        "copy trades (ts, market_key, outcome, trade_id, seq, side, price, size, value_usd) from stdin"
    ) as copy:
        for number in range(500):
            ts = f"2026-11-01 22:{number % 60:02}:00Z"
            copy.write_row((ts, number % 7, 0, number, number, 1, number * 1000, number, number))

    assert kept(apache) == computed(apache) != NONE


@pytest.mark.license("apache")
def test_a_statement_that_is_rolled_back_leaves_no_trace(apache):
    apache.execute(candles.insert(candles.random_trades(seed=1, count=50)))
    before = kept(apache)

    with apache.conn.transaction(force_rollback=True):
        apache.execute("delete from trades where market_key = 1")
        apache.execute(candles.insert(candles.random_trades(seed=2, count=50, first_id=100)))

    assert kept(apache) == before
    apache.execute(candles.insert(candles.random_trades(seed=3, count=50, first_id=200)))
    assert kept(apache) == computed(apache)


INSTANTS = [0.0, 59.999, 60.0, 1199.5, 1200.0, 4799.0, 4800.0]


@st.composite
def trades(draw):
    """Draw trades from a few possible ones; no two have the same place in a token's order."""
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


@pytest.mark.license("apache")
@given(st.lists(changes, max_size=8))
def test_property_any_changes_in_any_order_leave_exact_candles(one_database, statements):
    with one_database.conn.transaction(force_rollback=True):
        for statement in statements:
            one_database.execute(statement)

        assert kept(one_database) == computed(one_database)


@pytest.fixture(scope="module")
def one_database(new_database):
    with new_database() as url, database.connect(url) as connection:
        yield Apache(connection)


@pytest.mark.license("apache")
def test_writers_at_once_neither_lose_a_trade_nor_wait_in_a_circle(database_url):
    """Three write overlapping batches, two delete and change; each statement is a transaction, none is retried."""
    pool = candles.random_trades(seed=5, count=3000, hours=0.5)
    ends_at = time.monotonic() + 6
    failures: list[Exception] = []
    done: list[int] = []

    def work(number: int) -> None:
        chance = random.Random(number)
        statements = 0
        try:
            with database.connect(database_url, autocommit=True, lock_timeout="30s") as conn:
                while time.monotonic() < ends_at or statements <= 10:
                    if number < 3:
                        conn.execute(candles.insert(chance.sample(pool, 40)))
                    else:
                        # Each changes its own trades, in everyone's candles: in which order a statement locks trades is
                        # its author's business.
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
        assert kept(Apache(conn)) == computed(Apache(conn)) != NONE


@pytest.mark.license("apache")
def test_a_change_that_waits_for_a_writer_counts_what_it_wrote(database_url):
    first, second = Trade(0, 1, 0, 1, 1, 500_000, 10), Trade(1, 1, 0, 2, 2, 600_000, 10)
    with database.connect(database_url) as writer, database.connect(database_url, autocommit=True) as changer:
        writer.execute(candles.insert([first]))
        writer.commit()
        writer.execute(candles.insert([second]))

        deletion = threading.Thread(target=changer.execute, args=["delete from trades where trade_id = 1"])
        deletion.start()
        waiting = "select wait_event_type = 'Lock' from pg_stat_activity where pid = %s"
        with database.connect(database_url, autocommit=True) as onlooker:
            while onlooker.execute(waiting, [changer.info.backend_pid]).fetchone() != (True,):
                assert deletion.is_alive(), "it has to wait: the writer holds the candle"
        writer.commit()
        deletion.join()

        assert kept(Apache(writer)) == computed(Apache(writer))
        assert writer.execute("select trades, open from candles_1m").fetchall() == [(1, 600_000)]
