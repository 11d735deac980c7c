"""A site that is asked to stop answers what is under way and what comes on open connections, and then ends them."""

from __future__ import annotations

import asyncio
import socket
import time

import pytest
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from api.site.server import Drainable, Server
from tests.patience import PATIENCE_S, until

GET = b"GET /%s HTTP/1.1\r\nHost: x\r\n\r\n"


class Site:
    """A running server, and raw connections to it."""

    def __init__(self):
        self.drained, self.finish = asyncio.Event(), asyncio.Event()
        app = Starlette(routes=[Route("/soon", self.soon), Route("/late", self.late)])
        app.state.drain = self.drained.set
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.server = Server(Drainable(app), "127.0.0.1", 0)

    async def soon(self, request):
        return PlainTextResponse("soon")

    async def late(self, request):
        await self.finish.wait()
        return PlainTextResponse("late")

    async def __aenter__(self):
        self.running = asyncio.create_task(self.server._serve(sockets=[self.listener]))
        await asyncio.to_thread(until, lambda: self.server.started)
        return self

    async def __aexit__(self, *_):
        self.server.should_exit = True
        self.finish.set()
        await self.running

    async def open(self):
        return await asyncio.open_connection(*self.listener.getsockname())


async def answer(reader):
    head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
    return head.splitlines()[0].split()[1], "connection: close" in head, (await reader.readexactly(4)).decode()


@pytest.fixture(autouse=True)
def as_long_as_it_takes(monkeypatch):
    monkeypatch.setattr(Server, "idle_s", PATIENCE_S)


def test_requests_on_open_connections_are_answered_after_the_site_was_asked_to_stop():
    async def stop():
        async with Site() as site:
            (idle, to_idle), (busy, to_busy) = await site.open(), await site.open()
            to_idle.write(GET % b"soon")
            before = await answer(idle)
            to_busy.write(GET % b"late")
            site.server.should_exit = True
            await site.drained.wait()
            to_idle.write(GET % b"soon")
            after = await answer(idle)
            site.finish.set()
            answers = before, after, await answer(busy)
            ended = await asyncio.gather(idle.read(), asyncio.wait_for(site.running, PATIENCE_S))
            for each in (to_idle, to_busy):
                each.close()
            return answers, ended[0]

    answers, rest = asyncio.run(stop())

    assert answers == (("200", False, "soon"), ("200", True, "soon"), ("200", True, "late"))
    assert rest == b""


def test_idle_connections_do_not_keep_the_site_from_ending(monkeypatch):
    monkeypatch.setattr(Server, "idle_s", 0.2)

    async def stop():
        async with Site() as site:
            idle, to_idle = await site.open()
            to_idle.write(GET % b"soon")
            await answer(idle)
            began = time.monotonic()
            site.server.should_exit = True
            rest = await asyncio.wait_for(idle.read(), PATIENCE_S)
            to_idle.close()
            return rest, time.monotonic() - began

    rest, took = asyncio.run(stop())

    assert rest == b""
    assert took >= 0.2
