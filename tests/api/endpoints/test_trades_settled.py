"""Recent trades with the wallets that the chain names."""

from __future__ import annotations

import datetime as dt

import pytest

from tests.factories import insert

NOW = dt.datetime.now(dt.UTC).replace(microsecond=0)
BLOCK = 91_000_000


def wallet(number):
    return bytes([number]) * 20


def hexed(number):
    return "0x" + wallet(number).hex()


@pytest.fixture
def market(add_market):
    return add_market("rain")


@pytest.fixture
def settle(conn, market):
    """A row of the chain: `settle(3, tx, maker=1, taker=2, match=5)`."""
    contract = insert(conn, "chain_contracts", {"address": b"e" * 20, "name": "Exchange"})
    keys = [insert(conn, "chain_tokens", {"token_id": token_id})["token_key"] for token_id in market["token_ids"]]

    def add(log_index, tx, *, maker, taker, match=None, outcome=0, size=10_000_000, after_s=3, block=BLOCK):
        row = {
            "ts": NOW + dt.timedelta(seconds=after_s),
            "block_number": block,
            "log_index": log_index,
            "match_index": match,
            "tx_hash": tx,
            "contract_key": contract["contract_key"],
            "token_key": keys[outcome],
            "maker": wallet(maker),
            "taker": wallet(taker),
            "side": 1,
            "size": size,
            "value_usd": size // 2,
            "fee_usd": 0,
            "is_taker_order": match == log_index,
            "counted": match == log_index or match is None,
        }
        insert(conn, "settlements", row)

    return add


def asked(client, **given):
    answer = client.ask("/v1/trades/recent", **given)
    assert answer.status_code == 200, answer.text
    return [(trade["maker"], trade["taker"], trade["makers"], trade["block_number"]) for trade in answer.json]


def test_a_trade_has_the_wallets_of_its_match_once_that_is_indexed(client, market, add_trades, settle):
    tx = b"\x01" * 32
    add_trades(market, [{"ts": NOW, "tx_hash": tx}])

    before = asked(client, market_id="rain")
    settle(4, tx, maker=1, taker=2, match=5)
    settle(5, tx, maker=2, taker=9, match=5)

    assert before == [("", "", [], None)]
    assert asked(client, market_id=market["market_id"]) == [(hexed(1), hexed(2), [hexed(1)], BLOCK)]
    assert asked(client) == [(hexed(1), hexed(2), [hexed(1)], BLOCK)]


def test_a_taker_who_met_several_names_them_all_those_of_the_other_token_too(client, market, add_trades, settle):
    tx = b"\x02" * 32
    add_trades(market, [{"ts": NOW, "tx_hash": tx, "size": 30}])
    settle(4, tx, maker=1, taker=7, match=8, size=10_000_000)
    settle(5, tx, maker=3, taker=7, match=8, size=12_000_000, outcome=1)
    settle(6, tx, maker=1, taker=7, match=8, size=8_000_000)
    settle(8, tx, maker=7, taker=9, match=8, size=30_000_000)

    assert asked(client, market_id="rain") == [(hexed(3), hexed(7), [hexed(1), hexed(3)], BLOCK)]


def test_of_several_matches_in_a_transaction_it_is_the_one_of_the_trade_s_size(client, market, add_trades, settle):
    tx = b"\x03" * 32
    add_trades(market, [{"ts": NOW, "tx_hash": tx, "size": 20}])
    for first, owner, size in ((4, 1, 10_000_000), (7, 3, 20_000_000)):
        settle(first, tx, maker=owner, taker=owner + 1, match=first + 1, size=size)
        settle(first + 1, tx, maker=owner + 1, taker=9, match=first + 1, size=size)

    assert asked(client, market_id="rain") == [(hexed(3), hexed(4), [hexed(3)], BLOCK)]


def test_a_fill_without_a_match_has_its_two_wallets(client, market, add_trades, settle):
    tx = b"\x04" * 32
    add_trades(market, [{"ts": NOW, "tx_hash": tx}])
    settle(4, tx, maker=1, taker=2)

    assert asked(client, market_id="rain") == [(hexed(1), hexed(2), [hexed(1)], BLOCK)]


def test_without_a_transaction_nobody_is_named(client, market, add_trades, settle):
    settle(4, b"\x05" * 32, maker=1, taker=2)
    add_trades(market, [{"ts": NOW}, {"ts": NOW, "tx_hash": b"\x06" * 32}])

    assert asked(client, market_id="rain") == [("", "", [], None)] * 2
