"""Checks on the indexed chain data."""

from __future__ import annotations

import datetime as dt

import pytest

from orchestration.settlement import judging
from tests.factories import insert

NOW = dt.datetime(2026, 3, 14, 12, 30, tzinfo=dt.UTC)
AGO = NOW - dt.timedelta(hours=1, minutes=5)


@pytest.fixture
def indexed(conn):
    """Index the blocks of three hours."""
    for number, hours in ((1, 3), (2, 0)):
        insert(
            conn,
            "chain_blocks",
            {
                "number": number,
                "hash": bytes([number]) * 32,
                "parent": bytes(32),
                "ts": NOW - dt.timedelta(hours=hours),
                "logs": 0,
            },
        )
    insert(conn, "chain_ranges", {"from_block": 1, "to_block": 2, "logs": 0})


def settle(conn, tx_hash, ts):
    row = {"ts": ts, "block_number": 1, "log_index": tx_hash[0], "tx_hash": tx_hash, "contract_key": 1, "token_key": 1}
    parties = {"maker": bytes(20), "taker": bytes(20), "side": 1, "size": 1, "value_usd": 1, "fee_usd": 0}
    insert(conn, "settlements", {**row, **parties, "is_taker_order": True, "counted": True})


def hashes(count):
    return [bytes([n]) * 32 for n in range(count)]


@pytest.mark.usefixtures("indexed")
@pytest.mark.parametrize(
    ("trades", "unsettled", "holds", "severity"),
    [(20, 0, True, "warn"), (20, 10, True, "error"), (200, 11, False, "warn"), (100, 40, False, "error")],
)
def test_trades_of_an_hour_ago_that_are_not_settled_are_noticed(
    conn, add_market, add_trades, trades, unsettled, holds, severity
):
    sold = hashes(trades)
    add_trades(add_market("rain"), [{"ts": AGO, "tx_hash": tx} for tx in sold])
    for tx in sold[unsettled:]:
        settle(conn, tx, AGO + dt.timedelta(seconds=4))

    judged = judging.all_settled(conn, NOW)

    assert judged.summary == f"{unsettled} of {trades} trades of an hour ago have no settlement"
    assert (judged.holds, judged.severity) == (holds, severity)


@pytest.mark.usefixtures("indexed")
def test_what_is_younger_or_older_or_names_no_transaction_does_not_count(conn, add_market, add_trades):
    market = add_market("rain")
    add_trades(market, [{"ts": NOW - dt.timedelta(minutes=n), "tx_hash": tx} for n in (1, 59, 71) for tx in hashes(20)])
    add_trades(market, [{"ts": AGO, "tx_hash": None} for _ in range(20)])

    assert judging.all_settled(conn, NOW).summary == "no trade of an hour ago is in indexed blocks"


def test_where_the_blocks_are_not_indexed_yet_nothing_is_expected(conn, add_market, add_trades):
    add_trades(add_market("rain"), [{"ts": AGO, "tx_hash": tx} for tx in hashes(20)])

    assert judging.all_settled(conn, NOW).holds
