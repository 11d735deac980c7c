"""The stream for threads: an iterator of events."""

from __future__ import annotations

import math
import threading
import time
from collections import deque
from typing import TYPE_CHECKING, Self

from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidStatus
from websockets.sync.client import ClientConnection, connect

from presage_client.stream.errors import Interrupted, Lost, Unavailable
from presage_client.stream.events import Event, StreamGap
from presage_client.stream.opening import final_failures, options
from presage_client.stream.session import IDLE_S, Session

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from ssl import SSLContext
    from types import TracebackType

    from presage_client.stream.events import Type
    from presage_client.stream.opening import Proxy


class Stream:
    """Events as they happen, each once and in order, over any number of connections.

    `address` is the service's base URL. `markets` are ids or slugs, `types` event types; None is all. All markets are
    those of one `exchange`, Polymarket unless it is given. Activity of `wallets` is added to that. `resume_from` is the
    `seq` of the last event received earlier: save `last`, and nothing is missed over restarts. A gap raises `Lost`, or
    is passed to `on_gap` if that is given. `Unavailable` is raised after `patience_s` without a connection. `ssl` has
    the certificates, `proxy` is a proxy's address; True takes it from the environment.
    """

    def __init__(
        self,
        address: str,
        key: str,
        *,
        markets: Iterable[str] | None = None,
        types: Iterable[Type] | None = None,
        exchange: str | None = None,
        wallets: Iterable[str] = (),
        resume_from: int | None = None,
        on_gap: Callable[[StreamGap], object] | None = None,
        patience_s: float = math.inf,
        ssl: SSLContext | None = None,
        proxy: Proxy = True,
    ) -> None:
        self._session = Session(
            address, key, markets=markets, types=types, exchange=exchange, wallets=wallets, resume_from=resume_from
        )
        self._on_gap, self._patience_s = on_gap, patience_s
        self._options = options(self._session.url, ssl, proxy)
        self._socket: ClientConnection | None = None
        self._pending: deque[Event | StreamGap] = deque()
        self._last = resume_from
        self._closed = threading.Event()

    @property
    def last(self) -> int | None:
        """The `seq` to resume from after the events returned so far."""
        return self._last if self._pending else self._session.last

    def __repr__(self) -> str:
        state = "not connected" if self._socket is None else self._socket.state.name.lower()
        state = "closed" if self._closed.is_set() else state
        return f"<{type(self).__name__} past {self.last}, {state}, {self._session}>"

    def __iter__(self) -> Iterator[Event]:
        return self

    def __next__(self) -> Event:
        """Wait for the next event; only `close` ends the stream."""
        while not self._closed.is_set():
            while self._pending:
                item = self._pending.popleft()
                if isinstance(item, Event):
                    self._last = item.seq
                    return item
                if self._on_gap is None:
                    raise Lost(item)
                self._on_gap(item)
            try:
                self._receive(self._socket or self._connect())
            except Interrupted as why:
                self._disconnect()
                self._closed.wait(self._session.pause(why.wait_s))
        raise StopIteration

    def close(self) -> None:
        """Close the stream; safe to call from another thread."""
        self._closed.set()
        self._disconnect()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _connect(self) -> ClientConnection:
        began = time.monotonic()
        while not self._closed.is_set():
            try:
                with final_failures(self._session.url):
                    # A connection warns of use without `with`; this one is closed by _disconnect().
                    socket: ClientConnection = connect(self._session.url, **self._options).__enter__()
            except InvalidStatus as answer:
                why = self._session.refused(answer.response, time.time())
            except (OSError, InvalidHandshake, EOFError) as error:
                why = Interrupted(str(error))
            else:
                self._socket = socket
                if not self._closed.is_set():
                    return socket
                self._disconnect()  # close() found none to close
                break
            pause = self._session.pause(why.wait_s)
            if time.monotonic() + pause - began > self._patience_s:
                raise Unavailable(str(why))
            self._closed.wait(pause)
        raise Interrupted("closed")

    def _receive(self, socket: ClientConnection) -> None:
        try:
            try:
                text = socket.recv(timeout=IDLE_S, decode=True)
            except TimeoutError:
                socket.send(self._session.ping())
                return
            before = self._session.last
            events, answers = self._session.receive(text)
            if events:
                self._last = before
            self._pending += events
            for answer in answers:
                socket.send(answer)
        except ConnectionClosed as closed:
            raise self._session.closed(closed) from None

    def _disconnect(self) -> None:
        socket, self._socket = self._socket, None
        if socket is not None:
            socket.close()
