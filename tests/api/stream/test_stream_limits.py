"""Who may open the stream, how many may be open, and how it ends."""

from __future__ import annotations

import contextlib
import json
import os
import resource
import signal
import socket
import threading
import time

import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect

from benchmarks.api.load import cpu_s
from sql import database
from tests import stream_rows
from tests.api.conftest import generous, listener, serving
from tests.api.listening import listening, seqs, trades, write
from tests.api.raw import PING, PING_COMMAND, Raw, closing, framed
from tests.patience import PATIENCE_S, until

# A worker that waited for a client would do so for longer than `until` does.
LONG_STOP = {"GUNICORN_CMD_ARGS": f"--graceful-timeout {round(10 * PATIENCE_S)}"}


@pytest.fixture(scope="module")
def server(short_timeout_server):
    return short_timeout_server


@pytest.fixture(scope="module")
def patient(new_database):
    """A server that waits for its clients as long as any does; those that are no pages see nothing of its list."""
    with (
        new_database() as url,
        serving(url, PRESAGE_STREAM_ORIGINS="https://A.example, https://b.example:8443") as running,
    ):
        yield running


@pytest.fixture
def patient_conn(patient):
    with database.connect(patient.database_url, autocommit=True, name="presage test") as conn:
        yield conn


def refusal(url, **how):
    with pytest.raises(InvalidStatus) as refused, connect(url, **how):
        pass
    response = refused.value.response
    return response.status_code, json.loads(response.body)["code"]


# --- Origin


def test_without_a_list_any_page_may_open_the_stream(server, server_key):
    with connect(server.stream(server_key), origin="https://anywhere.example") as client:
        assert json.loads(client.recv())["type"] == "hello"


def test_with_a_list_only_its_pages_may_and_what_is_no_page(patient, patient_conn):
    url = patient.stream(generous(patient_conn, "someone@example.com"))
    for origin in ("https://a.example", "https://b.example:8443", None):
        with connect(url, origin=origin) as client:
            assert json.loads(client.recv())["type"] == "hello"
    for origin in ("http://a.example", "https://a.example.evil.example", "https://b.example", "null"):
        assert refusal(url, origin=origin) == (403, "forbidden")


# --- Connections of a key


def test_the_cap_of_a_key_holds_over_all_workers_and_is_told_before_the_upgrade(database_url, conn):
    key = generous(conn, "someone@example.com", max_connections=4)
    with serving(database_url, workers=2) as server:
        url = server.stream(key)
        with contextlib.ExitStack() as stack:
            clients = [stack.enter_context(connect(url)) for _ in range(4)]
            assert refusal(url) == (429, "burst_exceeded")
            clients[0].close()
            until(lambda: opens(url))
        # kill -9 of the workers: what they had does not count, nor is anything else forgotten.
        with contextlib.ExitStack() as stack:
            lost = [stack.enter_context(taken(server, f"/stream?api_key={key}")) for _ in range(4)]
            before = set(server.workers())
            for pid in before:
                os.kill(pid, signal.SIGKILL)
            until(lambda: len(server.workers()) == 2 and not before & set(server.workers()))
            assert [client.close_code() for client in lost] == [None] * 4
            found = [stack.enter_context(listening(url)) for _ in range(4)]
            assert len(found) == 4
            assert refusal(url) == (429, "burst_exceeded")


def opens(url):
    try:
        with connect(url):
            return True
    except (InvalidStatus, OSError, EOFError):
        return False


def taken(server, path):
    """A stream, asked for until it is given: those that were just closed count until the server has heard of it."""
    end = time.monotonic() + PATIENCE_S
    while True:
        try:
            return Raw(("127.0.0.1", server.port), path)
        except AssertionError:  # refused
            if time.monotonic() > end:
                raise
            time.sleep(0.02)


# --- The end


def test_a_client_that_answers_no_ping_is_hung_up_on_and_one_that_does_is_not(server, server_key):
    path = f"/stream?api_key={server_key}"
    with Raw(("127.0.0.1", server.port), path) as silent, Raw(("127.0.0.1", server.port), path) as lively:
        began = time.monotonic()
        for _ in range(6):  # in which time the other has been given up
            frame = lively.until(PING)
            assert frame is not None
            assert frame.payload == b""
            lively.send(framed(frame.payload, 10))
        frames = []
        while (frame := silent.frame()) is not None:
            frames.append(frame.opcode)

    assert frames.count(PING) >= 2
    assert time.monotonic() - began < 30  # half of what a client is given elsewhere


def test_a_reload_and_a_stop_say_1012_and_an_immediate_stop_says_1001(database_url, conn):
    key = generous(conn, "someone@example.com")
    with serving(database_url) as server:
        path = f"/stream?api_key={key}"
        with contextlib.ExitStack() as stack:
            before = [stack.enter_context(Raw(("127.0.0.1", server.port), path)) for _ in range(4)]
            workers = set(server.workers())
            server.process.send_signal(signal.SIGHUP)
            assert [client.close_code() for client in before] == [1012] * 4
            until(lambda: server.workers() and not workers & set(server.workers()))
            until(lambda: opens(server.stream(key)))
            after = [stack.enter_context(Raw(("127.0.0.1", server.port), path)) for _ in range(4)]
            server.process.send_signal(signal.SIGTERM)
            assert [client.close_code() for client in after] == [1012] * 4
    with serving(database_url) as server, Raw(("127.0.0.1", server.port), path) as client:
        server.process.send_signal(signal.SIGQUIT)
        assert client.close_code() == 1001


def test_a_client_that_is_closed_before_its_replay_is_told_to_resume_where_it_asked_to(database_url, conn):
    key = generous(conn, "someone@example.com")
    with serving(database_url) as server:
        written = write(conn, trades(5))
        command = f'{{"action":"subscribe","markets":["0x{"2" * 64}"],"resume_from":{written[1]}}}'.encode()
        with Raw(("127.0.0.1", server.port), f"/stream?api_key={key}") as client:
            client.send(framed(command))
            until(lambda: client.said()["type"] == "replay_completed")
            server.process.send_signal(signal.SIGTERM)
            frame = client.until(8)
    assert frame.payload[2:].decode().endswith(f"last_seq={written[1]}")


def test_a_client_that_never_ceases_to_send_does_not_keep_others_from_their_farewell(database_url, conn):
    key = generous(conn, "someone@example.com")
    with (
        serving(database_url, **LONG_STOP) as server,
        listening(server.stream(key)) as other,
        Raw(("127.0.0.1", server.port), f"/stream?api_key={key}") as flooding,
    ):
        flood = threading.Thread(target=flood_of, args=(flooding, framed(b"", PING) * 10_000))
        flood.start()
        try:
            written = write(conn, trades(3))
            assert seqs(other.events(3)) == written
            server.process.send_signal(signal.SIGTERM)
            with pytest.raises(ConnectionClosed) as closed:
                other.next()
            until(lambda: server.process.poll() is not None)
        finally:
            server.process.kill()
            with contextlib.suppress(OSError):  # gone already
                flooding.socket.shutdown(socket.SHUT_RDWR)
            flood.join()
    assert closed.value.rcvd.code == 1012
    assert closed.value.rcvd.reason == f"the service is stopping; last_seq={written[-1]}"  # so that a client can go on


def flood_of(client, frames):
    with contextlib.suppress(OSError):
        while True:
            client.send(frames)


def test_a_worker_with_a_thousand_streams_is_gone_in_a_moment(database_url, conn):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 8192), hard))
    key = generous(conn, "someone@example.com", max_connections=2000)
    try:
        with serving(database_url, **LONG_STOP) as server, contextlib.ExitStack() as stack:
            path = f"/stream?api_key={key}"
            clients = [stack.enter_context(Raw(("127.0.0.1", server.port), path)) for _ in range(1000)]
            (worker,) = server.workers()
            others, before = children_cpu_s(), cpu_s([server.process.pid, worker])
            began = time.monotonic()
            os.kill(server.process.pid, signal.SIGTERM)
            codes = []
            for number, client in enumerate(clients):
                frame = client.until(8)
                codes.append(frame and frame.code)
                if number % 2:  # the others do not answer
                    with contextlib.suppress(OSError):
                        client.send(closing(1001))
            said = time.monotonic() - began
            until(lambda: server.process.poll() is not None)
            gone, worked = time.monotonic() - began, children_cpu_s() - others - before
            print(f"1,000 streams closed in {said:.2f} s, the server gone after {gone:.2f} s: {worked:.2f} s of work")
            assert codes == [1012] * 1000
            assert worked < 3  # half a second where nothing else runs
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def children_cpu_s():
    """What the processes that this one has waited for took of the processors, their own children with them."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


# --- Replays beside live clients


def test_many_replays_at_once_do_not_keep_a_live_client_waiting(patient, patient_conn):
    key = generous(patient_conn, "someone@example.com", max_connections=200)
    path = f"/stream?api_key={key}"
    with listening(patient.stream(key)) as client:
        first = client.hello["seq"]
        for _ in range(10):
            write(patient_conn, trades(1000))
        client.events(10_000)
        stop, waited = threading.Event(), []

        def keep_asking():
            while not stop.is_set():
                began = time.monotonic()
                write(patient_conn, trades(1))
                client.next()
                waited.append(time.monotonic() - began)

        asking = threading.Thread(target=keep_asking)
        asking.start()
        try:
            with contextlib.ExitStack() as stack:
                address, began = ("127.0.0.1", patient.port), time.monotonic()
                behind = [stack.enter_context(Raw(address, f"{path}&resume_from={first}")) for _ in range(100)]
                before = len(waited)
                completed = [drained(each) for each in behind]
                during, took = len(waited) - before, time.monotonic() - began
            until(lambda: len(waited) >= 20)
        finally:
            stop.set()
            asking.join()

    print(
        f"100 replays took {took:.2f} s; a live client heard {during} times, and waited for {max(waited):.3f} s at most"
    )
    assert completed == [True] * 100
    assert during > 3  # whoever is kept waiting hears once at most, as it asks again when answered
    assert sorted(waited)[-2] < max(2.0, took / 2), waited


def drained(raw):
    """Whether a replay was completed, and all of it."""
    while True:
        frame = raw.until(1)
        if b'"replay_completed"' in frame.payload:
            return json.loads(frame.payload)["complete"]


def test_ten_thousand_messages_are_replayed_in_a_moment(patient, patient_conn):
    listen = listener(patient, patient_conn, generous(patient_conn, "replayed@example.com"))
    with listen() as client:
        first = client.hello["seq"]
    written = [seq for _ in range(10) for seq in write(patient_conn, trades(1000))]
    took = []
    for _ in range(3):
        began = time.monotonic()
        with listen(resume_from=first) as client:
            heard, completed = client.until("replay_completed")
        took.append(time.monotonic() - began)
        assert seqs(heard) == written
        assert completed["complete"] is True
    plainly = []  # the same, read by whoever has the database
    for _ in range(3):
        began = time.monotonic()
        rows = stream_rows.rows(patient_conn)
        assert [json.loads(row.message)["seq"] for row in rows if row.seq > first] == written
        plainly.append(time.monotonic() - began)
    print(f"10,000 messages replayed in {min(took) * 1000:.0f} ms; plainly read in {min(plainly) * 1000:.0f} ms")
    assert min(took) < 10 * min(plainly)


def test_a_replay_of_what_is_no_longer_kept_says_so(listen, server_conn):
    with listen() as client:
        first = client.hello["seq"]
    written = write(server_conn, trades(30))
    stream_rows.remove(server_conn, written[10:20].__contains__)
    with listen(resume_from=first) as client:
        heard, completed = client.until("replay_completed")

    assert seqs(heard) == written[:10] + written[20:]
    assert completed["complete"] is False


def test_messages_that_cannot_be_read_end_a_connection_and_are_not_promised_to_who_comes_back(patient, patient_conn):
    key = generous(patient_conn, "damaged@example.com")
    with listening(patient.stream(key)) as client:
        before = write(patient_conn, trades(5))
        assert seqs(client.events(5)) == before
        with patient_conn.transaction():  # so that nobody reads it whole
            damaged = write(patient_conn, trades(5))
            stream_rows.spoil(patient_conn, damaged[0])
        with pytest.raises(ConnectionClosed) as closed:
            client.next()
    assert (closed.value.rcvd.code, closed.value.rcvd.reason) == (1013, f"events are missing; last_seq={before[-1]}")

    with listening(patient.stream(key, resume_from=before[0])) as client:
        written = write(patient_conn, trades(3))
        heard, completed = client.until("replay_completed")
        heard += client.events(7 - len(heard))
    assert seqs(heard) == before[1:] + written
    assert completed["complete"] is False


def test_a_database_that_is_behind_sends_everyone_away_to_ask_anew(patient, patient_conn):
    key = generous(patient_conn, "someone@example.com")
    with listening(patient.stream(key)) as client:
        last = write(patient_conn, trades(5))[-1]
        client.events(5)
        stream_rows.remove(patient_conn, lambda seq: seq > last - 2)
        patient_conn.execute("update stream_head set last_seq = %s", [last - 2])
        with pytest.raises(ConnectionClosed) as closed:
            client.next()
    assert (closed.value.rcvd.code, closed.value.rcvd.reason) == (
        1012,
        f"the event numbers were reset; last_seq={last}",
    )
    with listening(patient.stream(key, resume_from=last)) as client:
        said = {"type": "replay_completed", "seq": last - 2, "complete": False}
        assert client.until("replay_completed")[1] == said
        written = write(patient_conn, trades(1))
        assert seqs(client.events(1)) == written == [last - 1]


def test_who_pings_without_reading_owes_nothing_and_bothers_nobody(server, server_key):
    with Raw(("127.0.0.1", server.port), f"/stream?api_key={server_key}", receive_buffer=4096) as deaf:
        deaf.socket.settimeout(0.3)
        with contextlib.suppress(socket.timeout):
            for _ in range(50):
                deaf.send(framed(b"p" * 125, PING) * 100)
        with Raw(("127.0.0.1", server.port), f"/stream?api_key={server_key}") as other:
            other.send(framed(PING_COMMAND))
            assert other.said()["type"] == "pong"
