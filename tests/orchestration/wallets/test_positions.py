"""Positions: a job adds final rows, recomputes what changed, and nothing is dropped before."""

from __future__ import annotations

import datetime as dt
import itertools
import threading
import time

import pytest

from config.settings import Settings
from orchestration.maintenance import retention
from orchestration.wallets import positions
from sql import database
from tests.orchestration.wallets.chain import START, Chain, address, pnl


@pytest.fixture
def chain(conn):
    return Chain(conn)


def test_a_market_learnt_later_accounts_for_what_was_split_in_it(conn, chain, add_market):
    condition = "0x" + "ab" * 32
    split = {"kind": "split", "wallet": "ann", "amount": 10, "condition": bytes.fromhex(condition[2:])}
    chain.block(1, entries=[split])
    chain.head(1)
    positions.bring_up_to_date(conn, START)
    assert pnl(conn, "ann")["data"] == []

    add_market("rain", market_id=condition, token_ids=["71", "72"])
    passed = positions.bring_up_to_date(conn, START)

    assert (passed.learnt, passed.remade, passed.due) == (2, 2, 0)
    rows = pnl(conn, "ann")["data"]
    assert {row["token_id"]: (row["net_position"], row["avg_cost"]) for row in rows} == {
        "71": (10, 0.5),
        "72": (10, 0.5),
    }
    assert positions.bring_up_to_date(conn, START).learnt == 0


def test_a_second_job_leaves_the_work_to_the_first(database_url, conn, chain):
    chain.block(1, {"token": "71", "price": "0.4", "size": 100, "maker": "ann", "taker": "bob"})
    chain.head(1)
    with database.connect(database_url, autocommit=True) as other:
        other.execute("select pg_advisory_lock(%s)", [positions.LOCK])

        assert positions.bring_up_to_date(conn, START).positions == 0
        other.execute("select pg_advisory_unlock(%s)", [positions.LOCK])

    assert positions.bring_up_to_date(conn, START).positions == 2


def test_a_pass_stops_in_time_and_the_next_goes_on(conn, chain):
    for number in range(1, 4):
        chain.block(number, {"token": "71", "price": "0.4", "size": 100, "maker": "ann", "taker": "bob"})
    chain.head(3)

    assert positions.bring_up_to_date(conn, START, seconds=0).behind == 4
    assert positions.bring_up_to_date(conn, START).block == 3


class Ticks:
    """A clock that advances by a second with each reading."""

    def __init__(self):
        self.seconds = itertools.count()

    def monotonic(self):
        return next(self.seconds)


def kept(conn):
    """Return the positions and the figures counted from them."""
    tables = ("wallet_positions", "wallet_totals", "wallet_hours", "wallet_days")
    return [sorted(conn.execute(f"select * from {table}").fetchall(), key=repr) for table in tables]


def test_a_pass_that_is_ended_has_kept_what_it_made_anew(conn, chain, monkeypatch):
    for number in range(2, 8):
        chain.block(number, {"token": "71", "price": "0.4", "size": 100, "maker": "ann", "taker": "bob"})
        chain.block(number + 10, {"token": "72", "price": "0.3", "size": 100, "maker": "cat", "taker": "ann"})
    chain.head(20)
    positions.bring_up_to_date(conn, START)
    for token, maker, number in (("71", "ann", 1), ("72", "cat", 10)):
        chain.block(number, {"token": token, "price": "0.1", "size": 5, "maker": maker, "taker": "bob"})

    monkeypatch.setattr(positions, "time", Ticks())
    passes = [positions.bring_up_to_date(conn, START, seconds=4, rows=1)]
    while passes[-1].due:
        passes.append(positions.bring_up_to_date(conn, START, seconds=4, rows=1))
        assert passes[-1].due < passes[-2].due

    assert len(passes) > 1
    assert sum(passed.remade for passed in passes) == 4
    made = kept(conn)
    conn.execute("delete from wallet_positions")
    for table in ("wallet_totals", "wallet_hours", "wallet_days"):
        conn.execute(f"delete from {table}")
    conn.execute("update positions_head set claimed = -1, done = -1, done_ts = '1970-01-01 00:00:00+00'")
    monkeypatch.undo()
    positions.bring_up_to_date(conn, START)
    assert made == kept(conn)


def test_a_clock_that_is_ahead_moves_no_base(conn):
    now = dt.datetime.now(dt.UTC)
    chain = Chain(conn, start=now - dt.timedelta(days=3))
    chain.block(1, {"token": "71", "price": "0.4", "size": 100, "maker": "ann", "taker": "bob"})
    chain.head(1)

    assert positions.bring_up_to_date(conn, now + dt.timedelta(days=365)).based == 0
    assert conn.execute("select count(*) from wallet_days").fetchone()[0] > 0


def test_nothing_is_dropped_that_a_position_is_made_anew_from(conn):
    later = dt.datetime.now(dt.UTC) - dt.timedelta(minutes=1)
    start = later - dt.timedelta(days=60)
    chain = Chain(conn, start=start)
    for number in range(1, 6):
        chain.block(number, {"token": "71", "price": "0.4", "size": 100, "maker": "ann", "taker": "bob"})
    chain.head(5)
    positions.bring_up_to_date(conn, start)
    missed = {"token": "71", "price": "0.1", "size": 100, "maker": "bob", "taker": "ann"}
    chain.block(0, missed)  # its positions are due, and no pass has processed them

    held = retention.drop_old(conn, Settings(), later)
    positions.bring_up_to_date(conn, later)
    dropped = retention.drop_old(conn, Settings(), later)

    fills = conn.execute("select buys + sells from wallet_positions where wallet = %s and not base", [address("ann")])
    assert fills.fetchone() == (6,)
    days = 60 - Settings().settlements_retention_days
    assert (held["wallet_fills"], held["chain_days_held_for_positions"]) == (0, days)
    assert (dropped["wallet_fills"], dropped["chain_days_held_for_positions"]) == (1, 0)


def test_a_block_written_while_positions_are_claimed_makes_its_positions_due(database_url, conn, chain):
    """The writer holds what the job waits for: none of its rows falls between two passes."""
    match = {"token": "71", "price": "0.4", "size": 100, "maker": "ann", "taker": "bob"}
    chain.block(2, match)
    chain.head(2)
    with database.connect(database_url) as writing:
        late = Chain.__new__(Chain)
        late.__dict__ |= {**chain.__dict__, "conn": writing}
        writing.execute("select")
        late.block(1, match)  # in the open transaction
        job = threading.Thread(target=positions.bring_up_to_date, args=(conn, START))
        job.start()
        waiting = "select count(*) from pg_stat_activity where wait_event_type = 'Lock' and query ~ 'set claimed'"
        with database.connect(database_url, autocommit=True) as look:
            while job.is_alive() and look.execute(waiting).fetchone() == (0,):
                time.sleep(0.01)
        assert job.is_alive()
        writing.commit()
        job.join()

    assert conn.execute("select count(*) from positions_due").fetchone() == (0,)
    assert conn.execute("select bought from wallet_positions where wallet = %s", [address("ann")]).fetchone() == (
        200_000_000,
    )
