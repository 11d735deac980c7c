"""The market socket: who follows which token, and a bounded queue for each of them."""

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

QUEUE = 50_000  # messages a connection may lag before it is let go
UNSUBSCRIBED_S = 10  # a connection that asks for nothing is closed
BOOKS_A_FRAME = 50  # keeps the first frame well below a client's usual limit of 1 MiB
NO_HANDSHAKE = 1006  # what a client sees when a connection breaks


class Request(msgspec.Struct):
    """What a client sends: the first `type`, later ones `operation`."""

    assets_ids: list[str] = []
    type: str = ""
    operation: str = ""
    custom_feature_enabled: bool | None = None
    initial_dump: bool = True


class Connection:
    """One socket, what it follows, and what waits to be sent to it."""

    def __init__(self, connection_id: int, hub: Hub) -> None:
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
        """Queue a message, unless a fault has it otherwise."""
        if self._hub.faults.planned:
            self._offer_faulty(message, n)
        else:
            self.push(message)

    def push(self, message: str) -> None:
        if len(self._queue) >= self._hub.queue_size:
            self._hub.let_go(self)
            return
        self._queue.append(message)
        self._waiting.set()

    def push_first(self, message: str) -> None:
        self._queue.appendleft(message)
        self._waiting.set()

    @property
    def queued(self) -> int:
        return len(self._queue)

    def end(self, code: int) -> None:
        if not self.ended.done():
            self.ended.set_result(code)

    async def send_all(self, websocket: WebSocket) -> None:
        """Send what is queued, for ever."""
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
    """Where the books come from that a new subscriber is sent."""

    def initial_books(self, tokens: Iterable[str]) -> list[BookMessage]: ...


class Hub:
    """All connections; encodes nothing, waits for nobody."""

    def __init__(self, faults: Faults, record: Callable[[Fact], None], *, queue_size: int = QUEUE) -> None:
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

    # --- The exchange's side ---

    def tell(self, message: str, tokens: Sequence[str], n: int, *, custom: bool) -> int:
        followers = self._followers
        found = followers.get(tokens[0])
        for token in tokens[1:]:
            more = followers.get(token)
            if more:
                found = found | more if found else more
        if not found:
            return 0
        told = 0
        for connection in tuple(found):
            if not custom or connection.custom:
                connection.offer(message, n)
                told += 1
        return told

    def tell_all(self, message: str, n: int) -> int:
        told = [connection for connection in self.connections.values() if connection.custom]
        for connection in told:
            connection.offer(message, n)
        return len(told)

    # --- The sockets' side ---

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
            self._obey(connection, request, books)

    def _obey(self, connection: Connection, request: Request, books: Books) -> None:
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

    def let_go(self, connection: Connection) -> None:
        """End a connection that does not keep up."""
        self.slow += 1
        self._forget(connection)
        connection.end(1013)

    # --- Faults and state ---

    def record(self, fault: Fault, connection_id: int, n: int) -> None:
        """Write into the truth log what a fault did to a message of line `n`."""
        self._record(
            Fact(0, "fault", detail={"fault": fault.kind, "id": fault.id, "connection": connection_id, "of": n})
        )

    def tick(self) -> None:
        """Begin faults whose time has come, and close those who ask for nothing; called some times a second."""
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
        """Return how many messages wait for the slowest connection."""
        return max((connection.queued for connection in self.connections.values()), default=0)

    def state(self) -> dict[str, Any]:
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
