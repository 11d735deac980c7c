"""Attempts under way: an event loop in a thread of its own, so that a slow receiver holds nobody else up."""

from __future__ import annotations

import asyncio
import queue
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TYPE_CHECKING

from orchestration.webhooks.dispatcher import Over
from orchestration.webhooks.schedule import Outcome

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from orchestration.webhooks.dispatcher import Due
    from orchestration.webhooks.sending import Sender

IN_A_ROW_S = 1.0
NAMES_AT_ONCE = 64  # a name whose servers do not answer takes up one of these for as long as the system asks them


class Attempts:
    """Begun by one thread, made in another."""

    def __init__(self, sender: Callable[[], Sender], clock: Callable[[], float]) -> None:
        self._make, self._clock = sender, clock
        self._over: queue.SimpleQueue[Over] = queue.SimpleQueue()
        self._some = threading.Event()
        self._loop = asyncio.new_event_loop()
        self._loop.set_default_executor(ThreadPoolExecutor(NAMES_AT_ONCE, "names"))
        self._thread = threading.Thread(target=self._loop.run_forever, name="webhooks", daemon=True)
        self._thread.start()
        self._sender = asyncio.run_coroutine_threadsafe(self._made(), self._loop).result()

    def begin(self, due: Sequence[Due]) -> None:
        """Begin with deliveries of a webhook, one after the other, until one does not arrive."""
        asyncio.run_coroutine_threadsafe(self._attempts(due), self._loop)

    def over(self) -> list[Over]:
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

    async def _attempts(self, deliveries: Sequence[Due]) -> None:
        """Make them in order. Not for long: a webhook may be changed meanwhile, and what was read of it is then old."""
        until = time.monotonic() + IN_A_ROW_S
        for place, due in enumerate(deliveries, start=1):
            outcome = await self._attempt(due)
            free = place == len(deliveries) or not outcome.arrived or time.monotonic() >= until
            self._over.put(Over(due, outcome, free))
            self._some.set()
            if free:
                return

    async def _attempt(self, due: Due) -> Outcome:
        began = self._clock()
        try:
            return await self._sender.send(due.url, due.secrets, due.message_id, due.body)
        except Exception as fault:  # noqa: BLE001 (an attempt that never ends would hold its webhook up for ever)
            return Outcome(began, self._clock(), error=f"{type(fault).__name__}: {fault}"[:500])
