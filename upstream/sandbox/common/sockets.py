"""Sockets of a sandbox: bounded queues of frames, written together, each message subject to faults."""

from __future__ import annotations

import asyncio
import contextlib
from abc import ABC, abstractmethod
from collections import deque
from itertools import count
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from starlette.responses import PlainTextResponse, Response
from starlette.websockets import WebSocket, WebSocketDisconnect

from upstream.sandbox.common.frames import EXTENSION, frame

if TYPE_CHECKING:
    from collections.abc import Callable

    from upstream.sandbox.common.faults import FaultPlan
    from upstream.sandbox.common.frames import FrameSocket

MAX_QUEUE = 50_000  # messages a connection may lag before it is disconnected
FRAMES_A_WRITE = 256
NO_HANDSHAKE = 1006  # what a client sees when a connection breaks


class Queues(Protocol):
    """What a connection needs of its hub."""

    queue_size: int

    @property
    def faults(self) -> FaultPlan[Any]:
        """Return the planned faults."""

    def write_soon(self, connection: Any) -> None:
        """Write a connection's queue soon."""

    def disconnect_slow(self, connection: Any) -> None:
        """Handle a connection whose queue is full."""

    def forget(self, connection: Any) -> None:
        """Send a connection nothing more."""

    def record(self, fault: Any, connection_id: int, n: int) -> None:
        """Record how a fault changed a message."""

    def corrupted(self, kind: str, message: bytes) -> bytes:
        """Return a message with one value changed."""


class QueuedConnection:
    """One socket, and the frames that wait to be written to it."""

    def __init__(self, connection_id: int, hub: Queues, socket: FrameSocket) -> None:
        self.id = connection_id
        self.sent = 0
        self.opened = asyncio.get_running_loop().time()
        self.ended: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._hub = hub
        self._socket = socket
        self._queue: deque[bytes] = deque()
        self._held: bytes | None = None
        socket.on_writable = self.flush

    def offer(self, message: bytes, framed: bytes, n: int) -> None:
        """Queue a message, which is given with its frame, subject to faults."""
        if self._hub.faults.planned:
            self._offer_faulty(message, framed, n)
        else:
            self.push(framed)

    def push(self, framed: bytes) -> None:
        """Append a frame to the queue."""
        queue = self._queue
        if len(queue) >= self._hub.queue_size:
            self._hub.disconnect_slow(self)
            return
        if not queue:
            self._hub.write_soon(self)
        queue.append(framed)

    def push_first(self, framed: bytes) -> None:
        """Put a frame at the front of the queue."""
        self._queue.appendleft(framed)
        self._hub.write_soon(self)

    @property
    def queued(self) -> int:
        """Return the number of queued messages."""
        return len(self._queue)

    def end(self, code: int) -> None:
        """Close the connection with a code."""
        if not self.ended.done():
            self.ended.set_result(code)

    def clear(self) -> None:
        """Drop messages that are not written yet."""
        self._queue.clear()

    def flush(self) -> None:
        """Write what is queued, as far as the client keeps up; the socket calls this again once it does."""
        queue = self._queue
        while queue and self._socket.is_writable():
            some = [queue.popleft() for _ in range(min(len(queue), FRAMES_A_WRITE))]
            self._socket.write(b"".join(some))
            self.sent += len(some)

    def _offer_faulty(self, message: bytes, framed: bytes, n: int) -> None:
        faults = self._hub.faults.on_message(self.id)
        struck = {fault.kind: fault for fault in faults}
        if "silent" in struck:
            return
        for fault in faults:
            self._hub.record(fault, self.id, n)
            if fault.kind.startswith("corrupt_"):
                message = self._hub.corrupted(fault.kind, message)
                framed = frame(message)
        if "cut_frame" in struck:
            self.flush()
            self._socket.write(framed[: len(framed) // 2])
            self._hub.forget(self)  # what came after would be read as the frame's other half
            self.end(NO_HANDSHAKE)
            return
        held, self._held = self._held, None
        copies = 0 if "drop" in struck else 2 if "duplicate" in struck else 1
        if "reorder" in struck and copies and held is None:
            self._held = framed
            return
        for _ in range(copies):
            if "late" in struck:
                asyncio.get_running_loop().call_later(struck["late"].delay_s, self.push, framed)
            else:
                self.push(framed)
        if held is not None:
            self.push(held)


Connection = TypeVar("Connection", bound=QueuedConnection)


class ConnectionHub(ABC, Generic[Connection]):
    """All connections of a sandbox; a subclass serves its exchange's protocol on them.

    `on_fault` are told of each fault that starts.
    """

    def __init__(self, faults: FaultPlan[Any], *, queue_size: int = MAX_QUEUE) -> None:
        self.faults = faults
        self.connections: dict[int, Connection] = {}
        self.queue_size = queue_size
        self.opened = self.slow = self.refused = 0
        self.on_fault: list[Callable[[Any], None]] = []
        self._ids = count(1)
        self._waiting: dict[Connection, None] = {}  # connections with something to write

    # --- The protocol ---

    @abstractmethod
    def connect(self, connection_id: int, socket: FrameSocket) -> Connection:
        """Return a new connection."""

    @abstractmethod
    def receive(self, connection: Connection, text: str) -> None:
        """Handle a client's message."""

    def denial(self, websocket: WebSocket) -> Response | None:  # noqa: ARG002 - for those who look at it
        """Return the response that denies a new socket, if it is denied."""
        refusal = self.faults.of_kind("refuse")
        return None if refusal is None else PlainTextResponse("refused", status_code=refusal.status or 503)

    def forget(self, connection: Connection) -> None:
        """Forget a connection that has ended."""
        self.connections.pop(connection.id, None)
        self._waiting.pop(connection, None)
        connection.clear()

    def disconnect_slow(self, connection: Connection) -> None:
        """Disconnect a slow subscriber."""
        self.slow += 1
        self.forget(connection)
        connection.end(1013)

    @abstractmethod
    def corrupted(self, kind: str, message: bytes) -> bytes:
        """Return a message with one value changed."""

    @abstractmethod
    def write_fault(self, detail: dict[str, Any]) -> None:
        """Write into the truth log what a fault did."""

    # --- Serving ---

    def write_soon(self, connection: Connection) -> None:
        """Write a connection's queue once the events under way are all queued: one write for many messages."""
        if not self._waiting:
            asyncio.get_running_loop().call_soon(self._write)
        self._waiting[connection] = None

    def _write(self) -> None:
        waiting, self._waiting = self._waiting, {}
        for connection in waiting:
            connection.flush()

    async def serve(self, websocket: WebSocket) -> None:
        """Serve one connection until it ends."""
        denial = self.denial(websocket)
        if denial is not None:
            self.refused += 1
            await websocket.send_denial_response(denial)
            return
        await websocket.accept()
        connection = self.connect(next(self._ids), websocket.scope["extensions"][EXTENSION])
        self.connections[connection.id] = connection
        self.opened += 1
        listener: asyncio.Future[Any] = asyncio.create_task(self._listen(connection, websocket))
        try:
            await asyncio.wait([listener, connection.ended], return_when=asyncio.FIRST_COMPLETED)
        finally:
            self.forget(connection)
            listener.cancel()
            await asyncio.gather(listener, return_exceptions=True)
        if connection.ended.done() and connection.ended.result() != NO_HANDSHAKE:
            with contextlib.suppress(RuntimeError, WebSocketDisconnect):
                await websocket.close(connection.ended.result())

    async def _listen(self, connection: Connection, websocket: WebSocket) -> None:
        while True:
            message = await websocket.receive()
            if message["type"] == "websocket.disconnect":
                return
            text = message.get("text")
            if text is None:
                text = (message.get("bytes") or b"").decode(errors="replace")
            self.receive(connection, text)

    # --- Faults and state ---

    def record(self, fault: Any, connection_id: int, n: int) -> None:
        """Write into the truth log how a fault changed a message of line `n`."""
        self.write_fault({"fault": fault.kind, "id": fault.id, "connection": connection_id, "of": n})

    def tick(self) -> None:
        """Start due faults; called several times a second."""
        for fault in self.faults.begun():
            self.write_fault({"fault": fault.kind, "id": fault.id, "target": fault.target, "for_s": fault.for_s})
            for listener in self.on_fault:
                listener(fault)
            if fault.kind == "close":
                for connection in list(self.connections.values()):
                    if fault.aims_at(connection.id):
                        fault.hits += 1
                        connection.end(fault.status or NO_HANDSHAKE)

    def backlog(self) -> int:
        """Return the longest queue of any connection."""
        return max((connection.queued for connection in self.connections.values()), default=0)
