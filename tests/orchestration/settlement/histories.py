"""Random histories played against the indexer: following with holes, backfill beside it, failing endpoints."""

from __future__ import annotations

import contextlib
import random

from orchestration.settlement.follow import Follower, OtherChain
from orchestration.settlement.ranges import BatchSizer, Ranges
from orchestration.settlement.reading import Inconsistent
from orchestration.settlement.writer import Writer
from sql import database
from tests.chain import scenario
from tests.orchestration.settlement import truth
from upstream.chain.contracts import POLYGON
from upstream.chain.rpc import Rpc
from upstream.transport.errors import UpstreamError

FINAL = 70  # blocks after which everything that happened is final, whatever the endpoints say
# An endpoint that stopped on a dead branch, used while the others rest, is taken for another chain, and not followed.
FAULTS = (UpstreamError, Inconsistent, OtherChain)


def rpc(faulty_rpcs):
    return Rpc([m.url for m in faulty_rpcs], read_s=2.0, total_s=5.0, rounds=3, compare_s=0.0, sleep=lambda _: None)


def play(seed, chain, faulty_rpcs, url):
    """Play a history while it is followed; return the differences that are left when all has settled."""
    rng = random.Random(seed)
    chain.reset()
    with (
        database.connect(url, autocommit=True) as conn,
        database.connect(url, autocommit=True) as beside,
        rpc(faulty_rpcs) as source,
        rpc(faulty_rpcs[::-1]) as second,
    ):
        writer = Writer(conn, POLYGON, publish_within_s=float("inf"))
        following = Follower(
            writer,
            source,
            POLYGON,
            second=second,
            start=0,
            patience_s=0.0,
            jump=rng.choice([6, 20, 1000]),
            check_blocks=1,
        )
        filling = Ranges(Writer(beside, POLYGON, publish_within_s=float("inf")), source, POLYGON, sleep=lambda _: None)
        for step in scenario.random_steps(seed, endpoints=len(faulty_rpcs)):
            scenario.play(step, chain, faulty_rpcs)
            for _ in range(rng.choice([0, 1, 1, 3])):
                attempt(following.step)
            if rng.random() < 0.3:
                attempt(lambda: fill(filling, rng))
        scenario.clear_faults(faulty_rpcs)
        for faulty_rpc in faulty_rpcs:
            faulty_rpc.missing = 0.0
        chain.mine(FINAL)
    # Another process takes over, as one that has seen endpoints fail may avoid them for a minute.
    with database.connect(url, autocommit=True) as conn, rpc(faulty_rpcs) as source, rpc(faulty_rpcs[::-1]) as second:
        writer = Writer(conn, POLYGON, publish_within_s=float("inf"))
        following = Follower(writer, source, POLYGON, second=second, start=0, patience_s=0.0, check_blocks=1)
        settle(following, chain.head)
        # Logs that both endpoints left out, both when read and when recounted: the daily check finds them.
        checking = Ranges(writer, source, POLYGON, sleep=lambda _: None, second=second)
        for _ in checking.check_all([(0, chain.head - FINAL + 5)], source.heads()):
            pass
        return truth.compare(conn, chain)


def attempt(what):
    with contextlib.suppress(FAULTS):
        what()


def fill(filling, rng):
    """Backfill some final range, as an operator might start it at any time."""
    final = filling.source.heads().finalized
    low = rng.randint(0, max(final, 0))
    pieces = filling.fill(low, min(final, low + rng.randint(0, 40)), BatchSizer(100, rng.choice([1, 5, 32])))
    for _ in range(rng.choice([1, 2, 100])):  # some are interrupted
        if next(pieces, None) is None:
            return
    pieces.close()


def settle(following, head, most=400):
    """Follow until everything is indexed, final and recounted."""
    quiet = 0
    for _ in range(most):
        try:
            step = following.step()
        except FAULTS:
            quiet = 0
            continue
        busy = step.busy or step.written.blocks or step.checked.blocks
        quiet = 0 if busy or step.indexed < head else quiet + 1
        if quiet == 2:
            return
    raise AssertionError(f"not settled after {most} steps")
