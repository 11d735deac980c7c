"""The stream, heard by a client that others wrote."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
import urllib.request

import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect

from sql import database
from tests import stream_rows
from tests.api.conftest import generous, serving
from tests.api.listening import listening, seqs, trades, write
from tests.factories import add_market
from tests.patience import PATIENCE_S, until


@pytest.mark.parametrize("key", ["", "wrong"])
def test_without_a_valid_key_there_is_no_upgrade(server, key):
    with pytest.raises(InvalidStatus) as refusal, connect(server.stream(key)):
        pass

    assert refusal.value.response.status_code == 403
    assert json.loads(refusal.value.response.body)["code"] == "forbidden"


def test_a_client_that_says_nothing_hears_everything_in_order(listen, server_conn):
    with listen() as client:
        written = [seq for size in (1, 3, 200) for seq in write(server_conn, trades(size))]

        heard = client.events(204)

    assert seqs(heard) == written
    assert client.hello["seq"] == written[0] - 1
    assert set(heard[0]) == {"type", "seq", "ts", "market_id", "data"}


def test_a_client_hears_one_exchange_unless_it_names_markets(listen, server_conn):
    rain, fed = "0x" + "a" * 64, "KXFED-27APR-T4.25"
    events = [("trade", rain, {}), ("trade", fed, {}), ("trade", None, {})]
    with listen() as client:
        client.say("subscribe")
        assert client.until("subscribed")[1] == told("all", "all", exchange="polymarket")
        first, _, of_none = write(server_conn, events)
        assert seqs(client.events(2)) == [first, of_none]

        client.say("subscribe", exchange="kalshi")
        assert client.until("subscribed")[1] == told("all", "all", exchange="kalshi")
        _, second, of_none = write(server_conn, events)
        assert seqs(client.events(2)) == [second, of_none]

        client.say("subscribe", exchange="kalshi", resume_from=first - 1)
        client.until("subscribed")
        assert seqs(client.events(4)) == [first + 1, first + 2, second, of_none]

        client.say("subscribe", exchange="kalshi", markets=[rain])
        assert client.until("error")[1]["code"] == "invalid_parameter"


def test_nothing_written_after_the_greeting_is_missed(listen, server_conn):
    with contextlib.ExitStack() as stack:
        clients, written = [], []
        for _ in range(5):
            clients.append(stack.enter_context(listen()))
            written += write(server_conn, trades(1))
        for number, client in enumerate(clients):
            assert seqs(client.events(5 - number)) == written[number:]


def told(markets, types, **exchange):
    return {"type": "subscribed", "markets": markets, "types": types, "wallets": [], **exchange}


def test_a_client_hears_the_markets_and_types_it_wants(listen, server_conn):
    rain, snow = "0x" + "a" * 64, "0x" + "b" * 64
    with listen() as client:
        client.say("subscribe", markets=[rain.upper().replace("0X", "0x")], types=["trade", "market"])
        assert client.until("subscribed")[1] == told([rain], ["market", "trade"])
        kinds = [("price", rain), ("trade", snow), ("trade", rain), ("market", rain), ("trade", None), ("trade", rain)]
        written = write(server_conn, [(kind, market_id, {}) for kind, market_id in kinds])

        assert seqs(client.events(3)) == [written[2], written[3], written[5]]

        client.say("subscribe", markets=[snow])
        assert client.until("subscribed")[1]["markets"] == [rain, snow]
        client.say("unsubscribe", markets=[rain])
        assert client.until("subscribed")[1] == told([snow], ["market", "trade"])
        written = write(server_conn, [("trade", rain, {}), ("trade", snow, {})])
        assert seqs(client.events(1)) == [written[1]]

        client.say("unsubscribe")
        assert client.until("subscribed")[1]["markets"] == []
        write(server_conn, trades(1))
        client.say("subscribe", types=["price"])
        assert client.until("subscribed")[1] == told("all", ["price"], exchange="polymarket")
        written = write(server_conn, [("trade", rain, {}), ("price", rain, {})])
        assert seqs(client.events(1)) == [written[1]]


def test_a_market_may_be_named_by_slug_or_number(listen, server_conn):
    market = add_market(server_conn, "rain-tomorrow", gamma_id="517")
    with listen() as client:
        for name in ("rain-tomorrow", "517"):
            client.say("subscribe", markets=[name])
            assert client.until("subscribed")[1]["markets"] == [market["market_id"]]

        client.say("subscribe", markets=["rain-tomorrow", "unheard-of"])
        error = client.until("error")[1]
        assert error["code"] == "not_found"
        assert "unheard-of" in error["detail"]


@pytest.mark.parametrize(
    ("said", "code"),
    [
        ("nonsense", "invalid_body"),
        ("", "invalid_body"),
        ("[]", "invalid_parameter"),
        ('{"action":"dance"}', "invalid_parameter"),
        ('{"action":7}', "invalid_parameter"),
        ('{"markets":[]}', "invalid_parameter"),
        ('{"action":"subscribe","markets":"all"}', "invalid_parameter"),
        ('{"action":"subscribe","types":["gossip"]}', "invalid_parameter"),
        ('{"action":"subscribe","resume_from":-1}', "invalid_parameter"),
        ('{"action":"subscribe","colour":"red"}', "invalid_parameter"),
        ('{"action":"subscribe","markets":["a\\u0000b"]}', "not_found"),
        ('{"action":"ping","x":' + "[" * 50_000, "invalid_body"),
    ],
)
def test_what_cannot_be_done_is_told_and_the_connection_stays(listen, said, code):
    with listen() as client:
        client.socket.send(said)
        assert client.until("error")[1]["code"] == code
        client.say("ping")
        assert client.until("pong")[1]["ts"] > 0


@pytest.mark.parametrize("way", ["query", "action"])
def test_a_client_that_comes_back_is_told_what_it_missed_once_and_in_order(listen, server_conn, way):
    with listen() as client:
        last = client.hello["seq"]
    missed = write(server_conn, trades(2500))
    stop = threading.Event()
    later = []

    def keep_writing():
        with database.connect(server_conn.info.dsn, autocommit=True) as conn:
            while not stop.is_set():
                later.extend(write(conn, trades(20)))

    writer = threading.Thread(target=keep_writing)
    writer.start()
    try:
        with listen(**({"resume_from": last} if way == "query" else {})) as client:
            if way == "action":
                client.say("subscribe", resume_from=last)
                client.until("subscribed")  # and before it, should that take long, what is new
            before, completed = client.until("replay_completed")
            after = client.events(200)
            stop.set()
    finally:
        stop.set()
        writer.join()
    assert completed["complete"] is True
    told = [*before, *after]
    assert seqs(told) == [*missed, *later][: len(told)]
    assert len(told) >= 2700


def test_a_replay_heeds_the_filter(listen, server_conn):
    rain, snow = "0x" + "c" * 64, "0x" + "d" * 64
    written = write(server_conn, [("trade", rain if number % 3 else snow, {}) for number in range(30)])
    with listen() as client:
        client.say("subscribe", markets=[snow], resume_from=written[0] - 1)

        before, _ = client.until("replay_completed")

    assert seqs(before[1:]) == written[::3]


def test_what_is_no_longer_kept_is_not_promised(listen, server_conn):
    written = write(server_conn, trades(5))
    stream_rows.remove(server_conn, lambda seq: seq < written[3])
    with listen(resume_from=10**9) as client:
        assert client.until("replay_completed")[1]["complete"] is False


def test_who_comes_back_from_long_ago_is_not_led_through_all_that_is_gone(database_url, conn):
    conn.execute("update stream_head set last_seq = 10000000000")  # a restored database goes on so far ahead
    written = write(conn, trades(3))
    key = generous(conn, "someone@example.com")
    with serving(database_url) as server, listening(server.stream(key, resume_from=5)) as client:
        before, completed = client.until("replay_completed")

    assert [message["seq"] for message in before if message["type"] == "trade"] == written
    assert written[0] == 10**10 + 1
    assert completed["complete"] is False


def test_a_stream_on_the_same_database_has_no_gaps_with_many_writers(listen, server_conn):
    def keep_writing():
        with database.connect(server_conn.info.dsn, autocommit=True) as conn:
            for size in range(1, 40):
                write(conn, trades(size))

    writers = [threading.Thread(target=keep_writing) for _ in range(4)]
    with listen() as client:
        for writer in writers:
            writer.start()
        heard = client.events(4 * sum(range(1, 40)))
        for writer in writers:
            writer.join()

    assert seqs(heard) == list(range(client.hello["seq"] + 1, client.hello["seq"] + 1 + len(heard)))


def test_a_slow_client_is_disconnected_and_told_where_it_was(database_url, conn):
    key = generous(conn, "someone@example.com")
    event = ("trade", None, {"padding": "x" * 20_000})
    with (
        contextlib.ExitStack() as stack,
        serving(
            database_url, worker="tests.api.short_timeout_worker.ShortStallWorker", PRESAGE_STREAM_QUEUE_BYTES="65536"
        ) as server,
        listening(server.stream(key)) as quick,
        socket.socket() as narrow,
    ):
        narrow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 16_384)  # so that the kernels hold less on the way
        narrow.connect(("127.0.0.1", server.port))
        slow = stack.enter_context(connect(server.stream(key), sock=narrow, max_queue=1, compression=None))
        slow.send('{"action": "subscribe"}')  # so that it is told of what comes, rather than caught up with it
        assert [json.loads(slow.recv(PATIENCE_S))["type"] for _ in range(2)] == ["hello", "subscribed"]
        written = []
        for _ in range(40):
            written += write(conn, [event] * 2)
            quick.events(2)
        until(lambda: slow_closed(server) == 1)
        heard = []
        with pytest.raises(ConnectionClosed) as closed:  # noqa: PT012 (the frames before the end are what this is about)
            while True:
                heard += seqs(json.loads(line) for line in slow.recv(PATIENCE_S).split("\n"))

    assert closed.value.rcvd.code == 1013
    assert closed.value.rcvd.reason == f"too slow; last_seq={heard[-1]}"
    assert heard == written[: len(heard)]
    assert len(heard) < len(written)


def test_a_client_that_pauses_gets_everything_once_when_it_reads_again(database_url, conn):
    key = generous(conn, "someone@example.com")
    event = ("trade", None, {"padding": "x" * 20_000})
    with (
        contextlib.ExitStack() as stack,
        serving(database_url, PRESAGE_STREAM_QUEUE_BYTES="65536") as server,
        listening(server.stream(key)) as quick,
        socket.socket() as narrow,
    ):
        narrow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 16_384)  # so that the kernels hold less on the way
        narrow.connect(("127.0.0.1", server.port))
        slow = stack.enter_context(connect(server.stream(key), sock=narrow, max_queue=1, compression=None))
        slow.send('{"action": "subscribe"}')
        assert [json.loads(slow.recv(PATIENCE_S))["type"] for _ in range(2)] == ["hello", "subscribed"]
        written = []
        for _ in range(150):  # far more than the kernels hold
            written += write(conn, [event] * 2)
            quick.events(2)
        heard = []
        while len(heard) < len(written):
            heard += seqs(json.loads(line) for line in slow.recv(PATIENCE_S).split("\n"))

    assert heard == written


def slow_closed(server):
    with urllib.request.urlopen(f"{server.url}/metrics", timeout=PATIENCE_S) as answer:
        (line,) = [
            line for line in answer.read().decode().splitlines() if line.startswith("presage_stream_slow_consumers")
        ]
    return float(line.split()[-1])


def test_who_reads_stays_through_a_batch_of_many_times_the_queue(listen, server_conn):
    with listen() as client:
        written = write(server_conn, [("trade", None, {"padding": "x" * 20_000})] * 1000)
        client.say("ping")
        heard = [client.until("trade")[1] for _ in range(1000)]
        written += write(server_conn, trades(1))
        heard.append(client.until("trade")[1])

    assert seqs(heard) == written


def test_the_stream_comes_back_after_the_database_did(server, listen, server_conn):
    with listen() as client:
        write(server_conn, trades(1))
        client.events(1)
        server_conn.execute(
            "select pg_terminate_backend(pid) from pg_stat_activity"
            " where application_name = 'presage api' and datname = current_database()"
        )
        written = write(server_conn, trades(3))
        assert seqs(client.events(3)) == written
        assert client.hello["seq"] < written[0]


def test_a_key_that_ends_takes_its_streams_with_it(server, server_conn):
    key = generous(server_conn, "rotating@example.com")
    request = urllib.request.Request(f"{server.url}/v1/keys/rotate", method="POST", headers={"X-API-Key": key})
    with listening(server.stream(key)) as client:
        with urllib.request.urlopen(request, timeout=PATIENCE_S) as answer:
            assert json.load(answer)["key"] != key
        with pytest.raises(ConnectionClosed) as closed:
            client.next()
    assert closed.value.rcvd.code == 1008
    with pytest.raises(InvalidStatus), connect(server.stream(key)):
        pass
