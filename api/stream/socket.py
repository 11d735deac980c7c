"""A WebSocket connection: gevent-websocket's, with strict frame parsing and non-blocking writes."""

from __future__ import annotations

import contextlib
import os
import socket as sockets
from collections import deque
from typing import Any

import gevent
from geventwebsocket.websocket import Stream, WebSocket

from api.stream import frames
from api.stream.frames import (
    CLOSE,
    MAX_MESSAGE_BYTES,
    PONG,
    TRY_LATER,
    ConnectionLost,
    ProtocolError,
    Reader,
    close_frame,
    frame,
)

PING = frame(b"", frames.PING)
# Unsent bytes that the kernel may buffer: more would only hide how far a client lags.
UNSENT = 256 << 10  # bytes that the kernel may hold; `StreamHub.check` limits what is held here, in `owed`
DRAIN_S = 0.002  # between two reads from a client that is being closed


class Socket(WebSocket):  # type: ignore[misc]  # mypy sees neither the base nor its slots
    """A client's connection. `push` never waits: bytes that the network does not accept are counted in `owed`."""

    __slots__ = (
        "_closer",
        "_ending",
        "_file",
        "_owed",
        "_pong_owed",
        "_sock",
        "_watcher",
        "_writing",
        "owed",
        "reader",
        "sent_seq",
    )

    def __init__(self, environ: dict[str, Any], handler: Any) -> None:
        super().__init__(environ, Stream(handler), handler)
        self._sock = handler.socket
        self._file: int = handler.socket.fileno()
        with contextlib.suppress(OSError):  # not a TCP socket
            self._sock.setsockopt(sockets.IPPROTO_TCP, sockets.TCP_NODELAY, 1)
            self._sock.setsockopt(sockets.IPPROTO_TCP, sockets.TCP_NOTSENT_LOWAT, UNSENT)
        self._owed: deque[tuple[bytes | memoryview, int, int | None]] = deque()  # frames, as `push` takes them
        self._pong_owed: object = None  # the last pong that was put there
        self._watcher = gevent.get_hub().loop.io(self._file, 2)  # 2: writable
        self._writing = False
        self._ending = False  # shut down the sending side once all buffered bytes are sent
        self._closer: gevent.Greenlet | None = None
        self.owed = 0
        self.sent_seq = 0  # the last event whose frame was at least partly sent
        self.reader = Reader(handler.rfile, self._pong)

    def __del__(self) -> None:
        """Do nothing: the handler has already closed the connection."""

    @property
    def received_at(self) -> float:
        """When the last frame was received, by the monotonic clock."""
        return self.reader.received_at

    # --- Writing

    def push(self, data: bytes, seq: int = 0, after: int | None = None) -> None:
        """Send or buffer complete frames; `seq` is the last event in them, `after` that before the first."""
        if self.closed:
            return
        self._put(data, seq, after)

    def take_back(self) -> int | None:
        """Discard buffered events behind the last other message; return the seq after which they can be sent again.

        None: there are none. A frame that was partly sent stays.
        """
        position = None
        while self._owed:
            data, _, after = self._owed[-1]
            if after is None or isinstance(data, memoryview):
                break
            self._owed.pop()
            self.owed -= len(data)
            position = after
        return position

    def _pong(self, payload: bytes) -> None:
        """Answer a ping: before all that is owed, but for a frame that was partly sent.

        Of pings that wait for their answer only the newest gets one, as RFC 6455 allows (5.5.3): a client that pings
        without reading is owed one pong. A client that reads slowly needs it: many disconnect without it.
        """
        pong = (frame(payload, PONG), 0, None)
        if not self._owed:
            self.push(*pong)
        elif not self.closed:
            at = int(isinstance(self._owed[0][0], memoryview))
            if len(self._owed) > at and self._owed[at] is self._pong_owed:
                self.owed -= len(self._owed[at][0])
                self._owed[at] = pong
            else:
                self._owed.insert(at, pong)
            self.owed += len(pong[0])
            self._pong_owed = pong

    def _put(self, data: bytes, seq: int, after: int | None = None) -> None:
        if self._owed:
            self._owed.append((data, seq, after))
            self.owed += len(data)
            return
        sent = self._write(data)
        if sent < 0:
            return
        if sent:
            self.sent_seq = seq or self.sent_seq
        if sent < len(data):
            self._owed.append((memoryview(data)[sent:] if sent else data, seq, after))
            self.owed += len(data) - sent
            self._watch()

    def _write(self, data: bytes | memoryview) -> int:
        try:
            return os.write(self._file, data)
        except BlockingIOError:
            return 0
        except OSError:
            self._drop()
            return -1

    def _watch(self) -> None:
        if not self._writing:
            self._writing = True
            self._watcher.start(self._flush)

    def _flush(self) -> None:
        """Send buffered bytes; runs in gevent's hub, so it must not wait."""
        while self._owed:
            data, seq, after = self._owed[0]
            sent = self._write(data)
            if sent <= 0:
                return
            self.owed -= sent
            self.sent_seq = seq or self.sent_seq
            if sent < len(data):
                self._owed[0] = (memoryview(data)[sent:], seq, after)
                return
            self._owed.popleft()
        self._writing = False
        self._watcher.stop()
        if self._ending:
            self._shut(sockets.SHUT_WR)

    def _drop(self) -> None:
        """Discard a broken connection's buffers; the reader sees the end."""
        self.closed = self.reader.pace.unlimited = True  # type: ignore[misc]
        self._owed.clear()
        self.owed = 0
        if self._writing:
            self._writing = False
            self._watcher.stop()

    # --- Closing

    def close(self, code: int = frames.NORMAL, message: Any = "", *, linger_s: float = 1.0) -> None:
        """Send a close frame with the reason, wait `linger_s` for the client's, then disconnect."""
        if self.closed:
            return
        self.closed = self.reader.pace.unlimited = True  # type: ignore[misc]
        reason = message.decode(errors="ignore") if isinstance(message, bytes) else str(message or "")
        begun = self._owed[0] if self._owed else None
        self._owed.clear()
        self.owed = 0
        if begun is not None and isinstance(
            begun[0], memoryview
        ):  # partly sent: it must be completed before another frame
            self._owed.append(begun)
            self.owed = len(begun[0])
        self._put(close_frame(code, reason.replace("{seq}", str(self.sent_seq))), 0)
        self._closer = gevent.spawn_later(linger_s, self.disconnect)

    def close_slow(self) -> None:
        """Close the connection of a client that reads too slowly."""
        self.close(TRY_LATER, "too slow; last_seq={seq}", linger_s=10.0)

    def disconnect(self) -> None:
        """Disconnect immediately; the reader returns."""
        self.reader.over = True
        self._shut(sockets.SHUT_RDWR)

    def _shut(self, which: int) -> None:
        with contextlib.suppress(OSError):  # gone already
            self._sock.shutdown(which)

    def finish(self) -> None:
        """Release the connection's resources before its file is closed."""
        self.closed = True  # type: ignore[misc]
        self._drop()
        self._watcher.close()
        if self._closer is not None and self._closer is not gevent.getcurrent():
            self._closer.kill(block=False)
        self._closer = None
        self.reader.end()

    # --- Reading

    def receive(self) -> str | None:
        """Wait for the next text message; None when the connection has ended."""
        while True:
            try:
                kind, said = self.reader.next()
            except ConnectionLost:
                return None
            except ProtocolError as error:
                self.close(error.code, error.detail)
                self._drain()
                return None
            if kind == CLOSE:
                assert isinstance(said, bytes)
                self.close(frames.close_code(said))
                return None
            if not self.closed:
                assert isinstance(said, str)
                return said

    def _drain(self) -> None:
        """Shut down our side, and read until the client shuts down its own.

        Closing with unread bytes would reset the connection, and our close frame would be lost.
        """
        self._ending = True
        if not self._owed:
            self._shut(sockets.SHUT_WR)
        with contextlib.suppress(OSError, ValueError):
            while not self.reader.over and self.handler.rfile.read1(MAX_MESSAGE_BYTES):
                gevent.sleep(DRAIN_S)  # otherwise a client that sends without end would block all others
