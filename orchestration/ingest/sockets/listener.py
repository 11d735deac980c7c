"""One connection to the exchange, kept open: subscriptions, reconnects and connection state."""

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Sequence
from functools import partial
from time import monotonic, time

from orchestration.ingest.exchanges.base import Connection, ExchangeClient, Missed
from orchestration.ingest.sockets.pulse import Pulse
from upstream.polymarket.book import Book
from upstream.polymarket.market_channel.socket import (
    ChannelMessage,
    Pong,
    RefusedObject,
    SocketLost,
    backoff,
)
from upstream.transport.errors import SubscriptionRefused
from upstream.transport.reach import reach_failure

OnMessages = Callable[["SocketListener", Sequence[ChannelMessage | RefusedObject]], int]
Keep = Callable[["SocketListener", bytes, float], bool]
OnOpened = Callable[["SocketListener"], None]
OnLost = Callable[["SocketListener", str], None]
OnMissed = Callable[["SocketListener", Missed], None]

STEADY_S = 30.0  # a connection that lasted this long was good: the next may be tried at once
COMMANDS_S = 5.0


class SocketListener:
    """Follows tokens on one connection, and reconnects whenever it is lost."""

    def __init__(
        self,
        exchange: ExchangeClient,
        number: int,
        opening: asyncio.Semaphore,
        *,
        on_messages: OnMessages,
        on_opened: OnOpened,
        on_lost: OnLost,
        on_missed: OnMissed,
        now_ms: Callable[[], int],
        keep: Keep | None = None,
    ) -> None:
        self.number = number
        self.tokens: dict[str, None] = {}  # in the order they were added
        self.pulse = Pulse(monotonic())
        self.newest_ms = 0  # newest exchange timestamp received
        self.open = False
        self.greeted = False  # something was received on this connection
        self.opened_at = 0.0
        self.disconnected_since = monotonic()  # while nothing was received on a connection
        self.reconnects = 0
        self.trouble: tuple[str, int] | None = (
            None  # why the connection cannot be opened, and since when (Unix seconds)
        )
        self._exchange = exchange
        self._opening = opening
        self._on_messages, self._on_opened, self._on_lost = on_messages, on_opened, on_lost
        self._on_missed, self._now_ms = partial(on_missed, self), now_ms
        self._keep = None if keep is None else partial(keep, self)
        self._socket: Connection | None = None
        self._cause: str | None = None
        self._commands: set[asyncio.Task[None]] = set()
        self.task: asyncio.Task[None] | None = None

    def start(self) -> asyncio.Task[None]:
        """Start listening."""
        self.task = asyncio.create_task(self._listen(), name=f"listener {self.number}")
        return self.task

    async def stop(self) -> None:
        """Stop listening."""
        if self.task is not None:
            self.task.cancel()
            await asyncio.gather(self.task, *self._commands, return_exceptions=True)

    def follow(self, token_ids: Iterable[str]) -> None:
        """Follow more tokens, on the open connection or from the next one on."""
        more = [token_id for token_id in token_ids if token_id not in self.tokens]
        if not self.tokens:
            self.disconnected_since = monotonic()
        self.tokens.update(dict.fromkeys(more))
        if self._socket is not None and more:
            self._command(self._socket.subscribe(more))

    def unfollow(self, token_ids: Iterable[str]) -> None:
        """Stop following some tokens."""
        fewer = [token_id for token_id in token_ids if token_id in self.tokens]
        for token_id in fewer:
            del self.tokens[token_id]
        if self._socket is not None and fewer:
            self._command(self._socket.unsubscribe(fewer))

    def request_books(self, token_ids: Iterable[str]) -> None:
        """Ask for books over the connection, if it is open and such that they come over it."""
        if self._socket is not None:
            self._socket.request_books(token_ids)

    def disconnect(self, cause: str) -> None:
        """Close the connection, for a reason of our own."""
        if self._socket is not None and self._cause is None:
            self._cause = cause
            self._command(self._socket.close())

    def disconnected_s(self, now: float) -> float:
        """Return how long its tokens have been without data."""
        return now - self.disconnected_since if self.tokens and not self.greeted else 0.0

    async def _listen(self) -> None:
        waits = backoff()
        while True:
            began, unwanted = monotonic(), False
            cause = "closed"
            try:
                async with self._opening:
                    socket = self._exchange.connect(
                        self.tokens,
                        number=self.number,
                        keep=self._keep,
                        on_missed=self._on_missed,
                        now_ms=self._now_ms,
                    )
                    await socket.__aenter__()
                try:
                    await self._stay(socket)
                finally:
                    await asyncio.shield(self._close(socket))
            except SocketLost as lost:
                was_open, self.open = self.open, False
                silent = self._cause == "silent" or lost.reason.startswith("silent")
                cause = "silent" if silent else "closed" if was_open else "refused"
                unwanted = isinstance(lost, SubscriptionRefused)
                if (cause == "refused" or unwanted) and self.trouble is None:
                    self.trouble = reach_failure(lost, self._exchange.socket_url), int(time())
                self._on_lost(self, cause)
            if self.greeted:
                self.disconnected_since = monotonic()
            if (self.greeted and not unwanted) or monotonic() - began > STEADY_S:
                waits = backoff()
            self.greeted = False
            self.reconnects += 1
            await asyncio.sleep(next(waits))

    async def _stay(self, socket: Connection) -> None:
        self._socket, self._cause = socket, None
        self.opened_at = monotonic()
        self.pulse.begin(self.opened_at)
        self.open, self.trouble = True, None
        known = set(socket.assets)
        if missed := [token_id for token_id in self.tokens if token_id not in known]:
            await socket.subscribe(missed)  # added while the connection was being opened
        self._on_opened(self)
        async for received, messages in socket:
            pushed, data = len(messages), messages
            for message in messages:
                if type(message) is Book:
                    pushed -= 1
                elif type(message) is Pong:
                    data = [each for each in messages if type(each) is not Pong]
                    pushed -= 1
            if data or not messages:
                self.greeted = True
            if data:
                self.pulse.beat(received, pushed)
                self.newest_ms = max(self.newest_ms, self._on_messages(self, data))

    async def _close(self, socket: Connection) -> None:
        self._socket = None
        await socket.close()

    def _command(self, command: Coroutine[None, None, None]) -> None:
        async def run() -> None:
            try:
                async with asyncio.timeout(COMMANDS_S):
                    await command
            except (SocketLost, TimeoutError):
                self.disconnect("closed")  # the command is repeated on the next connection

        task = asyncio.create_task(run())
        self._commands.add(task)
        task.add_done_callback(self._commands.discard)
