"""WebSocket frames that are encoded once and written to many sockets, past the protocol that serves the rest."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.exceptions import InvalidState

if TYPE_CHECKING:
    from collections.abc import Callable

    from websockets.http11 import Request

EXTENSION = "sandbox.frames"  # the ASGI scope's name for the socket below


class FrameSocket(Protocol):
    """A socket that takes frames as they are."""

    on_writable: Callable[[], None]

    def is_writable(self) -> bool:
        """Return whether the client keeps up with what was written."""

    def write(self, frames: bytes) -> None:
        """Write frames."""


class FrameProtocol(WebSocketsSansIOProtocol):
    """uvicorn's protocol without compression, with direct access to the socket for the application."""

    on_writable: Callable[[], None] = staticmethod(lambda: None)

    def handle_connect(self, event: Request) -> None:
        """Accept a client, and offer the socket to the application."""
        super().handle_connect(event)
        if self.response.status_code == 101:
            extensions: dict[str, Any] = self.scope["extensions"] or {}
            self.scope["extensions"] = extensions | {EXTENSION: self}

    def shutdown(self) -> None:
        """Close the connection as the server ends, also one that waits for a client that has closed it."""
        try:
            super().shutdown()
        except InvalidState:
            self.transport.abort()

    def resume_writing(self) -> None:
        """Continue once the client has caught up."""
        super().resume_writing()
        self.on_writable()

    def is_writable(self) -> bool:
        """Return whether the client keeps up with what was written."""
        return self.writable.is_set()

    def write(self, frames: bytes) -> None:
        """Write frames, unless the connection is closing."""
        if not (self.close_sent or self.disconnected or self.transport.is_closing()):
            self.transport.write(frames)


def frame(message: bytes) -> bytes:
    """Return a message as a frame: a whole text (0x81) and its size; servers do not mask theirs."""
    size = len(message)
    if size < 126:
        return b"\x81" + size.to_bytes(1) + message
    if size < 1 << 16:
        return b"\x81\x7e" + size.to_bytes(2) + message
    return b"\x81\x7f" + size.to_bytes(8) + message
