"""The stream client against the service."""

from __future__ import annotations

import asyncio
import itertools
import os
import signal
import threading

import pytest

from presage_client import AsyncStream, Event, Lost, Refused, Stream, StreamGap
from sql import database
from tests import stream_rows
from tests.api.conftest import generous, serving
from tests.api.listening import trades, write
from tests.clients.python.stream_servers import numbers, numbers_of
from tests.patience import until

RAIN, SNOW = "0x" + "a" * 64, "0x" + "b" * 64
WALLET = "0x" + "c" * 40
READERS = itertools.count(1)


@pytest.fixture(scope="module")
def server(new_database):
    with new_database() as url, serving(url) as running:
        yield running


@pytest.fixture
def conn(server):
    with database.connect(server.database_url, autocommit=True, name="presage test") as conn:
        yield conn


@pytest.fixture
def served(server, conn):
    """The service, a key of the test's own, and the event after which its own begin."""
    server.email = f"reader-{next(READERS)}@example.com"
    server.key = generous(conn, server.email)
    (server.at,) = conn.execute("select last_seq from stream_head").fetchone()
    return server


def test_events_are_typed_ordered_and_split(served, conn):
    with Stream(served.url, served.key, resume_from=served.at) as events:
        written = write(conn, trades(250, RAIN))
        got = list(itertools.islice(events, 250))

        assert [event.seq for event in got] == written
        assert isinstance(got[0], Event)
        assert (got[0].type, got[0].market_id, got[0].data) == ("trade", RAIN, {"price": 0.5})
        assert events.last == written[-1]


def test_the_asynchronous_client_receives_the_same(served, conn):
    async def read():
        async with AsyncStream(served.url, served.key, types=["trade"], resume_from=served.at) as events:
            write(conn, [("price", RAIN, {}), *trades(3)])
            return await numbers_of(events, 3), events.last

    assert asyncio.run(read()) == ([served.at + 2, served.at + 3, served.at + 4], served.at + 4)


def test_markets_types_and_wallets_filter(served, conn):
    many = [f"0x{number:064x}" for number in range(1200)]
    address = bytes.fromhex(WALLET[2:])
    with Stream(
        served.url, served.key, markets=[*many, RAIN], types=["trade"], wallets=[WALLET], resume_from=served.at
    ) as events:
        written = write(
            conn,
            [
                ("trade", RAIN, {}),
                ("trade", SNOW, {}),
                ("price", RAIN, {}),
                ("wallet_activity", SNOW, {}, address),
                ("trade", many[1199], {}),
            ],
        )
        assert numbers(events, 3) == [written[0], written[3], written[4]]


def test_without_markets_the_wallets_remain(served, conn):
    with Stream(served.url, served.key, markets=[], wallets=[WALLET], resume_from=served.at) as events:
        written = write(conn, [("trade", RAIN, {}), ("wallet_activity", SNOW, {}, bytes.fromhex(WALLET[2:]))])
        assert numbers(events, 1) == [written[1]]


def test_nothing_is_missed_or_duplicated_while_workers_die(served, conn):
    stop, written = threading.Event(), []

    def keep_writing():
        while not stop.wait(0.005):
            written.extend(write(conn, trades(3)))

    writer = threading.Thread(target=keep_writing)
    with Stream(served.url, served.key, resume_from=served.at) as events:
        writer.start()
        try:
            got = numbers(events, 50)
            for _ in range(2):
                os.kill(served.workers()[0], signal.SIGKILL)
                got += numbers(events, 100)
        finally:
            stop.set()
            writer.join()
        got += numbers(events, len(written) - len(got))
    assert got == written


def test_a_program_resumes_where_an_earlier_one_ended(served, conn):
    written = write(conn, trades(10))
    with Stream(served.url, served.key, resume_from=served.at) as events:
        assert numbers(events, 4) == written[:4]
        last = events.last
    with Stream(served.url, served.key, resume_from=last) as events:
        assert numbers(events, 6) == written[4:]


def test_a_gap_is_reported(served, conn):
    written = write(conn, trades(10))
    stream_rows.remove(conn, written[:5].__contains__)
    with Stream(served.url, served.key, resume_from=written[1]) as events:
        assert numbers(events, 5) == written[5:]
        with pytest.raises(Lost) as lost:
            next(events)
        assert lost.value.gap == StreamGap(written[1], written[-1])
        more = write(conn, trades(1))
        assert numbers(events, 1) == more  # what there is goes on
    gaps = []
    with Stream(served.url, served.key, resume_from=written[1], on_gap=gaps.append) as events:
        assert numbers(events, 6) == [*written[5:], *more]
        for _ in range(100):  # reported at the end of the replay, which may include the next events
            write(conn, trades(1))
            next(events)
            if gaps:
                break
    assert [gap.after for gap in gaps] == [written[1]]
    assert gaps[0].upto >= more[0]


def test_last_advances_where_events_are_rare(served, conn, monkeypatch):
    monkeypatch.setattr("presage_client.stream.synchronous.IDLE_S", 0.1)
    with Stream(served.url, served.key, types=["signal"], resume_from=served.at) as events:
        threading.Timer(0.5, lambda: write(conn, [*trades(20), ("signal", None, {})])).start()
        assert numbers(events, 1) == [served.at + 21]

        def close():
            try:
                write(conn, trades(20))
                until(lambda: events.last == served.at + 41)
            finally:
                events.close()

        closing = threading.Thread(target=close)
        closing.start()
        assert list(events) == []
        closing.join()
        assert events.last == served.at + 41


@pytest.mark.parametrize(
    ("how", "code"),
    [
        ({"key": "wrong"}, "forbidden"),
        ({"markets": ["unheard-of"]}, "not_found"),
        ({"types": ["gossip"]}, "invalid_parameter"),
        ({"wallets": ["0x12"]}, "invalid_parameter"),
    ],
)
def test_a_refusal_is_raised_at_once(served, how, code):
    key = how.pop("key", served.key)
    with Stream(served.url, key, **how) as events, pytest.raises(Refused) as refused:
        next(events)
    assert refused.value.code == code

    async def read():
        async with AsyncStream(served.url, key, **how) as events:
            await anext(events)

    with pytest.raises(Refused):
        asyncio.run(read())


def test_the_end_of_the_key_is_raised(served, conn):
    with Stream(served.url, served.key, resume_from=served.at) as events:
        write(conn, trades(1))
        next(events)
        conn.execute(
            "update api_keys set revoked_at = now()"
            " where account_id = (select account_id from accounts where email = %s)",
            [served.email],
        )
        for pid in served.workers():  # they would see it within half a minute
            os.kill(pid, signal.SIGKILL)
        with pytest.raises(Refused):
            next(events)
