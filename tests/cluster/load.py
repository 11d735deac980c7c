"""Load on the cluster while hosts are lost: a writer that knows what was acknowledged, and a client of the API."""

from __future__ import annotations

import itertools
import threading
import time
from abc import ABC, abstractmethod
from collections import Counter
from typing import Any

import httpx
import psycopg

from orchestration import stream

TABLE = "create table cluster_numbers (number bigint primary key)"
TRY_AGAIN_S = 0.05
STOPPING_S = 30.0
UNAVAILABLE = (502, 503, 504)  # the proxy's, or ours while the database is away
CALLS = ("/v1/markets?limit=5", "/v1/signals/top?limit=5", "/v1/events?limit=5")


class Worker(threading.Thread, ABC):
    """Does one thing again and again, and knows when it was done."""

    def __init__(self, pause_s: float) -> None:
        super().__init__(daemon=True)
        self.done_at: list[float] = []
        self.refused: list[tuple[float, float, str]] = []  # from when to when it was tried, and what came of it
        self.fault: BaseException | None = None
        self._pause_s = pause_s
        self._over = threading.Event()

    @abstractmethod
    def once(self) -> str:
        """Do it; return why it failed, or nothing."""

    def run(self) -> None:
        try:
            while not self._over.wait(self._pause_s):
                began = time.monotonic()
                if failed := self.once():
                    self.refused.append((began, time.monotonic(), failed))
                    time.sleep(TRY_AGAIN_S)
                else:
                    self.done_at.append(time.monotonic())
        except BaseException as fault:  # noqa: BLE001 (reported by the audit)
            self.fault = fault

    def stop(self) -> None:
        """Finish what is being done, and end; without a second database nothing is acknowledged, ever."""
        self._over.set()
        self.join(STOPPING_S)
        if self.is_alive() and self.fault is None:
            self.fault = TimeoutError(f"{type(self).__name__} does not come to an end")

    def failures(self, since: float, until: float) -> dict[str, int]:
        """Return how often what has failed within a span, with the seconds that it took."""
        return Counter(
            f"{ended - began:.0f} s: {why[:120]}" for began, ended, why in self.refused if since < ended < until
        )

    def longest_pause_s(self, since: float, until: float) -> float:
        """Return the longest time without a success that overlaps a span."""
        inside = [since, *(at for at in self.done_at if since < at < until), until]
        return max(after - before for before, after in itertools.pairwise(inside))


class Writer(Worker):
    """Commits one number after the other, each with an event of the stream. What is not acknowledged is tried again."""

    def __init__(self, url: str, pause_s: float) -> None:
        super().__init__(pause_s)
        self._url = url
        self._conn: psycopg.Connection[Any] | None = None
        self.acknowledged = 0

    def once(self) -> str:
        """Commit the next number, unless it is there already: an earlier commit may stand that nobody acknowledged."""
        number = self.acknowledged + 1
        try:
            if self._conn is None:
                options = "-c statement_timeout=10000"
                self._conn = psycopg.connect(self._url, autocommit=True, connect_timeout=2, options=options)
            with self._conn.transaction():
                new = self._conn.execute(
                    "insert into cluster_numbers values (%s) on conflict do nothing returning number", [number]
                ).fetchone()
                if new:
                    now = int(time.time() * 1000)
                    stream.publish(self._conn, [stream.message("signal", now, None, {"number": number})], now)
        except psycopg.Error as error:
            if self._conn is not None:
                self._conn.close()
            self._conn = None
            return repr(error)
        self.acknowledged = number
        return ""


class Reader(Worker):
    """Asks the API one thing after the other, and knows how many answers it had and how many may have been sent."""

    def __init__(self, url: str, key: str, pause_s: float) -> None:
        super().__init__(pause_s)
        self._client = httpx.Client(base_url=url, headers={"X-API-Key": key}, timeout=5.0)
        self.answered = self.paid = self.dearest = 0
        self.unknown = 0
        """Requests that were sent and whose answer did not arrive: they may have been charged."""

    def once(self) -> str:
        """Ask."""
        try:
            answer = self._client.get(CALLS[(self.answered + len(self.refused)) % len(CALLS)])
        except httpx.HTTPError as error:
            self.unknown += 1
            return repr(error)
        if answer.status_code != 200:
            assert answer.status_code in UNAVAILABLE, answer.text
            self.unknown += 1  # a proxy's answer may replace one of ours
            return f"{answer.status_code} {answer.text[:200]}"
        self.answered += 1
        cost = int(answer.headers["X-Request-Cost"])
        self.paid, self.dearest = self.paid + cost, max(self.dearest, cost)
        return ""
