"""Market socket: subscriptions, and a bounded queue per connection."""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from itertools import count
from typing import TYPE_CHECKING, Any, Protocol

import msgspec
from starlette.responses import PlainTextResponse
from starlette.websockets import WebSocket, WebSocketDisconnect

from upstream.sandbox.exchange.wire import Fact
from upstream.sandbox.routes.frames import EXTENSION, frame

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from upstream.polymarket.market_channel.outgoing import BookMessage
    from upstream.sandbox.faults import Fault, Faults
    from upstream.sandbox.routes.frames import FrameSocket

MAX_QUEUE = 50_000  # messages a connection may lag before it is disconnected
UNSUBSCRIBED_S = 10  # a connection without a subscription is closed
BOOKS_A_FRAME = 50  # keeps the first frame well below a client's usual limit of 1 MiB
FRAMES_A_WRITE = 256
MAX_TOKENS = 500  # that one connection may subscribe to
PONG, INVALID = frame(b"PONG"), frame(b"INVALID OPERATION")
NO_HANDSHAKE = 1006  # what a client sees when a connection breaks


class Request(msgspec.Struct):
    """A client's message: the first has `type`, later ones `operation`."""

    assets_ids: list[str] = []
    type: str = ""
    operation: str = ""
    custom_feature_enabled: bool | None = None
    initial_dump: bool = True


class Connection:
    """One socket, its subscriptions, and the frames that wait to be written to it."""

    def __init__(self, connection_id: int, hub: SocketHub, socket: FrameSocket) -> None:
        self.id = connection_id
        self.tokens: set[str] = set()
        self.custom = False
        self.asked = False
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
        """Drop subscriptions, and messages that are not written yet."""
        self.tokens.clear()
        self._queue.clear()

    def flush(self) -> None:
        """Write what is queued, as far as the client keeps up; the socket calls this again once it does."""
        queue = self._queue
        while queue and self._socket.is_writable():
            some = [queue.popleft() for _ in range(min(len(queue), FRAMES_A_WRITE))]
            self._socket.write(b"".join(some))
            self.sent += len(some)

    def _offer_faulty(self, message: bytes, framed: bytes, n: int) -> None:
        copies, hold = 1, False
        for fault in self._hub.faults.on_message(self.id):
            if fault.kind == "silent":
                return
            self._hub.record(fault, self.id, n)
            if fault.kind == "drop":
                copies = 0
            elif fault.kind == "duplicate":
                copies = 2
            elif fault.kind == "reorder":
                hold = True
            else:
                message = self._hub.faults.corrupt(fault.kind, message)
                framed = frame(message)
        held, self._held = self._held, None
        if hold and copies and held is None:
            self._held = framed
            return
        for _ in range(copies):
            self.push(framed)
        if held is not None:
            self.push(held)


class Books(Protocol):
    """Source of the books sent to a new subscriber."""

    def initial_books(self, tokens: Iterable[str]) -> list[BookMessage]: ...


class SocketHub:
    """All connections; a message is framed once, however many receive it."""

    def __init__(
        self,
        faults: Faults,
        record: Callable[[Fact], None],
        *,
        queue_size: int = MAX_QUEUE,
        max_tokens: int = MAX_TOKENS,
    ) -> None:
        self.faults = faults
        self.connections: dict[int, Connection] = {}
        self.queue_size = queue_size
        self.opened = 0
        self.slow = 0
        self.refused = 0
        self.max_tokens, self.beyond_limit = max_tokens, 0
        self.on_fault: list[Callable[[Fault], None]] = []
        self._record = record
        self._ids = count(1)
        self._followers: dict[str, tuple[Connection, ...]] = {}
        self._waiting: dict[Connection, None] = {}  # connections with something to write
        self._encode = msgspec.json.Encoder().encode
        self._decode = msgspec.json.Decoder(Request).decode

    # --- Called by the exchange ---

    def is_followed(self, tokens: Sequence[str]) -> bool:
        """Return whether anybody subscribed to one of the tokens."""
        followers = self._followers
        for token in tokens:  # noqa: SIM110 - three times as fast as any()
            if token in followers:
                return True
        return False

    def send_to_followers(self, message: bytes, tokens: Sequence[str], n: int, *, custom: bool) -> int:
        """Queue a message for subscribers of the tokens, and return their number."""
        followers = self._followers
        found = followers.get(tokens[0], ())
        for token in tokens[1:]:
            more = followers.get(token)
            if more and more != found:
                found = (*found, *(connection for connection in more if connection not in found))
        receivers = [connection for connection in found if connection.custom] if custom else found
        if receivers:
            framed = frame(message)
            for connection in tuple(receivers):
                connection.offer(message, framed, n)
        return len(receivers)

    def send_to_all(self, message: bytes, n: int) -> int:
        """Queue a message for subscribers with custom features, and return their number."""
        receivers = [connection for connection in self.connections.values() if connection.custom]
        framed = frame(message)
        for connection in receivers:
            connection.offer(message, framed, n)
        return len(receivers)

    def write_soon(self, connection: Connection) -> None:
        """Write a connection's queue once the events under way are all queued: one write for many messages."""
        if not self._waiting:
            asyncio.get_running_loop().call_soon(self._write)
        self._waiting[connection] = None

    def _write(self) -> None:
        waiting, self._waiting = self._waiting, {}
        for connection in waiting:
            connection.flush()

    # --- Called by the sockets ---

    async def serve(self, websocket: WebSocket, books: Books) -> None:
        """Serve one connection until it ends."""
        refusal = self.faults.refuses()
        if refusal is not None:
            self.refused += 1
            await websocket.send_denial_response(PlainTextResponse("refused", status_code=refusal.status or 503))
            return
        await websocket.accept()
        connection = Connection(next(self._ids), self, websocket.scope["extensions"][EXTENSION])
        self.connections[connection.id] = connection
        self.opened += 1
        listener: asyncio.Future[Any] = asyncio.create_task(self._listen(connection, websocket, books))
        try:
            await asyncio.wait([listener, connection.ended], return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._forget(connection)
            listener.cancel()
            await asyncio.gather(listener, return_exceptions=True)
        if connection.ended.done() and connection.ended.result() != NO_HANDSHAKE:
            with contextlib.suppress(RuntimeError, WebSocketDisconnect):
                await websocket.close(connection.ended.result())

    async def _listen(self, connection: Connection, websocket: WebSocket, books: Books) -> None:
        while True:
            message = await websocket.receive()
            if message["type"] == "websocket.disconnect":
                return
            text = message.get("text")
            if text is None:
                text = (message.get("bytes") or b"").decode(errors="replace")
            if text.strip().upper() == "PING":
                connection.push_first(PONG)
                continue
            try:
                request = self._decode(text)
            except msgspec.MsgspecError:
                connection.push(INVALID)
                continue
            self._handle_request(connection, request, books)

    def _handle_request(self, connection: Connection, request: Request, books: Books) -> None:
        operation = request.operation or ("subscribe" if request.type.lower() == "market" else "")
        if request.custom_feature_enabled is not None:
            connection.custom = request.custom_feature_enabled
        if operation == "subscribe":
            connection.asked = True
            fresh = [token for token in dict.fromkeys(request.assets_ids) if token not in connection.tokens]
            room = self.max_tokens - len(connection.tokens)
            if len(fresh) > room:
                self.beyond_limit += len(fresh) - room
                fresh = fresh[:room]
                connection.push(INVALID)
            connection.tokens.update(fresh)
            for token in fresh:
                self._followers[token] = (*self._followers.get(token, ()), connection)
            if request.initial_dump and (fresh or not request.assets_ids):
                self._send_books(connection, books.initial_books(fresh))
        elif operation == "unsubscribe":
            for token in connection.tokens.intersection(request.assets_ids):
                connection.tokens.discard(token)
                self._unfollow(connection, token)
        else:
            connection.push(INVALID)

    def _send_books(self, connection: Connection, found: list[BookMessage]) -> None:
        for start in range(0, max(len(found), 1), BOOKS_A_FRAME):
            message = self._encode(found[start : start + BOOKS_A_FRAME])
            connection.offer(message, frame(message), 0)

    def _unfollow(self, connection: Connection, token: str) -> None:
        others = tuple(each for each in self._followers.get(token, ()) if each is not connection)
        if others:
            self._followers[token] = others
        else:
            self._followers.pop(token, None)

    def _forget(self, connection: Connection) -> None:
        self.connections.pop(connection.id, None)
        self._waiting.pop(connection, None)
        for token in connection.tokens:
            self._unfollow(connection, token)
        connection.clear()

    def disconnect_slow(self, connection: Connection) -> None:
        """Disconnect a slow subscriber."""
        self.slow += 1
        self._forget(connection)
        connection.end(1013)

    # --- Faults and state ---

    def record(self, fault: Fault, connection_id: int, n: int) -> None:
        """Write into the truth log how a fault changed a message of line `n`."""
        self._record(
            Fact(0, "fault", detail={"fault": fault.kind, "id": fault.id, "connection": connection_id, "of": n})
        )

    def tick(self) -> None:
        """Start due faults, and close connections without a subscription; called several times a second."""
        for fault in self.faults.begun():
            self._record(
                Fact(
                    0,
                    "fault",
                    detail={"fault": fault.kind, "id": fault.id, "target": fault.target, "for_s": fault.for_s},
                )
            )
            for listener in self.on_fault:
                listener(fault)
            if fault.kind == "close":
                for connection in list(self.connections.values()):
                    if fault.aims_at(connection.id):
                        fault.hits += 1
                        connection.end(fault.status or NO_HANDSHAKE)
        now = asyncio.get_running_loop().time()
        for connection in list(self.connections.values()):
            if not connection.asked and now - connection.opened > UNSUBSCRIBED_S:
                connection.end(1008)

    def backlog(self) -> int:
        """Return the longest queue of any connection."""
        return max((connection.queued for connection in self.connections.values()), default=0)

    def state(self) -> dict[str, Any]:
        """Return the connections' state as JSON."""
        return {
            "open": len(self.connections),
            "opened": self.opened,
            "let_go_as_slow": self.slow,
            "refused": self.refused,
            "max_tokens": self.max_tokens,
            "tokens_beyond_limit": self.beyond_limit,
            "connections": [
                {
                    "id": connection.id,
                    "tokens": len(connection.tokens),
                    "custom": connection.custom,
                    "sent": connection.sent,
                    "queued": connection.queued,
                }
                for connection in self.connections.values()
            ],
        }
