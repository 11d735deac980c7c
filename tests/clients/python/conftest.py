"""A small server that gives prepared answers, and both clients' calls of it."""

from __future__ import annotations

import asyncio
import socket
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from presage_client import AsyncClient, Client, PresageError

NOW = 1_795_262_400.0


@contextmanager
def answering(*answers):
    """A server that gives these answers in turn; `asked` has the requests."""
    left = list(answers)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self):
            server.asked.append((self.command, self.path, self.headers))
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
            status, headers, body = left.pop(0)
            if not status:
                self.connection.shutdown(socket.SHUT_RDWR)
                self.close_connection = True
                return
            self.send_response(status)
            for name, value in {"Content-Length": str(len(body)), **headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        do_POST = do_DELETE = do_PATCH = do_GET  # noqa: N815 - named by the library

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    server.asked = []
    server.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.fixture(params=["sync", "async"])
def call(request):
    """`call(server, "categories", …)` gives what either client returns, and the waits before."""

    def by_threads(server, name, *args, **settings):
        waits = []
        with Client(server.url, "key", sleep=waits.append, clock=lambda: NOW, **settings) as client:
            try:
                return getattr(client, name)(*args), waits
            except PresageError as error:
                return error, waits

    def by_asyncio(server, name, *args, **settings):
        waits = []

        async def sleep(seconds):
            waits.append(seconds)

        async def run():
            async with AsyncClient(server.url, "key", sleep=sleep, clock=lambda: NOW, **settings) as client:
                try:
                    return await getattr(client, name)(*args), waits
                except PresageError as error:
                    return error, waits

        return asyncio.run(run())

    return by_threads if request.param == "sync" else by_asyncio
