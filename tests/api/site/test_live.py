"""Live prices for browsers: one shared subscription, and each browser gets the events that it requested."""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from types import SimpleNamespace

import pytest

from api.metering import ledger_location as ledgers
from api.site import live
from api.site.backend import Backend
from api.site.credentials import Credentials
from api.site.live import LiveHub, LiveListener
from config import settings
from orchestration import stream
from presage_client import Refused
from sql.roles.rights import SITE
from tests import factories
from tests.api.endpoints.test_shapes import book
from tests.patience import PATIENCE_S
from tests.roles import login_url


@pytest.fixture(scope="module")
def markets(server_conn):
    made = [factories.add_market(server_conn, name) for name in ("rain", "snow", "hail")]
    for market in made:
        factories.insert(server_conn, "live_books", book(market["market_key"]))
    factories.keep_alive(server_conn)
    return made


@pytest.fixture(autouse=True)
def long_start_timeout(monkeypatch):
    """Wait for the stream to start before the first snapshot, however long that takes."""
    monkeypatch.setattr(live, "START_TIMEOUT_S", PATIENCE_S)


@pytest.fixture
def tell(server_conn):
    """Publish a market's event on the stream, as the live feed does."""

    def told(kind, market, **data):
        now = int(time.time() * 1000)
        record = {"market_id": market["market_id"], "outcome": 0, **data}
        with server_conn.transaction():
            stream.publish(server_conn, [stream.message(kind, now, market["market_id"], record)], now)

    return told


@contextlib.asynccontextmanager
async def running(server):
    """Run a hub on the server's stream."""
    credentials = Credentials(login_url(server.database_url, SITE))
    async with Backend(server.url, credentials) as backend:
        hub = LiveHub(backend, credentials)
        following = asyncio.create_task(hub.run())
        try:
            yield hub
        finally:
            following.cancel()
            await asyncio.gather(following, return_exceptions=True)


async def events(hub, listener):
    """Yield the events that a browser gets."""
    async for frames in hub.events(listener):
        for frame in frames.decode().split("\n\n"):
            kind, _, data = frame.partition("\ndata: ")
            if data:
                yield kind.removeprefix("event: "), json.loads(data)


async def until(found, wanted):
    """Return the events up to the first that satisfies `wanted`."""
    seen = []
    async with asyncio.timeout(PATIENCE_S):
        async for event in found:
            seen.append(event)
            if wanted(*event):
                return seen
    raise AssertionError(seen)


def bid(value):
    return lambda kind, data: kind == "price" and data["bid"] == value


def test_each_hears_of_its_own_markets_and_of_many_prices_the_last(server, markets, tell):
    rain, snow, _ = markets

    async def listen():
        async with running(server) as hub:
            one = events(hub, LiveListener([rain["market_id"]], ["price"]))
            other = events(hub, LiveListener([snow["market_id"]], ["price", "trade"]))
            await until(one, lambda kind, _: kind == "hello")
            await until(other, lambda kind, _: kind == "hello")
            for number in range(1, 41):
                tell("price", rain, bid=number / 100)
                tell("price", snow, bid=number / 200)
            tell("trade", snow, price=0.5)
            heard = await until(one, bid(0.4)), await until(other, lambda kind, _: kind == "trade")
            return heard, hub.listeners, hub

    (ours, theirs), listeners, hub = asyncio.run(listen())

    assert {data["market_id"] for _, data in ours} == {rain["market_id"]}
    assert {data["market_id"] for _, data in theirs} == {snow["market_id"]}
    assert len(ours) < 20
    assert listeners == 2
    assert hub.subscriptions <= 3


def test_a_site_that_stops_ends_its_pages_connections_so_that_they_connect_anew(server, markets, tell):
    async def listen():
        async with running(server) as hub:
            found = hub.events(LiveListener([markets[0]["market_id"]], ["price"]))
            frames = [await anext(found), await anext(found)]
            waiting = asyncio.create_task(anext(found))
            await asyncio.sleep(0)
            hub.drain()
            frames += [await waiting] + [each async for each in found]
            return frames, hub.listeners

    frames, listeners = asyncio.run(listen())

    assert frames[0] == b"retry: 2000\n\n"
    assert frames[-1] == b"retry: 200\nevent: restart\ndata: {}\n\n"
    assert listeners == 0


def test_who_comes_later_misses_nothing_and_those_before_neither(server, markets, tell):
    rain, _, hail = markets

    async def listen():
        async with running(server) as hub:
            first = events(hub, LiveListener([rain["market_id"]], ["trade"]))
            await until(first, lambda kind, _: kind == "hello")
            tell("trade", rain, price=0.01)
            seen = await until(first, lambda kind, data: kind == "trade" and data["price"] == 0.01)
            second = events(hub, LiveListener([hail["market_id"]], ["trade"]))
            await until(second, lambda kind, _: kind == "hello")
            for number in range(2, 30):
                tell("trade", rain, price=number / 100)
                tell("trade", hail, price=number / 100)
                await asyncio.sleep(0.02)
            seen += await until(first, lambda kind, data: kind == "trade" and data["price"] == 0.29)
            return seen, await until(second, lambda kind, data: kind == "trade" and data["price"] == 0.29)

    first, second = asyncio.run(listen())

    assert [data["price"] for kind, data in first if kind == "trade"] == [number / 100 for number in range(1, 30)]
    assert [data["price"] for kind, data in second if kind == "trade"] == [number / 100 for number in range(2, 30)]


def test_a_browser_hears_of_a_price_that_is_no_longer_live_and_of_which_market_has_ended(server, markets, tell):
    hail = markets[2]

    async def listen():
        async with running(server) as hub:
            found = events(hub, LiveListener([hail["market_id"]], ["price", "market"]))
            first = await until(found, lambda kind, _: kind == "price")
            tell("market", hail, from_status="ACTIVE", to_status="CLOSED")
            return first + await until(found, lambda kind, _: kind == "market")

    (_, (_, price), (_, change)) = asyncio.run(listen())

    assert price["market_id"] == change["market_id"] == hail["market_id"]
    assert (price["outcome"], price["bid"], price["ask"], price["mid"]) == (0, None, None, None)
    assert change["to_status"] == "CLOSED"


def test_a_book_comes_whole_and_as_it_is_now(server, server_conn, markets, tell):
    rain = markets[0]

    async def listen():
        async with running(server) as hub:
            found = events(hub, LiveListener([rain["market_id"]], ["book"]))
            first = (await until(found, lambda kind, _: kind == "book"))[-1][1]
            server_conn.execute(
                "update live_books set bid_sizes[1] = 777000000 where market_key = %s", [rain["market_key"]]
            )
            await asyncio.sleep(live.BOOK_MAX_AGE_S)
            tell("orderbook", rain)
            return first, (await until(found, lambda kind, data: kind == "book" and data["bids"][0]["size"] == 777))[-1]

    first, (_, later) = asyncio.run(listen())

    assert first["best_bid"] == later["best_bid"]
    assert first["bids"][0]["size"] != 777


def test_a_key_whose_time_is_over_is_replaced_and_nothing_is_missed(server, server_conn, markets, tell, monkeypatch):
    rain = markets[0]
    monkeypatch.setattr("api.site.credentials.MIN_RENEWAL_INTERVAL_S", 0.0)

    async def listen():
        async with running(server) as hub:
            found = events(hub, LiveListener([rain["market_id"]], ["trade"]))
            await until(found, lambda kind, _: kind == "hello")
            tell("trade", rain, price=0.11)
            await until(found, lambda kind, data: kind == "trade" and data["price"] == 0.11)
            revoked = server_conn.execute(
                "update api_keys set revoked_at = now() where tier = 'enterprise' returning key_id"
            ).fetchall()
            for (key_id,) in revoked:
                ledgers.end(server_conn, ledgers.folder(settings.get()), key_id)
            before, prices = hub.subscriptions, [0.12]
            tell("trade", rain, price=0.12)
            async with asyncio.timeout(PATIENCE_S):
                while hub.subscriptions == before:
                    await asyncio.sleep(0.05)
                    prices.append(prices[-1] + 0.0001)
                    tell("trade", rain, price=prices[-1])
            return prices, await until(found, lambda kind, data: kind == "trade" and data["price"] == prices[-1])

    prices, heard = asyncio.run(listen())

    assert [data["price"] for kind, data in heard if kind == "trade"] == prices


def test_beyond_what_one_subscription_can_name_all_markets_are_subscribed_to(server, markets, tell, monkeypatch):
    monkeypatch.setattr(live, "MAX_NAMED_MARKETS", 1)
    rain, snow, hail = markets

    async def listen():
        async with running(server) as hub:
            first = events(hub, LiveListener([rain["market_id"], snow["market_id"]], ["trade"]))
            await until(first, lambda kind, _: kind == "hello")
            later = events(hub, LiveListener([hail["market_id"]], ["trade"]))
            await until(later, lambda kind, _: kind == "hello")
            for number, market in enumerate(markets, 1):
                tell("trade", market, price=number / 10)
            heard = await until(first, lambda kind, data: kind == "trade" and data["price"] == 0.2)
            heard += await until(later, lambda kind, _: kind == "trade")
            return [data["price"] for kind, data in heard if kind == "trade"], hub.subscriptions

    heard, subscriptions = asyncio.run(listen())

    assert heard == [0.1, 0.2, 0.3]
    assert subscriptions <= 2


@pytest.mark.parametrize(("code", "renewed"), [("forbidden", True), ("1008", True), ("invalid_parameter", False)])
def test_only_a_refusal_of_the_key_asks_for_another(monkeypatch, code, renewed):
    refused = []
    credentials = SimpleNamespace(key=lambda: "psg_ours", mark_refused=refused.append)
    hub = LiveHub(None, credentials)

    turns = iter([Refused(code, "no"), asyncio.CancelledError()])

    async def refuse():
        raise next(turns)

    async def run():
        monkeypatch.setattr(live, "RESUBSCRIBE_S", 0)
        monkeypatch.setattr(hub, "_subscribe", refuse)
        with contextlib.suppress(asyncio.CancelledError):
            await hub.run()

    asyncio.run(run())

    assert refused == ["psg_ours"] * renewed


def test_what_a_slow_browser_has_not_taken_does_not_grow():
    listener = LiveListener(["0xa"], ["price", "trade"])
    for number in range(10_000):
        listener.enqueue(live_event("trade", id=number))
        listener.enqueue(live_event("price", bid=number))

    told, _ = listener.take()

    assert len(told) == live.MAX_QUEUED + 1
    assert told[0] == ("price", {"outcome": 0, "bid": 9999})
    assert told[-1] == ("trade", {"market_id": "0xa", "outcome": 0, "id": 9999})


def live_event(kind, **data):
    from presage_client import Event

    return Event(kind, 1, 0, "0xa", {"outcome": 0, **data})
