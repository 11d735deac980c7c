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

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from upstream.polymarket.market_channel.outgoing import BookMessage
    from upstream.sandbox.faults import Fault, Faults

MAX_QUEUE = 50_000  # messages a connection may lag before it is disconnected
UNSUBSCRIBED_S = 10  # a connection without a subscription is closed
BOOKS_A_FRAME = 50  # keeps the first frame well below a client's usual limit of 1 MiB
NO_HANDSHAKE = 1006  # what a client sees when a connection breaks


class Request(msgspec.Struct):
    """A client's message: the first has `type`, later ones `operation`."""

    assets_ids: list[str] = []
    type: str = ""
    operation: str = ""
    custom_feature_enabled: bool | None = None
    initial_dump: bool = True


class Connection:
    """One socket, its subscriptions, and its queue."""

    def __init__(self, connection_id: int, hub: SocketHub) -> None:
        self.id = connection_id
        self.tokens: set[str] = set()
        self.custom = False
        self.asked = False
        self.sent = 0
        self.opened = asyncio.get_running_loop().time()
        self.ended: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._hub = hub
        self._queue: deque[str] = deque()
        self._waiting = asyncio.Event()
        self._held: str | None = None

    def offer(self, message: str, n: int) -> None:
        """Queue a message, subject to faults."""
        if self._hub.faults.planned:
            self._offer_faulty(message, n)
        else:
            self.push(message)

    def push(self, message: str) -> None:
        """Append a message to the queue."""
        if len(self._queue) >= self._hub.queue_size:
            self._hub.disconnect_slow(self)
            return
        self._queue.append(message)
        self._waiting.set()

    def push_first(self, message: str) -> None:
        """Put a message at the front of the queue."""
        self._queue.appendleft(message)
        self._waiting.set()

    @property
    def queued(self) -> int:
        """Return the number of queued messages."""
        return len(self._queue)

    def end(self, code: int) -> None:
        """Close the connection with a code."""
        if not self.ended.done():
            self.ended.set_result(code)

    async def send_all(self, websocket: WebSocket) -> None:
        """Send queued messages, forever."""
        queue, waiting = self._queue, self._waiting
        while True:
            while queue:
                await websocket.send({"type": "websocket.send", "text": queue.popleft()})
                self.sent += 1
            waiting.clear()
            await waiting.wait()

    def _offer_faulty(self, message: str, n: int) -> None:
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
        held, self._held = self._held, None
        if hold and copies and held is None:
            self._held = message
            return
        for _ in range(copies):
            self.push(message)
        if held is not None:
            self.push(held)


class Books(Protocol):
    """Source of the books sent to a new subscriber."""

    def initial_books(self, tokens: Iterable[str]) -> list[BookMessage]: ...


class SocketHub:
    """All connections; it neither encodes nor waits."""

    def __init__(self, faults: Faults, record: Callable[[Fact], None], *, queue_size: int = MAX_QUEUE) -> None:
        self.faults = faults
        self.connections: dict[int, Connection] = {}
        self.queue_size = queue_size
        self.opened = 0
        self.slow = 0
        self.refused = 0
        self.on_fault: list[Callable[[Fault], None]] = []
        self._record = record
        self._ids = count(1)
        self._followers: dict[str, set[Connection]] = {}
        self._encode = msgspec.json.Encoder().encode
        self._decode = msgspec.json.Decoder(Request).decode

    # --- Called by the exchange ---

    def send_to_followers(self, message: str, tokens: Sequence[str], n: int, *, custom: bool) -> int:
        """Queue a message for subscribers of the tokens, and return their number."""
        followers = self._followers
        found = followers.get(tokens[0])
        for token in tokens[1:]:
            more = followers.get(token)
            if more:
                found = found | more if found else more
        if not found:
            return 0
        count = 0
        for connection in tuple(found):
            if not custom or connection.custom:
                connection.offer(message, n)
                count += 1
        return count

    def send_to_all(self, message: str, n: int) -> int:
        """Queue a message for subscribers with custom features, and return their number."""
        receivers = [connection for connection in self.connections.values() if connection.custom]
        for connection in receivers:
            connection.offer(message, n)
        return len(receivers)

    # --- Called by the sockets ---

    async def serve(self, websocket: WebSocket, books: Books) -> None:
        """Serve one connection until it ends."""
        refusal = self.faults.refuses()
        if refusal is not None:
            self.refused += 1
            await websocket.send_denial_response(PlainTextResponse("refused", status_code=refusal.status or 503))
            return
        await websocket.accept()
        connection = Connection(next(self._ids), self)
        self.connections[connection.id] = connection
        self.opened += 1
        tasks: list[asyncio.Future[Any]] = [
            asyncio.create_task(self._listen(connection, websocket, books)),
            asyncio.create_task(connection.send_all(websocket)),
        ]
        try:
            await asyncio.wait([*tasks, connection.ended], return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._forget(connection)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
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
                connection.push_first("PONG")
                continue
            try:
                request = self._decode(text)
            except msgspec.MsgspecError:
                connection.push("INVALID OPERATION")
                continue
            self._handle_request(connection, request, books)

    def _handle_request(self, connection: Connection, request: Request, books: Books) -> None:
        operation = request.operation or ("subscribe" if request.type.lower() == "market" else "")
        if request.custom_feature_enabled is not None:
            connection.custom = request.custom_feature_enabled
        if operation == "subscribe":
            connection.asked = True
            fresh = [token for token in dict.fromkeys(request.assets_ids) if token not in connection.tokens]
            connection.tokens.update(fresh)
            for token in fresh:
                self._followers.setdefault(token, set()).add(connection)
            if request.initial_dump and (fresh or not request.assets_ids):
                self._send_books(connection, books.initial_books(fresh))
        elif operation == "unsubscribe":
            for token in connection.tokens.intersection(request.assets_ids):
                connection.tokens.discard(token)
                self._unfollow(connection, token)
        else:
            connection.push("INVALID OPERATION")

    def _send_books(self, connection: Connection, found: list[BookMessage]) -> None:
        for start in range(0, max(len(found), 1), BOOKS_A_FRAME):
            connection.offer(self._encode(found[start : start + BOOKS_A_FRAME]).decode(), 0)

    def _unfollow(self, connection: Connection, token: str) -> None:
        followers = self._followers.get(token)
        if followers is not None:
            followers.discard(connection)
            if not followers:
                del self._followers[token]

    def _forget(self, connection: Connection) -> None:
        self.connections.pop(connection.id, None)
        for token in connection.tokens:
            self._unfollow(connection, token)
        connection.tokens = set()

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
