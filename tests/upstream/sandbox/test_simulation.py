"""The simulation is internally consistent, and deterministic per seed."""

import json
import re
from collections import defaultdict

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.upstream.sandbox.conftest import START_MS
from upstream.sandbox.common.truth_log import TruthLog
from upstream.sandbox.exchange.exchange import SandboxExchange
from upstream.sandbox.simulation.simulation import Simulation

ONE = 1_000_000


class Listener:
    """Receives every message, like a socket subscribed to everything."""

    def __init__(self) -> None:
        self.messages: list[dict] = []

    def is_followed(self, tokens):
        return True

    def send_to_followers(self, message, tokens, n, *, custom):
        self.messages.append(json.loads(message))
        return 1

    def send_to_all(self, message, n):
        return self.send_to_followers(message, (), n, custom=True)


def simulate(seed: int, seconds: float, *, rate: float = 500, start_ms: int = START_MS, markets: int = 20):
    """Return a simulation that ran, its exchange, its messages, and the books at the start."""
    listener = Listener()
    exchange = SandboxExchange(TruthLog(kept=1_000_000), listener)
    simulation = Simulation(exchange, seed=seed, start_ms=start_ms, markets=markets, rate=rate)
    first = {
        token: as_levels(json.loads(json.dumps(message)))
        for token, message in ((token, book_of(exchange, token)) for token in exchange.catalogue.by_token)
    }
    simulation.advance(start_ms + seconds * 1000)
    return simulation, exchange, listener.messages, first


def book_of(exchange: SandboxExchange, token: str) -> dict:
    import msgspec

    return msgspec.to_builtins(exchange.book_summary(*exchange.catalogue.by_token[token]))


def micro(text: str) -> int:
    return round(float(text) * ONE)


def as_levels(book: dict) -> dict[str, dict[int, int]]:
    return {
        "BUY": {micro(level["price"]): micro(level["size"]) for level in book["bids"]},
        "SELL": {micro(level["price"]): micro(level["size"]) for level in book["asks"]},
    }


@given(seed=st.integers(0, 10_000))
@settings(max_examples=8, deadline=None)
def test_whoever_follows_the_messages_has_the_exchanges_books(seed):
    _, exchange, messages, books = simulate(seed, 5)
    after_trades = {(message["asset_id"], message["hash"]) for message in messages if message["event_type"] == "book"}

    for message in messages:
        if message["event_type"] == "book":
            books[message["asset_id"]] = as_levels(message)
        for entry in message.get("price_changes", ()):
            levels = books[entry["asset_id"]][entry["side"]]
            if micro(entry["size"]):
                known = levels.get(micro(entry["price"])) == micro(entry["size"])
                assert not known or (entry["asset_id"], entry["hash"]) in after_trades, "nothing changed"
                levels[micro(entry["price"])] = micro(entry["size"])
            else:
                levels.pop(micro(entry["price"]), None)
        for entry in message.get("price_changes", ())[-2:]:
            bids, asks = books[entry["asset_id"]]["BUY"], books[entry["asset_id"]]["SELL"]
            assert micro(entry["best_bid"]) == max(bids, default=0)
            assert micro(entry["best_ask"]) == min(asks, default=ONE)
            assert max(bids, default=0) < min(asks, default=ONE), "a book is crossed"

    assert books == {token: as_levels(book_of(exchange, token)) for token in exchange.catalogue.by_token}


@given(seed=st.integers(0, 10_000))
@settings(max_examples=5, deadline=None)
def test_trades_take_what_rests_at_their_price(seed):
    _, _, messages, books = simulate(seed, 5)
    trades = 0

    for message in messages:
        kind = message["event_type"]
        if kind == "last_trade_price":
            trades += 1
            hit = "SELL" if message["side"] == "BUY" else "BUY"
            resting = books[message["asset_id"]][hit]
            price, size = micro(message["price"]), micro(message["size"])
            assert resting[price] >= size > 0
            best = min(resting) if hit == "SELL" else max(resting)
            assert price == best, "a better level was passed over"
            resting[price] -= size
            if not resting[price]:
                del resting[price]
        elif kind == "book":
            books[message["asset_id"]] = as_levels(message)
        for entry in message.get("price_changes", ()):
            levels = books[entry["asset_id"]][entry["side"]]
            levels[micro(entry["price"])] = micro(entry["size"])
            if not micro(entry["size"]):
                del levels[micro(entry["price"])]

    assert trades > 50


def test_every_trade_is_told_apart_from_every_other():
    _, _, messages, _ = simulate(3, 10, rate=2000)
    keys = [
        tuple(message[name] for name in ("transaction_hash", "asset_id", "side", "price", "size"))
        for message in messages
        if message["event_type"] == "last_trade_price"
    ]

    assert len(set(keys)) == len(keys) > 500


def test_books_of_one_market_mirror_each_other_to_the_end():
    _, exchange, _, _ = simulate(5, 20)

    for market in exchange.catalogue:
        first, second = (as_levels(book_of(exchange, token)) for token in market.tokens)
        assert {ONE - price: size for price, size in first["BUY"].items()} == second["SELL"]
        assert {ONE - price: size for price, size in first["SELL"].items()} == second["BUY"]


def test_the_same_seed_and_start_give_the_same_events_however_the_time_is_cut():
    _, one, told, _ = simulate(9, 30)
    listener = Listener()
    other = SandboxExchange(TruthLog(kept=1_000_000), listener)
    again = Simulation(other, seed=9, start_ms=START_MS, markets=20, rate=500)
    at = START_MS
    while at < START_MS + 30_000:
        at += 137
        again.advance(min(at, START_MS + 30_000), most=11)
        other.refresh()
    while not again.advance(START_MS + 30_000):
        pass

    assert listener.messages == told
    assert other.log.after(0, 10**6) == one.log.after(0, 10**6)


def test_the_same_seed_started_again_later_makes_new_transactions():
    first, again = (
        {message["transaction_hash"] for message in simulate(4, 10, start_ms=start_ms)[2] if "side" in message}
        for start_ms in (START_MS, START_MS + 142_000)
    )

    assert len(first) > 100
    assert len(again) > 100
    assert not first & again


def test_another_seed_gives_other_events():
    assert simulate(1, 2)[2] != simulate(2, 2)[2]


def test_the_rate_is_kept():
    _, exchange, _, _ = simulate(2, 30, rate=400)

    assert exchange.messages["price_change"] + exchange.messages["last_trade_price"] == pytest.approx(
        400 * 30, rel=0.05
    )


def test_hashes_stand_for_the_book_after_the_change():
    _, exchange, messages, _ = simulate(4, 10)
    last = {}
    for message in messages:
        for entry in message.get("price_changes", ()):
            last[entry["asset_id"]] = entry["hash"]
            assert re.fullmatch("[0-9a-f]{40}", entry["hash"])

    assert last
    assert all(book_of(exchange, token)["hash"] == digest for token, digest in last.items())


def test_ticks_become_finer_at_the_ends_of_the_scale_and_prices_keep_to_them():
    _, exchange, messages, _ = simulate(6, 400, rate=80, markets=40)
    ticks: dict[str, int] = {}
    refined = 0
    for message in messages:
        if message["event_type"] == "tick_size_change":
            assert (message["old_tick_size"], message["new_tick_size"]) == ("0.01", "0.001")
            ticks[message["asset_id"]] = 1000
            refined += 1
        for entry in message.get("price_changes", ()):
            token = entry["asset_id"]
            tick = ticks.get(token) or exchange.catalogue.by_token[token][0].tick
            assert micro(entry["price"]) % tick == 0
            assert tick <= micro(entry["price"]) <= ONE - tick

    assert refined


def test_markets_come_go_and_are_resolved_once():
    _, exchange, messages, _ = simulate(8, 620, rate=60, markets=30)
    resolved = [message for message in messages if message["event_type"] == "market_resolved"]
    listed = [message for message in messages if message["event_type"] == "new_market"]
    windows = [message for message in resolved if "-updown-5m-" in message["slug"]]

    assert len({message["market"] for message in resolved}) == len(resolved)
    assert len(windows) >= 6, "three coins, and two windows have ended"
    assert len(resolved) > len(windows)
    assert len(listed) > 10
    done: set[str] = set()
    for message in messages:
        assert message["market"] not in done, "a resolved market still trades"
        if message["event_type"] == "market_resolved":
            done.add(message["market"])
    for message in resolved:
        market = exchange.catalogue.by_condition[message["market"]]
        prices = json.loads(market.gamma["outcomePrices"])
        assert sorted(prices) == ["0", "1"]
        assert market.tokens[prices.index("1")] == message["winning_asset_id"]
        assert market.gamma["closed"]


def test_one_member_of_a_neg_risk_event_wins():
    _, exchange, _, _ = simulate(12, 500, rate=20, markets=60)
    winners = defaultdict(list)
    for market in exchange.catalogue:
        if market.closed and market.neg_risk:
            winners[market.gamma["events"][0]["id"]].append(json.loads(market.gamma["outcomePrices"])[0])

    assert winners
    assert all(sorted(prices)[-2:] == ["0", "1"] for prices in winners.values())


def test_volumes_of_the_catalogue_are_those_of_the_trades():
    _, exchange, _, _ = simulate(13, 1)
    exchange.refresh()
    before = {market.id: micro(market.gamma["volume"]) for market in exchange.catalogue}
    _, exchange, messages, _ = simulate(13, 20)
    exchange.refresh()
    early, *_ = simulate(13, 1)[2:]
    traded: dict[str, int] = defaultdict(int)
    for message in messages[len(early) :]:
        if message["event_type"] == "last_trade_price":
            traded[message["market"]] += micro(message["price"]) * micro(message["size"]) // ONE

    for market in exchange.catalogue:
        if market.id in before:
            assert micro(market.gamma["volume"]) - before[market.id] == traded[market.condition_id]
            assert market.gamma["volumeNum"] == float(market.gamma["volume"])


def test_some_markets_are_of_the_second_protocol():
    _, exchange, _, _ = simulate(1, 0, markets=60)
    second = [market for market in exchange.catalogue if market.gamma.get("version") == "v2"]

    assert second
    assert all(list(market.tokens) == market.gamma["positionIds"] for market in second)
    assert all(list(market.tokens) != json.loads(market.gamma["clobTokenIds"]) for market in second)
