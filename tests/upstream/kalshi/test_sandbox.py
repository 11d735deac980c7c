"""The client on the sandbox: two readings of one protocol."""

import asyncio
import contextlib
import time
from collections import defaultdict
from datetime import UTC, datetime, timedelta

import httpx
import pytest
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from tests.upstream.kalshi.auditing import FeedRecord
from tests.upstream.kalshi.following import Follower, sandbox_books
from tests.upstream.sandbox.kalshi.conftest import START_MS, play, truth
from upstream.kalshi.rest.client import HISTORICAL_MARKETS, Kalshi
from upstream.kalshi.rest.tape import MAX_CANDLES_PER_CALL
from upstream.kalshi.signing import Signer
from upstream.kalshi.socket.events import CommandRefused
from upstream.kalshi.socket.messages import EventFees, EventLifecycle, MarketLifecycle, TickerUpdate
from upstream.sandbox.kalshi.faults import KalshiFault
from upstream.sandbox.kalshi.server import KalshiSandbox
from upstream.transport.errors import RateLimited, Rejected, Unauthenticated
from upstream.transport.http import Client
from upstream.transport.limits import Bucket

MINUTE = 60_000
KINDS = ("rsa", "ed25519")


@pytest.fixture(scope="module")
def sandbox():
    """Five minutes of 40 markets: all states of a market have been gone through."""
    with KalshiSandbox(simulate=11, start_ms=START_MS, markets=40, rate=40, hold=True) as exchange:
        play(exchange, 5 * MINUTE + 3_000)  # and an event was just listed
        yield exchange


@pytest.fixture
def api(sandbox):
    with client(sandbox) as made:
        yield made


@contextlib.contextmanager
def client(sandbox, *, signer=None, **options):
    refused = []
    with Client(**options) as http:
        made = Kalshi(http, sandbox.rest_url, signer=signer, on_refused=refused.append)
        http.limits.replace(made.url, Bucket(1e6, 1e6))
        http.limits.take(made.url, -1e6)
        yield made
    assert refused == []


def signer(sandbox, kind="ed25519", **options):
    made = sandbox.keys.create(kind)
    return Signer(made["api_key_id"], load_pem_private_key(made["private_key"].encode(), None), **options)


def known(sandbox, *, historical=False):
    """Return the sandbox's own markets but for combos."""
    exchange = sandbox.exchange
    return {
        ticker: market
        for ticker, market in exchange.markets.items()
        if not market.combo
        and market.listed_ms <= exchange.now_ms
        and (0 < market.settled_ms < exchange.cutoff_ms) == historical
    }


def at(ms):
    return datetime.fromtimestamp(ms / 1000, UTC)


# --- REST ---


@pytest.mark.parametrize("historical", [False, True])
def test_every_market_but_combos_is_read_as_the_sandbox_has_it(sandbox, api, historical):
    path = {"path": HISTORICAL_MARKETS} if historical else {}
    markets = {market.ticker: market for market in api.markets(limit=50, **path)}
    expected = known(sandbox, historical=historical)

    assert set(markets) == set(expected)
    for ticker, market in markets.items():
        own = expected[ticker]
        bid, _, ask, _ = own.best_quote()
        assert market.state == own.status
        assert market.quotes() == (bid or None, None if ask == 1_000_000 else ask)
        assert market.payout() == (own.settlement if own.status == "finalized" else None)
        assert (
            market.row(at(sandbox.exchange.now_ms))["tick_size"] == market.tick_size() == own.grid.step(own.last_price)
        )
    states = {market.state for market in markets.values()}
    assert states == {"finalized"} if historical else states >= {"active", "finalized"}


def test_single_markets_are_found_on_both_sides_of_the_cutoff(sandbox, api):
    for historical in (False, True):
        ticker = next(iter(known(sandbox, historical=historical)))
        assert api.market(ticker).ticker == ticker
    assert api.market("KXNONE-1") is None


@pytest.mark.parametrize("word", ["unopened", "open", "paused", "closed", "settled"])
def test_the_filter_of_status_is_understood(sandbox, api, word):
    states = {"unopened": {"initialized"}, "open": {"active"}, "paused": {"inactive"}, "settled": {"finalized"}}
    wanted = states.get(word, {"closed", "determined", "disputed", "amended"})

    found = {market.ticker for market in api.markets(status=word)}
    assert found == {ticker for ticker, market in known(sandbox).items() if market.status in wanted}


def test_events_and_series_are_read_with_their_markets(sandbox, api):
    exchange = sandbox.exchange
    events = {event.event_ticker: event for event in api.events(with_nested_markets=True, limit=20)}
    assert set(events) == {ticker for ticker, event in exchange.events.items() if not event.combo}
    for ticker, event in events.items():
        listed = {market.ticker for market in api.nested_markets(event)}
        assert listed <= {market.ticker for market in exchange.events[ticker].markets}
        assert event.series_ticker == exchange.events[ticker].series.ticker
    assert any(event.markets for event in events.values())

    some = next(iter(known(sandbox).values())).event
    one = api.event(some.ticker)
    assert {market.ticker for market in api.nested_markets(one)} == {market.ticker for market in some.markets}
    assert api.event("KXNONE") is None

    series = {each.ticker: each for each in api.all_series()}
    assert set(series) == set(exchange.series)
    assert {each.ticker for each in api.all_series(category="Sports")} == {
        ticker for ticker, each in series.items() if each.category == "Sports"
    }
    assert api.series(some.series.ticker) == series[some.series.ticker]
    assert api.series("KXNONE") is None


def test_books_are_the_sandboxs_own(sandbox, api):
    tickers = [ticker for ticker, market in known(sandbox).items() if market.status == "active"]
    own = sandbox_books(sandbox, tickers)

    assert {book.ticker: (book.yes, book.no) for book in api.books(tickers)} == own
    deepest = max(tickers, key=lambda ticker: len(own[ticker][0]))
    book = api.book(deepest, depth=2)
    assert (book.yes, book.no) == (own[deepest][0][:2], own[deepest][1][:2])
    assert api.book("KXNONE-1") is None


def test_trades_of_both_sides_of_the_cutoff_are_read_once_each(sandbox, api):
    exchange = sandbox.exchange
    own = [trade for trade in exchange.trades.newest_first(None) if not trade.market.combo]
    read = [*api.trades()]
    assert [trade.trade_id for trade in read] == [trade.id for trade in own]
    assert [(each.price, each.size, each.side, each.ts_ms, each.block) for each in read] == [
        (each.price, each.size, 1 if each.takes_yes else -1, each.ts_ms, each.block) for each in own
    ]

    old = own[-1].market
    of_one = [*api.trades(old.ticker, at(own[-1].ts_ms))]
    assert [trade.trade_id for trade in of_one] == [trade.id for trade in own if trade.market is old]
    assert of_one[-1].ts_ms < exchange.cutoff_ms
    start, end = of_one[-2].ts_ms, of_one[2].ts_ms
    assert [*api.trades(old.ticker, at(start), at(end))] == of_one[2:-1]


@pytest.mark.parametrize("historical", [False, True])
def test_candles_are_read_once_each_over_several_requests(sandbox, api, historical):
    market = max(known(sandbox, historical=historical).values(), key=lambda each: len(each.candles.bars))
    traded = [bar for bar in market.candles.bars if bar.volume and (bar.start + 1) * MINUTE <= sandbox.exchange.now_ms]
    # The first request ends where a candle does.
    start = at((traded[1].start + 1) * MINUTE) - timedelta(minutes=MAX_CANDLES_PER_CALL)
    end = at((traded[-1].start + 1) * MINUTE)

    candles = [*api.candles(market.event.series.ticker, market.ticker, start, end)]
    assert [
        (each.start, [each.open, each.high, each.low, each.close], each.volume, each.open_interest) for each in candles
    ] == [(at(bar.start * MINUTE), bar.price, bar.volume, bar.open_interest) for bar in traded]
    if not historical:
        assert [*api.candles_of_markets([market.ticker], start, end)] == candles
    days = [*api.candles(market.event.series.ticker, market.ticker, start, end + timedelta(days=1), 1440)]
    assert sum(day.volume for day in days) <= sum(bar.volume for bar in traded)


def test_status_schedule_and_cutoff_are_read(sandbox, api):
    assert api.status().trading()
    assert [day.close_time for day in api.schedule().standard_hours[0].thursday] == ["03:00", "24:00"]
    assert api.cutoff().trades == at(sandbox.exchange.cutoff_ms)


def test_a_paused_exchange_says_so_with_503(sandbox, api):
    [fault] = sandbox.call(lambda: sandbox.faults.add([KalshiFault(kind="pause")]))
    try:
        sandbox.call(sandbox.hub.tick)
        assert not api.status().trading(3)
    finally:
        sandbox.call(lambda: (sandbox.faults.stop(fault.id), sandbox.hub.tick()))
    assert api.status().trading(3)


@pytest.mark.parametrize("kind", KINDS)
def test_an_accounts_limits_are_read_with_either_key_and_a_clock_that_is_off(sandbox, kind):
    late = signer(sandbox, kind, wall=lambda: time.time() - 60)
    for made in (signer(sandbox, kind), late):
        with client(sandbox, signer=made) as api:
            assert api.read_limits().read.refill_rate == 200
    assert 55 < late.skew_s < 65


def test_refused_signatures_are_said(sandbox):
    with client(sandbox) as api, pytest.raises(Unauthenticated, match="PRESAGE_KALSHI_KEY_ID"):
        api.read_limits()
    stranger = Signer("0f1f4f3c-8c1a-4d4b-9d4e-6d1f9d1f0c3a", load_pem_private_key(other_key(sandbox), None))
    with client(sandbox, signer=stranger) as api, pytest.raises(Unauthenticated, match="NOT_FOUND"):
        api.read_limits()


def other_key(sandbox):
    return sandbox.keys.create("ed25519")["private_key"].encode()


def test_all_formats_of_errors_are_understood(sandbox, api):
    assert api.series("KXNONE") is None  # nested
    with pytest.raises(Rejected, match="400 invalid_parameters: invalid status filter"):
        next(api.markets(status="active"))
    with pytest.raises(Rejected, match="400 Invalid format for parameter limit"):
        next(api.markets(limit="many"))
    with pytest.raises(Rejected, match="400 invalid_parameters: invalid limit"):
        next(api.markets(limit=1001))


def test_beyond_a_rate_limit_the_client_waits_longer_each_time(sandbox):
    waits = []
    [fault] = sandbox.call(lambda: sandbox.faults.add([KalshiFault(kind="rate_limit", target="/trade-api/v2/series")]))

    def sleep(seconds):
        waits.append(seconds)
        if len(waits) == 3:
            sandbox.call(lambda: sandbox.faults.stop(fault.id))

    with client(sandbox, sleep=sleep, uniform=lambda low, high: high) as api:
        assert api.all_series()
    assert waits == [0.5, 1.0, 2.0]


def test_the_client_keeps_to_the_limits_of_its_account():
    with KalshiSandbox(simulate=11, start_ms=START_MS, markets=20, hold=True, tier="basic") as sandbox:
        slept = []
        made = signer(sandbox)
        with Client(sleep=slept.append, attempts=1) as http:
            api = Kalshi(http, sandbox.rest_url, signer=made)
            api.read_limits()
            with pytest.raises(RateLimited):  # it was told to wait, and does not
                [api.status() for _ in range(100)]
        assert slept


# --- The socket ---


@pytest.mark.parametrize("kind", KINDS)
def test_the_feeds_books_trades_tickers_and_life_cycles_are_the_sandboxs_own(kind):
    with KalshiSandbox(simulate=12, start_ms=START_MS, markets=40, rate=60, hold=True) as sandbox:
        tickers = [ticker for ticker, market in known(sandbox).items() if market.status == "active"][:20]
        options = {"channels": ("orderbook_delta", "trade", "ticker")}
        record = asyncio.run(follow(sandbox, signer(sandbox, kind), tickers, [5_000] * 16, options))
        with httpx.Client(trust_env=False) as http:
            log = truth(http, sandbox)

    report = record.audit(log, tickers)
    report.assert_clean()
    assert not record.gaps
    assert not report.in_gaps["changes"]
    seen, of = record.others, defaultdict(list)
    for line in log:
        if line["sent"]:
            of[line["kind"]].append(line)
    assert [(each.ticker, each.ts_ms, each.price) for each in seen if isinstance(each, TickerUpdate)] == [
        (line["msg"]["market_ticker"], line["ts_ms"], round(float(line["msg"]["price_dollars"]) * 1e6))
        for line in of["ticker"]
    ]
    lives = [each for each in seen if isinstance(each, MarketLifecycle)]
    told = [line["msg"] for line in of["market_lifecycle_v2"]]
    assert [(each.ticker, each.kind, each.result or "") for each in lives] == [
        (msg["market_ticker"], msg["event_type"], msg.get("result", "")) for msg in told
    ]
    assert {"created", "determined", "settled"} <= {each.kind for each in lives}
    events = [each.event_ticker for each in seen if isinstance(each, EventLifecycle | EventFees)]
    assert sorted(events) == sorted(
        line["msg"]["event_ticker"] for kind in ("event_lifecycle", "event_fee_update") for line in of[kind]
    )
    assert not any(isinstance(each, CommandRefused) for each in seen)


async def follow(sandbox, key, tickers, spans, options=None, faults=()):
    """Follow markets while spans of the exchange's time pass, and then with faults; compare books after each."""
    record = FeedRecord(tickers)
    async with Follower(sandbox, key, tickers, record, **(options or {})) as follower:
        await follower.settle()
        for ms in spans:
            await follower.play(ms)
            await follower.settle()
        if faults:
            await asyncio.to_thread(httpx.post, f"{sandbox.url}/sandbox/faults", json=faults, trust_env=False)
            while not (
                record.seen_faults and all(fault.hits for fault in (*sandbox.faults.planned, *sandbox.faults.past))
            ):
                await follower.play(500)
            await asyncio.to_thread(sandbox.call, sandbox.faults.stop)
            await follower.settle()
    assert follower.compared == len(tickers) * (1 + len(spans) + bool(faults))
    return record


FAULTS = {
    "drop": [{"kind": "drop", "probability": 0.02}],
    "skip_seq": [{"kind": "skip_seq", "probability": 0.02}],
    "repeat_seq": [{"kind": "repeat_seq", "probability": 0.02}],
    "duplicate": [{"kind": "duplicate", "probability": 0.2}],
    "reorder": [{"kind": "reorder", "probability": 0.02}],
    "late": [{"kind": "late", "probability": 0.02, "delay_s": 0.1}],
    "cut_frame": [{"kind": "cut_frame", "probability": 0.02}],
    "silent": [{"kind": "silent", "for_s": 0.2}],
    "end_subscription": [{"kind": "end_subscription"}],
    "close": [{"kind": "close", "status": 1001}],
    "break": [{"kind": "close"}],
    "refuse": [{"kind": "refuse", "for_s": 0.2}, {"kind": "close"}],
    "reject_signature": [{"kind": "reject_signature", "for_s": 0.2}, {"kind": "close"}],
}


@pytest.mark.parametrize("name", FAULTS)
def test_whatever_the_sandbox_does_to_its_messages_books_are_right_and_what_is_missing_is_said(name):
    with KalshiSandbox(simulate=13, start_ms=START_MS, markets=40, rate=200, hold=True) as sandbox:
        tickers = [ticker for ticker, market in known(sandbox).items() if market.status == "active"][:15]
        record = asyncio.run(follow(sandbox, signer(sandbox), tickers, [4_000], {"sleep": shortly}, FAULTS[name]))
        with httpx.Client(trust_env=False) as http:
            report = record.audit(truth(http, sandbox), tickers)
        hits = {fault.kind: fault.hits for fault in sandbox.faults.past}

    report.assert_clean()
    assert all(hits.values())
    if name == "duplicate":
        assert record.dropped["its number came before"]
        assert not record.gaps
    else:
        assert record.gaps
    assert bool(record.connections_lost) == (name in {"cut_frame", "close", "break", "refuse", "reject_signature"})


async def shortly(_seconds):
    await asyncio.sleep(0.02)
