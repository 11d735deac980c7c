"""WebSocket frames as RFC 6455 has them: a server's written, a client's read strictly and within bounds."""

from __future__ import annotations

import codecs
import struct
import time
from typing import TYPE_CHECKING, Protocol

import gevent

if TYPE_CHECKING:
    from collections.abc import Callable

CONTINUATION, TEXT, BINARY, CLOSE, PING, PONG = 0, 1, 2, 8, 9, 10

MOST_BYTES = 65_536  # of one message from a client
MOST_FRAMES = 1000  # of one message
MOST_CONTROL = 125
READ_A_SECOND, READ_AT_ONCE = 200.0, 1000.0  # what a client may say, in frames; beyond that it is read more slowly
TURN = 25.0  # frames read in one go, before others get a turn: what lies there already is read without any wait

NORMAL, GOING_AWAY, PROTOCOL_ERROR, NOT_ACCEPTED, NOT_TEXT = 1000, 1001, 1002, 1003, 1007
NOT_ALLOWED, TOO_BIG, RESTARTING, TRY_LATER = 1008, 1009, 1012, 1013
UNSENDABLE = frozenset({1004, 1005, 1006})  # below 1015; they stand for something else or for nothing


class Source(Protocol):
    """Where bytes come from: fewer than asked for at the end only."""

    def read(self, size: int, /) -> bytes:
        """Give so many bytes."""


class Broken(Exception):  # noqa: N818 (says what the client's side of the connection is)
    """What a client sent ends its connection, with a close code."""

    def __init__(self, code: int, detail: str) -> None:
        super().__init__(detail)
        self.code, self.detail = code, detail


class Gone(Exception):  # noqa: N818
    """The connection ended without a word."""


def frame(payload: bytes, opcode: int = TEXT) -> bytes:
    """Give one whole frame, as a server sends it: not masked."""
    size = len(payload)
    if size < 126:
        head = struct.pack("!BB", 0x80 | opcode, size)
    elif size < 65_536:
        head = struct.pack("!BBH", 0x80 | opcode, 126, size)
    else:
        head = struct.pack("!BBQ", 0x80 | opcode, 127, size)
    return head + payload


def close_frame(code: int, reason: str = "") -> bytes:
    """Give a close frame; a reason is cut at what fits."""
    text = reason.encode()[: MOST_CONTROL - 2].decode(errors="ignore").encode()
    return frame(struct.pack("!H", code) + text, CLOSE)


def close_code(payload: bytes) -> int:
    """Give what to answer a client's close frame with: its own code, or what is wrong with it."""
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
    """Undo the client's mask, as one big number rather than byte by byte."""
    size = len(payload)
    key = (mask * (size // 4 + 1))[:size]
    return (int.from_bytes(payload, "big") ^ int.from_bytes(key, "big")).to_bytes(size, "big")


class Pace:
    """How much a client may say: who says more is read more slowly, until its own sending comes to a halt."""

    def __init__(self, rate: float = READ_A_SECOND, burst: float = READ_AT_ONCE) -> None:
        self._rate, self._burst = rate, burst
        self._left, self._at = burst, time.monotonic()
        self._unbroken = 0.0
        self.hurried = False  # the connection ends: what is left of it is read without a pause

    def spend(self, cost: float) -> None:
        """Wait until that much may be said."""
        now = time.monotonic()
        self._left = min(self._burst, self._left + (now - self._at) * self._rate) - cost
        self._at = now
        self._unbroken += cost
        if self._left < 0 and not self.hurried:
            self._unbroken = 0.0
            gevent.sleep(-self._left / self._rate)
        elif self._unbroken > TURN:
            self._unbroken = 0.0
            gevent.sleep(0)


class Reader:
    """A client's messages, one after the other. `on_ping` is called with what a ping carries."""

    def __init__(self, source: Source, on_ping: Callable[[bytes], object]) -> None:
        self._source, self._on_ping = source, on_ping
        self.pace = Pace()
        self.heard_at = time.monotonic()
        self.over = False  # hung up: what still lies here unread is of no interest

    def next(self) -> tuple[int, str | bytes]:
        """Wait for the next message: TEXT and its text, or CLOSE and what the close frame carries."""
        decoder = codecs.getincrementaldecoder("utf-8")()
        parts: list[str] = []
        begun, size, count = False, 0, 0
        while True:
            final, opcode, payload = self._frame(MOST_BYTES - size)
            if opcode == CLOSE:
                return CLOSE, payload
            if opcode == PING:
                self._on_ping(payload)
            elif opcode != PONG:
                if (opcode == CONTINUATION) != begun:
                    raise Broken(PROTOCOL_ERROR, "a message ends before the next begins")
                if opcode == BINARY:
                    raise Broken(NOT_ACCEPTED, "text messages only")
                try:
                    parts.append(decoder.decode(payload, final))
                except UnicodeDecodeError:
                    raise Broken(NOT_TEXT, "not UTF-8") from None
                if final:
                    return TEXT, "".join(parts)
                begun, size, count = True, size + len(payload), count + 1
                if count >= MOST_FRAMES:
                    raise Broken(TOO_BIG, f"a message is at most {MOST_FRAMES} frames")

    def end(self) -> None:
        """Read no more, and forget whom to tell of pings: both would else stay until garbage is looked for."""
        self.over = True
        self._on_ping = bool

    def _frame(self, room: int) -> tuple[bool, int, bytes]:
        if self.over:
            raise Gone
        first, second = self._exactly(2)
        opcode, size = first & 0x0F, second & 0x7F
        if first & 0x70:
            raise Broken(PROTOCOL_ERROR, "reserved bits are set")
        if opcode not in {CONTINUATION, TEXT, BINARY, CLOSE, PING, PONG}:
            raise Broken(PROTOCOL_ERROR, f"opcode {opcode} is not known")
        if not second & 0x80:
            raise Broken(PROTOCOL_ERROR, "a client's frames are masked")
        if opcode >= CLOSE and (not first & 0x80 or size > MOST_CONTROL):
            raise Broken(PROTOCOL_ERROR, f"a control frame is whole, and at most {MOST_CONTROL} bytes")
        if size >= 126:
            width = 2 if size == 126 else 8
            size = int.from_bytes(self._exactly(width), "big")
            if size >> 63 or size < (126 if width == 2 else 65_536):
                raise Broken(PROTOCOL_ERROR, "a length is not written in the shortest way")
        if opcode < CLOSE and size > room:
            raise Broken(TOO_BIG, f"a message is at most {MOST_BYTES} bytes")
        mask = self._exactly(4)
        payload = unmask(self._exactly(size), mask) if size else b""
        self.heard_at = time.monotonic()
        self.pace.spend(1 + size / 1024)
        return bool(first & 0x80), opcode, payload

    def _exactly(self, size: int) -> bytes:
        try:
            data = self._source.read(size)
        except (OSError, ValueError):  # the end of a connection, in its several shapes
            raise Gone from None
        if len(data) < size:
            raise Gone
        return data
