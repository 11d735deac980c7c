"""Each way in which endpoints fail, lag and disagree: afterwards the tables equal an independent reading."""

from __future__ import annotations

import pytest

from orchestration.settlement.ranges import BatchSizer
from tests.chain import refusals
from tests.orchestration.settlement import histories, truth
from upstream.chain.rpc import Rpc

TERMS = {"total_s": 30.0, "rounds": 4, "compare_s": 0.0, "max_body": 1 << 20, "sleep": lambda _: None}


@pytest.fixture
def endpoints(request, faulty_rpcs):
    """Two endpoints and a client of both, which waits long for a silent one only where none is silent."""
    pair = faulty_rpcs(2)
    for each in pair:
        each.finality = 8
    read_s = 1.0 if request.node.callspec.params.get("kind") == "silence" else 30.0
    with Rpc([each.url for each in pair], read_s=read_s, **TERMS) as rpc:
        yield pair, rpc


@pytest.mark.parametrize("kind", refusals.ALL)
def test_whatever_an_endpoint_answers_while_the_head_is_followed(chain, db, follower, match, endpoints, kind):
    (first, _), rpc = endpoints
    following = follower(rpc)
    chain.extend([[match(n % 4 + 1)] for n in range(6)])
    histories.attempt(following.step)

    first.fail(kind, times=3)
    for _ in range(3):
        chain.emit(match(3))
        histories.attempt(following.step)
    first.clear()
    chain.mine(2)
    histories.settle(following, chain.head)

    assert first.refused[kind] > 0
    assert truth.compare(db, chain, followed_from=0) == {}


@pytest.mark.parametrize("kind", [*refusals.RANGE, "internal", "http_429", "cut_json", "reset"])
def test_whatever_an_endpoint_answers_while_history_is_filled_in(chain, db, ranges, match, endpoints, kind):
    (first, _), rpc = endpoints
    chain.extend([[match(n % 4 + 1)] for n in range(30)])
    rpc.heads()

    first.fail(kind, times=4, methods={"eth_getLogs"})
    last = list(ranges(rpc).fill(0, 30, BatchSizer(30, 4)))[-1]

    assert first.refused[kind] > 0
    assert last.done == 31
    assert truth.compare(db, chain) == {}


@pytest.mark.parametrize("beyond", ["empty", "refuse"])
def test_an_endpoint_that_lags_is_not_believed_to_be_silent(chain, db, follower, match, endpoints, beyond):
    (first, second), rpc = endpoints
    following = follower(rpc)
    first.beyond_head = beyond
    for lag in (0, 1, 2, 5, 12, 3):
        first.lag, second.lag = lag, max(0, 2 - lag)
        chain.extend([[match(2)], [match(3)]])
        for _ in range(2):
            histories.attempt(following.step)
    first.lag = second.lag = 0
    histories.settle(following, chain.head)

    assert truth.compare(db, chain, followed_from=0) == {}


@pytest.mark.parametrize("depth", [1, 3, 7])
def test_two_endpoints_on_two_branches(chain, db, follower, match, endpoints, depth):
    """One stops on a branch that the others leave; whichever is read, nothing of both is mixed."""
    (first, second), rpc = endpoints
    following = follower(rpc)
    chain.extend([[match(n % 4 + 1)] for n in range(20)])
    histories.attempt(following.step)

    first.freeze()
    chain.reorg(depth, [[match(5), match(1)] for _ in range(depth)])
    for _ in range(4):
        histories.attempt(following.step)
    chain.extend([[match(4)]] * 5)
    for _ in range(4):
        histories.attempt(following.step)
    first.clear()
    first.finality = second.finality = 8
    histories.settle(following, chain.head)

    assert truth.compare(db, chain, followed_from=0) == {}


@pytest.mark.parametrize("depth", [1, 8, 33, 64])
def test_a_reorganisation_in_the_middle_of_a_back_fill(chain, db, follower, ranges, match, until_done, depth):
    chain.extend([[match(n % 5 + 1)] if n % 3 else [] for n in range(100)])
    final = 100 - 64
    filling = ranges().fill(0, final, BatchSizer(30, 4))
    for _ in range(3):
        next(filling)

    chain.reorg(depth, [[match(9)] for _ in range(depth + 2)])
    for _ in filling:
        pass
    until_done(follower(jump=10))

    assert truth.compare(db, chain) == {}
