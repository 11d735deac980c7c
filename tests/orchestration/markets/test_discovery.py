"""Discovery against the sandbox exchange, over real HTTP."""

import json
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

import httpx
import pytest

from config.settings import Settings
from orchestration.assets import markets
from orchestration.markets.catalogue import StoreResult, store
from orchestration.markets.discovery import Discovery, DiscoveryState, due
from orchestration.resources import Database, Exchange
from sql import database
from sql.queries import catalogue as queries
from sql.roles.rights import PIPELINE
from tests import stream_rows
from tests.roles import login_url
from upstream.polymarket.gamma import client as gamma
from upstream.polymarket.gamma.client import Gamma
from upstream.polymarket.gamma.listings import GammaListings
from upstream.sandbox.server import Sandbox
from upstream.transport.errors import Unavailable
from upstream.transport.http import Client

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)


@pytest.fixture(scope="module")
def exchange():
    """A paused sandbox: 60 markets closed and paid out one by one, the others open, the last one new."""
    with Sandbox(simulate=11, markets=250, hold=True) as running:
        httpx.get(f"{running.gamma_url}/markets/keyset?limit=1")  # figures are updated when they are first requested

        def change():
            markets = list(running.exchange.catalogue)
            for number, market in enumerate(markets[:60]):
                running.exchange.resolve(market, 0, 0, f"2026-04-01 10:{number:02}:00+00")
            markets[-1].gamma["createdAt"] = "2090-01-01T00:00:00Z"

        running.call(change)
        yield running


@pytest.fixture
def open_markets(exchange):
    return sum(not market.closed for market in exchange.exchange.catalogue)


@pytest.fixture
def newest(exchange):
    return list(exchange.exchange.catalogue)[-1].condition_id


@pytest.fixture
def walks(database_url, exchange):
    @contextmanager
    def run(**client):
        with database.connect(database_url, autocommit=True) as conn, Client(**client) as http:
            yield Discovery(conn, GammaListings(Gamma(http, exchange.gamma_url)), Settings(source="simulated"))

    return run


def statuses(conn):
    return dict(conn.execute("select status, count(*) from markets group by 1").fetchall())


def test_a_first_walk_brings_all_open_markets_and_tells_nobody(walks, conn, open_markets):
    with walks() as discovery:
        discovery.scan_open()
        assert discovery.report.stored.inserted == open_markets
        assert discovery.report.pages == 3  # the most traded first, then all

    assert statuses(conn) == {"ACTIVE": open_markets}
    assert conn.execute("select count(*) from tokens").fetchone()[0] == 2 * sum(statuses(conn).values())
    assert conn.execute("select count(*) from events").fetchone()[0] > 0
    assert stream_rows.rows(conn) == []
    assert conn.execute("select distinct source from markets").fetchall() == [("simulated",)]
    status, detail = conn.execute("select status, detail from pipeline_status where stage = 'discovery'").fetchone()
    assert status == "fresh"
    assert detail["open_markets"] == open_markets


def test_the_first_page_is_served_before_the_second_is_asked_for(walks, conn):
    seen = []

    class Watching(httpx.HTTPTransport):
        def handle_request(self, request):
            seen.append((str(request.url), conn.execute("select count(*) from markets").fetchone()[0]))
            return super().handle_request(request)

    with walks(transport=Watching()) as discovery:
        discovery.scan_open()

    assert "volume24hr" in seen[0][0]
    assert [count for _, count in seen[:2]] == [0, 100]


def test_a_second_walk_finds_nothing_to_write(walks, conn):
    with walks() as first:
        first.scan_open()
    keys = conn.execute("select market_id, market_key from markets order by 1").fetchall()

    with walks() as second:
        second.scan_open()
        assert second.report.stored == StoreResult()

    assert conn.execute("select market_id, market_key from markets order by 1").fetchall() == keys


def test_a_listing_after_the_first_walk_is_told(walks, conn, newest):
    with walks() as first:
        first.scan_open()
    conn.execute("delete from markets where market_id = %s", [newest])

    with walks() as second:
        second.look()

    told = [json.loads(row.message) for row in stream_rows.rows(conn)]
    assert [message["market_id"] for message in told] == [newest]
    assert (told[0]["data"]["from_status"], told[0]["data"]["cause"]) == (None, "listed")


def test_a_market_no_longer_listed_as_open_is_asked_for_by_its_id(walks, conn):
    with walks() as first:
        first.scan_closed(5.0)
    closed = conn.execute("select market_id from markets where status = 'RESOLVED' limit 1").fetchone()[0]
    conn.execute(
        "update markets set status = 'ACTIVE', winning_outcome = null, first_seen_at = now() - interval '1 day'"
    )

    with walks() as second:
        second.scan_open()

    assert conn.execute("select status from markets where market_id = %s", [closed]).fetchone() == ("RESOLVED",)
    cause = "select cause from market_status_changes join markets using (market_key) where market_id = %s"
    assert conn.execute(cause, [closed]).fetchone() == ("no longer listed as open",)


def test_a_market_past_its_end_is_asked_for_at_the_next_look(walks, conn):
    with walks() as first:
        first.scan_closed(5.0)
    closed = conn.execute("select market_id from markets where status = 'RESOLVED' limit 1").fetchone()[0]
    conn.execute(
        "update markets set status = 'ACTIVE', winning_outcome = null, end_time = now() - interval '5 minutes' "
        "where market_id = %s",
        [closed],
    )

    with walks() as second:
        second.look()

    assert conn.execute("select status from markets where market_id = %s", [closed]).fetchone() == ("RESOLVED",)


def test_the_history_is_walked_in_parts_and_once(walks, conn, monkeypatch):
    monkeypatch.setattr(gamma, "MARKETS_PER_PAGE", 40)
    with walks() as first:
        first.scan_closed(0.0)
    in_between, held = DiscoveryState.read(conn), statuses(conn)
    with walks() as second:
        second.scan_closed(0.0)
        assert second.state.history_until == in_between.history_began  # what closed during the scan comes next
    with walks() as afterwards:
        afterwards.scan_closed(5.0)
        assert afterwards.report.pages == 1  # nothing was closed since

    assert in_between.history_cursor is not None
    assert in_between.history_until is None
    assert held == {"RESOLVED": 40}
    assert statuses(conn) == {"RESOLVED": 60}
    assert DiscoveryState.read(conn).history_until is not None
    assert stream_rows.rows(conn) == []


def test_a_cursor_that_the_exchange_no_longer_knows_starts_the_history_over(walks, conn):
    queries.remember(conn, name="discovery", value=json.dumps({"history_cursor": "unheard-of"}))

    with walks() as first:
        first.scan_closed(0.0)
    assert DiscoveryState.read(conn).history_cursor is None
    with walks() as second:
        second.scan_closed(5.0)

    assert DiscoveryState.read(conn).history_until is not None


def last_scan_began(conn, minute):
    """Have the history scanned, and the last scan begin some minutes after the first of the 60 markets closed."""
    queries.remember(conn, name="discovery", value=json.dumps({"history_until": f"2026-04-01T10:{minute:02}:00Z"}))


def oldest_closed(conn):
    query = "select to_char(min(closed_at) at time zone 'utc', 'HH24:MI'), count(*) from markets"
    return conn.execute(query).fetchone()


def test_a_scan_of_newly_closed_markets_that_broke_off_is_continued(walks, conn, monkeypatch):
    class OnePage(httpx.HTTPTransport):
        asked = 0

        def handle_request(self, request):
            self.asked += 1
            return super().handle_request(request) if self.asked == 1 else httpx.Response(503)

    monkeypatch.setattr(gamma, "MARKETS_PER_PAGE", 10)
    last_scan_began(conn, 25)
    before = DiscoveryState.read(conn).history_until
    with walks() as first:
        first.scan_closed(0.0)
    began = DiscoveryState.read(conn).history_began
    with walks(transport=OnePage(), sleep=lambda _: None) as second, pytest.raises(Unavailable):
        second.scan_closed(5.0)
    broken, held = DiscoveryState.read(conn), oldest_closed(conn)
    with walks() as third:
        third.scan_closed(5.0)

    assert held == ("10:40", 20)
    assert (broken.history_until, broken.history_began) == (before, began)
    assert oldest_closed(conn) == ("10:10", 50)  # ten minutes before the last scan began, and the rest of that page
    assert third.report.pages == 3
    assert DiscoveryState.read(conn) == DiscoveryState(history_until=began)


def test_closed_markets_are_scanned_beyond_those_already_stored(walks, conn, exchange, monkeypatch):
    monkeypatch.setattr(gamma, "MARKETS_PER_PAGE", 10)
    last_scan_began(conn, 25)
    with walks() as discovery:
        discovery.refresh([market.condition_id for market in list(exchange.exchange.catalogue)[40:60]], "traded")
        assert oldest_closed(conn) == ("10:40", 20)
        discovery.scan_closed(5.0)

    assert oldest_closed(conn) == ("10:10", 50)


def test_closed_markets_are_scanned_beyond_a_page_that_cannot_be_read(database_url, conn):
    good = {"id": "1", "conditionId": "0x" + "a" * 64, "question": "?", "closed": True, "closedTime": "2026-04-01",
            "outcomes": '["Yes", "No"]', "clobTokenIds": '["1", "2"]'}  # fmt: skip

    def page(request):
        if "after_cursor" in request.url.params:
            return httpx.Response(200, json={"markets": [good]})
        return httpx.Response(200, json={"markets": [good | {"conditionId": "nonsense"}], "next_cursor": "2"})

    last_scan_began(conn, 25)
    with (
        database.connect(database_url, autocommit=True) as mine,
        Client(transport=httpx.MockTransport(page)) as client,
    ):
        Discovery(mine, GammaListings(Gamma(client)), Settings()).scan_closed(5.0)

    assert statuses(conn) == {"CLOSED": 1}


def test_what_cannot_be_read_goes_to_quarantine(database_url, conn):
    good = {"id": "1", "conditionId": "0x" + "a" * 64, "question": "?", "slug": "s", "active": True, "closed": False,
            "outcomes": '["Yes", "No"]', "clobTokenIds": '["1", "2"]', "outcomePrices": '["0.5", "0.5"]'}  # fmt: skip
    bad = good | {"id": "2", "conditionId": "nonsense"}
    transport = httpx.MockTransport(lambda request: httpx.Response(200, json={"markets": [good, bad]}))

    with database.connect(database_url, autocommit=True) as mine, Client(transport=transport) as client:
        Discovery(mine, GammaListings(Gamma(client)), Settings()).scan_open()

    assert statuses(conn) == {"ACTIVE": 1}
    assert "nonsense" in conn.execute("select payload from quarantine limit 1").fetchone()[0]


def test_what_cannot_be_read_when_asked_for_by_its_id_goes_to_quarantine(database_url, conn, monkeypatch):
    market_id = "0x" + "a" * 64
    bad = {"id": "1", "conditionId": market_id, "question": "?", "outcomes": '["Yes", "No"]', "clobTokenIds": '["1"]'}
    transport = httpx.MockTransport(
        lambda request: httpx.Response(200, json={"markets": [] if "closed" in request.url.params else [bad]})
    )
    monkeypatch.setattr(markets, "Client", lambda **given: Client(transport=transport, **given))
    where = Exchange(gamma_url="http://gamma.test", clob_url="", clob_socket_url="", data_api_url="")

    with markets.discovery(Database(url=login_url(database_url, PIPELINE)), where) as walks:
        walks.refresh([market_id], "ended")

    assert conn.execute("select source, reason from quarantine").fetchall() == [
        ("gamma", "market: 2 outcomes, but 1 token ids")
    ]


def test_a_walk_that_broke_off_is_begun_again_after_a_minute(database_url, conn):
    transport = httpx.MockTransport(lambda request: httpx.Response(503))

    with (
        database.connect(database_url, autocommit=True) as mine,
        Client(transport=transport, sleep=lambda _: None) as client,
        pytest.raises(Unavailable),
    ):
        Discovery(mine, GammaListings(Gamma(client)), Settings(), now=lambda: NOW).scan_open()

    state, settings = DiscoveryState.read(conn), Settings()
    assert due(state, NOW + timedelta(seconds=1), settings) is None
    assert due(state, NOW + timedelta(seconds=settings.discovery_changes_s), settings) == "full"


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        (DiscoveryState(), "full"),
        (DiscoveryState(tried_at=NOW, full_at=NOW, looked_at=NOW), None),
        (DiscoveryState(tried_at=NOW, full_at=NOW, looked_at=NOW - timedelta(seconds=60)), "changes"),
        (
            DiscoveryState(tried_at=NOW - timedelta(seconds=600), full_at=NOW - timedelta(seconds=500), looked_at=NOW),
            "full",
        ),
        (
            DiscoveryState(tried_at=NOW - timedelta(seconds=30), full_at=NOW - timedelta(seconds=900), looked_at=NOW),
            None,
        ),
        (
            DiscoveryState(tried_at=NOW - timedelta(seconds=90), full_at=NOW - timedelta(seconds=900), looked_at=NOW),
            "full",
        ),
    ],
)
def test_what_is_due_follows_from_what_was_done(state, expected):
    assert due(state, NOW, Settings(discovery_full_s=600, discovery_changes_s=60)) == expected


def test_a_market_stored_by_hand_is_counted(conn):
    store(
        conn,
        [{"market_id": "0x1", "question": "?", "status": "CLOSED", "outcomes": ["a", "b"], "token_ids": ["1", "2"]}],
        cause="x",
    )

    assert queries.counts(conn, exchange="polymarket") == (0, 1, 0)


def test_a_catalogue_out_of_reach_is_told_in_the_stage_since_when_and_until_it_answers(
    database_url, conn, exchange, monkeypatch
):
    def told():
        return conn.execute(
            "select status, detail ->> 'reason', (detail ->> 'since')::bigint from pipeline_status"
            " where stage = 'discovery'"
        ).fetchone()

    def walk(url):
        where = Exchange(gamma_url=url, clob_url="", clob_socket_url="", data_api_url="")
        with markets.discovery(Database(url=login_url(database_url, PIPELINE)), where) as walks:
            walks.look()

    monkeypatch.setattr(markets, "Client", lambda **given: Client(attempts=1, **given))
    with pytest.raises(Unavailable):
        walk("http://127.0.0.1:9/gamma")
    first = told()
    with pytest.raises(Unavailable):
        walk("http://127.0.0.1:9/gamma")

    assert told() == first
    assert first[:2] == ("missing", "cannot reach 127.0.0.1:9: connection refused")
    walk(exchange.gamma_url)
    assert told() == ("fresh", None, None)
