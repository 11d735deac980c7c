"""Kalshi's client, on its sandbox over real HTTP."""

import pytest

from orchestration.ingest.exchanges.kalshi import MAX_NAMED, KalshiClient
from orchestration.ingest.storage import ids
from orchestration.ingest.storage.rows import Token, value_usd
from tests.upstream.kalshi.following import sandbox_books
from tests.upstream.sandbox.kalshi.conftest import START_MS, play
from upstream.kalshi.fields import token_id
from upstream.sandbox.kalshi.server import KalshiSandbox
from upstream.transport.micro import ONE

MINUTE = 60_000


@pytest.fixture(scope="module")
def sandbox():
    with KalshiSandbox(simulate=11, start_ms=START_MS, markets=20, rate=40, hold=True) as exchange:
        play(exchange, 2 * MINUTE)
        yield exchange


@pytest.fixture
def client(sandbox):
    made = KalshiClient(sandbox.rest_url, sandbox.socket_url, None, "simulated")
    yield made
    made.close()


def made_trades(sandbox):
    """Return the sandbox's trades of ordinary markets, newest first."""
    return [
        each for each in sandbox.exchange.trades.newest_first(None) if not each.market.combo and each.ts_ms >= START_MS
    ]


def test_trades_of_a_span_become_rows_of_yes_with_the_exchanges_ids(sandbox, client):
    own = made_trades(sandbox)
    tickers = {each.market.ticker for each in own}
    tokens = {token_id(each, 0): Token(token_id(each, 0), each, key, 0) for key, each in enumerate(sorted(tickers))}
    listed = client.listed((), START_MS, START_MS + 2 * MINUTE)
    rows = client.rows(tokens, listed)

    assert len(rows) == len(own) > 20
    assert {row.trade_id for row in rows} == {ids.trade_id(each.id) for each in own}
    assert [row.ts_ms for row in rows] == sorted(row.ts_ms for row in rows)
    assert all(row.value_usd == value_usd(row.price, row.size) and row.tx_hash is None for row in rows)


def test_trades_of_some_markets_are_those_alone_and_within_the_span(sandbox, client):
    some = made_trades(sandbox)[0]
    listed = client.listed([some.market.ticker], some.ts_ms - 5_000, some.ts_ms)

    assert {each.market for each in listed} == {some.market.ticker}
    assert all(some.ts_ms - 5_000 <= each.trade.ts_ms <= some.ts_ms for each in listed)
    assert {each.token_id for each in listed} == {token_id(some.market.ticker, 0)}


def test_trades_of_markets_that_are_not_known_are_left_out(client):
    listed = client.listed((), START_MS, START_MS + 2 * MINUTE)

    assert client.rows({}, listed) == []


def test_books_have_both_outcomes(sandbox, client):
    ticker = made_trades(sandbox)[0].market.ticker
    yes, no = sandbox_books(sandbox, [ticker])[ticker]
    found = {book.asset_id: book for book in client.books([token_id(ticker, 0), token_id(ticker, 1), "KXNONE:yes"])}

    assert set(found) <= {token_id(ticker, 0), token_id(ticker, 1), "KXNONE:yes", "KXNONE:no"}
    assert found[token_id(ticker, 0)].bids == yes
    assert found[token_id(ticker, 1)].asks == [(ONE - price, size) for price, size in yes]
    assert found[token_id(ticker, 0)].asks == [(ONE - price, size) for price, size in no]


def test_markets_come_with_their_events(sandbox, client):
    market = made_trades(sandbox)[0].market
    rows, events = client.markets([market.ticker, "KXNONE"])

    assert [row["market_id"] for row in rows] == [market.ticker]
    assert rows[0]["source"] == "simulated"
    assert [event["event_id"] for event in events] == [market.event.ticker]


def test_trades_of_many_markets_are_read_with_those_of_all(sandbox, client):
    own = made_trades(sandbox)
    tickers = sorted({each.market.ticker for each in own})
    wanted = [*tickers[1:], *(f"KXNONE-{number}" for number in range(MAX_NAMED))]
    listed = client.listed(wanted, START_MS, START_MS + 2 * MINUTE)

    assert {each.trade.trade_id for each in listed} == {each.id for each in own if each.market.ticker != tickers[0]}
