"""Indexers in processes of their own, killed while a chain grows and is reorganised under them."""

from __future__ import annotations

import random
import threading
import time
from contextlib import contextmanager

from config.settings import Settings
from sql import database
from tests.chain import Chain, scenario
from tests.orchestration.running import Processes
from tests.patience import PATIENCE_S


def index(run_id, url, rpc_url):
    """Run a feed, as `python -m orchestration.settlement` does; the processes' target."""
    from orchestration.settlement.feed import SettlementFeed
    from upstream.chain.contracts import POLYGON
    from upstream.chain.rpc import Rpc

    settings = Settings(_env_file=None, settlement_poll_ms=50, chain_start_block=0)
    with Rpc([rpc_url]) as rpc:
        SettlementFeed(settings, url, rpc, POLYGON, run_id=run_id, window_s=600.0, patience_s=1.0).run()


@contextmanager
def growing(anvil, seed):
    """A chain of current blocks that grows ten blocks a second, and is reorganised now and then, until told to stop."""
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


def indexed(url, chain, within_s=PATIENCE_S):
    """Wait until the current head is indexed."""
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
    """Kill the leader a number of times, at random moments; return the differences that are left."""
    from tests.orchestration.settlement import truth

    rng = random.Random(seed)
    with (
        Processes("settlement", index, url, anvil.url) as indexers,
        growing(anvil, seed) as finish,
        database.connect(url, autocommit=True) as conn,
    ):
        for _ in range(kills):
            time.sleep(rng.uniform(0.0, 0.6))
            indexers.kill_some(conn, rng)
        chain = finish()
        chain.mine(70)
        indexed(url, chain)
        return truth.compare(conn, chain)
