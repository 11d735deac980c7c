"""The stream client: against a real server, and against one that misbehaves."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import os
import signal
import socket
import ssl
import subprocess
import threading
import time
import traceback
from email.utils import formatdate

import pytest
from websockets.datastructures import Headers
from websockets.http11 import Response
from websockets.sync.server import serve

from presage_client import AsyncClient, AsyncStream, Client, Event, Gap, Lost, Refused, Stream, Unavailable
from presage_client.stream.errors import Interrupted
from presage_client.stream.session import Session
from sql import database
from tests.api.conftest import generous, serving
from tests.api.listening import seqs, trades, write
from tests.patience import PATIENCE_S, until

RAIN, SNOW = "0x" + "a" * 64, "0x" + "b" * 64
WALLET = "0x" + "c" * 40
READERS = itertools.count(1)


def numbers(events, count):
    return [event.seq for event in itertools.islice(events, count)]


async def numbers_of(stream, count):
    return [(await anext(stream)).seq for _ in range(count)]


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


# --- Against the service


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
    conn.execute("delete from stream_events where seq = any(%s)", [written[:5]])
    with Stream(served.url, served.key, resume_from=written[1]) as events:
        assert numbers(events, 5) == written[5:]
        with pytest.raises(Lost) as lost:
            next(events)
        assert lost.value.gap == Gap(written[1], written[-1])
        more = write(conn, trades(1))
        assert numbers(events, 1) == more  # what there is goes on
    gaps = []
    with Stream(served.url, served.key, resume_from=written[1], on_gap=gaps.append) as events:
        assert numbers(events, 6) == [*written[5:], *more]
        for _ in range(100):  # it is told when the replay is over, which the next events may be a part of
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


# --- Against others


def test_an_unreachable_service_is_given_up_after_the_patience():
    began = time.monotonic()
    with Stream("http://127.0.0.1:9", "key", patience_s=0.5) as events, pytest.raises(Unavailable):
        next(events)

    async def read():
        async with AsyncStream("http://127.0.0.1:9", "key", patience_s=0.5) as events:
            await anext(events)

    with pytest.raises(Unavailable):
        asyncio.run(read())
    assert time.monotonic() - began < 30


def event(seq):
    return json.dumps({"type": "trade", "seq": seq, "ts": 1, "market_id": None, "data": {}})


def say(kind, **said):
    return json.dumps({"type": kind, **said})


def test_duplicates_and_events_before_the_subscription_are_dropped():
    session = Session("http://x", "key", markets=["a", "b"], resume_from=5)
    events, answers = session.receive(say("hello", session="s", seq=9, oldest_seq=1, ts=1))
    assert (events, [json.loads(each) for each in answers]) == (
        [],
        [{"action": "subscribe", "markets": ["a", "b"], "resume_from": 5}],
    )
    assert session.receive(event(9))[0] == []  # not what was asked for: we were not heard yet
    assert session.receive(say("subscribed", markets=[], types="all", wallets=[]))[0] == []
    told, _ = session.receive("\n".join([event(6), event(6), event(5), event(8)]))
    assert seqs({"seq": each.seq} for each in told) == [6, 8]
    assert session.last == 8


def test_a_stream_from_now_on_resumes_from_its_first_greeting():
    session = Session("https://x/base/", "a key&", types=["trade"])
    assert session.url == "wss://x/base/stream?api_key=a+key%26"
    _, answers = session.receive(say("hello", seq=9, oldest_seq=1, ts=1))
    assert json.loads(answers[0]) == {"action": "subscribe", "types": ["trade"], "resume_from": 9}
    session.receive(say("subscribed"))
    _, answers = session.receive(say("hello", seq=20, oldest_seq=1, ts=1))
    assert json.loads(answers[0])["resume_from"] == 9


def test_pauses_grow_to_ten_seconds_and_reset_after_success():
    session = Session("http://x", "key")
    pauses = [session.pause() for _ in range(12)]
    assert 0.1 <= pauses[0] <= 0.2
    assert 5 <= pauses[-1] <= 10
    session.receive(say("replay_completed", seq=1, complete=True))
    assert session.pause() <= 0.2
    assert session.pause(3.0) >= 3.0


def test_a_server_that_keeps_disconnecting_is_resumed():
    turns = itertools.count(1)

    def answer(socket):
        turn = next(turns)
        socket.send(say("hello", seq=0, oldest_seq=1, ts=1))
        after = json.loads(socket.recv())["resume_from"]
        socket.send(say("subscribed"))
        socket.send(event(after + 1))
        if turn % 3 == 0:
            socket.close(1013, f"too slow; last_seq={after + 1}")

    with serve(answer, "127.0.0.1", 0) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        with Stream(f"http://127.0.0.1:{server.socket.getsockname()[1]}", "key") as events:
            events._session.pause = lambda _=None: 0.01
            assert numbers(events, 7) == list(range(1, 8))
        server.shutdown()


# --- Hostile and unlucky ones

KEY = "psg_secret+key"
NOW = 1_795_262_400.0


@contextlib.contextmanager
def serving_sockets(answer, **options):
    """A WebSocket server; gives its port."""
    with serve(answer, "127.0.0.1", 0, **options) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server.socket.getsockname()[1]
        finally:
            server.shutdown()
            thread.join()


def by_threads(url, count=1, **options):
    with Stream(url, KEY, **options) as events:
        events._session.pause = lambda _=None: 0.0
        return numbers(events, count)


def by_asyncio(url, count=1, **options):
    async def read():
        async with AsyncStream(url, KEY, **options) as events:
            events._session.pause = lambda _=None: 0.0
            return await numbers_of(events, count)

    return asyncio.run(read())


def replay_by_threads(url, **options):
    with Client(url, KEY) as client, client.market_channel_replay(1, **options):
        pass


def replay_by_asyncio(url, **options):
    async def read():
        async with AsyncClient(url, KEY) as client, client.market_channel_replay(1, **options):
            pass

    asyncio.run(read())


EITHER = pytest.mark.parametrize("read", [by_threads, by_asyncio])
EVERY = pytest.mark.parametrize("read", [by_threads, by_asyncio, replay_by_threads, replay_by_asyncio])


@EVERY
@pytest.mark.parametrize("to", ["https://other{}", "ftp://other{}", "ws://other:port{}", "ws://[{}", "{}#a", "{}"])
def test_a_redirect_is_refused_without_showing_the_key(read, to):
    def redirect(connection, request):
        return Response(302, "Found", Headers(Location=to.format(request.path)), b"")

    with serving_sockets(None, process_request=redirect) as port, pytest.raises(Refused) as refused:
        read(f"http://127.0.0.1:{port}")
    assert (refused.value.code, refused.value.detail) == (
        "invalid_address",
        f"127.0.0.1:{port} redirects or is not a valid address",
    )
    assert "psg_secret" not in "".join(traceback.format_exception(refused.value))


@EVERY
def test_a_wrong_proxy_is_refused_without_being_shown(read):
    with pytest.raises(Refused) as refused:
        read("http://127.0.0.1:9", proxy="gopher://user:password@proxy")
    assert refused.value.code == "invalid_address"
    assert "password" not in str(refused.value)


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    """A self-signed certificate of 127.0.0.1."""
    folder = tmp_path_factory.mktemp("certificate")
    command = "openssl req -x509 -newkey rsa:2048 -nodes -keyout key -out cert -days 2 -subj /CN=x -addext"
    subprocess.run([*command.split(), "subjectAltName=IP:127.0.0.1"], cwd=folder, check=True, capture_output=True)
    return folder


@EITHER
def test_a_certificate_is_final_and_can_be_handed_in(read, certificate):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate / "cert", certificate / "key")
    with serving_sockets(greet_and_send, ssl=context) as port:
        with pytest.raises(Refused) as refused:
            read(f"https://127.0.0.1:{port}")
        assert refused.value.code == "invalid_certificate"
        known = ssl.create_default_context(cafile=certificate / "cert")
        assert read(f"https://127.0.0.1:{port}", ssl=known, resume_from=4) == [5]


def greet_and_send(socket):
    """Send one event, the one after the position that the client has, and wait for the end."""
    socket.send(say("hello", seq=0, oldest_seq=1, ts=1))
    after = json.loads(socket.recv())["resume_from"]
    socket.send(say("subscribed"))
    socket.send(event(after + 1))
    for _ in socket:
        pass


@EITHER
def test_a_proxy_can_be_handed_in(read):
    asked = []

    def refuse():
        client, _ = proxy.accept()
        with client:
            asked.append(client.recv(4096))
            client.sendall(b"HTTP/1.1 403 no\r\nContent-Length: 0\r\n\r\n")

    with socket.create_server(("127.0.0.1", 0)) as proxy:
        thread = threading.Thread(target=refuse)
        thread.start()
        with pytest.raises(Unavailable):
            read("http://127.0.0.1:9", proxy=f"http://127.0.0.1:{proxy.getsockname()[1]}", patience_s=-1)
        thread.join()
    assert asked[0].startswith(b"CONNECT 127.0.0.1:9 ")


MALFORMED = [
    b"\xff",
    "[]",
    "1",
    "[" * 100_000,
    "{}",
    '{"type": "trade", "data": {}}',
    '{"type": "trade", "seq": "9", "ts": 1, "data": {}}',
    '{"type": "trade", "seq": 9, "ts": 1, "data": []}',
    '{"type": "error", "code": [], "detail": 1}',
    '{"type": "error", "code": "x"}',
    '{"type": "hello", "seq": "9"}',
]


@EITHER
@pytest.mark.parametrize("frame", MALFORMED, ids=range(len(MALFORMED)))
def test_a_malformed_frame_is_an_interruption(read, frame):
    turns = itertools.count()

    def answer(socket):
        if next(turns) == 0:
            socket.send(frame, text=True)
            for _ in socket:
                pass
        else:
            greet_and_send(socket)

    resume = None if '"hello"' in str(frame) else 4
    with serving_sockets(answer) as port:
        assert read(f"http://127.0.0.1:{port}", resume_from=resume) == [5 if resume else 1]
    assert next(turns) == 2


@pytest.mark.parametrize(
    "tail",
    [
        "{",
        '{"type": "trade", "seq": 7.5, "ts": 1, "data": {}}',
        '{"type": "replay_completed", "seq": 9.5, "complete": true}',
        say("error", code="internal", detail=""),
        say("error", code="not_found", detail=""),
    ],
)
def test_a_frame_that_fails_does_not_move_last(tail):
    session = Session("http://x", KEY, resume_from=4)
    session.receive(say("hello", seq=9))
    session.receive(say("subscribed"))

    with pytest.raises((Interrupted, Refused)):
        session.receive("\n".join([event(5), event(6), tail]))

    assert session.last == 4
    assert [each.seq for each in session.receive(event(5))[0]] == [5]


def response(status, body=b"", retry_after=()):
    return Response(status, "", Headers([("Retry-After", each) for each in retry_after]), body)


@pytest.mark.parametrize(
    ("headers", "wait"),
    [
        ([], None),
        (["7"], 7),
        (["9" * 500], 60),
        (["86400"], 60),
        (["5", "6"], 5),
        ([formatdate(NOW + 20, usegmt=True)], 20),
        ([formatdate(NOW - 20, usegmt=True)], 0),
        (["Mon, 01 Jan 99999999999999999999 00:00:00 GMT"], None),
        (["soon"], None),
    ],
)
def test_a_busy_service_is_waited_for(headers, wait):
    assert Session("http://x", KEY).refused(response(503, b"", headers), NOW).wait_s == wait


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b'{"code": "forbidden", "detail": "no psg_secret+key"}', "forbidden"),
        (b"no /stream?api_key=psg_secret%2Bkey", "400"),
        (b"\xff", "400"),
        (b"[" * 100_000, "400"),
        (b"[]", "400"),
        (b'{"code": "c"}', "400"),
    ],
)
def test_a_refusal_does_not_quote_the_key(body, code):
    with pytest.raises(Refused) as refused:
        Session("http://x", KEY).refused(response(400, body), NOW)
    assert refused.value.code == code
    assert "secret" not in str(refused.value)
    assert len(refused.value.detail) <= 500


def test_closing_ends_a_pause():
    waiting = threading.Event()

    def pause(_=None):
        waiting.set()
        return 3600.0

    events = Stream("http://127.0.0.1:9", KEY)
    events._session.pause = pause
    thread = threading.Thread(target=list, args=(events,))
    thread.start()
    waiting.wait()
    events.close()
    thread.join()

    async def read():
        stream = AsyncStream("http://127.0.0.1:9", KEY)
        stream._session.pause = pause
        reading = asyncio.create_task(anext(stream, None))
        await asyncio.to_thread(waiting.wait)
        await stream.close()
        return await reading

    waiting.clear()
    assert asyncio.run(read()) is None


@pytest.mark.parametrize("asynchronous", [False, True])
def test_closing_while_connecting_leaves_no_socket(asynchronous):
    connecting, closed, over = threading.Event(), threading.Event(), threading.Event()

    def hold(connection, request):
        connecting.set()
        closed.wait()

    def answer(socket):
        for _ in socket:
            pass
        over.set()

    async def read(url):
        stream = AsyncStream(url, KEY)
        reading = asyncio.ensure_future(anext(stream, None))
        await asyncio.to_thread(connecting.wait)
        await stream.close()
        closed.set()
        assert await reading is None

    with serving_sockets(answer, process_request=hold) as port:
        url = f"http://127.0.0.1:{port}"
        if asynchronous:
            asyncio.run(read(url))
        else:
            stream = Stream(url, KEY)
            thread = threading.Thread(target=list, args=(stream,))
            thread.start()
            connecting.wait()
            stream.close()
            closed.set()
            thread.join()
        assert over.wait(PATIENCE_S)
