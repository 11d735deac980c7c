"""Every endpoint answers the record that the document promises."""

from __future__ import annotations

import datetime as dt

import msgspec
import pytest

from api.endpoints.table import ENDPOINTS
from orchestration.candles import activity
from tests.factories import insert, keep_alive

NOW = dt.datetime.now(dt.UTC)
EXCHANGE = {"events", "positions", "closed_positions", "market_positions"}  # test_exchange
THEIR_OWN = {"webhook", "webhook_deliveries", "export_manifest"}  # test_webhooks, test_exports
READ = [
    each
    for each in ENDPOINTS
    if each.method == "GET"
    and each.status == 200
    and each.name not in EXCHANGE | THEIR_OWN
    and each.key != "debug"
    and each.answers is not str
]
QUERIES = {
    "prices": {"ids": "full,empty,missing"},
    "search_markets": {"q": "full"},
    "compare_markets": {"ids": "full,empty,missing"},
    "udf_symbols": {"symbol": "full"},
    "udf_history": {"symbol": "full", "resolution": "1", "to": 4_000_000_000},
    "udf_quotes": {"symbols": "full,missing"},
    "udf_marks": {"symbol": "full", "to": 4_000_000_000},
    "udf_timescale_marks": {"symbol": "full", "to": 4_000_000_000},
}
PLACES = {"/v1/events/{id}": "/v1/events/12", "{slug}": "weather", "{id}": "full", "{address}": "0x" + "5d" * 20}


@pytest.fixture
def full(conn, add_market, add_trades):
    """A market that has everything."""
    market = add_market(
        "full",
        gamma_id="517",
        description="What it is about.",
        event_id="12",
        category="weather",
        series="rain",
        tags=["rain", "weather"],
        outcome_prices=[520_000, 480_000],
        start_time=NOW,
        end_time=NOW + dt.timedelta(minutes=20),
        volume_usd=10**9,
        volume_24h_usd=10**8,
        liquidity_usd=10**7,
        image="https://example.com/rain.png",
        url="https://example.com/rain",
    )
    key = market["market_key"]
    add_trades(market, [{"price": "0.5", "size": "10.5", "tx_hash": b"\x01" * 32}, {"price": "0.52", "side": -1}])
    price = {"bid": 510_000, "ask": 530_000, "mid": 520_000, "bid_size": 10**6, "ask_size": 10**7}
    insert(conn, "live_prices", {"market_key": key, "outcome": 0, **price, "last": 520_000, "last_ts": NOW, "ts": NOW})
    insert(conn, "live_books", book(key))
    candle = {
        "open": 500_000,
        "high": 530_000,
        "low": 490_000,
        "close": 520_000,
        "volume": 10**7,
        "value_usd": 5 * 10**6,
    }
    window = {"window_start": NOW - dt.timedelta(days=1), "window_end": NOW, "computed_at": NOW}
    insert(conn, "market_stats_24h", {"market_key": key, "outcome": 0, **candle, "trades": 2, **window})
    insert(conn, "quotes", {"ts": NOW, "market_key": key, "outcome": 0, "mid": 500_000})
    conn.execute("update stage_clocks set last_data_at = now(), beat_at = now()")
    keep_alive(conn)
    activity.bring_up_to_date(conn, dt.datetime.now(dt.UTC))
    return market


def place(path):
    """A path of the table with what the market is called."""
    for braces, name in PLACES.items():
        path = path.replace(braces, name)
    return path


def book(market_key, **columns):
    return {
        "market_key": market_key,
        "outcome": 0,
        "bid_prices": [510_000, 500_000],
        "bid_sizes": [10_000_000, 20_500_000],
        "ask_prices": [530_000],
        "ask_sizes": [5_000_000],
        "tick_size": 10_000,
        "hash": bytes.fromhex("ab" * 20),
        "seq": 1_795_262_400_123 << 20,
        "ts": NOW,
        "verified": True,
        **columns,
    }


@pytest.mark.parametrize("endpoint", READ, ids=lambda endpoint: endpoint.name)
def test_an_answer_is_the_promised_record_and_nothing_else(endpoint, client, full, add_market):
    add_market("empty", event_id="12")

    answer = client.ask(place(endpoint.path), **QUERIES.get(endpoint.name, {}))

    assert answer.status_code == 200, answer.text
    record = msgspec.json.decode(answer.content, type=endpoint.answers)
    # What is said beyond the record would be lost in the round trip.
    assert without_defaults(msgspec.to_builtins(record)) == without_defaults(answer.json)


@pytest.mark.parametrize("path", ["/v1/markets", "/v1/markets/empty", "/v1/stats", "/v1/status/pipeline"])
def test_what_is_not_known_is_null(path, client, add_market):
    add_market("empty", created_at=None)
    endpoint = next(endpoint for endpoint in ENDPOINTS if endpoint.path == path.replace("empty", "{id}"))

    answer = client.ask(path)

    assert msgspec.json.decode(answer.content, type=endpoint.answers)


def without_defaults(value):
    """A value without the empty columns of `no_data`, which an answer leaves out."""
    if isinstance(value, dict):
        return {key: without_defaults(one) for key, one in value.items() if one is not None}
    return [without_defaults(one) for one in value] if isinstance(value, list) else value
