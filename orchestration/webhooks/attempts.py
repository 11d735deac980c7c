"""Concurrent attempts: an event loop in a thread of its own, so that a slow receiver delays nobody else."""

from __future__ import annotations

import asyncio
import logging
import queue
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TYPE_CHECKING

from orchestration.webhooks.dispatcher import FinishedAttempt
from orchestration.webhooks.schedule import Outcome
from sql.webhook_secrets import UnreadableSecretError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from orchestration.webhooks.dispatcher import DueDelivery
    from orchestration.webhooks.sending import Sender

log = logging.getLogger(__name__)

MAX_BATCH_S = 1.0
MAX_CONCURRENT_LOOKUPS = 64  # a name whose servers do not answer occupies one of these until the system gives up


class Attempts:
    """Attempts started by one thread and made in another."""

    def __init__(self, sender: Callable[[], Sender], clock: Callable[[], float], decrypt: Callable[[str], str]) -> None:
        self._make, self._clock, self._decrypt = sender, clock, decrypt
        self._over: queue.SimpleQueue[FinishedAttempt] = queue.SimpleQueue()
        self._some = threading.Event()
        self._loop = asyncio.new_event_loop()
        self._loop.set_default_executor(ThreadPoolExecutor(MAX_CONCURRENT_LOOKUPS, "names"))
        self._thread = threading.Thread(target=self._loop.run_forever, name="webhooks", daemon=True)
        self._thread.start()
        self._sender = asyncio.run_coroutine_threadsafe(self._made(), self._loop).result()

    def start(self, due: Sequence[DueDelivery]) -> None:
        """Start deliveries of a webhook, one after the other, until one fails."""
        asyncio.run_coroutine_threadsafe(self._attempts(due), self._loop)

    def finished(self) -> list[FinishedAttempt]:
        """Return the attempts that have finished."""
        self._some.clear()
        found = []
        with suppress(queue.Empty):
            while True:
                found.append(self._over.get_nowait())
        return found

    def wait(self, timeout_s: float) -> None:
        """Wait until one has finished, or the timeout."""
        self._some.wait(timeout_s)

    def close(self) -> None:
        """Cancel the attempts under way: the next leader makes them again."""

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

    async def _attempts(self, deliveries: Sequence[DueDelivery]) -> None:
        """Make attempts in order, for a short time only: a webhook may change meanwhile, and its data be outdated."""
        until = time.monotonic() + MAX_BATCH_S
        for place, due in enumerate(deliveries, start=1):
            outcome = await self._attempt(due)
            free = place == len(deliveries) or not outcome.arrived or time.monotonic() >= until
            self._over.put(FinishedAttempt(due, outcome, free))
            self._some.set()
            if free:
                return

    async def _attempt(self, due: DueDelivery) -> Outcome:
        began = self._clock()
        try:
            secrets = [self._decrypt(stored) for stored in due.secrets]
            return await self._sender.send(due.url, secrets, due.message_id, due.body)
        except UnreadableSecretError as fault:
            log.warning("a webhook's message cannot be signed: %s", fault)
            return Outcome(began, self._clock(), error=str(fault))
        except Exception as fault:  # noqa: BLE001 (an attempt that never ends would hold its webhook up for ever)
            return Outcome(began, self._clock(), error=f"{type(fault).__name__}: {fault}"[:500])
