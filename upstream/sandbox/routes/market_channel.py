"""Market socket: subscriptions, and a bounded queue per connection."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from upstream.sandbox.common.frames import frame
from upstream.sandbox.common.sockets import MAX_QUEUE, ConnectionHub, QueuedConnection
from upstream.sandbox.exchange.wire import Fact

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from upstream.polymarket.market_channel.outgoing import BookMessage
    from upstream.sandbox.common.frames import FrameSocket
    from upstream.sandbox.faults import Faults

UNSUBSCRIBED_S = 10  # a connection without a subscription is closed
BOOKS_A_FRAME = 50  # keeps the first frame well below a client's usual limit of 1 MiB
MAX_TOKENS = 500  # that one connection may subscribe to
PONG, INVALID = frame(b"PONG"), frame(b"INVALID OPERATION")


class Request(msgspec.Struct):
    """A client's message: the first has `type`, later ones `operation`."""

    assets_ids: list[str] = []
    type: str = ""
    operation: str = ""
    custom_feature_enabled: bool | None = None
    initial_dump: bool = True


class Connection(QueuedConnection):
    """One socket and its subscriptions."""

    def __init__(self, connection_id: int, hub: SocketHub, socket: FrameSocket) -> None:
        super().__init__(connection_id, hub, socket)
        self.tokens: set[str] = set()
        self.custom = False
        self.asked = False

    def clear(self) -> None:
        """Drop subscriptions, and messages that are not written yet."""
        self.tokens.clear()
        super().clear()


class Books(Protocol):
    """Source of the books sent to a new subscriber."""

    def initial_books(self, tokens: Iterable[str]) -> list[BookMessage]: ...


class SocketHub(ConnectionHub[Connection]):
    """All connections; a message is framed once, however many receive it."""

    faults: Faults

    def __init__(
        self,
        faults: Faults,
        record: Callable[[Fact], None],
        *,
        queue_size: int = MAX_QUEUE,
        max_tokens: int = MAX_TOKENS,
    ) -> None:
        super().__init__(faults, queue_size=queue_size)
        self.books: Books | None = None
        self.max_tokens, self.beyond_limit = max_tokens, 0
        self._record = record
        self._followers: dict[str, tuple[Connection, ...]] = {}
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

    # --- Called by the sockets ---

    def connect(self, connection_id: int, socket: FrameSocket) -> Connection:
        """Return a new connection."""
        return Connection(connection_id, self, socket)

    def receive(self, connection: Connection, text: str) -> None:
        """Handle a client's message."""
        if text.strip().upper() == "PING":
            connection.push_first(PONG)
            return
        try:
            request = self._decode(text)
        except msgspec.MsgspecError:
            connection.push(INVALID)
            return
        self._handle_request(connection, request)

    def _handle_request(self, connection: Connection, request: Request) -> None:
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
                assert self.books is not None
                self._send_books(connection, self.books.initial_books(fresh))
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

    def forget(self, connection: Connection) -> None:
        """Forget a connection that has ended."""
        for token in connection.tokens:
            self._unfollow(connection, token)
        super().forget(connection)

    # --- Faults and state ---

    def corrupted(self, kind: str, message: bytes) -> bytes:
        """Return a message with one hash or one size changed."""
        return self.faults.corrupted(kind, message)

    def write_fault(self, detail: dict[str, Any]) -> None:
        """Write into the truth log what a fault did."""
        self._record(Fact(0, "fault", detail=detail))

    def tick(self) -> None:
        """Start due faults, and close connections without a subscription; called several times a second."""
        super().tick()
        now = asyncio.get_running_loop().time()
        for connection in list(self.connections.values()):
            if not connection.asked and now - connection.opened > UNSUBSCRIBED_S:
                connection.end(1008)

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
