"""A receiver of webhooks on a real socket, webhooks and events made without the API, and a clock that stands still."""

from __future__ import annotations

import itertools
import secrets
import socket
import threading
import time
from base64 import b64encode
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import NamedTuple

import msgspec

from orchestration import stream
from orchestration.webhooks.attempts import Attempts
from orchestration.webhooks.dispatcher import Dispatcher
from orchestration.webhooks.sending import Sender
from sql import database
from sql.webhook_secrets import SecretBox
from tests.factories import insert
from tests.patience import PATIENCE_S
from upstream.transport.addresses import networks

LOOPBACK = networks("127.0.0.0/8")
MARKET = "0x" + "5d" * 32
_numbers = itertools.count(1)


class Seen(NamedTuple):
    """A received request."""

    at: float
    headers: dict[str, str]
    body: bytes
    path: str

    @property
    def id(self):
        return self.headers["webhook-id"]

    @property
    def event(self):
        return msgspec.json.decode(self.body)


class Receiver:
    """Answers each request with what `answer(number, seen)` returns: a status, or a status, headers and text."""

    def __init__(self):
        receiver = self
        self.seen: list[Seen] = []
        self.answer = lambda _number, _seen: 200
        self.stray = b""
        self.connections = 0
        self.sockets: list[socket.socket] = []
        lock = threading.Lock()

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                length = int(self.headers["content-length"])
                body = self.rfile.read(length)
                if len(body) < length:  # the sender was killed in the middle of it
                    self.close_connection = True
                    return
                headers = {name.lower(): value for name, value in self.headers.items()}
                with lock:
                    seen = Seen(time.time(), headers, body, self.path)
                    receiver.seen.append(seen)
                    number = len(receiver.seen)
                answer = receiver.answer(number, seen)
                status, more, *said = answer if isinstance(answer, tuple) else (answer, {})
                text = said[0].encode() if said else f"{status} it is".encode()
                self.send_response(status)
                for name, value in {**({} if status == 204 else {"content-length": str(len(text))}), **more}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write((b"" if status == 204 else text) + receiver.stray)

            def log_message(self, *_):
                pass

        class Server(ThreadingHTTPServer):
            daemon_threads = True
            request_queue_size = 128

            def process_request(self, request, client_address):
                receiver.connections += 1
                receiver.sockets.append(request)
                super().process_request(request, client_address)

            def handle_error(self, *_):  # a killed sender does not wait for the answer
                pass

        self.server = Server(("127.0.0.1", 0), Handler)
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True)
        self.thread.start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server.server_port}/hook"

    def close(self):
        """Close the port, and the connections that senders keep open: a thread would go on answering on each."""
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()
        for each in self.sockets:
            with suppress(OSError):  # it is closed already
                each.shutdown(socket.SHUT_RDWR)


@contextmanager
def receiving():
    receiver = Receiver()
    try:
        yield receiver
    finally:
        receiver.close()


def new_secret():
    return "whsec_" + b64encode(secrets.token_bytes(32)).decode()


def add_webhook(conn, url, events=("trade",), **columns):
    """Add a webhook of an account of its own, unless another is given."""
    if "account_id" not in columns:
        number = next(_numbers)
        account = insert(conn, "accounts", {"email": f"hook-{number}@example.com", "app_name": "tests"})
        columns["account_id"] = account["account_id"]
    since = conn.execute("select last_seq from stream_head").fetchone()[0]
    row = {"url": url, "events": list(events), "secret": new_secret(), "since_seq": since, **columns}
    made = insert(conn, "webhooks", row)
    conn.execute("update webhook_head set version = version + 1")
    return made


def tell(conn, *told):
    """Publish events on the stream: a kind and its record, for each; return the last number."""
    messages = []
    for kind, data in told:
        market, wallet = data.get("market_id", MARKET), data.get("wallet")
        record = {"market_id": market, **{name: value for name, value in data.items() if name != "wallet"}}
        messages.append(stream.message(kind, 1_795_262_400_123, market, record, wallet))
    with conn.transaction():
        return stream.publish(conn, messages, int(time.time() * 1000))


def trade(number, **data):
    return "trade", {"id": str(number), "price": 0.5, "size": 10, "value_usd": 5.0, "side": "BUY", **data}


class Clock:
    """A clock that returns the time it was set to."""

    def __init__(self, now=1_795_262_400.0):
        self.now = now

    def __call__(self):
        return self.now


class Delivering:
    """The leader's work, a step at a time, by a clock that stands still unless another is given."""

    def __init__(self, database_url, clock=None, *, timeout_s=60.0, allowed=LOOPBACK, resolve=None, box=None, **how):
        self.conn = database.connect(database_url, autocommit=True, name="presage test delivery")
        self.clock = clock or Clock()
        box = box or SecretBox()
        more = {} if resolve is None else {"resolve": resolve}
        self.attempts = Attempts(
            lambda: Sender(timeout_s=timeout_s, clock=self.clock, allowed=allowed, **more), self.clock, box.decrypt
        )
        self.dispatcher = Dispatcher(self.conn, self.attempts, self.clock, **how)

    def settle(self, within_s=PATIENCE_S):
        """Step until nothing more is to be done now."""
        until = time.monotonic() + within_s
        while True:
            self.dispatcher.step()
            if self.dispatcher.finish() and not self.dispatcher.behind and not self._due():
                return
            assert time.monotonic() < until, self.dispatcher.standing()
            self.attempts.wait(0.05)

    def _due(self):
        return self.conn.execute(
            "select count(*) from webhooks where due_at <= to_timestamp(%s) and disabled_at is null", [self.clock()]
        ).fetchone()[0]

    def close(self):
        self.attempts.close()
        self.conn.close()


def deliveries(conn, webhook):
    """Return state, attempts, statuses and errors of a webhook's deliveries, in order."""
    rows = conn.execute(
        "select state, attempts, log from webhook_deliveries where webhook_id = %s order by number",
        [webhook["webhook_id"]],
    ).fetchall()
    return [(state, attempts, [entry["status"] for entry in log]) for state, attempts, log in rows]
