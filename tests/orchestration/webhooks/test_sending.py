"""An attempt goes to a verified address, and nowhere else."""

from __future__ import annotations

import asyncio
import itertools
import socket
import socketserver
import ssl
import struct
import subprocess
import threading
import time

import httpcore
import pytest
from standardwebhooks import Webhook

from orchestration.webhooks.sending import Sender, headers
from tests.orchestration.webhooks.receiving import LOOPBACK, new_secret
from tests.ports import free_port
from tests.upstream.transport.test_addresses import LOOPBACK as ENCODINGS
from tests.upstream.transport.test_addresses import PRIVATE
from upstream.transport.addresses import networks


def send(url, *, times=1, **how):
    """Make attempts, one after the other; return their outcomes."""

    async def attempts():
        sender = Sender(**{"timeout_s": 60.0, "clock": time.time, **how})
        try:
            return [await sender.send(url, [new_secret()], "msg_1", "{}") for _ in range(times)]
        finally:
            await sender.close()

    return asyncio.run(attempts())


@pytest.fixture
def reached(monkeypatch):
    """Return every address to which a connection is begun."""
    found = []
    connect = httpcore.AnyIOBackend.connect_tcp

    async def connecting(self, host, port, *rest, **more):
        found.append(host)
        return await connect(self, host, port, *rest, **more)

    monkeypatch.setattr(httpcore.AnyIOBackend, "connect_tcp", connecting)
    return found


def test_the_second_that_is_signed_is_the_one_that_is_sent(monkeypatch):
    signed = []
    monkeypatch.setattr(
        Webhook, "sign", lambda _, message_id, instant, body: signed.append(instant.timestamp()) or "v1,"
    )

    for at in (1_800_000_000.0, 1_800_000_000.5, 1_800_000_000.9999998):
        sent = headers([new_secret()], "msg_1", at, "{}")
        assert (sent["webhook-timestamp"], signed.pop()) == ("1800000000", 1_800_000_000)


def test_no_connection_is_begun_to_loopback_however_it_is_written(receiver, reached):
    port = receiver.server.server_port

    outcomes = [send(f"http://{host}:{port}/")[0] for host in ENCODINGS]

    assert [outcome.status for outcome in outcomes] == [None] * len(ENCODINGS)
    assert all(outcome.error for outcome in outcomes)
    assert (reached, receiver.connections) == ([], 0)


def test_no_connection_is_begun_to_a_private_address(reached):
    hosts = [f"[{address}]" if ":" in address else address for address in PRIVATE if address]

    outcomes = [send(f"http://{host}/")[0] for host in hosts]

    assert [outcome.status for outcome in outcomes] == [None] * len(hosts)
    assert reached == []


class Names:
    """A name server with another answer each time, with no time to live: DNS rebinding."""

    def __init__(self, *addresses):
        self.answers = itertools.cycle(addresses)
        self.asked = 0
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind(("127.0.0.1", 0))
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()

    def serve(self):
        while True:
            query, client = self.socket.recvfrom(512)
            if not query:
                return
            self.asked += 1
            head = query[:2] + struct.pack(">HHHHH", 0x8180, 1, 1, 0, 0)
            answer = struct.pack(">HHHIH", 0xC00C, 1, 1, 0, 4) + socket.inet_aton(next(self.answers))
            self.socket.sendto(head + query[12:] + answer, client)

    def resolve(self, host, _port):
        labels = b"".join(bytes([len(label)]) + label.encode() for label in host.split("."))
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
            asking.settimeout(60)
            asking.sendto(
                struct.pack(">HHHHHH", 7, 0x0100, 1, 0, 0, 0) + labels + b"\0\0\1\0\1", self.socket.getsockname()
            )
            return [socket.inet_ntoa(asking.recv(512)[-4:])]

    def close(self):
        self.socket.sendto(b"", self.socket.getsockname())
        self.thread.join(60)
        self.socket.close()


@pytest.fixture
def names():
    made = []

    def start(*addresses):
        made.append(Names(*addresses))
        return made[-1]

    yield start
    for one in made:
        one.close()


def test_a_name_that_is_rebound_leads_only_to_what_was_judged(receiver, reached, names):
    # 127.0.0.2 plays the public address: it alone is allowed. The receiver listens on both.
    port, rebound = receiver.server.server_port, names("127.0.0.2", "127.0.0.1")
    how = {"allowed": networks("127.0.0.2/32"), "resolve": rebound.resolve}

    outcomes = [send(f"http://rebound.example:{port}/", **how)[0] for _ in range(6)]

    assert rebound.asked == 6  # once for each connection
    assert {outcome.error for outcome in outcomes[1::2]} == {
        "rebound.example is at 127.0.0.1, which is not on the public internet"
    }
    assert set(reached) == {"127.0.0.2"}
    assert receiver.connections == 0  # it is bound to 127.0.0.1 only


def test_a_connection_that_is_kept_open_needs_no_second_look(receiver, names):
    rebound = names("127.0.0.1", "10.0.0.1")

    outcomes = send(
        f"http://rebound.example:{receiver.server.server_port}/", times=3, allowed=LOOPBACK, resolve=rebound.resolve
    )

    assert [outcome.status for outcome in outcomes] == [200] * 3
    assert (rebound.asked, receiver.connections) == (1, 1)
    assert {seen.headers["host"] for seen in receiver.seen} == {f"rebound.example:{receiver.server.server_port}"}


def test_an_address_that_does_not_answer_gives_way_to_the_next(receiver, reached):
    outcome = send(
        f"http://two.example:{receiver.server.server_port}/",
        allowed=LOOPBACK,
        resolve=lambda _host, _port: ["127.0.0.3", "127.0.0.1"],
    )[0]

    assert outcome.status == 200
    assert reached == ["127.0.0.3", "127.0.0.1"]


def test_the_environments_proxy_is_not_used(receiver, monkeypatch):
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:9")

    assert send(receiver.url, allowed=LOOPBACK)[0].status == 200


def test_nobody_there_and_no_such_name_are_said_in_words():
    port = free_port()

    refused = send(f"http://127.0.0.1:{port}/", allowed=LOOPBACK)[0]
    unknown = send("http://nobody.invalid/")[0]

    assert refused.error.startswith("cannot connect: ")
    assert unknown.status is None
    assert "Name or service not known" in unknown.error or "name resolution" in unknown.error


def test_only_the_beginning_of_an_answer_is_kept_and_no_more_is_read_than_is_good(receiver):
    flood = b"a\0" * (1 << 20)
    receiver.answer = lambda _number, _seen: (500, {"content-length": str(8 + len(flood)), "connection": "close"})
    receiver.stray = flood

    outcome = send(receiver.url, allowed=LOOPBACK)[0]

    assert outcome.status == 500
    assert outcome.answer.startswith("500 it isa")
    assert len(outcome.answer) < 500
    assert "\0" not in outcome.answer


def test_a_fault_is_told_in_few_words_whatever_the_receiver_sends():
    class Nonsense(socketserver.BaseRequestHandler):
        def handle(self):
            self.request.recv(65_536)
            self.request.sendall(b"nonsense " * 1000 + b"\r\n\r\n")

    with socketserver.TCPServer(("127.0.0.1", 0), Nonsense) as server:
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        outcome = send(f"http://127.0.0.1:{server.server_address[1]}/", allowed=LOOPBACK)[0]
        server.shutdown()

    assert outcome.status is None
    assert "nonsense" in outcome.error
    assert len(outcome.error) == 500


def test_a_certificate_is_held_against_the_name_and_not_the_address(tmp_path, receiver):
    key, certificate = tmp_path / "key.pem", tmp_path / "cert.pem"
    made = (
        f"openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -keyout {key} -out {certificate}"
    )
    named = ["-subj", "/CN=hooks.example", "-addext", "subjectAltName=DNS:hooks.example"]
    subprocess.run([*made.split(), *named], check=True, capture_output=True)
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(certificate, key)
    receiver.server.socket = server.wrap_socket(receiver.server.socket, server_side=True)
    how = {"allowed": LOOPBACK, "resolve": lambda _host, _port: ["127.0.0.1"]}
    trusting = ssl.create_default_context(cafile=str(certificate))
    port = receiver.server.server_port

    right = send(f"https://hooks.example:{port}/", context=trusting, **how)[0]
    wrong = send(f"https://other.example:{port}/", context=trusting, **how)[0]
    strange = send(f"https://hooks.example:{port}/", **how)[0]

    assert right.status == 200
    assert (wrong.status, strange.status) == (None, None)
    assert "CERTIFICATE_VERIFY_FAILED" in wrong.error
    assert "CERTIFICATE_VERIFY_FAILED" in strange.error
