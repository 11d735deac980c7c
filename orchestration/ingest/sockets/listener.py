"""One socket of the exchange, kept open: what it follows, when it was lost, when its books stood again."""

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Sequence
from time import monotonic, time

from orchestration.ingest.sockets.pulse import Pulse
from upstream.polymarket.book import Book
from upstream.polymarket.market_channel.socket import MarketSocket, Message, Pong, Refused, SocketLost, backoff
from upstream.transport.reach import trouble

Heard = Callable[["Listener", Sequence[Message | Refused]], int]
Opened = Callable[["Listener"], None]
Lost = Callable[["Listener", str], None]

STEADY_S = 30.0  # a connection that held for so long was a good one: the next may be tried at once
COMMANDS_S = 5.0


class Listener:
    """Follows tokens on one connection, and connects again whenever it is lost."""

    def __init__(
        self, url: str, number: int, opening: asyncio.Semaphore, *, heard: Heard, opened: Opened, lost: Lost
    ) -> None:
        self.number = number
        self.tokens: dict[str, None] = {}  # in the order they came
        self.pulse = Pulse(monotonic())
        self.newest_ms = 0  # the newest instant of the exchange that was heard
        self.open = False
        self.greeted = False  # something has come over this connection
        self.opened_at = 0.0
        self.deaf_since = monotonic()  # while nothing has come over a connection
        self.reconnects = 0
        self.trouble: tuple[str, int] | None = (
            None  # why the connection cannot be opened, and since when (Unix seconds)
        )
        self._url = url
        self._opening = opening
        self._heard, self._opened, self._lost = heard, opened, lost
        self._socket: MarketSocket | None = None
        self._cause: str | None = None
        self._commands: set[asyncio.Task[None]] = set()
        self.task: asyncio.Task[None] | None = None

    def start(self) -> asyncio.Task[None]:
        """Begin to listen."""
        self.task = asyncio.create_task(self._listen(), name=f"listener {self.number}")
        return self.task

    async def stop(self) -> None:
        """Listen no longer."""
        if self.task is not None:
            self.task.cancel()
            await asyncio.gather(self.task, *self._commands, return_exceptions=True)

    def follow(self, token_ids: Iterable[str]) -> None:
        """Follow more tokens, on the open connection or from the next one on."""
        more = [token_id for token_id in token_ids if token_id not in self.tokens]
        if not self.tokens:
            self.deaf_since = monotonic()
        self.tokens.update(dict.fromkeys(more))
        if self._socket is not None and more:
            self._command(self._socket.subscribe(more))

    def leave(self, token_ids: Iterable[str]) -> None:
        """Follow some tokens no longer."""
        fewer = [token_id for token_id in token_ids if token_id in self.tokens]
        for token_id in fewer:
            del self.tokens[token_id]
        if self._socket is not None and fewer:
            self._command(self._socket.unsubscribe(fewer))

    def cut(self, cause: str) -> None:
        """Give up the connection, for a reason of our own."""
        if self._socket is not None and self._cause is None:
            self._cause = cause
            self._command(self._socket.close())

    def deaf_for_s(self, now: float) -> float:
        """Tell for how long what it follows could not be heard."""
        return now - self.deaf_since if self.tokens and not self.greeted else 0.0

    async def _listen(self) -> None:
        waits = backoff()
        while True:
            began = monotonic()
            cause = "closed"
            try:
                async with self._opening:
                    socket = MarketSocket(self._url, self.tokens)
                    await socket.__aenter__()
                try:
                    await self._stay(socket)
                finally:
                    await asyncio.shield(self._close(socket))
            except SocketLost as lost:
                was_open, self.open = self.open, False
                silent = self._cause == "silent" or lost.reason.startswith("silent")
                cause = "silent" if silent else "closed" if was_open else "refused"
                if cause == "refused" and self.trouble is None:
                    self.trouble = trouble(lost, self._url), int(time())
                self._lost(self, cause)
            if self.greeted:
                self.deaf_since = monotonic()
            if self.greeted or monotonic() - began > STEADY_S:
                waits = backoff()
            self.greeted = False
            self.reconnects += 1
            await asyncio.sleep(next(waits))

    async def _stay(self, socket: MarketSocket) -> None:
        self._socket, self._cause = socket, None
        self.opened_at = monotonic()
        self.pulse.begin(self.opened_at)
        self.open, self.trouble = True, None
        known = set(socket.assets)
        if missed := [token_id for token_id in self.tokens if token_id not in known]:
            await socket.subscribe(missed)  # asked for while the connection was being made
        self._opened(self)
        async for received, messages in socket:
            data = [message for message in messages if type(message) is not Pong]
            if data or not messages:
                self.greeted = True
            if data:
                self.pulse.beat(received, sum(type(message) is not Book for message in data))
                self.newest_ms = max(self.newest_ms, self._heard(self, data))

    async def _close(self, socket: MarketSocket) -> None:
        self._socket = None
        await socket.close()

    def _command(self, command: Coroutine[None, None, None]) -> None:
        async def obey() -> None:
            try:
                async with asyncio.timeout(COMMANDS_S):
                    await command
            except (SocketLost, TimeoutError):
                self.cut("closed")  # whatever it was told is told again to the next connection

        task = asyncio.create_task(obey())
        self._commands.add(task)
        task.add_done_callback(self._commands.discard)
