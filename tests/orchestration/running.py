"""Leader-elected feeds: in threads of a test, and in processes that are killed and replaced."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import uuid

CONTEXT = multiprocessing.get_context("forkserver")
# A process starts within some milliseconds.
CONTEXT.set_forkserver_preload(
    ["orchestration.webhooks.feed", "orchestration.settlement.feed", "upstream.chain.rpc", "config.settings"]
)


class Running:
    """A feed in a thread of its own."""

    def __init__(self, feed):
        self.feed, self.said, self.stopped = feed, [], threading.Event()
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def run(self):
        self.totals = self.feed.run(self.stopped.is_set, self.said.append)

    def stop(self):
        self.stopped.set()
        self.thread.join(60)
        assert not self.thread.is_alive()
        return self.totals


class Processes:
    """Two running processes of a feed: a killed one is replaced. The target's first argument is the run's name."""

    def __init__(self, feed, does, *given):
        self.feed, self.does, self.given = feed, does, given
        self.running = {}

    def __enter__(self):
        self._replace()
        return self

    def __exit__(self, *_):
        for run_id in list(self.running):
            self._kill(run_id)

    def kill_some(self, conn, rng):
        """Kill mostly the leader, sometimes its standby, sometimes both."""
        victims = {self._leader(conn), *rng.sample(sorted(self.running), rng.choice([0, 0, 1]))}
        for run_id in victims - {None} or set(list(self.running)[:1]):
            self._kill(run_id)
        self._replace()

    def _replace(self):
        while len(self.running) < 2:
            run_id = f"test-{uuid.uuid4().hex[:8]}"
            process = CONTEXT.Process(target=self.does, args=(run_id, *self.given), daemon=True)
            process.start()
            self.running[run_id] = process

    def _kill(self, run_id):
        process = self.running.pop(run_id)
        os.kill(process.pid, signal.SIGKILL)
        process.join()

    def _leader(self, conn):
        """Return who holds the lock, by its lease; None if that is too old."""
        row = conn.execute(
            "select run_id from feed_leases where feed = %s and role = 'leader'"
            " and beat_at > now() - interval '2 s' order by beat_at desc limit 1",
            [self.feed],
        ).fetchone()
        return row[0] if row and row[0] in self.running else None
