"""Rivals of the stream: two bare broadcasts of generated events, without database, filters or resuming.

`python -m benchmarks.stream.rivals gevent|websockets PORT RATE each|lines`: one frame per event, or one of many lines.
They start sending on SIGUSR1, so that the clients can connect first.
"""

from __future__ import annotations

import signal
import sys
import time
from typing import TYPE_CHECKING, Any

from benchmarks.stream.writer import message

if TYPE_CHECKING:
    from collections.abc import Iterator

TICK_S = 0.01


def batches(rate: int, *, lines: bool) -> Iterator[list[str]]:
    """Yield the frames due at each tick; missed ones are sent later."""
    began, made = time.monotonic(), 0
    while True:
        due = min(int(rate * (time.monotonic() - began)), made + rate)
        texts = [message(seq) for seq in range(made + 1, due + 1)]
        made = due
        yield (["\n".join(texts)] if texts else []) if lines else texts


def bare_gevent(port: int, rate: int, *, lines: bool) -> None:
    """Broadcast as in gevent-websocket's documentation: a loop over all clients."""
    from gevent import monkey

    monkey.patch_all()
    import gevent
    from gevent.event import Event
    from gevent.pywsgi import WSGIServer
    from geventwebsocket.handler import WebSocketHandler

    clients: set[Any] = set()
    begin = Event()

    def application(environ: dict[str, Any], start_response: Any) -> list[bytes]:  # noqa: ARG001 (WSGI's)
        socket = environ["wsgi.websocket"]
        clients.add(socket)
        while socket.receive() is not None:
            pass
        clients.discard(socket)
        return []

    def broadcast() -> None:
        begin.wait()
        for texts in batches(rate, lines=lines):
            for text in texts:
                for client in list(clients):
                    try:
                        client.send(text)
                    except Exception:  # noqa: BLE001 (whatever ends a client)
                        clients.discard(client)
            gevent.sleep(TICK_S)

    gevent.signal_handler(signal.SIGUSR1, begin.set)
    gevent.spawn(broadcast)
    WSGIServer(("127.0.0.1", port), application, handler_class=WebSocketHandler, log=None).serve_forever()


def websockets_broadcast(port: int, rate: int, *, lines: bool) -> None:
    """Broadcast with `websockets.broadcast`."""
    import asyncio

    from websockets.asyncio.server import broadcast, serve

    async def main() -> None:
        begin = asyncio.Event()
        asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, begin.set)

        async def handle(client: Any) -> None:
            await client.wait_closed()

        async with serve(handle, "127.0.0.1", port, compression=None, ping_interval=None) as server:
            await begin.wait()
            for texts in batches(rate, lines=lines):
                for text in texts:
                    broadcast(server.connections, text)
                await asyncio.sleep(TICK_S)

    asyncio.run(main())


if __name__ == "__main__":
    rival = {"gevent": bare_gevent, "websockets": websockets_broadcast}[sys.argv[1]]
    rival(int(sys.argv[2]), int(sys.argv[3]), lines=sys.argv[4] == "lines")
