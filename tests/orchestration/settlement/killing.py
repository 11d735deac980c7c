"""Indexers in processes of their own, killed while a chain grows and is reorganised under them."""

from __future__ import annotations

import multiprocessing
import os
import random
import signal
import threading
import time
import uuid
from contextlib import contextmanager

from settings import Settings
from sql import database
from tests.chain import Chain, scenario

CONTEXT = multiprocessing.get_context("forkserver")
PRELOADED = ["orchestration.settlement.feed", "upstream.chain.rpc", "settings"]
CONTEXT.set_forkserver_preload(PRELOADED)  # a process is there in some milliseconds


def index(url, rpc_url, run_id, window_s):
    """What a process does: a feed, as `python -m orchestration.settlement` has it."""
    from orchestration.settlement.feed import Feed
    from upstream.chain.contracts import POLYGON
    from upstream.chain.rpc import Rpc

    settings = Settings(_env_file=None, settlement_poll_ms=50, chain_start_block=0)
    with Rpc([rpc_url]) as rpc:
        Feed(settings, url, rpc, POLYGON, run_id=run_id, window_s=window_s, patience_s=1.0).run()


class Indexers:
    """As many as wanted, always: who is killed is replaced."""

    def __init__(self, url, rpc_url, *, window_s=600.0):
        self.url, self.rpc_url, self.window_s = url, rpc_url, window_s
        self.running = {}

    def start(self):
        run_id = f"test-{uuid.uuid4().hex[:8]}"
        process = CONTEXT.Process(target=index, args=(self.url, self.rpc_url, run_id, self.window_s), daemon=True)
        process.start()
        self.running[run_id] = process
        return run_id

    def kill(self, run_id):
        process = self.running.pop(run_id)
        os.kill(process.pid, signal.SIGKILL)
        process.join()

    def close(self):
        for run_id in list(self.running):
            self.kill(run_id)

    def leader(self, conn):
        """Who holds the lock, by its lease; nobody when that is too old."""
        row = conn.execute(
            "select run_id from feed_leases where feed = 'settlement' and role = 'leader'"
            " and beat_at > now() - interval '2 s' order by beat_at desc limit 1"
        ).fetchone()
        return row[0] if row and row[0] in self.running else None


@contextmanager
def growing(anvil, seed):
    """A chain of now that grows ten blocks a second, and is reorganised now and then, until told to stop."""
    chain = Chain(anvil, genesis_s=int(time.time()) - 3000)
    rng = random.Random(seed)
    stop = threading.Event()
    faults = []

    def grow():
        try:
            while not stop.wait(0.1):
                if rng.random() < 0.08 and chain.head > 8:
                    depth = rng.randint(1, 6)
                    chain.reorg(depth, [[scenario.transaction(rng)] for _ in range(depth + 1)])
                else:
                    chain.emit(*(scenario.transaction(rng) for _ in range(rng.choice([0, 1, 3]))))
        except BaseException as fault:
            faults.append(fault)
            raise

    thread = threading.Thread(target=grow)
    thread.start()

    def finish():
        stop.set()
        thread.join()
        assert not faults
        return chain

    try:
        yield finish
    finally:
        stop.set()
        thread.join()


def indexed(url, chain, within_s=30.0):
    """Wait until the head is indexed, as it is now."""
    tip = chain.blocks(chain.head)[0]
    until = time.monotonic() + within_s
    with database.connect(url, autocommit=True) as conn:
        while True:
            row = conn.execute(
                "select b.hash from chain_heads h join chain_blocks b on b.number = h.indexed where h.indexed = %s",
                [chain.head],
            ).fetchone()
            if row is not None and row[0] == tip.hash:
                return
            assert time.monotonic() < until, conn.execute("select * from chain_heads").fetchall()
            time.sleep(0.05)


def kill_many(anvil, url, kills, seed):
    """Kill the leader so often, at random moments; the differences that are left."""
    from tests.orchestration.settlement import truth

    rng = random.Random(seed)
    indexers = Indexers(url, anvil.url)
    try:
        with growing(anvil, seed) as finish, database.connect(url, autocommit=True) as conn:
            indexers.start()
            indexers.start()
            for _ in range(kills):
                time.sleep(rng.uniform(0.0, 0.6))
                # Mostly the leader, sometimes its standby, sometimes both.
                victims = {indexers.leader(conn), *rng.sample(sorted(indexers.running), rng.choice([0, 0, 1]))}
                for run_id in victims - {None} or set(list(indexers.running)[:1]):
                    indexers.kill(run_id)
                while len(indexers.running) < 2:
                    indexers.start()
            chain = finish()
            chain.mine(70)
            indexed(url, chain)
            return truth.compare(conn, chain)
    finally:
        indexers.close()
