"""Markets beyond the busiest: listed, found and traded like the others, but drawn only when they are needed."""

import json
import random
import time
from collections import Counter

import httpx
import msgspec
import pytest

from tests.upstream.sandbox.conftest import START_MS, token_ids, walk
from tests.upstream.sandbox.test_simulation import Listener, as_levels, book_of, micro
from upstream.sandbox.common.truth_log import TruthLog
from upstream.sandbox.exchange.exchange import SandboxExchange
from upstream.sandbox.server import Sandbox
from upstream.sandbox.simulation.quiet import QuietMarkets
from upstream.sandbox.simulation.simulation import MAX_BUSY, Simulation
from upstream.sandbox.simulation.universe import Universe

MARKETS = MAX_BUSY + 503


@pytest.fixture(scope="module")
def sandbox():
    with Sandbox(simulate=21, markets=MARKETS, start_ms=START_MS, past_days=1, hold=True) as running:
        yield running


@pytest.fixture(scope="module")
def quiet(sandbox) -> QuietMarkets:
    return sandbox.exchange.catalogue.quiet


def simulate(markets: int = MARKETS) -> tuple[Simulation, SandboxExchange, Listener]:
    listener = Listener()
    exchange = SandboxExchange(TruthLog(kept=1_000_000), listener)
    return Simulation(exchange, seed=9, start_ms=START_MS, markets=markets, rate=500), exchange, listener


def test_a_start_makes_no_more_than_the_busy_markets(monkeypatch):
    made = Counter()
    make = Universe._market

    def counted(self, *arguments, **options):
        made["markets"] += 1
        return make(self, *arguments, **options)

    monkeypatch.setattr(Universe, "_market", counted)
    began = time.process_time()
    sandbox = Sandbox(simulate=1, markets=200_000, start_ms=START_MS, past_days=1, hold=True)
    again = Sandbox(simulate=1, markets=200_000, start_ms=START_MS + 60_000, past_days=1, past_until_ms=START_MS)
    took = time.process_time() - began

    assert made["markets"] < 4 * MAX_BUSY
    assert took < 60
    for one in (sandbox, again):
        assert one.status()["markets"] - one.status()["past"]["markets"] < 200_000 <= one.status()["markets"]
        assert one.status()["tokens"] == 2 * one.status()["markets"]
        assert one.status()["played"]["quiet_traded"] == 0
    numbers = (0, 77, 198_000)
    assert [sandbox.exchange.catalogue.quiet.market(number).tokens for number in numbers] == [
        again.exchange.catalogue.quiet.market(number).tokens for number in numbers
    ]


def test_a_walk_meets_every_market_once(sandbox, http):
    found = walk(http, sandbox, closed="false")
    counts = http.get(f"{sandbox.url}/sandbox/status").json()

    assert len({market["id"] for market in found}) == len(found) == MARKETS == counts["open_markets"]
    assert len({token for market in found for token in token_ids(market)}) == 2 * MARKETS
    assert [int(market["id"]) for market in found] == sorted(int(market["id"]) for market in found)
    assert all(market["description"].startswith("Simulated market.") for market in found)


@pytest.mark.parametrize("order", ["volume24hr", "createdAt", "endDate"])
def test_orders_are_kept_across_pages(sandbox, http, order):
    found = walk(http, sandbox, closed="false", order=order, ascending="false")

    assert len({market["id"] for market in found}) == len(found) == MARKETS
    assert [market[order] for market in found] == sorted((market[order] for market in found), reverse=True)


def test_closed_ones_are_of_the_past_alone(sandbox, http):
    found = walk(http, sandbox, closed="true", order="closedTime", ascending="false")

    assert len(found) == sum(life.winner is not None for life in sandbox.past.lives)


def test_a_market_is_found_by_each_of_its_names(sandbox, http, quiet):
    market = quiet.market(444).gamma
    tokens = token_ids(market)
    gamma, clob = sandbox.gamma_url, sandbox.clob_url

    def ask(path: str, **query: str) -> dict:
        answer = http.get(path, params=query)
        assert answer.status_code == 200, answer.text
        return answer.json()

    assert ask(f"{gamma}/markets/{market['id']}") == market
    assert ask(f"{gamma}/markets/slug/{market['slug']}") == market
    assert ask(f"{gamma}/markets/keyset", condition_ids=market["conditionId"])["markets"] == [market]
    assert ask(f"{gamma}/markets", clob_token_ids=json.loads(market["clobTokenIds"])[1]) == [market]
    event = market["events"][0]
    assert market["id"] in [each["id"] for each in ask(f"{gamma}/events/{event['id']}")["markets"]]
    assert ask(f"{gamma}/events/slug/{event['slug']}")["id"] == event["id"]
    assert ask(f"{clob}/markets/{market['conditionId']}")["tokens"][0]["token_id"] == tokens[0]
    assert ask(f"{clob}/book", token_id=tokens[1])["market"] == market["conditionId"]
    assert http.get(f"{clob}/book", params={"token_id": str(int(tokens[1]) + 1)}).status_code == 404


def test_pages_of_the_order_book_api_hold_every_market_once(sandbox, http):
    found, cursor = [], ""
    while cursor != "LTE=":
        page = http.get(f"{sandbox.clob_url}/sampling-simplified-markets", params={"next_cursor": cursor}).json()
        found += page["data"]
        cursor = page["next_cursor"]

    assert len({market["condition_id"] for market in found}) == len(found) == MARKETS


def test_events_hold_their_markets_once(sandbox, http, quiet):
    found, cursor = [], {}
    while True:
        query = {"limit": 500, "closed": "false", "order": "volume", "ascending": "false", **cursor}
        page = http.get(f"{sandbox.gamma_url}/events/keyset", params=query).json()
        found += page["events"]
        if "next_cursor" not in page:
            break
        cursor = {"after_cursor": page["next_cursor"]}

    ids = [market["id"] for event in found for market in event["markets"]]
    assert len(set(ids)) == len(ids) == MARKETS
    assert [event["volume"] for event in found] == sorted((event["volume"] for event in found), reverse=True)
    assert quiet.events == sum(int(event["id"]) < 700_001 for event in found)


def test_activity_follows_zipfs_law():
    markets = QuietMarkets(3, 63_000, rank=1_000, start_ms=START_MS, listed_ms=START_MS)
    dice = random.Random(5)
    drawn = Counter((1_000 + markets.drawn(dice.random()).market.number).bit_length() for _ in range(12_000))

    # As many orders go to the ranks from 1,024 to 2,047 as to those from 32,768 to 65,535.
    assert [drawn[bits] for bits in range(11, 16)] == pytest.approx([12_000 / 6] * 5, rel=0.1)


def test_whoever_follows_the_messages_has_the_books():
    simulation, exchange, listener = simulate()
    quiet = exchange.catalogue.quiet
    tokens = [token for number in range(len(quiet)) for token in quiet.market(number).tokens]
    books = {token: as_levels(msgspec.to_builtins(book_of(exchange, token))) for token in exchange.catalogue.by_token}
    books |= {
        book.asset_id: as_levels(msgspec.to_builtins(book))
        for start in range(0, len(tokens), 100)
        for book in exchange.initial_books(tokens[start : start + 100])
    }
    simulation.advance(START_MS + 10_000)
    for message in listener.messages:
        if message["event_type"] == "book":
            books[message["asset_id"]] = as_levels(message)
        for entry in message.get("price_changes", ()):
            levels = books[entry["asset_id"]][entry["side"]]
            levels[micro(entry["price"])] = micro(entry["size"])
            if not micro(entry["size"]):
                del levels[micro(entry["price"])]

    assert len(books) == 2 * MARKETS
    assert 100 < simulation.state()["quiet_traded"] < 503
    for token in tokens:
        assert books[token] == as_levels(msgspec.to_builtins(exchange.book_summary(*exchange.catalogue.find(token))))


def test_what_is_shown_changes_nothing_of_what_happens():
    one, first, told = simulate()
    other, second, told_again = simulate()
    one.advance(START_MS + 6_000)
    for step in range(6):
        for number in range(step, 503, 3):
            second.book_summary(second.catalogue.quiet.market(number), 0)
            assert second.catalogue.quiet.market(number).gamma["events"]
        other.advance(START_MS + (step + 1) * 1_000)

    assert told.messages == told_again.messages
    assert first.log.after(0, 10**6) == second.log.after(0, 10**6)


def test_trades_of_quiet_markets_settle_and_count():
    sandbox = Sandbox(simulate=4, markets=MARKETS, start_ms=START_MS, rate=2_000, hold=True)
    sandbox.source.advance(START_MS + 10_000)
    catalogue = sandbox.exchange.catalogue
    trade = next(each for each in sandbox.exchange.trades.newest_first() if each.token not in catalogue.by_token)
    market = catalogue.condition(trade.condition_id)

    assert market.traded > 0
    assert market.gamma["volumeNum"] == pytest.approx(float(market.gamma["volume"]))
    assert sandbox.chain.portfolios.holders(market.tokens[0]) or sandbox.chain.portfolios.holders(market.tokens[1])


def test_a_search_finds_the_most_active_ones(sandbox):
    answer = httpx.get(f"{sandbox.gamma_url}/public-search", params={"q": "mayoral election"}, trust_env=False).json()

    assert answer["pagination"]["totalResults"] > 50
