"""Requests without a valid key: each client address has a budget, which is charged before any query."""

from __future__ import annotations

import hashlib
import math
import random
import secrets
import time
from typing import TYPE_CHECKING

from api.errors import Problem
from api.metrics.counts import Counter, SharedCounters
from api.shared_memory.memory import SharedMemory

if TYPE_CHECKING:
    from collections.abc import Callable

CELLS = 1 << 16  # half a megabyte, whatever the number of addresses
MINUTE_NS = 60_000_000_000
BURST_NS = MINUTE_NS // 6  # what accrues in this time may be used at once
PAUSE_S = 2.0  # mean delay of a refusal
MAX_PAUSED = 500  # refusals of a worker that are delayed at once; each holds a connection


class AddressBudgets:
    """Counts the requests of addresses over all workers of a server, in a table of fixed size.

    An address has two cells, chosen by a keyed hash. A cell holds the instant at which its budget is whole again (the
    generic cell rate algorithm), and the earlier of the two counts: an address shares its budget only if both of its
    cells are used by others.
    """

    def __init__(self, cells: int = CELLS, clock_ns: Callable[[], int] = time.monotonic_ns) -> None:
        self._shared, self._clock_ns = SharedMemory(cells * 8), clock_ns
        self._cells = memoryview(self._shared.memory).cast("q")
        self._secret = secrets.token_bytes(16)

    def take(self, address: str, a_minute: int) -> float:
        """Charge a request; return 0 if the budget allowed it, else the seconds until it allows one."""
        hashed = hashlib.blake2b(address.encode(), digest_size=16, key=self._secret).digest()
        first, second = (int.from_bytes(part, "big") % len(self._cells) for part in (hashed[:8], hashed[8:]))
        cells, now = self._cells, self._clock_ns()
        share = MINUTE_NS // a_minute
        with self._shared.locked():
            whole = max(now, min(cells[first], cells[second])) + share
            if (wait_ns := whole - now - max(BURST_NS, share)) > 0:
                return wait_ns / 1e9
            cells[first], cells[second] = max(cells[first], whole), max(cells[second], whole)
        return 0.0


class UnauthenticatedRequests:
    """Admits requests without a valid key as far as their address's budget allows.

    A refusal is delayed, so that clients that repeat requests as fast as they are answered do not use the CPU of
    others' requests; the delays differ, so that refused clients do not return all at once.
    """

    def __init__(
        self,
        budgets: AddressBudgets,
        a_minute: int | None = None,
        pause: Callable[[float], object] = lambda _: None,
        counts: SharedCounters | None = None,
    ) -> None:
        self._budgets, self._a_minute, self._pause = budgets, a_minute, pause
        self._counts = counts or SharedCounters()
        self._paused = 0

    def admit(self, address: str) -> None:
        """Charge a request to its address; raise `burst_exceeded` if the budget is used up."""
        if self._a_minute is None or not (wait_s := self._budgets.take(address, self._a_minute)):
            return
        self._counts.add(Counter.REFUSED_ADDRESS)
        if self._paused < MAX_PAUSED:
            self._paused += 1
            try:
                self._pause(PAUSE_S * (0.5 + random.random()))  # noqa: S311 (no secret)
            finally:
                self._paused -= 1
        raise Problem(
            "burst_exceeded",
            f"At most {self._a_minute} requests a minute without a valid API key are accepted from one address",
            hint="Check the key: requests with a valid one are not counted; POST /register issues one",
            headers={"Retry-After": str(math.ceil(wait_s))},
        )
