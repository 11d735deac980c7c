"""WebSocket frames (RFC 6455): encodes a server's, and parses a client's strictly and within limits."""

from __future__ import annotations

import codecs
import struct
import time
from typing import TYPE_CHECKING, Protocol

import gevent

if TYPE_CHECKING:
    from collections.abc import Callable

CONTINUATION, TEXT, BINARY, CLOSE, PING, PONG = 0, 1, 2, 8, 9, 10

MAX_MESSAGE_BYTES = 65_536  # per client message
MAX_MESSAGE_FRAMES = 1000  # per message
MAX_CONTROL_BYTES = 125
READ_RATE, READ_BURST = 200.0, 1000.0  # a client's frame rate and burst; beyond them it is read more slowly
TURN = 25.0  # frames read before yielding to other greenlets, since buffered frames are read without waiting

NORMAL, GOING_AWAY, PROTOCOL_ERROR, NOT_ACCEPTED, NOT_TEXT = 1000, 1001, 1002, 1003, 1007
NOT_ALLOWED, TOO_BIG, RESTARTING, TRY_LATER = 1008, 1009, 1012, 1013
UNSENDABLE = frozenset({1004, 1005, 1006})  # below 1015: reserved codes


class ByteSource(Protocol):
    """A source of bytes that returns fewer than requested only at the end."""

    def read(self, size: int, /) -> bytes:
        """Return `size` bytes."""


class ProtocolError(Exception):  # a client's violation of RFC 6455
    """A protocol violation by the client, which ends the connection with a close code."""

    def __init__(self, code: int, detail: str) -> None:
        super().__init__(detail)
        self.code, self.detail = code, detail


class ConnectionLost(Exception):  # noqa: N818
    """The connection ended without a close frame."""


def frame(payload: bytes, opcode: int = TEXT) -> bytes:
    """Return one complete server frame, unmasked."""
    size = len(payload)
    if size < 126:
        head = struct.pack("!BB", 0x80 | opcode, size)
    elif size < 65_536:
        head = struct.pack("!BBH", 0x80 | opcode, 126, size)
    else:
        head = struct.pack("!BBQ", 0x80 | opcode, 127, size)
    return head + payload


def close_frame(code: int, reason: str = "") -> bytes:
    """Return a close frame; the reason is truncated to fit."""
    text = reason.encode()[: MAX_CONTROL_BYTES - 2].decode(errors="ignore").encode()
    return frame(struct.pack("!H", code) + text, CLOSE)


def close_code(payload: bytes) -> int:
    """Return the code to answer a client's close frame with: its own, or an error code if it is not valid."""
    if not payload:
        return NORMAL
    code = int.from_bytes(payload[:2], "big") if len(payload) > 1 else 0
    if not (3000 <= code < 5000 or (1000 <= code < 1015 and code not in UNSENDABLE)):
        return PROTOCOL_ERROR
    try:
        payload[2:].decode()
    except UnicodeDecodeError:
        return NOT_TEXT
    return code


def unmask(payload: bytes, mask: bytes) -> bytes:
    """Remove the client's mask, as one big integer rather than byte by byte."""
    size = len(payload)
    key = (mask * (size // 4 + 1))[:size]
    return (int.from_bytes(payload, "big") ^ int.from_bytes(key, "big")).to_bytes(size, "big")


class ReadRateLimiter:
    """A rate limit on reading: a client that sends too fast is read more slowly, until its sends block."""

    def __init__(self, rate: float = READ_RATE, burst: float = READ_BURST) -> None:
        self._rate, self._burst = rate, burst
        self._left, self._at = burst, time.monotonic()
        self._unbroken = 0.0
        self.unlimited = False  # the connection is closing: the rest is read without a pause

    def spend(self, cost: float) -> None:
        """Wait until `cost` frames may be read."""
        now = time.monotonic()
        self._left = min(self._burst, self._left + (now - self._at) * self._rate) - cost
        self._at = now
        self._unbroken += cost
        if self._left < 0 and not self.unlimited:
            self._unbroken = 0.0
            gevent.sleep(-self._left / self._rate)
        elif self._unbroken > TURN:
            self._unbroken = 0.0
            gevent.sleep(0)


class Reader:
    """Reads a client's messages. `on_ping` is called with a ping's payload."""

    def __init__(self, source: ByteSource, on_ping: Callable[[bytes], object]) -> None:
        self._source, self._on_ping = source, on_ping
        self.pace = ReadRateLimiter()
        self.received_at = time.monotonic()
        self.over = False  # disconnected: unread bytes are discarded

    def next(self) -> tuple[int, str | bytes]:
        """Wait for the next message: TEXT and its text, or CLOSE and the close frame's payload."""
        decoder = codecs.getincrementaldecoder("utf-8")()
        parts: list[str] = []
        begun, size, count = False, 0, 0
        while True:
            final, opcode, payload = self._frame(MAX_MESSAGE_BYTES - size)
            if opcode == CLOSE:
                return CLOSE, payload
            if opcode == PING:
                self._on_ping(payload)
            elif opcode != PONG:
                if (opcode == CONTINUATION) != begun:
                    raise ProtocolError(PROTOCOL_ERROR, "a message began before the previous one ended")
                if opcode == BINARY:
                    raise ProtocolError(NOT_ACCEPTED, "only text messages are accepted")
                try:
                    parts.append(decoder.decode(payload, final))
                except UnicodeDecodeError:
                    raise ProtocolError(NOT_TEXT, "not UTF-8") from None
                if final:
                    return TEXT, "".join(parts)
                begun, size, count = True, size + len(payload), count + 1
                if count >= MAX_MESSAGE_FRAMES:
                    raise ProtocolError(TOO_BIG, f"a message may have at most {MAX_MESSAGE_FRAMES} frames")

    def end(self) -> None:
        """Stop reading and drop the ping callback, which would keep both alive until the next garbage collection."""
        self.over = True
        self._on_ping = bool

    def _frame(self, room: int) -> tuple[bool, int, bytes]:
        if self.over:
            raise ConnectionLost
        first, second = self._exactly(2)
        opcode, size = first & 0x0F, second & 0x7F
        if first & 0x70:
            raise ProtocolError(PROTOCOL_ERROR, "reserved bits are set")
        if opcode not in {CONTINUATION, TEXT, BINARY, CLOSE, PING, PONG}:
            raise ProtocolError(PROTOCOL_ERROR, f"opcode {opcode} is unknown")
        if not second & 0x80:
            raise ProtocolError(PROTOCOL_ERROR, "a client's frames must be masked")
        if opcode >= CLOSE and (not first & 0x80 or size > MAX_CONTROL_BYTES):
            raise ProtocolError(
                PROTOCOL_ERROR, f"a control frame must be final and have at most {MAX_CONTROL_BYTES} bytes"
            )
        if size >= 126:
            width = 2 if size == 126 else 8
            size = int.from_bytes(self._exactly(width), "big")
            if size >> 63 or size < (126 if width == 2 else 65_536):
                raise ProtocolError(PROTOCOL_ERROR, "a length is not encoded in the shortest form")
        if opcode < CLOSE and size > room:
            raise ProtocolError(TOO_BIG, f"a message may have at most {MAX_MESSAGE_BYTES} bytes")
        mask = self._exactly(4)
        payload = unmask(self._exactly(size), mask) if size else b""
        self.received_at = time.monotonic()
        self.pace.spend(1 + size / 1024)
        return bool(first & 0x80), opcode, payload

    def _exactly(self, size: int) -> bytes:
        try:
            data = self._source.read(size)
        except (OSError, ValueError):  # the various ways in which a connection ends
            raise ConnectionLost from None
        if len(data) < size:
            raise ConnectionLost
        return data
