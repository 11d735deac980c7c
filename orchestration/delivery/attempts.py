"""Attempts under way: an event loop in a thread of its own, so that a slow receiver holds nobody else up."""

from __future__ import annotations

import asyncio
import queue
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TYPE_CHECKING

from orchestration.delivery.schedule import Outcome

if TYPE_CHECKING:
    from collections.abc import Callable

    from orchestration.delivery.dispatcher import Due
    from orchestration.delivery.sending import Sender

NAMES_AT_ONCE = 64  # a name whose servers do not answer takes up one of these for as long as the system asks them


class Attempts:
    """Begun by one thread, made in another."""

    def __init__(self, sender: Callable[[], Sender], clock: Callable[[], float]) -> None:
        self._make, self._clock = sender, clock
        self._over: queue.SimpleQueue[tuple[Due, Outcome]] = queue.SimpleQueue()
        self._some = threading.Event()
        self._loop = asyncio.new_event_loop()
        self._loop.set_default_executor(ThreadPoolExecutor(NAMES_AT_ONCE, "names"))
        self._thread = threading.Thread(target=self._loop.run_forever, name="webhooks", daemon=True)
        self._thread.start()
        self._sender = asyncio.run_coroutine_threadsafe(self._made(), self._loop).result()

    def begin(self, due: Due) -> None:
        """Begin one."""
        asyncio.run_coroutine_threadsafe(self._attempt(due), self._loop)

    def over(self) -> list[tuple[Due, Outcome]]:
        """Take those that are over."""
        self._some.clear()
        found = []
        with suppress(queue.Empty):
            while True:
                found.append(self._over.get_nowait())
        return found

    def wait(self, timeout_s: float) -> None:
        """Wait until one is over, or so long."""
        self._some.wait(timeout_s)

    def close(self) -> None:
        """Leave off those under way: whoever leads next makes them again."""

        async def leave() -> None:
            for task in asyncio.all_tasks():
                if task is not asyncio.current_task():
                    task.cancel()
            await self._sender.close()

        asyncio.run_coroutine_threadsafe(leave(), self._loop).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    async def _made(self) -> Sender:
        return self._make()

    async def _attempt(self, due: Due) -> None:
        began = self._clock()
        try:
            outcome = await self._sender.send(due.url, due.secrets, due.message_id, due.body)
        except Exception as fault:  # noqa: BLE001 (whatever it is: an attempt that never ends would hold its webhook up for ever)
            outcome = Outcome(began, self._clock(), error=f"{type(fault).__name__}: {fault}"[:500])
        self._over.put((due, outcome))
        self._some.set()
