"""Runs the site: `python -m api.site.server`, on the settings' address or on inherited sockets (`--fd`).

Asked to stop (SIGTERM), it drains: it accepts nothing more, ends live pages and sessions of MCP, answers what is under
way, and ends each connection with its next answer. Connections that stay idle are closed last.
"""

from __future__ import annotations

import argparse
import asyncio
import socket
import time
from typing import TYPE_CHECKING, ClassVar

import uvicorn
from starlette.datastructures import MutableHeaders

from api.site import app as site
from config import settings

if TYPE_CHECKING:
    from collections.abc import Sequence

    from starlette.applications import Starlette
    from starlette.types import Message, Receive, Scope, Send


class Drainable:
    """The application; once `draining`, each answer ends its connection."""

    def __init__(self, app: Starlette) -> None:
        self._app = app
        self.draining = False

    def drain(self) -> None:
        """End what would never end by itself, and connections with their next answer."""
        self.draining = True
        self._app.state.drain()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on."""

        async def ending(message: Message) -> None:
            if self.draining and message["type"] == "http.response.start":
                MutableHeaders(scope=message)["Connection"] = "close"
            await send(message)

        await self._app(scope, receive, ending)


class Server(uvicorn.Server):
    """Uvicorn's server, with idle connections closed last: closing them might cross a request."""

    idle_s: ClassVar[float] = 2.0
    poll_s: ClassVar[float] = 0.05

    def __init__(self, app: Drainable, host: str, port: int) -> None:
        self._app = app
        super().__init__(
            uvicorn.Config(
                app,
                host=host,
                port=port,
                log_config=None,
                access_log=False,
                proxy_headers=False,
                server_header=False,
                timeout_keep_alive=30,
                timeout_graceful_shutdown=10,
            )
        )

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Drain, then stop."""
        for server in self.servers:
            server.close()
        self._app.drain()
        until = time.monotonic() + self.idle_s
        while self.server_state.connections and time.monotonic() < until:  # noqa: ASYNC110 (uvicorn reports no end of one)
            await asyncio.sleep(self.poll_s)
        await super().shutdown(sockets)


def main(arguments: Sequence[str] | None = None) -> None:
    """Serve until asked to stop."""
    parser = argparse.ArgumentParser(description="The site.")
    parser.add_argument(
        "--fd", type=int, action="append", help="an inherited socket to listen on, instead of an address"
    )
    fds: list[int] | None = parser.parse_args(arguments).fd
    given = settings.get()
    server = Server(Drainable(site.app), given.site_host, given.site_port)
    server.run(sockets=[socket.socket(fileno=fd) for fd in fds] if fds else None)


if __name__ == "__main__":
    main()
