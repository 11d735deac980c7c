"""Discovery of Kalshi's catalogue against its sandbox, over real HTTP."""

from __future__ import annotations

import json
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import partial

import httpx
import pytest

from config.settings import Settings
from orchestration.markets.catalogue import StoreResult
from orchestration.markets.discovery import Discovery, DiscoveryState, quarantine
from sql import database
from sql.queries import feed
from tests import stream_rows
from upstream.kalshi.rest.client import Kalshi
from upstream.kalshi.rest.listings import KalshiListings
from upstream.sandbox.kalshi.exchange.listings import KalshiEvent, KalshiMarket
from upstream.sandbox.kalshi.server import KalshiSandbox
from upstream.transport.errors import Unavailable
from upstream.transport.http import Client

HOUR_MS = 3_600_000


@pytest.fixture
def sandbox():
    """A paused sandbox."""
    with KalshiSandbox(simulate=3, markets=120, hold=True) as running:
        yield running


@pytest.fixture
def shown(sandbox):
    """Return a function that lists the tickers of some statuses that REST knows, without combos."""

    def tickers(*statuses):
        exchange = sandbox.exchange
        known = [each for each in exchange.markets.values() if each.listed_ms <= exchange.now_ms and not each.combo]
        return {each.ticker for each in known if each.status in statuses}

    return tickers


@pytest.fixture
def walks(database_url, sandbox):
    @contextmanager
    def run(**client):
        with database.connect(database_url, autocommit=True) as conn, Client(**client) as http:
            kalshi = Kalshi(http, sandbox.rest_url, on_refused=partial(quarantine, conn))
            listings = KalshiListings(kalshi, lambda: clock(sandbox))
            yield Discovery(conn, listings, Settings(source="simulated"))

    return run


def clock(sandbox):
    """Return the sandbox's time, which stands still: no market reaches its closing time meanwhile."""
    return datetime.fromtimestamp(sandbox.exchange.now_ms / 1000, UTC)


def stored(conn, *statuses):
    query = "select market_id from markets where exchange = 'kalshi' and status = any(%s)"
    return {market_id for (market_id,) in conn.execute(query, [list(statuses)])}


def changes(conn):
    query = "select market_id, from_status, to_status, cause from market_status_changes join markets using (market_key)"
    return conn.execute(query).fetchall()


def listed(sandbox, ticker="KXNEW-1"):
    """List a market of a new event of a known series."""
    exchange, now_ms = sandbox.exchange, sandbox.exchange.now_ms
    series = next(iter(exchange.series.values()))
    event = KalshiEvent(f"{ticker}-EVENT", series, "A new question", "today", exclusive=True, created_ms=now_ms)
    market = KalshiMarket(
        ticker, event, "Will it?", "It will", now_ms, now_ms, now_ms + HOUR_MS, now_ms + HOUR_MS, grid_of(exchange)
    )
    market.status = "active"

    def add():
        exchange.add_event(event)
        exchange.add_market(market)

    sandbox.call(add)
    return market


def settle(sandbox, market, result="yes", payout=1_000_000):
    def do():
        sandbox.exchange.determine(market, result, payout)
        sandbox.exchange.settle(market)

    sandbox.call(do)


def grid_of(exchange):
    return next(iter(exchange.markets.values())).grid


def test_a_first_walk_brings_all_open_markets_with_their_events_and_tells_nobody(walks, conn, shown):
    with walks() as discovery:
        discovery.scan_open()

    assert stored(conn, "ACTIVE") >= shown("active", "initialized")
    assert not stored(conn, "ACTIVE") & shown("finalized", "determined", "closed")
    assert conn.execute("select count(*) from tokens").fetchone()[0] == 2 * len(
        stored(conn, "ACTIVE", "CLOSED", "RESOLVED")
    )
    assert stream_rows.rows(conn) == []
    missing = """
        select count(*) from markets left join events using (event_id)
        where events.event_id is null or markets.category is null or markets.series is null or event_title is null
    """
    assert conn.execute(missing).fetchone() == (0,)
    stages = "select stage, status from pipeline_status where stage like 'discovery%' order by stage"
    assert conn.execute(stages).fetchall() == [("discovery", "missing"), ("discovery_kalshi", "fresh")]
    assert DiscoveryState.read(conn) == DiscoveryState()
    assert DiscoveryState.read(conn, "kalshi").full_at is not None


def test_a_second_walk_finds_nothing_to_write(walks, conn):
    with walks() as first:
        first.scan_open()

    with walks() as second:
        second.scan_open()

        assert second.report.stored == StoreResult()


def test_combos_are_left_out(walks, conn, sandbox):
    assert any(market.combo for market in sandbox.exchange.markets.values())

    with walks() as discovery:
        discovery.scan_open()
        discovery.look()

    assert not [ticker for ticker in stored(conn, "ACTIVE", "CLOSED", "RESOLVED") if ticker.startswith("KXMVE")]


def test_a_listing_after_the_first_walk_is_told_with_its_event(walks, conn, sandbox):
    with walks() as first:
        first.scan_open()
    market = listed(sandbox)

    with walks() as second:
        second.look()
        second.look()

    assert changes(conn) == [("KXNEW-1", None, "ACTIVE", "listed")]
    row = conn.execute("select event_title, series from markets where market_id = 'KXNEW-1'").fetchone()
    assert row == ("A new question", market.event.series.ticker)


def test_a_market_that_is_settled_is_resolved_by_the_next_scan_and_keeps_what_is_its_events(walks, conn, sandbox):
    with walks() as first:
        first.scan_open()
        first.scan_closed()
    of_event = "select neg_risk, question, category, tags, event_title, series, url from markets where market_id = %s"
    exclusive = "select min(market_id) from markets where status = 'ACTIVE' and neg_risk"
    market = sandbox.exchange.markets[conn.execute(exclusive).fetchone()[0]]
    before = conn.execute(of_event, [market.ticker]).fetchone()
    settle(sandbox, market, "no", 0)

    with walks() as second:
        second.scan_closed()

    found = "select status, winning_outcome, outcome_prices from markets where market_id = %s"
    assert conn.execute(found, [market.ticker]).fetchone() == ("RESOLVED", 1, [0, 1_000_000])
    assert changes(conn) == [(market.ticker, "ACTIVE", "RESOLVED", "closed")]
    assert conn.execute(of_event, [market.ticker]).fetchone() == before
    assert [(row.type, row.market_id) for row in stream_rows.rows(conn)] == [("market", market.ticker)]


def test_a_market_first_met_when_it_is_settled_comes_with_its_event(walks, conn, sandbox, shown):
    with walks() as first:
        first.scan_closed()
    market = sandbox.exchange.markets[min(shown("active"))]
    settle(sandbox, market)

    with walks() as second:
        second.scan_closed()

    row = "select event_title, series, category from markets join events using (event_id) where market_id = %s"
    if_known = conn.execute(
        row.replace("category", "markets.category").replace("series", "markets.series"), [market.ticker]
    )
    assert if_known.fetchone() == (market.event.title, market.event.series.ticker, market.event.series.category.lower())


@pytest.mark.parametrize(
    ("status", "stored_as"), [("inactive", "ACTIVE"), ("closed", "CLOSED"), ("determined", "CLOSED")]
)
def test_the_only_market_of_an_event_is_found_also_when_it_does_not_trade(walks, conn, sandbox, status, stored_as):
    market = listed(sandbox, "KXQUIET-1")
    market.status = status

    with walks() as discovery:
        discovery.scan_open()

    assert "KXQUIET-1" in stored(conn, stored_as)


def test_a_market_that_the_exchange_has_deleted_is_closed(walks, conn, sandbox):
    market = listed(sandbox, "KXGONE-1")
    with walks() as first:
        first.scan_open()
    conn.execute("update markets set first_seen_at = now() - interval '1 day'")

    def delete():
        del sandbox.exchange.markets[market.ticker]
        del sandbox.exchange.events[market.event.ticker]

    sandbox.call(delete)
    with walks() as second:
        second.scan_open()
    with walks() as third:
        third.scan_open()

    assert stored(conn, "CLOSED") == {"KXGONE-1"}
    assert changes(conn) == [("KXGONE-1", "ACTIVE", "CLOSED", "deleted by the exchange")]


def test_a_market_that_cannot_be_read_any_more_is_not_taken_for_a_deleted_one(walks, conn, sandbox):
    class Spoilt(httpx.HTTPTransport):
        def handle_request(self, request):
            answer = super().handle_request(request)
            answer.read()
            return httpx.Response(200, content=answer.content.replace(b'"active"', b'"frozen"'))

    with walks() as first:
        first.scan_open()
    conn.execute("update markets set first_seen_at = now() - interval '1 day'")
    before = stored(conn, "ACTIVE")

    with walks(transport=Spoilt()) as second:
        second.scan_open()

    assert stored(conn, "ACTIVE") == before
    assert conn.execute("select count(*) > 0 from quarantine where reason like 'market: unknown%'").fetchone() == (
        True,
    )


def test_a_series_that_cannot_be_read_stops_nothing(walks, conn, sandbox):
    class Spoilt(httpx.HTTPTransport):
        def handle_request(self, request):
            if "/series" in request.url.path:
                one = {"title": "no ticker"}
                whole = request.url.path.endswith("/series")
                return httpx.Response(200, json={"series": [one]} if whole else {"series": one})
            return super().handle_request(request)

    with walks(transport=Spoilt()) as first:
        first.scan_open()
    listed(sandbox)
    with walks(transport=Spoilt()) as second:
        second.look()

    assert len(stored(conn, "ACTIVE")) > 100
    assert "KXNEW-1" in stored(conn, "ACTIVE")
    assert conn.execute("select count(*) > 1 from quarantine where reason like 'series: %'").fetchone() == (True,)


def test_a_page_from_before_a_market_closed_early_does_not_open_it_again(walks, conn, sandbox):
    market = listed(sandbox, "KXEARLY-1")

    def close():
        sandbox.exchange.now_ms += 1000
        sandbox.exchange.move_close(market, sandbox.exchange.now_ms - 1)

    with walks() as first:
        first.scan_open()
        stale = first.listings.named(["KXEARLY-1"])
        sandbox.call(close)
        first.refresh(["KXEARLY-1"], "ended")
        closed = stored(conn, "CLOSED")
        first.take(stale, "discovered")

    assert closed == stored(conn, "CLOSED") == {"KXEARLY-1"}


def test_a_market_settled_while_nobody_looked_is_asked_for_by_its_ticker_also_when_it_is_historical(
    walks, conn, sandbox
):
    with walks() as first:
        first.scan_open()
    conn.execute("update markets set first_seen_at = now() - interval '1 day'")
    live, old = (sandbox.exchange.markets[ticker] for ticker in sorted(stored(conn, "ACTIVE"))[:2])

    for market in (live, old):
        settle(sandbox, market)
    live.settled_ms += 1000
    sandbox.exchange.cutoff_ms = live.settled_ms
    with walks() as second:
        second.scan_open()

    assert stored(conn, "RESOLVED") >= {live.ticker, old.ticker}


def test_markets_settled_since_the_last_scan_are_read_and_none_from_before_the_first(walks, conn, sandbox, shown):
    before = shown("finalized")
    with walks() as first:
        first.scan_closed()
    began = DiscoveryState.read(conn, "kalshi").history_until
    market = sandbox.exchange.markets[min(shown("active"))]

    settle(sandbox, market)
    conn.execute("delete from markets")
    with walks() as second:
        second.scan_closed()

    assert before
    assert began is not None
    assert market.ticker in stored(conn, "RESOLVED")
    assert DiscoveryState.read(conn, "kalshi").history_until > began


def test_a_market_whose_closing_time_has_passed_is_closed(walks, conn, sandbox):
    market = listed(sandbox, "KXOVER-1")
    with walks() as first:
        first.scan_open()
    market.close_ms = sandbox.exchange.now_ms - 60_000

    with walks() as second:
        second.scan_open()

    assert "KXOVER-1" in stored(conn, "CLOSED")


def test_its_markets_are_not_followed_by_the_other_exchanges_feed(walks, conn):
    with walks() as discovery:
        discovery.scan_open()
    whole = {"shard": 1, "shards": 1, "exchange": "polymarket"}

    keys = [key for (key,) in conn.execute("select market_key from markets")]
    range_ = {"after_key": 0, "after_change": 0, "upto_key": 10**6, "upto_change": 10**6, "market_keys": []}
    new = feed.new_markets(conn, **range_, since_ms=0, **whole)

    assert list(feed.followed_tokens(conn, **whole)) == []
    assert list(feed.tokens_of(conn, market_keys=keys, **whole)) == []
    assert list(new) == []
    assert len(list(feed.followed_tokens(conn, **whole | {"exchange": "kalshi"}))) > 100


def test_what_cannot_be_read_goes_to_quarantine(walks, conn, sandbox):
    class Spoilt(httpx.HTTPTransport):
        def handle_request(self, request):
            answer = super().handle_request(request)
            if request.url.path.endswith("/events") and "with_nested_markets" in request.url.params:
                answer.read()
                body = json.loads(answer.content)
                for market in [market for event in body["events"] for market in event["markets"]][:1]:
                    market["status"] = "unheard of"
                return httpx.Response(200, json=body)
            return answer

    with walks(transport=Spoilt()) as discovery:
        discovery.scan_open()

    reasons = [reason for (reason,) in conn.execute("select distinct reason from quarantine where source = 'kalshi'")]
    assert reasons == ["market: unknown status: 'unheard of'"]


class Watching(httpx.HTTPTransport):
    """Records from when on new markets are asked for; the second of these requests may fail."""

    def __init__(self, *, fails=False):
        super().__init__()
        self.since, self.fails = set(), fails

    def handle_request(self, request):
        if "min_created_ts" in request.url.params:
            self.since.add(int(request.url.params["min_created_ts"]))
            if self.fails and request.url.params["status"] == "unopened":
                return httpx.Response(503)
        return super().handle_request(request)


def test_changes_are_read_from_the_first_walk_on_and_again_if_a_look_failed(walks, conn, sandbox):
    with walks() as first:
        first.scan_open()
    began = DiscoveryState.read(conn, "kalshi").changes_until
    failing, again, after = Watching(fails=True), Watching(), Watching()

    with walks(transport=failing, sleep=lambda _: None) as second, pytest.raises(Unavailable):
        second.look()
    with walks(transport=again) as third:
        third.look()
    read = DiscoveryState.read(conn, "kalshi").changes_until
    with walks(transport=after) as fourth:
        fourth.look()

    margin = timedelta(minutes=2)
    assert failing.since == again.since == {int((began - margin).timestamp())}
    assert read > began
    assert after.since == {int((read - margin).timestamp())}
