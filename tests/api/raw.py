"""A WebSocket client that sends raw bytes and reads single frames."""

from __future__ import annotations

import json
import os
import socket
import struct
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from tests.patience import PATIENCE_S

if TYPE_CHECKING:
    from collections.abc import Callable

CONTINUATION, TEXT, BINARY, CLOSE, PING, PONG = 0, 1, 2, 8, 9, 10
PING_COMMAND = b'{"action":"ping"}'


class Frame(NamedTuple):
    fin: bool
    flags: int
    opcode: int
    masked: bool
    payload: bytes

    @property
    def code(self) -> int | None:
        return struct.unpack("!H", self.payload[:2])[0] if len(self.payload) > 1 else None


def framed(
    payload: bytes,
    opcode: int = TEXT,
    *,
    fin: bool = True,
    flags: int = 0,
    mask: bytes | None = b"\x37\xfa\x21\x3d",
    width: int | None = None,
    length: int | None = None,
) -> bytes:
    """Encode a client frame; `width` is the size of the length field, `length` the claimed length."""
    size = len(payload) if length is None else length
    width = width if width is not None else 0 if size < 126 else 2 if size < 65_536 else 8
    marker = {0: size, 2: 126, 8: 127}[width]
    head = bytes([(0x80 if fin else 0) | flags | opcode, (0 if mask is None else 0x80) | marker])
    head += size.to_bytes(width, "big") if width else b""
    if mask is None:
        return head + payload
    return head + mask + bytes(byte ^ mask[at % 4] for at, byte in enumerate(payload))


def closing(code: int | None, reason: bytes = b"") -> bytes:
    return framed(b"" if code is None else struct.pack("!H", code) + reason, CLOSE)


def read_frame(exactly: Callable[[int], bytes]) -> Frame:
    """Return the next frame of what `exactly` reads, a number of bytes at a time."""
    first, second = exactly(2)
    size = second & 0x7F
    if size >= 126:
        size = int.from_bytes(exactly(2 if size == 126 else 8), "big")
    mask = exactly(4) if second & 0x80 else b""
    return Frame(bool(first & 0x80), first & 0x70, first & 0x0F, bool(mask), exactly(size))


class Raw:
    """An upgraded connection."""

    def __init__(self, address: tuple[str, int], path: str, *, receive_buffer: int | None = None) -> None:
        self.socket = socket.socket()
        if receive_buffer:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        self.socket.settimeout(PATIENCE_S)
        self._data = b""
        try:
            self._upgrade(address, path)
        except BaseException:
            self.socket.close()
            raise

    def _upgrade(self, address: tuple[str, int], path: str) -> None:
        self.socket.connect(address)
        self.socket.sendall(
            f"GET {path} HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n".encode()
        )
        while b"\r\n\r\n" not in self._data:
            more = self.socket.recv(65_536)
            assert more, self._data
            self._data += more
        self.head, _, self._data = self._data.partition(b"\r\n\r\n")
        assert self.head.startswith(b"HTTP/1.1 101 "), self.head + self._data

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def send(self, *frames: bytes) -> None:
        self.socket.sendall(b"".join(frames))

    def dribble(self, data: bytes, size: int = 1) -> None:
        """Send the data in small pieces, each in its own packet."""
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for at in range(0, len(data), size):
            self.socket.sendall(data[at : at + size])

    def frame(self) -> Frame | None:
        """Return the next frame; None at the end of the connection."""
        try:
            return read_frame(self._exactly)
        except EOFError:
            return None

    def until(self, *opcodes: int) -> Frame | None:
        """Return the next frame of the given opcodes; hello messages are skipped."""
        while (frame := self.frame()) is not None:
            if frame.opcode in opcodes and not (frame.opcode == TEXT and b'"hello"' in frame.payload):
                return frame
        return None

    def said(self) -> dict[str, Any]:
        """The next message."""
        frame = self.until(TEXT)
        assert frame is not None
        return json.loads(frame.payload.split(b"\n")[0])

    def close_code(self) -> int | None:
        """Return the server's close code; the connection must end after it."""
        frame = self.until(CLOSE)
        assert frame is None or self.frame() is None, "something follows the close frame"
        return None if frame is None else frame.code

    def _exactly(self, size: int) -> bytes:
        while len(self._data) < size:
            try:
                more = self.socket.recv(1 << 20)
            except ConnectionResetError:
                more = b""
            if not more:
                raise EOFError
            self._data += more
        data, self._data = self._data[:size], self._data[size:]
        return data


def random_mask() -> bytes:
    return os.urandom(4)
