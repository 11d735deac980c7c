"""One WebSocket of ours: gevent-websocket's, with frames read strictly and written without ever blocking the writer."""

from __future__ import annotations

import contextlib
import os
import struct
import time
from collections import deque
from typing import Any

import gevent
from geventwebsocket.exceptions import ProtocolError, WebSocketError
from geventwebsocket.websocket import Header, Stream, WebSocket

MOST_BYTES = 65_536  # of one message from a client
MOST_FRAMES = 1000
OPCODES = frozenset({0, 1, 2, 8, 9, 10})
PING = b"\x89\x00"

GOING_AWAY, PROTOCOL_ERROR, NOT_ACCEPTED, NOT_TEXT = 1001, 1002, 1003, 1007
NOT_ALLOWED, TOO_BIG, TRY_LATER = 1008, 1009, 1013


class TooBig(WebSocketError):  # type: ignore[misc]  # noqa: N818 (the library's own tree)
    """A message beyond what a client may say."""


def frame(payload: bytes, opcode: int = WebSocket.OPCODE_TEXT) -> bytes:
    """Give one whole frame, as a server sends it: not masked."""
    return bytes(Header.encode_header(True, opcode, b"", len(payload), 0)) + payload  # noqa: FBT003


def close_frame(code: int, reason: str = "") -> bytes:
    """Give a close frame; a reason is cut at what fits."""
    text = reason.encode()[:123].decode(errors="ignore").encode()
    return frame(struct.pack("!H", code) + text, WebSocket.OPCODE_CLOSE)


def unmask(payload: bytes, mask: bytes) -> bytes:
    """Undo the client's mask, as one big number rather than byte by byte."""
    size = len(payload)
    key = (mask * (size // 4 + 1))[:size]
    return (int.from_bytes(payload, "big") ^ int.from_bytes(key, "big")).to_bytes(size, "big")


class Socket(WebSocket):  # type: ignore[misc]  # mypy sees neither the base nor its slots
    """A client's connection. `push` never waits: what the network does not take at once is counted in `owed`."""

    __slots__ = ("_closer", "_file", "_owed", "_sock", "_watcher", "_writing", "heard_at", "owed", "sent_seq")

    def __init__(self, environ: dict[str, Any], handler: Any) -> None:
        super().__init__(environ, Stream(handler), handler)
        self._sock = handler.socket
        self._file: int = handler.socket.fileno()
        self._owed: deque[tuple[bytes | memoryview, int]] = deque()
        self._watcher = gevent.get_hub().loop.io(self._file, 2)  # 2: writable
        self._writing = False
        self._closer: gevent.Greenlet | None = None
        self.owed = 0
        self.sent_seq = 0  # the last event whose frame has begun to leave
        self.heard_at = time.monotonic()

    def __del__(self) -> None:
        """Leave quietly: the handler has closed what there was to close."""

    # --- Writing

    def push(self, data: bytes, seq: int = 0) -> None:
        """Send whole frames, or owe them; `seq` is the last event they carry."""
        if self.closed:
            return
        self._put(data, seq)

    def _put(self, data: bytes, seq: int) -> None:
        if self._owed:
            self._owed.append((data, seq))
            self.owed += len(data)
            return
        sent = self._write(data)
        if sent < 0:
            return
        if sent:
            self.sent_seq = seq or self.sent_seq
        if sent < len(data):
            self._owed.append((memoryview(data)[sent:] if sent else data, seq))
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
        """Send what is owed; runs in the hub, so it must not wait."""
        while self._owed:
            data, seq = self._owed[0]
            sent = self._write(data)
            if sent <= 0:
                return
            self.owed -= sent
            self.sent_seq = seq or self.sent_seq
            if sent < len(data):
                self._owed[0] = (memoryview(data)[sent:], seq)
                return
            self._owed.popleft()
        self._writing = False
        self._watcher.stop()

    def _drop(self) -> None:
        """Forget a connection that is gone; the reader finds its end."""
        self.closed = True  # type: ignore[misc]
        self._owed.clear()
        self.owed = 0
        if self._writing:
            self._writing = False
            self._watcher.stop()

    # --- Closing

    def close(self, code: int = 1000, message: Any = "", *, linger_s: float = 1.0) -> None:
        """Say why, wait a moment for the client's own close, then hang up."""
        if self.closed:
            return
        self.closed = True  # type: ignore[misc]
        reason = message.decode(errors="ignore") if isinstance(message, bytes) else str(message or "")
        begun = self._owed[0] if self._owed else None
        self._owed.clear()
        self.owed = 0
        if begun is not None and isinstance(
            begun[0], memoryview
        ):  # a frame half sent must be whole before another begins
            self._owed.append(begun)
            self.owed = len(begun[0])
        self._put(close_frame(code, reason.replace("{seq}", str(self.sent_seq))), 0)
        self._closer = gevent.spawn_later(linger_s, self.hang_up)

    def hang_up(self) -> None:
        """End the connection without another word; the reader returns."""
        with contextlib.suppress(OSError):  # gone already
            self._sock.shutdown(2)

    def finish(self) -> None:
        """Free what the connection held, before its file is closed."""
        self.closed = True  # type: ignore[misc]
        self._drop()
        self._watcher.close()
        if self._closer is not None and self._closer is not gevent.getcurrent():
            self._closer.kill(block=False)

    # --- Reading

    def receive(self) -> str | None:
        """Wait for the next text message; None when the connection has ended."""
        while True:
            try:
                opcode, payload = self._message()
                if opcode == self.OPCODE_CLOSE:
                    self._answer_close(payload)
                    return None
                text = payload.decode()
            except UnicodeDecodeError:
                self.close(NOT_TEXT, "not UTF-8")
            except TooBig:
                self.close(TOO_BIG, f"a message is at most {MOST_BYTES} bytes")
                self._drain()
                return None
            except ProtocolError as error:
                self.close(PROTOCOL_ERROR, str(error))
                self._drain()
                return None
            except (WebSocketError, OSError, ValueError):  # the end of the connection, in its several shapes
                return None
            else:
                if opcode != self.OPCODE_TEXT:
                    self.close(NOT_ACCEPTED, "text messages only")
                elif not self.closed:
                    return text

    def _drain(self) -> None:
        """Read on until hung up: closing over unread bytes resets the connection, and our close frame would be lost."""
        with contextlib.suppress(OSError, ValueError):
            while self.handler.rfile.read1(MOST_BYTES):
                pass

    def _message(self) -> tuple[int, bytes]:
        """Read frames until a message is whole."""
        kind, parts, size = 0, [], 0
        while True:
            header, payload = self._frame(MOST_BYTES - size)
            if header.opcode == self.OPCODE_CLOSE:
                return self.OPCODE_CLOSE, payload
            if header.opcode == self.OPCODE_PING:
                self.push(frame(payload, self.OPCODE_PONG))
            elif header.opcode != self.OPCODE_PONG:
                if (header.opcode == self.OPCODE_CONTINUATION) != bool(kind):
                    raise ProtocolError("a message ends before the next begins")
                kind = kind or header.opcode
                size += len(payload)
                parts.append(payload)
                if header.fin:
                    return kind, b"".join(parts)
                if len(parts) >= MOST_FRAMES:
                    raise ProtocolError(f"a message in more than {MOST_FRAMES} frames")

    def _frame(self, room: int) -> tuple[Any, bytes]:
        header = Header.decode_header(self.stream)
        if header.flags:
            raise ProtocolError("reserved bits are set")
        if not header.mask:
            raise ProtocolError("a client's frames are masked")
        if header.opcode not in OPCODES:
            raise ProtocolError(f"opcode {header.opcode} is not known")
        if header.length > room and header.opcode < self.OPCODE_CLOSE:
            raise TooBig
        payload = self.stream.read(header.length) if header.length else b""
        if len(payload) != header.length:
            raise WebSocketError("the connection ended within a frame")
        self.heard_at = time.monotonic()
        return header, unmask(payload, header.mask)

    def _answer_close(self, payload: bytes) -> None:
        if not payload:
            self.close(1000)
            return
        code = struct.unpack("!H", payload[:2])[0] if len(payload) > 1 else 0
        try:
            payload[2:].decode()
        except UnicodeDecodeError:
            code = 0
        valid = code in range(3000, 5000) or (code in range(1000, 1015) and code not in (1004, 1005, 1006))
        self.close(code if valid else PROTOCOL_ERROR)
