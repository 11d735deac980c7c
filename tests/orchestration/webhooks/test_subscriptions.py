"""Which webhooks receive which events."""

from __future__ import annotations

import json
from uuid import UUID

import pytest

from orchestration.webhooks.subscriptions import Subscriptions, event
from sql.stream_reader import StreamEvent

RAIN, SNOW = "0x" + "1" * 64, "0x" + "2" * 64
ANN, BOB = b"\xa1" * 20, b"\xb0" * 20
HOOK = UUID(int=1)


def happened(kind="trade", data=None, *, seq=10, market_id=RAIN, wallet=None, watchers=None):
    message = {"type": kind, "seq": seq, "ts": 1_795_262_400_123, "market_id": market_id, "data": data or {}}
    return event(StreamEvent(seq, kind, market_id, wallet, watchers, json.dumps(message).encode()))


def wants(happening, *, events=("trade",), market_ids=None, wallets=None, min_usd=None, since=0, account=1):
    row = (HOOK, account, list(events), market_ids, wallets, min_usd, since)
    return [wish.webhook_id for wish in Subscriptions([row]).of(happening)] == [HOOK]


@pytest.mark.parametrize(
    ("kind", "data", "named"),
    [
        ("trade", {}, "trade"),
        ("onchain_trade", {"revoked": True}, "onchain_trade"),
        ("wallet_activity", {}, "wallet_activity"),
        ("signal", {"type": "whale_alert", "value": 5}, "signal.whale_alert"),
        ("market", {"from_status": None, "to_status": "ACTIVE"}, "market.listed"),
        ("market", {"from_status": "CLOSED", "to_status": "ACTIVE"}, "market.reopened"),
        ("market", {"from_status": "ACTIVE", "to_status": "CLOSED"}, "market.closed"),
        ("market", {"from_status": "CLOSED", "to_status": "RESOLVED"}, "market.resolved"),
    ],
)
def test_events_are_named_by_what_has_happened(kind, data, named):
    found = happened(kind, data)

    assert found.type == named
    assert json.loads(found.body) == {
        "type": named,
        "timestamp": "2026-11-21T12:00:00.123Z",
        "seq": 10,
        "market_id": RAIN,
        "data": data,
    }


def test_a_kind_stands_for_all_that_begins_with_it():
    whale = happened("signal", {"type": "whale_alert"})

    assert wants(whale, events=["signal"])
    assert wants(whale, events=["trade", "signal.whale_alert"])
    assert not wants(whale, events=["signal.momentum", "market"])


def test_only_of_the_markets_that_are_named():
    assert wants(happened(), market_ids=[SNOW, RAIN])
    assert not wants(happened(), market_ids=[SNOW])
    assert not wants(happened(market_id=None), market_ids=[RAIN])


def test_only_what_comes_after_it_was_made():
    assert not wants(happened(seq=10), since=10)
    assert wants(happened(seq=11), since=10)


@pytest.mark.parametrize(
    ("kind", "data", "told"),
    [
        ("trade", {"value_usd": 99.999999}, False),
        ("trade", {"value_usd": 100}, True),
        ("onchain_trade", {"value_usd": 99}, False),
        ("signal", {"type": "whale_alert", "value": 99}, False),
        ("signal", {"type": "whale_alert", "value": 100.5}, True),
        ("signal", {"type": "momentum", "value": 0.1}, True),
        ("market", {"to_status": "CLOSED"}, True),
    ],
)
def test_a_least_value_holds_for_what_has_one(kind, data, told):
    assert wants(happened(kind, data), events=[kind], min_usd=100_000_000) == told


def test_wallets_are_makers_and_takers_of_onchain_trades():
    fill = happened("onchain_trade", {"maker": "0x" + ANN.hex(), "taker": "0x" + BOB.hex()})

    assert wants(fill, events=["onchain_trade"])
    assert wants(fill, events=["onchain_trade"], wallets=[BOB])
    assert not wants(fill, events=["onchain_trade"], wallets=[b"\xc1" * 20])
    assert wants(happened(), wallets=[BOB])  # a trade does not name wallets


def test_what_a_wallet_does_is_told_to_those_who_name_it_and_those_who_watch_it_and_nobody_else():
    activity = happened("wallet_activity", {"maker": "0x" + BOB.hex()}, wallet=ANN, watchers=[7])

    assert wants(activity, events=["wallet_activity"], wallets=[ANN])
    assert wants(activity, events=["wallet_activity"], account=7)
    assert not wants(activity, events=["wallet_activity"], account=8)
    assert not wants(activity, events=["wallet_activity"], wallets=[BOB], account=7)


@pytest.mark.parametrize(
    "data", [{"value_usd": "5"}, {"maker": 7}, {"maker": "0xzz", "taker": "somebody"}, [], "x", None]
)
def test_a_record_of_another_shape_is_told_by_its_kind_and_holds_nobody_up(data):
    found = happened("onchain_trade", data)

    assert (found.usd, found.wallets) == (None, frozenset())
    assert wants(found, events=["onchain_trade"])


def test_webhooks_that_name_no_markets_get_those_of_polymarket():
    fed = happened(market_id="KXFED-27APR-T4.25")

    assert not wants(fed)
    assert wants(fed, market_ids=[fed.market_id])
    assert wants(happened(market_id=None))


def test_an_event_is_told_once_to_each():
    rows = [(UUID(int=number), 1, ["trade", "signal"], [RAIN], None, None, 0) for number in range(3)]

    told = [wish.webhook_id.int for wish in Subscriptions(rows).of(happened())]

    assert told == [0, 1, 2]
    assert Subscriptions(rows).kinds == {"signal", "trade"}
    assert (Subscriptions().kinds, Subscriptions().since) == (frozenset(), None)
    assert Subscriptions([(HOOK, 1, ["trade"], None, None, None, since) for since in (9, 5, 7)]).since == 5
