"""Lives of the sandbox Kalshi's markets: what the socket tells of, what it does not, and how markets end."""

import json
from collections import Counter, defaultdict

import pytest

from tests.upstream.sandbox.kalshi.conftest import MINUTE, START_MS, converse, get, play, truth, walk
from upstream.sandbox.kalshi.server import KalshiSandbox


@pytest.fixture(scope="module")
def lines(played, http):
    """All lines of the truth log after five minutes."""
    return truth(http, played)


def lives(lines):
    """Return what happened to each short-lived market, by ticker: types of messages, and silent states in brackets."""
    found = defaultdict(list)
    for line in lines:
        if line["kind"] in ("market_lifecycle_v2", "multivariate_market_lifecycle"):
            found[line["msg"]["market_ticker"]].append(line["msg"]["event_type"])
        elif line["kind"] == "status":
            found[line["msg"]["market_ticker"]].append(f"({line['msg']['status']})")
    return found


def test_markets_go_through_every_plot(lines):
    told = Counter(" ".join(life) for life in lives(lines).values())

    for life in (
        "created (active) (closed) determined settled",
        "created (active) deactivated activated (closed) determined settled",
        "created (active) close_date_updated (closed) determined settled",
        "created (active) (closed) determined (disputed) (amended) determined settled",
        "created (active) (closed) close_date_updated activated (closed) determined settled",
        "created (active) metadata_updated price_level_structure_updated (closed) determined settled",
    ):
        assert told[life], life


def test_openings_and_closings_are_silent_and_rest_knows_them(sandbox, http):
    async def talk(listener):
        await listener.subscribe("market_lifecycle_v2")
        await listener.play(2 * MINUTE)

    heard = converse(sandbox, http, talk).of("market_lifecycle_v2", "event_lifecycle", "event_fee_update")

    kinds = {one["msg"].get("event_type", one["type"]) for one in heard}
    assert {"created", "determined", "settled", "deactivated", "activated", "close_date_updated"} <= kinds
    assert {"event_lifecycle", "event_fee_update"} <= kinds
    assert not {"opened", "closed"} & kinds
    assert not [one for one in heard if json.dumps(one["msg"]).count("KXMVE")], "combos have a channel of their own"
    assert [one["seq"] for one in heard] == list(range(1, len(heard) + 1))
    made = next(one["msg"] for one in heard if one["msg"].get("event_type") == "created")
    market = get(http, sandbox, f"/markets/{made['market_ticker']}")["market"]
    assert market["status"] != "initialized"
    assert made["additional_metadata"]["event_ticker"] == market["event_ticker"]
    assert made["price_ranges"] == market["price_ranges"]
    assert made["open_ts"] * 1000 > START_MS


def test_combos_have_their_channel_and_pay_the_product_of_their_legs(sandbox, http):
    async def talk(listener):
        await listener.subscribe("multivariate_market_lifecycle")
        await listener.play(4 * MINUTE)

    heard = converse(sandbox, http, talk).of("multivariate_market_lifecycle")

    settled = {one["msg"]["market_ticker"] for one in heard if one["msg"]["event_type"] == "settled"}
    assert len(settled) > 3
    values = []
    for ticker in settled:
        combo = get(http, sandbox, f"/markets/{ticker}")["market"]
        value = 1.0
        for leg in combo["mve_selected_legs"]:
            of_leg = get(http, sandbox, f"/markets/{leg['market_ticker']}")["market"].get("settlement_value_dollars")
            if of_leg is not None:
                value *= float(of_leg) if leg["side"] == "yes" else 1 - float(of_leg)
        assert round(value, 4) == float(combo["settlement_value_dollars"])
        values.append(combo["result"])
    assert {"yes", "no"} & set(values)


def test_results_and_payouts_agree_and_some_are_scalar_or_void(played, http):
    settled = walk(http, played, "/markets", "markets", status="settled", limit=1000)
    by_result = defaultdict(set)
    for market in settled:
        by_result[market["result"]].add(market.get("settlement_value_dollars"))
        assert market["settlement_ts"] >= market["close_time"]
        assert (market["yes_bid_dollars"], market["yes_ask_dollars"]) == ("0.0000", "1.0000")
        assert market["yes_bid_size_fp"] == market["yes_ask_size_fp"] == "0.00"
    assert by_result["yes"] == {"1.0000"}
    assert by_result["no"] == {"0.0000"}
    assert by_result["scalar"] - {"0.0000", "1.0000"}
    assert by_result[""] == {None}, "void"
    exclusive = [event for event in played.exchange.events.values() if event.exclusive]
    assert all(sum(market.result == "yes" for market in event.markets) <= 1 for event in exclusive)


def test_a_pause_cancels_all_resting_orders(sandbox, http):
    """A book that is built from snapshot and changes is the book after the pause."""
    play(sandbox, 2 * MINUTE)
    paused = [market for market in sandbox.exchange.markets.values() if market.status == "inactive"]
    while not paused:
        play(sandbox, 1_000)
        paused = [market for market in sandbox.exchange.markets.values() if market.status == "inactive"]
    ticker = paused[0].ticker

    async def talk(listener):
        await listener.subscribe("orderbook_delta", market_ticker=ticker)
        await listener.settle()
        before = listener.books()[ticker]
        await listener.play(10_000)
        gone = {
            (one["msg"]["side"], one["msg"]["price_dollars"]): one["msg"]["delta_fp"]
            for one in reversed(listener.of("orderbook_delta"))
        }
        for side, levels in before.items():
            for price, size in levels.items():
                assert float(gone[side, price]) == -size

    converse(sandbox, http, talk)


def test_nothing_trades_in_a_market_that_is_not_open(lines):
    state = {}
    for line in lines:
        ticker = line["msg"].get("market_ticker")
        if line["kind"] == "status":
            state[ticker] = line["msg"]["status"]
        elif line["kind"].endswith("lifecycle_v2") or line["kind"] == "multivariate_market_lifecycle":
            state[ticker] = line["msg"]["event_type"]
        elif line["kind"] == "trade":
            assert state.get(ticker, "active") not in {"created", "deactivated", "closed", "determined", "settled"}


def test_the_same_seed_gives_the_same_exchange(http):
    logs = []
    for seed in (5, 5, 6):
        with KalshiSandbox(simulate=seed, start_ms=START_MS, markets=40, rate=20, hold=True) as exchange:
            play(exchange, MINUTE // 2)
            logs.append([{**line, "sent": 0} for line in truth(http, exchange)])

    assert len(logs[0]) > 750
    assert logs[0] == logs[1]
    assert logs[0] != logs[2]


def test_activity_follows_zipfs_law(http):
    with KalshiSandbox(simulate=5, start_ms=START_MS, markets=1_000, rate=200, hold=True) as exchange:
        play(exchange, MINUTE // 4)
        counts = Counter(
            line["msg"]["market_ticker"] for line in truth(http, exchange) if line["kind"] == "orderbook_delta"
        )

    busiest = sum(count for _, count in counts.most_common(20))
    assert 0.1 < busiest / counts.total() < 0.6
    assert len(counts) > 200
