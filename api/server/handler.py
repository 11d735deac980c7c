"""A hardened HTTP connection: pywsgi's handler with deadlines and limits; the application accepts WebSockets.

By default, gevent-websocket answers 101 before the application has seen the request, and pywsgi waits for ever for a
header; both assume a friendly network.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
import time
from contextlib import contextmanager, nullcontext
from datetime import timedelta
from io import BytesIO
from random import random
from typing import TYPE_CHECKING, Any, ClassVar
from urllib.parse import unquote_plus

import gevent
from gevent import Timeout
from gevent.pywsgi import Input, format_date_time
from geventwebsocket.handler import WebSocketHandler
from gunicorn.workers.ggevent import GeventResponse, PyWSGIHandler

from api import errors
from api.server.headers import BadRequest, Headers
from api.stream.socket import Socket

if TYPE_CHECKING:
    from collections.abc import Iterator

ACCEPT = "presage.accept"  # in the WSGI environment of an upgrade: call it to get the socket
MAX_BODY = 65_536

# Falcon treats WEBSOCKET as an ASGI pseudo-method, which its WSGI middleware does not expect.
_REQUEST_LINE = re.compile(r"(?!WEBSOCKET )[A-Z]{1,20} [\x21-\x7e]+ HTTP/1\.[01]\r\n\Z")
_SECRETS = frozenset({"api_key", "key", "token"})


class BadHandshake(ValueError):  # noqa: N818 (says what it is)
    """The WebSocket handshake is not valid."""


class Handler(WebSocketHandler, PyWSGIHandler):  # type: ignore[misc]
    """Handles the requests of one connection in sequence."""

    idle_s: ClassVar[float] = 30.0  # keep-alive timeout between two requests
    request_s: ClassVar[float] = 10.0  # for the request line and headers, and the same again for a body
    idle: ClassVar[set[Handler]] = set()  # idle connections, which a stopping worker need not wait for
    stopping: ClassVar[bool] = False

    MessageClass = staticmethod(lambda file, _seekable: Headers(file))
    environ: Any
    provided_date: Any
    websocket: Socket | None = None
    ahead = b""  # bytes received after the request line
    body = b""
    head = b""  # the application's headers, encoded
    served = 0

    # --- Reading a request

    def handle_one_request(self) -> Any:
        """Serve one request; None ends the connection."""
        self.environ = None
        result = super().handle_one_request()
        if isinstance(result, tuple) and result[0] == "414":
            result = ("414", errors.on_the_wire(414, "invalid_parameter", "The request line is too long"))
        return result

    def read_requestline(self) -> str:
        """Return the next request line; empty after the idle timeout."""
        line: str = ""
        self.ahead = b""
        self.idle.add(self)
        try:
            with Timeout(self.idle_s if self.served else self._deadline_s(), False):  # noqa: FBT003
                line = super().read_requestline()
                self.idle.discard(self)
                if _REQUEST_LINE.match(line):
                    self.ahead = self.rfile.peek()  # headers must follow
        finally:
            self.idle.discard(self)
        self.served += 1
        return line

    def read_request(self, raw_requestline: str) -> bool:
        """Parse the headers and read the full body, each within its deadline."""
        if not _REQUEST_LINE.match(raw_requestline):
            raise BadRequest("The request line is malformed")
        self.body = b""
        # Usually all headers are here already: the cost of a deadline is paid only if they are not.
        with nullcontext() if b"\r\n\r\n" in self.ahead else self._awaited():
            self._read_headers(raw_requestline)
            if not self.content_length:
                return True
            with Timeout(self.request_s, False):  # noqa: FBT003
                return self._read_body(self.content_length)
        raise BadRequest(f"The request took longer than {self.request_s:g} s to arrive")

    @contextmanager
    def _awaited(self) -> Iterator[None]:
        """Limit the block by the deadline, then yield, since many such waits may end at once."""
        with Timeout(self._deadline_s(), False):  # noqa: FBT003
            try:
                yield
            finally:
                gevent.sleep(0)

    def _deadline_s(self) -> float:
        """Return a request's deadline, randomised so that requests that began together do not end together."""
        return self.request_s * (1.0 + random() / 5)  # noqa: S311 (no secret)

    def _read_headers(self, raw_requestline: str) -> None:
        super().read_request(raw_requestline)
        if self.request_version == "HTTP/1.1" and self.headers.get("host") is None:
            raise BadRequest("The Host header is missing")
        if self.stopping:
            self.close_connection = True

    def _read_body(self, length: int) -> bool:
        if length > MAX_BODY:
            raise BadRequest(f"A body may have at most {MAX_BODY} bytes", 413, "body_too_large")
        if (self.headers.get("expect") or "").lower() == "100-continue":
            self.socket.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
        self.body = self.rfile.read(length)
        if len(self.body) < length:
            raise BadRequest("The body ended early", 400, "invalid_body")
        return True

    def _handle_client_error(self, ex: Exception) -> tuple[str, bytes]:
        """Answer a malformed request. The request line is not logged: it may contain a key."""
        refused = ex if isinstance(ex, BadRequest) else BadRequest("The request is malformed")
        self.log_error("request refused (from %s): %s", self.client_address, refused.detail)
        return str(refused.status), errors.on_the_wire(refused.status, refused.code, refused.detail)

    def _headers(self) -> Any:
        return self.headers.environ()

    def get_environ(self) -> dict[str, Any]:
        """Return the WSGI environment, with the body already read."""
        env: dict[str, Any] = super().get_environ()
        env["wsgi.input"] = file = BytesIO(self.body)
        env["wsgi.input_terminated"] = True
        self.wsgi_input = Input(file, None)
        return env

    # --- Responding

    def run_application(self) -> None:
        """Call the application, which may accept a WebSocket upgrade."""
        if self.environ.get("HTTP_UPGRADE", "").lower() == "websocket":
            self.environ[ACCEPT] = self.accept
        PyWSGIHandler.run_application(self)

    def accept(self, headers: list[tuple[str, str]]) -> Socket:
        """Switch this connection to a WebSocket, with `headers` added to the response."""
        token = self._token()
        socket = Socket(self.environ, self)
        answer = base64.b64encode(hashlib.sha1((token + self.GUID).encode()).digest()).decode()  # noqa: S324 (RFC 6455 says so)
        self.environ["wsgi.websocket"] = socket
        self.start_response(
            "101 Switching Protocols",
            [("Upgrade", "websocket"), ("Connection", "Upgrade"), ("Sec-WebSocket-Accept", answer), *headers],
        )
        self.websocket = socket
        self.write(b"")
        return socket

    def _token(self) -> str:
        env = self.environ
        if env["REQUEST_METHOD"] != "GET" or self.request_version != "HTTP/1.1" or self.body:
            raise BadHandshake("a WebSocket starts with an HTTP/1.1 GET without a body")
        if "upgrade" not in {token.strip().lower() for token in env.get("HTTP_CONNECTION", "").split(",")}:
            raise BadHandshake("the Connection header does not contain Upgrade")
        if env.get("HTTP_SEC_WEBSOCKET_VERSION") != "13":
            raise BadHandshake("Sec-WebSocket-Version is not 13")
        token: str = env.get("HTTP_SEC_WEBSOCKET_KEY", "")
        try:
            whole = len(base64.b64decode(token, validate=True)) == 16
        except (binascii.Error, ValueError):
            whole = False
        if not whole:
            raise BadHandshake("Sec-WebSocket-Key is not 16 bytes in base64")
        return token

    def start_response(self, status: str, headers: Any, exc_info: Any = None) -> Any:
        """Start the application's response; after an upgrade there is none.

        pywsgi processes each header separately, which costs as much as the application; this encodes all of them at
        once, and leaves unusual cases to pywsgi.
        """
        if self.websocket is not None:
            return lambda _data: None
        given = dict(headers)  # Falcon uses lower-case names
        if exc_info or "connection" in given or "wsgi.websocket" in self.environ or self.request_version != "HTTP/1.1":
            self.head = b""
            return super().start_response(status, headers, exc_info)
        head = "".join([f"{name}: {value}\r\n" for name, value in headers])
        if not head.count("\r") == head.count("\n") == len(headers):
            raise ValueError("a header holds a line break")
        self.head = head.encode("latin-1")
        self.status, self._orig_status, self.code = status.encode("latin-1"), status, int(status[:3])
        self.provided_date = given.get("date")
        self.provided_content_length = given.get("content-length")
        self.response_headers: list[tuple[bytes, bytes]] = []  # headers added here
        return self.write

    def process_result(self) -> None:
        """Send the response, or clean up the WebSocket."""
        # Break reference cycles, which would keep buffers until the next garbage collection.
        socket, self.websocket = self.websocket, None
        self.environ.pop(ACCEPT, None)
        if socket is None:
            super().process_result()
            return
        socket.close()
        socket.finish()
        self.environ.pop("wsgi.websocket", None)
        self.close_connection = True

    def finalize_headers(self) -> None:
        """Add Date, and Connection: close if the connection closes."""
        if self.provided_date is None:
            self.provided_date = True
            self.response_headers.append((b"Date", _date()))
        if self.stopping:  # also if it was read before
            self.close_connection = True
        if self.close_connection and self.code != 101 and self.request_version == "HTTP/1.1":
            self.response_headers.append((b"Connection", b"close"))
        super().finalize_headers()

    def _write_with_headers(self, data: bytes) -> None:
        """Send the headers and a short body in one system call, since each call is expensive."""
        self.headers_sent = True
        self.finalize_headers()
        head = bytearray(b"HTTP/1.1 ")
        head += self.status
        head += b"\r\n"
        head += self.head
        for name, value in self.response_headers:
            head += name
            head += b": "
            head += value
            head += b"\r\n"
        head += b"\r\n"
        if not self.response_use_chunked and len(data) < 65_536:
            head += data
            data = b""
        self._sendall(head)
        self._write(data)

    # --- Logging

    def log_request(self) -> None:
        """Write gunicorn's access log, with secrets in the query string redacted."""
        log = self.server.log
        if not log.access_log_enabled:
            return
        env = self.environ or {"REQUEST_METHOD": "-", "RAW_URI": "-", "SERVER_PROTOCOL": "-"}
        if "?" in env.get("HTTP_REFERER", ""):
            env = {**env, "HTTP_REFERER": _redacted_address(env["HTTP_REFERER"])}
        if query := env.get("QUERY_STRING"):
            env = {
                **env,
                "QUERY_STRING": (shown := redacted(query)),
                "RAW_URI": f"{self.path.partition('?')[0]}?{shown}",
            }
        env = {**env, **{name: errors.without_secrets(env.get(name, "")) for name in ("PATH_INFO", "RAW_URI")}}
        status = self.status.decode() if isinstance(self.status, bytes) else self.status
        answer = GeventResponse(status, self.response_headers or [], self.response_length)
        asked: list[tuple[str, str]] = self.headers.items() if self.environ else []
        log.access(answer, asked, env, timedelta(seconds=max(0.0, self.time_finish - self.time_start)))


def redacted(query: str) -> str:
    """Return a query string with the values of keys and tokens redacted."""
    parts = []
    for part in query.split("&"):
        name, equals, _ = part.partition("=")
        parts.append(f"{name}=REDACTED" if equals and unquote_plus(name).lower() in _SECRETS else part)
    return "&".join(parts)


def _redacted_address(address: str) -> str:
    before, _, query = address.partition("?")
    return f"{before}?{redacted(query)}"


_now: tuple[int, bytes] = (0, b"")


def _date() -> bytes:
    global _now  # noqa: PLW0603 (formatted once a second, not per request)
    second = int(time.time())
    if _now[0] != second:
        _now = (second, format_date_time(second))
    return _now[1]
