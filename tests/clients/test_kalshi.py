"""Third-party clients of Kalshi work on the sandbox Kalshi unchanged."""

from __future__ import annotations

import time

import httpx
import pytest

from tests.clients.environments import python_of, results
from tests.patience import until
from upstream.sandbox.kalshi.server import KalshiSandbox

MS = 1_000


@pytest.fixture(scope="module")
def sandbox():
    """A simulation that has run for three minutes, and goes on by the clock, as clients ask for candles of now."""
    start_ms = int((time.time() - 180) * MS)
    with KalshiSandbox(simulate=7, start_ms=start_ms, markets=100, rate=50, hold=True, tier="advanced") as exchange:
        exchange.call(lambda: exchange.source.advance(start_ms + 180 * MS, 10**9))
        exchange.source.rate = 300
        exchange.source.start_ms = start_ms + 180 * MS  # from where the clock goes on
        exchange.call(exchange.play)
        yield exchange


@pytest.fixture(scope="module")
def key(sandbox):
    return httpx.post(f"{sandbox.url}/sandbox/keys", json={"kind": "rsa"}, trust_env=False, timeout=60).json()


def pykalshi(sandbox, key, what):
    python = python_of(".venv-exchange")
    return results(python, "kalshi_client.py", sandbox.url, key["api_key_id"], what, said=key["private_key"])


@pytest.mark.timeout(400)  # the first time the client is installed
def test_pykalshi_parses_every_public_read(sandbox, key):
    found = pykalshi(sandbox, key, "reads")

    assert not {name: value for name, value in found.items() if isinstance(value, str)}
    assert len(found) == 32
    market = found["market"]["market"]["ticker"]
    assert found["orderbook"]["orderbook_fp"]["yes_dollars"]
    (book,) = found["orderbooks"]["orderbooks"]
    assert "," in book["ticker"], "it writes the list with commas, and gets the empty book that the exchange would give"
    assert book["orderbook_fp"] == {"yes_dollars": [], "no_dollars": []}
    for name in ("trades", "past_trades"):
        assert len(found[name]["trades"]) == 5
    assert found["candles"]["candlesticks"][0] == found["candles_of_many"]["markets"][0]["candlesticks"][0]
    assert market in found["candles_of_event"]["market_tickers"]
    assert found["past_candles"]["candlesticks"]
    assert any(event["markets"] for event in found["events"]["events"]), "the newest may have none yet"
    assert found["limits"]["usage_tier"] == "advanced"


@pytest.mark.timeout(400)
@pytest.mark.parametrize("fault", [None, {"kind": "skip_seq", "probability": 0.05, "target": "/trade-api/ws/v2"}])
def test_pykalshi_follows_the_socket_and_recovers_from_gaps(sandbox, key, fault):
    with httpx.Client(trust_env=False, timeout=60) as http:
        http.delete(f"{sandbox.url}/sandbox/faults")
        if fault:
            http.post(f"{sandbox.url}/sandbox/faults", json=fault).raise_for_status()
        types = pykalshi(sandbox, key, "gaps" if fault else "socket")["types"]
        http.delete(f"{sandbox.url}/sandbox/faults")

    assert {"subscribed", "orderbook_snapshot", "orderbook_delta", "trade", "ticker"} <= types.keys()
    assert ("gap" in types) == (fault is not None)
    until(lambda: not sandbox.call(lambda: sandbox.hub.connections))


@pytest.mark.soak
@pytest.mark.timeout(600)  # ccxt takes seconds to import
def test_ccxt_understands_every_public_read(sandbox):
    found = results(python_of(".venv-ccxt"), "ccxt_client.py", sandbox.url)

    assert not {name: value for name, value in found.items() if isinstance(value, str)}
    assert set(found) == {
        *("markets", "status", "ticker", "ticker_no", "tickers", "book", "book_no"),
        *("trades", "candles", "event", "events"),
    }
    assert found["status"]["status"] == "ok"
    assert len(found["markets"]) == 50
    assert len(found["trades"]) == 5
    assert found["candles"]
    assert found["event"]["markets"]
    yes, no = found["book"], found["book_no"]
    assert [[round(1 - price, 4), size] for price, size in no["asks"]][:1] == yes["bids"][:1]
