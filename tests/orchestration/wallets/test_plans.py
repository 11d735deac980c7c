"""Per-block and per-minute work reads only the rows it is about, and no hypertable from end to end."""

from __future__ import annotations

import datetime as dt
import re

import pytest

from benchmarks.wallets.wallets import Size, load
from orchestration.wallets import positions
from sql import database
from sql.queries import capture, keys
from sql.queries import positions as queries

# At noon the newest chunk holds half a day: one that has just begun is rightly read whole.
UNTIL = dt.datetime(2026, 3, 14, 12, tzinfo=dt.UTC)
NUMBERED = {
    "published_activity": {},
    "add_activity": {},
    "add_due": {"claimed": 10**9},
    "add_changes": {},
    "share_redemptions": {"claimed": 10**9},
    "add_whales": {"least": 1, "threshold": 1.0},
    "take_back_activity": {},
    "take_back_changes": {},
}


@pytest.fixture(scope="module")
def conn(new_database):
    with new_database() as url, database.connect(url, autocommit=True) as conn:
        account = keys.account(conn, email="someone@example.com", app_name="tests", use_case=None)
        assert account is not None
        load(conn, Size(matches=30_000, wallets=2000, markets=100, days=13), lambda _: None, until=UNTIL)
        queries.make_slice(conn)
        yield conn


def read_whole(conn, query, **parameters):
    """Return the chunks that a plan reads from end to end."""
    with conn.transaction(force_rollback=True):
        rows = conn.execute(f"explain (costs off) {query.sql}", parameters).fetchall()
    return re.findall(r"Seq Scan on (_hyper\w+)", "\n".join(row[0] for row in rows))


@pytest.mark.parametrize("name", NUMBERED)
def test_a_block_is_worked_on_by_the_index_of_blocks(conn, name):
    number, ts = conn.execute("select number, ts from chain_blocks order by number desc limit 1 offset 100").fetchone()

    found = read_whole(conn, getattr(capture, name), numbers=[number], first_ts=ts, last_ts=ts, **NUMBERED[name])

    assert found == []


def test_a_minute_is_added_by_the_index_of_blocks(conn):
    done, since = conn.execute("select number, ts from chain_blocks order by number desc limit 1 offset 50").fetchone()
    end = conn.execute("select max(number) from chain_blocks").fetchone()[0]

    assert read_whole(conn, queries.fill_slice, done=done, until=end, since=since) == []
    assert (
        read_whole(conn, queries.slice_end, done=done, claimed=end, rows=positions.FILLS_PER_TRANSACTION, since=since)
        == []
    )


def test_what_is_due_is_made_anew_by_the_index_of_wallets(conn):
    with conn.transaction(force_rollback=True):
        conn.execute("insert into taken select 1, wallet, token_key, ts from wallet_fills order by ts desc limit 1")
        conn.execute("analyze taken")

        assert read_whole(conn, queries.fill_due, done=10**9) == []
