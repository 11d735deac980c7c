"""Data derived from settlements, in the transaction that writes them."""

from __future__ import annotations

import json

import pytest
from psycopg.types.multirange import Multirange
from psycopg.types.range import Range

from config import tunables
from tests.factories import insert
from tests.orchestration.wallets.chain import EXCHANGE, Chain, address

HEX = {name: "0x" + address(name).hex() for name in ("ann", "bob", "cid")}


@pytest.fixture
def market(add_market):
    return add_market("rain", token_ids=["71", "72"])


@pytest.fixture
def chain(conn, market):
    return Chain(conn)


@pytest.fixture
def account(conn):
    return insert(conn, "accounts", {"email": "someone@example.com", "app_name": "tests"})["account_id"]


@pytest.fixture
def watch(conn, account):
    def watch(name, since=0):
        conn.execute(
            "insert into wallets_watched (account_id, wallet, blocks) values (%s, %s, %s)",
            [account, address(name), Multirange([Range(since, None)])],
        )

    return watch


def match(**columns):
    return {"token": "71", "price": "0.4", "size": 100, "maker": "ann", "taker": "bob", **columns}


def stored(conn):
    return conn.execute("select wallet, block_number, is_taker, side, counterparty from wallet_activity").fetchall()


def data(message):
    return json.loads(b"{" + message.rest)


def test_nothing_is_kept_or_told_while_nobody_watches(conn, chain):
    assert chain.block(1, match()) == []
    assert stored(conn) == []


def test_fills_of_a_watched_wallet_are_kept_and_told(conn, chain, watch, market):
    watch("ann")

    [told] = chain.block(1, match(), match(maker="cid"))

    assert stored(conn) == [(address("ann"), 1, False, 1, address("bob"))]
    assert (told.type, told.market, told.wallet) == ("wallet_activity", market["market_id"], address("ann"))
    record = data(told)["data"]
    assert record["address"] == record["maker"] == HEX["ann"]
    assert record["taker"] == HEX["bob"]
    assert (record["role"], record["side"], record["price"], record["size"]) == ("maker", "BUY", 0.4, 100)
    assert record["price_matched"] is True
    assert record["exchange_contract"] == "0x" + EXCHANGE.hex()
    assert record["finalized"] is False


def test_a_takers_row_names_the_maker_of_the_largest_part(conn, chain, watch):
    watch("bob")

    [told] = chain.block(1, match())

    record = data(told)["data"]
    assert (record["role"], record["maker"], record["taker"], record["side"]) == (
        "taker",
        HEX["ann"],
        HEX["bob"],
        "SELL",
    )
    assert stored(conn) == [(address("bob"), 1, True, -1, address("ann"))]


def test_both_sides_of_an_order_filled_alone_are_kept(conn, chain, watch):
    watch("ann")
    watch("bob")

    told = chain.block(1, match(alone=True))

    assert sorted(stored(conn)) == sorted(
        [(address("ann"), 1, False, 1, address("bob")), (address("bob"), 1, True, -1, address("ann"))]
    )
    assert {data(each)["data"]["role"] for each in told} == {"maker", "taker"}


def test_what_is_filled_in_later_is_kept_and_not_told(conn, chain, watch):
    watch("ann", since=2)

    assert chain.block(1, match(), live=False) == []
    assert stored(conn) == []
    assert chain.block(2, match(), live=False) == []
    assert len(stored(conn)) == 1


def test_capture_ends_with_watching(conn, chain, watch):
    watch("ann")
    chain.block(1, match())
    conn.execute("update wallets_watched set unwatched_at = now(), blocks = '{[0,1]}'")

    assert chain.block(2, match()) == []
    assert len(stored(conn)) == 1


def test_a_block_of_a_time_of_watching_that_is_over_is_kept_and_not_told(conn, chain, account):
    conn.execute(
        "insert into wallets_watched (account_id, wallet, blocks, unwatched_at)"
        " values (%s, %s, '{[1,1],[4,4]}', now())",
        [account, address("ann")],
    )

    assert [chain.block(number, match()) for number in range(1, 6)] == [[]] * 5
    assert [row[0] for row in conn.execute("select block_number from wallet_activity order by 1")] == [1, 4]


def test_a_wallet_followed_on_the_stream_is_told_and_not_kept(conn, chain, account):
    conn.execute(
        "insert into wallets_followed (account_id, wallet, until_at) values (%s, %s, now() + interval '1 minute')",
        [account, address("ann")],
    )

    [told] = chain.block(1, match())

    assert told.wallet == address("ann")
    assert stored(conn) == []


def test_a_block_taken_back_takes_everything_with_it(conn, chain, watch):
    watch("ann")
    chain.block(1, match())
    chain.block(2, match(size=100_000))

    activity, whale = chain.remove(2)

    assert [row[1] for row in stored(conn)] == [1]
    assert conn.execute("select count(*) from signals").fetchone() == (0,)
    assert (activity.type, activity.wallet) == ("wallet_activity", address("ann"))
    assert data(activity)["data"]["revoked"] is True
    assert data(activity)["data"]["size"] == 100_000
    assert (whale.type, data(whale)["data"]["revoked"]) == ("signal", True)


def test_a_settlement_above_the_threshold_is_a_whale(conn, chain, market):
    assert chain.block(1, match(size=62_499)) == []

    [told] = chain.block(2, match(size=62_500))

    signal = data(told)["data"]
    assert (told.type, told.market) == ("signal", market["market_id"])
    assert (signal["type"], signal["value"], signal["threshold"], signal["score"]) == ("whale_alert", 25000, 25000, 1)
    assert (signal["direction"], signal["outcome"]) == ("down", 0)
    assert signal["detail"]["wallet"] == HEX["bob"]  # the taker's row is the one counted
    rows = conn.execute("select type, market_key, outcome, value, score from signals").fetchall()
    assert rows == [("whale_alert", market["market_key"], 0, 25000, 1)]


def test_a_changed_threshold_acts_with_the_next_block(conn, chain):
    tunables.set_(conn, "whale_alert_usd", "10")

    [told] = chain.block(1, match())

    assert data(told)["data"]["score"] == 4
    tunables.set_(conn, "whale_alert_usd", "50")
    assert chain.block(2, match()) == []


def test_whales_of_the_past_are_kept_and_not_told(conn, chain):
    assert chain.block(1, match(size=100_000), live=False) == []
    assert conn.execute("select count(*) from signals").fetchone() == (1,)


def test_what_lies_behind_positions_makes_them_due(conn, chain):
    conn.execute("update positions_head set claimed = 5, done = 5")

    chain.block(6, match())
    assert conn.execute("select count(*) from positions_due").fetchone() == (0,)

    chain.block(5, match(), live=False)
    due = set(conn.execute("select wallet, token_key from positions_due").fetchall())
    assert due == {(address("ann"), chain.key("71")), (address("bob"), chain.key("71"))}


def changes(conn, chain):
    names = {key: token for token, key in chain.keys.items()}
    found = conn.execute(
        "select token_key, kind, shares / 1e6, usd / 1e6 from position_changes order by shares, token_key"
    )
    names |= dict(conn.execute("select token_key, token_id from chain_tokens").fetchall())
    return [(names[key], kind, float(shares), None if usd is None else float(usd)) for key, kind, shares, usd in found]


def test_a_split_costs_its_collateral_shared_evenly(conn, chain):
    chain.block(1, entries=[{"kind": "split", "wallet": "ann", "amount": 10, "tokens": [("71", 10), ("72", 10)]}])

    assert changes(conn, chain) == [("71", "split", 10, 5), ("72", "split", 10, 5)]


@pytest.mark.parametrize(("kind", "shares"), [("split", 10), ("merge", -10)])
def test_without_transfers_the_catalogue_tells_the_tokens(conn, chain, market, kind, shares):
    condition = bytes.fromhex(market["market_id"][2:])
    chain.block(1, entries=[{"kind": kind, "wallet": "ann", "amount": 10, "condition": condition}])

    assert changes(conn, chain) == [("71", kind, shares, 5), ("72", kind, shares, 5)]


def test_a_redemption_is_shared_as_the_market_was_resolved(conn, chain, market):
    condition = bytes.fromhex(market["market_id"][2:])
    resolution = {"kind": "resolution", "condition": condition, "detail": {"numerators": [1, 0]}}
    chain.block(1, entries=[resolution])
    redeemed = [("71", -7), ("71", -3), ("72", -4)]
    chain.block(
        2, entries=[{"kind": "redeem", "wallet": "ann", "amount": 10, "condition": condition, "tokens": redeemed}]
    )

    assert changes(conn, chain) == [("71", "redeem", -10, 10), ("72", "redeem", -4, 0)]


def test_a_redemption_written_before_its_resolution_is_shared_by_it_later(conn, chain, market):
    conn.execute("update positions_head set claimed = 3, done = 3")
    condition = bytes.fromhex(market["market_id"][2:])
    redeemed = {"kind": "redeem", "amount": 10, "condition": condition, "tokens": [("71", -10), ("72", -30)]}
    chain.block(3, entries=[{**redeemed, "wallet": "ann"}])
    chain.block(4, entries=[{**redeemed, "wallet": "bob"}])
    assert [usd for *_, usd in changes(conn, chain)] == [7.5, 7.5, 2.5, 2.5]
    conn.execute("delete from positions_due")

    chain.block(2, entries=[{"kind": "resolution", "condition": condition, "detail": {"numerators": [1, 0]}}])

    assert [usd for *_, usd in changes(conn, chain)] == [0, 0, 10, 10]
    due = conn.execute(
        "select p.wallet, k.token_id from positions_due p join chain_tokens k using (token_key)"
    ).fetchall()
    assert sorted(due) == [(address("ann"), "71"), (address("ann"), "72")], "the other is still to be computed"


def test_a_conversion_gives_up_exactly_the_collateral_paid_out(conn, chain):
    moved = [("81", -10), ("82", -10), ("83", 10), ("84", 10), ("85", 10)]
    chain.block(1, entries=[{"kind": "convert", "wallet": "ann", "amount": 10, "tokens": moved}])

    found = changes(conn, chain)

    assert found == [
        ("81", "convert", -10, 8),
        ("82", "convert", -10, 8),
        ("83", "convert", 10, 2),
        ("84", "convert", 10, 2),
        ("85", "convert", 10, 2),
    ]
    assert sum(usd * (1 if shares < 0 else -1) for *_, shares, usd in found) == 10  # (2 - 1) x 10


def test_a_transfer_has_no_price(conn, chain):
    chain.block(
        1,
        entries=[
            {"kind": "transfer", "wallet": "ann", "counterparty": "bob", "token": "71", "amount": 10},
            {"kind": "transfer", "wallet": "bob", "counterparty": "ann", "token": "71", "amount": -10, "entry": 1},
        ],
    )

    assert changes(conn, chain) == [("71", "transfer", -10, None), ("71", "transfer", 10, None)]
