"""`Client` and `AsyncClient` against a real server."""

from __future__ import annotations

import asyncio
import builtins
import copy
import datetime as dt
import itertools
import pickle
import sys
import threading

import httpx
import msgspec
import pytest

from presage_client import AsyncClient, Client, PresageError, Record, Records, records
from sql import database
from tests.api.conftest import generous, serving
from tests.api.listening import write
from tests.factories import add_market, add_trades, go_live

MARKETS = 7
TOKEN = "a token for the tests of the client"
WALLET = "0x" + "c" * 40


@pytest.fixture(scope="module")
def server(new_database):
    with new_database() as url, serving(url, PRESAGE_DEBUG_TOKEN=TOKEN) as running:
        yield running


@pytest.fixture(scope="module")
def conn(server):
    with database.connect(server.database_url, autocommit=True, name="presage test") as conn:
        yield conn


@pytest.fixture(scope="module")
def stored(server, conn):
    """Seven markets; the first has trades and a price."""
    markets = [add_market(conn, f"rain-{number}", category="weather") for number in range(MARKETS)]
    add_trades(conn, markets[0], [{"price": "0.52", "size": 10}, {"price": "0.53", "size": 5}])
    go_live(conn, markets[0], bid=510_000, ask=530_000)
    return markets


@pytest.fixture(scope="module")
def key(conn, stored):
    return generous(conn, "reader@example.com")


@pytest.fixture
def client(server, key):
    with Client(server.url, key) as client:
        yield client


def asynchronously(server, key, work):
    async def run():
        async with AsyncClient(server.url, key) as client:
            return await work(client)

    return asyncio.run(run())


# --- Records and lists


def test_a_list_has_typed_records(client, stored):
    page = client.markets(limit=3)

    assert isinstance(page, records.MarketPage)
    assert isinstance(page.data, Records)
    assert [type(market) for market in page.data] == [records.RankedMarket] * 3
    assert page.has_more
    market = client.market("rain-0")
    assert (market.slug, market.market_id, market.outcomes) == ("rain-0", stored[0]["market_id"], ["Yes", "No"])
    assert market.to_dict()["slug"] == "rain-0"


def test_an_answer_that_is_an_array_is_a_list_of_records(client):
    trades = client.market_trades("rain-0", outcome="Yes")

    assert [trade.price for trade in trades] == [0.53, 0.52]
    assert isinstance(trades[:1], Records)
    assert isinstance(trades[0], records.Trade)
    assert trades[:1].to_pandas().shape == (1, len(records.Trade.__struct_fields__))
    assert copy.copy(trades) == pickle.loads(pickle.dumps(trades)) == trades


def test_parameters_are_sent_as_the_api_takes_them(client, stored):
    now = dt.datetime.now(dt.UTC)
    assert len(client.market_trades("rain-0", from_=now - dt.timedelta(hours=1), to=now + dt.timedelta(minutes=1))) == 2
    assert client.market_trades("rain-0", from_=now + dt.timedelta(minutes=1)) == []
    assert client.market_candles("rain-0", from_=now - dt.timedelta(hours=1), to=now).s in {"ok", "no_data"}
    assert client.prices(["rain-0", "rain-1"])["rain-0"].bid == 0.51
    assert client.prices("rain-0,rain-1")["rain-1"] is None
    assert client.exports(from_=dt.date(2026, 1, 1)).data == []
    with pytest.raises(ValueError, match="time zone"):
        client.market_trades("rain-0", from_=now.replace(tzinfo=None))
    for wrong in ("", ".", ".."):
        with pytest.raises(ValueError, match="id"):
            client.market_price(wrong)
    with pytest.raises(PresageError) as error:
        client.market("a/b?c#d %")
    assert error.value.code == "not_found"


def test_fields_and_values_of_a_newer_server_are_accepted():
    decoder = msgspec.json.Decoder(records.Trade)
    trade = msgspec.structs.asdict(decoder.decode(b'{"new": {"x": 1}, %s}' % TRADE[1:-1]))
    assert trade["side"] == "SHORT"
    assert "new" not in trade


TRADE = (
    b'{"id": "1", "market_id": "0x", "token_id": "2", "outcome": 0, "price": 1, "size": 2, "value_usd": 2,'
    b' "side": "SHORT", "tx_hash": null, "ts": 5}'
)


def test_bodies_that_are_not_json_are_text_and_numbers(client):
    assert "presage_build_info" in client.metrics()
    assert "<html" in client.reference()
    assert abs(client.udf_time() - dt.datetime.now(dt.UTC).timestamp()) < 600
    assert client.openapi()["info"]["title"] == "Presage"


def test_everything_without_parameters_can_be_read(server, key):
    with Client(server.url, key, debug_token=TOKEN) as client:
        for name in ("health", "time", "stats", "pipeline_status", "coverage", "trending_markets", "breaking_markets"):
            assert isinstance(getattr(client, name)(), Record)
        for name in ("categories", "tags", "series", "top_markets", "recent_trades", "debug_trades"):
            assert isinstance(getattr(client, name)(), Records)
        for name in ("summary", "stats", "health", "sentiment", "coverage"):
            assert isinstance(getattr(client, f"market_{name}")("rain-0"), Record)
        assert client.market_price_history("rain-0")[0].close == 0.53
        assert client.related_markets("rain-0").data == []
        assert client.wallet_summary(WALLET).trades == 0
        assert client.leaderboard(window="1d").data == []
        assert client.udf_config().supports_search
        assert client.debug_market("rain-0")


def test_what_changes_something(client, server):
    assert client.watch_wallet(WALLET).watching
    assert client.watched_wallets().wallets == [WALLET]
    assert not client.unwatch_wallet(WALLET).watching

    made = client.create_webhook("https://example.com/hook", ["signal"], min_usd=10)
    assert made.state == client.verify_webhook(made.id).state == "pending"
    assert (made.min_usd, made.markets) == (10, None)
    assert made.secret.startswith("whsec_")
    changed = client.change_webhook(made.id, enabled=False, min_usd=None)
    assert (changed.enabled, changed.min_usd, changed.secret) == (False, None, None)
    assert client.rotate_webhook_secret(made.id).rotating
    assert client.rotate_webhook_secret(made.id, step="cancel").secret is None
    assert client.remove_webhook(made.id)
    assert client.webhooks().data == []

    with Client(server.url) as nobody:
        registered = nobody.register("a bot", "bot@example.com")
    assert registered.tier == "free"


# --- Pagination


def test_an_iterator_goes_over_all_pages(client, server, key, stored):
    slugs = [market.slug for market in client.iter_markets(limit=2, category="weather")]
    assert sorted(slugs) == [market["slug"] for market in stored]

    async def read(client):
        return [market.slug async for market in client.iter_markets(limit=3, category="weather")]

    assert asynchronously(server, key, read) == slugs
    assert list(client.iter_markets(category="nothing")) == []


# --- Errors


def test_an_error_is_the_problem_document(client, server, key):
    with pytest.raises(PresageError) as caught:
        client.market("nothing")
    error = caught.value
    assert (error.code, error.status) == ("not_found", 404)
    assert error.detail in str(error)
    assert error.request_id
    copied = pickle.loads(pickle.dumps(error))
    assert (str(copied), copied.request_id) == (str(error), error.request_id)

    with pytest.raises(PresageError) as caught:
        client.markets(limit=1000)
    assert caught.value.code == "invalid_parameter"
    assert caught.value.errors[0]["name"] == "limit"

    with pytest.raises(PresageError) as caught:
        asynchronously(server, key, lambda client: client.market("nothing"))
    assert caught.value.code == "not_found"


def test_without_a_valid_key_there_is_an_error(server, monkeypatch):
    monkeypatch.delenv("PRESAGE_API_KEY", raising=False)
    for key in (None, "psg_wrong"):
        with Client(server.url, key) as client, pytest.raises(PresageError) as caught:
            client.stats()
        assert (caught.value.code, caught.value.status) == ("invalid_api_key", 401)


def test_the_second_limit_is_waited_for(server, conn):
    key = generous(conn, "hasty@example.com", credits_burst=2)
    waits = []

    def sleep(seconds):
        waits.append(seconds)
        threading.Event().wait(seconds)

    with Client(server.url, key, max_retries=8, sleep=sleep) as client:
        assert [client.categories() is not None for _ in range(6)] == [True] * 6
    assert waits
    assert all(wait >= 1 for wait in waits)


# --- Settings


def test_settings_come_from_arguments_then_the_environment(server, key, monkeypatch):
    monkeypatch.setenv("PRESAGE_URL", f"{server.url}/")
    monkeypatch.setenv("PRESAGE_API_KEY", key)
    with Client() as client:
        assert client.base_url == server.url
        assert client.stats().total_markets == MARKETS
    monkeypatch.delenv("PRESAGE_URL")
    with Client() as client:
        assert client.base_url == "http://localhost:8080"
    with pytest.raises(ValueError, match="address"):
        Client("localhost:8080")


def test_the_key_is_never_shown(server, key):
    async def shown(client):
        return repr(client)

    with Client(server.url.replace("http://", "http://user:password@"), key, debug_token=TOKEN) as client:
        for text in (repr(client), str(client), repr(client.stream()), asynchronously(server, key, shown)):
            assert key not in text
            assert "password" not in text
            assert TOKEN not in text


def test_an_http_client_of_the_users_own_stays_open(server, key):
    with httpx.Client() as http:
        with Client(server.url, key, http=http) as client:
            client.health()
        assert not http.is_closed


# --- pandas


def test_a_list_becomes_a_data_frame(client):
    frame = client.market_trades("rain-0").to_pandas()

    assert list(frame.columns) == list(records.Trade.__struct_fields__)
    assert frame["price"].tolist() == [0.53, 0.52]
    assert str(frame["ts"].dtype) == "datetime64[ms, UTC]"
    assert abs(frame["ts"][0].timestamp() - dt.datetime.now(dt.UTC).timestamp()) < 600


def test_unix_seconds_null_and_far_times_become_timestamps(client, conn):
    add_market(conn, "far", end_time=dt.datetime(2999, 12, 31, tzinfo=dt.UTC), category="far")
    add_market(conn, "open", category="far")

    frame = Records(client.iter_markets(category="far"), records.RankedMarket).to_pandas().set_index("slug")

    assert frame["end_time"]["far"].isoformat() == "2999-12-31T00:00:00+00:00"
    assert str(frame["end_time"]["open"]) == "NaT"
    assert frame["outcomes"]["far"] == ["Yes", "No"]


def test_an_empty_list_and_nested_records_become_data_frames(client):
    empty = client.market_trades("rain-1").to_pandas()
    assert (len(empty), list(empty.columns)) == (0, list(records.Trade.__struct_fields__))
    assert str(empty["ts"].dtype) == "datetime64[ms, UTC]"
    nested = client.coverage().kinds.to_pandas()
    assert set(nested["gaps"][0]) == set(records.GapCounts.__struct_fields__)
    assert list(Records([{"a": 1}]).to_pandas()["a"]) == [1]


def test_without_pandas_the_error_says_what_to_install(client, monkeypatch):
    trades = client.market_trades("rain-0")
    true_import = builtins.__import__

    def without_pandas(name, *rest, **more):
        if name.partition(".")[0] == "pandas":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return true_import(name, *rest, **more)

    monkeypatch.delitem(sys.modules, "pandas", raising=False)
    monkeypatch.setattr(builtins, "__import__", without_pandas)

    with pytest.raises(ImportError, match="pip install pandas"):
        trades.to_pandas()


# --- Asyncio, and streams


def test_the_asynchronous_client_reads_the_same(client, server, key):
    async def read(client):
        page, trades = await asyncio.gather(client.markets(limit=3), client.market_trades("rain-0"))
        return page, trades, await client.udf_time()

    page, trades, now = asynchronously(server, key, read)
    assert page.data == client.markets(limit=3).data
    assert trades == client.market_trades("rain-0")
    assert isinstance(now, int)


def test_a_stream_comes_with_the_address_and_key(client, server, key, conn):
    (at,) = conn.execute("select last_seq from stream_head").fetchone()
    written = write(conn, [("trade", None, {}), ("price", None, {}), ("trade", None, {})])
    with client.stream(types=["trade"], resume_from=at) as events:
        assert [event.seq for event in itertools.islice(events, 2)] == [written[0], written[2]]

    async def read(client):
        async with client.stream(resume_from=at) as events:
            return [(await anext(events)).seq for _ in range(3)]

    assert asynchronously(server, key, read) == written


def test_the_market_channel_of_the_past_is_opened(client, server, key):
    hour_ago = dt.datetime.now(dt.UTC) - dt.timedelta(hours=1)
    with client.market_channel_replay(hour_ago, speed=0) as socket:
        socket.send("PING")
        assert socket.recv() == "PONG"

    async def ask(client):
        async with client.market_channel_replay(hour_ago, speed=0) as socket:
            await socket.send("PING")
            return await socket.recv()

    assert asynchronously(server, key, ask) == "PONG"
