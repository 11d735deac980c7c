"""Several endpoints as one: a real node behind endpoints that respond faultily."""

from __future__ import annotations

import threading
import time
from contextlib import ExitStack

import pytest

from tests.chain import contracts, events, refusals
from tests.chain.anvil import Anvil
from tests.chain.driver import Chain
from tests.chain.faulty_rpc import FaultyRpc
from upstream.chain import rpc as rpc_module
from upstream.chain.contracts import POLYGON, followed
from upstream.chain.decode import decode
from upstream.chain.rpc import GRACE_S, LAG_BLOCKS, Rpc
from upstream.chain.wire import FINAL_AFTER
from upstream.transport.errors import TooLarge, Unavailable

ADDRESSES = followed(POLYGON)


@pytest.fixture
def rpc_of(request, monkeypatch):
    """Return a maker of clients that wait long enough for endpoints that respond, unless a test says otherwise."""
    opened = []
    monkeypatch.setattr(rpc_module, "GRACE_S", 30.0)
    monkeypatch.setattr(rpc_module, "MAX_HEADS_WAIT_S", 30.0)
    silent = getattr(request.node, "callspec", None) and request.node.callspec.params.get("kind") == "silence"

    def make(*endpoints, **options):
        read_s = 1.0 if silent else 30.0
        options = {"read_s": read_s, "max_body": 4 << 20, "sleep": lambda _: None} | options
        rpc = Rpc([getattr(each, "url", each) for each in endpoints], **options)
        opened.append(rpc)
        return rpc

    yield make
    for each in opened:
        each.close()


def places(logs):
    return [
        (log["blockNumber"], log["logIndex"]) if isinstance(log, dict) else (log.block_number, log.log_index)
        for log in logs
    ]


@pytest.fixture(scope="module")
def busy():
    """Thirty blocks, most with transactions; tests that change the chain use another."""
    split = events.split(events.wallet(3), events.word(1), 5)
    with Anvil() as node:
        chain = Chain(node)
        chain.extend([[events.fill_v2(), [events.fill_v1(), split]] if n % 3 else [] for n in range(30)])
        yield chain


@pytest.fixture
def endpoints(busy):
    """`endpoints(2)`: that many proxies in front of it, each with its own faults."""
    with ExitStack() as stack:
        yield lambda count: [stack.enter_context(FaultyRpc(busy.url)) for _ in range(count)]


@pytest.fixture
def endpoint(endpoints):
    return endpoints(1)[0]


def test_it_reads_what_the_node_has(busy, rpc_of):
    rpc = rpc_of(busy.url)

    logs = rpc.logs(1, 30, ADDRESSES)

    assert places(logs) == places(busy.logs(1, 30))
    assert len(decode(logs, POLYGON).fills) == 40
    assert rpc.blocks(0, 30) == [(b.number, b.hash, b.parent, b.ts_s) for b in busy.blocks(0, 30)]
    assert rpc.heads() == (30, 0, True)


def test_only_the_contracts_and_topics_asked_for_come(busy, rpc_of):
    rpc = rpc_of(busy.url)
    topic = "0x2e6bb91f8cbcda0c93623c54d0403a43514fabc40084ec96b6d5379a74786298"

    assert {log.address for log in rpc.logs(1, 30, [contracts.address("exchange_v1")])} == {
        f"0x{contracts.address('exchange_v1').hex()}"
    }
    assert {log.topics[0] for log in rpc.logs(1, 30, ADDRESSES, [topic])} == {topic}


@pytest.mark.parametrize("kind", refusals.ALL)
def test_whatever_an_endpoint_answers_amiss_passes_and_nothing_is_missing(busy, endpoint, rpc_of, kind):
    rpc = rpc_of(endpoint)
    endpoint.retry_after = "0"
    rpc.heads()
    endpoint.fail(kind, times=2)

    assert places(rpc.logs(1, 30, ADDRESSES)) == places(busy.logs(1, 30))
    assert [block.hash for block in rpc.blocks(1, 30)] == [block.hash for block in busy.blocks(1, 30)]
    assert rpc.heads() == (30, 0, True)
    assert endpoint.refused[kind] == 2


@pytest.mark.parametrize("kind", refusals.ALL)
def test_another_endpoint_is_asked_for_what_one_does_not_answer(busy, endpoints, rpc_of, kind):
    bad, good = endpoints(2)
    rpc = rpc_of(bad, good, rounds=2)
    bad.fail(kind, times=None)

    assert rpc.heads() == (30, 0, True)
    assert places(rpc.logs(1, 30, ADDRESSES)) == places(busy.logs(1, 30))
    assert [block.hash for block in rpc.blocks(1, 30)] == [block.hash for block in busy.blocks(1, 30)]
    assert [each["in_use"] for each in rpc.state()] == [False, True]


@pytest.mark.parametrize("kind", refusals.RANGE)
def test_ranges_shrink_to_what_an_endpoint_bears(busy, endpoint, rpc_of, kind):
    endpoint.max_blocks = 3
    endpoint.limit_by = kind
    rpc = rpc_of(endpoint)

    logs = rpc.logs(1, 30, ADDRESSES)

    assert places(logs) == places(busy.logs(1, 30))
    assert 1 <= rpc.endpoints[0].span <= 3
    assert endpoint.count("eth_getLogs") < 25


def test_ranges_shrink_to_the_logs_that_fit_and_grow_again(busy, endpoint, rpc_of):
    endpoint.max_logs = 4
    rpc = rpc_of(endpoint)

    assert places(rpc.logs(1, 30, ADDRESSES)) == places(busy.logs(1, 30))
    narrow = rpc.endpoints[0].span
    endpoint.max_logs = None
    for _ in range(30):
        rpc.logs(1, 30, ADDRESSES)

    assert narrow <= 4
    assert rpc.endpoints[0].span > 12


def test_a_block_with_too_many_logs_is_read_contract_by_contract(chain, faulty_rpc, rpc_of):
    chain.emit([events.fill_v2(), events.fill_v1(), events.fill_v2(), events.fill_v1()])
    faulty_rpc.max_logs = 2
    rpc = rpc_of(faulty_rpc)

    assert places(rpc.logs(1, 1, ADDRESSES)) == places(chain.logs(1, 1))

    faulty_rpc.max_logs = 1
    with pytest.raises(TooLarge, match="in one answer"):
        rpc.logs(1, 1, ADDRESSES)


def test_an_endpoint_that_is_behind_is_not_believed_to_have_no_logs(busy, endpoints, rpc_of):
    late, other = endpoints(2)
    late.lag = LAG_BLOCKS + 2
    rpc = rpc_of(late, other)

    assert rpc.heads().head == 30
    assert places(rpc.logs(20, 30, ADDRESSES)) == places(busy.logs(20, 30))
    assert [each["in_use"] for each in rpc.state()] == [False, True]

    late.lag = 0
    rpc.heads()
    assert [each["in_use"] for each in rpc.state()] == [True, False]


@pytest.mark.parametrize("beyond_head", ["silent", "refuse"])
def test_alone_and_behind_it_is_unavailable_rather_than_empty(busy, endpoint, rpc_of, beyond_head):
    endpoint.lag = 5
    endpoint.beyond_head = beyond_head
    rpc = rpc_of(endpoint)

    assert rpc.heads().head == 25
    with pytest.raises(Unavailable):
        rpc.logs(20, 30, ADDRESSES)
    with pytest.raises(Unavailable, match="not known"):
        rpc.blocks(20, 30)
    assert places(rpc.logs(20, 25, ADDRESSES)) == places(busy.logs(20, 25))


def test_an_endpoint_that_falls_behind_after_it_told_its_head_is_found_out(busy, endpoint, rpc_of):
    rpc = rpc_of(endpoint)
    assert rpc.heads().head == 30

    endpoint.lag = 1

    with pytest.raises(Unavailable, match="not known"):
        rpc.logs(29, 30, ADDRESSES)


def test_finality_is_what_the_node_says_or_a_checkpoint_behind(rpc_of):
    with Anvil() as node, FaultyRpc(node.url) as endpoint:  # of its own: so many blocks cannot be reverted
        node.call("anvil_mine", hex(600))
        rpc = rpc_of(endpoint)

        assert rpc.heads() == (600, 536, True)
        endpoint.finality = 20
        assert rpc.heads() == (600, 580, True)
        endpoint.finality = "missing"
        assert rpc.heads() == (600, 600 - FINAL_AFTER, False)


def test_who_has_another_final_block_is_left_alone(chain, faulty_rpcs, rpc_of):
    chain.mine(10)
    stale, good, other = faulty_rpcs(3)
    stale.freeze()
    chain.reorg(8)
    for each in (stale, good, other):
        each.finality = 2
    rpc = rpc_of(stale, good, other, compare_s=0)

    rpc.heads()

    first, second, _ = rpc.state()
    assert "another final block" in first["last_error"]
    assert first["rests_s"] > 100
    assert second["in_use"]
    assert rpc.blocks(9, 10)[1].hash == chain.blocks(10, 10)[0].hash


def test_of_two_the_one_named_first_is_believed(chain, faulty_rpcs, rpc_of):
    chain.mine(10)
    other, preferred = faulty_rpcs(2)
    other.freeze()
    chain.reorg(8)
    preferred.finality = other.finality = 2
    rpc = rpc_of(preferred, other, compare_s=0)

    rpc.heads()

    assert [each["rests_s"] > 100 for each in rpc.state()] == [False, True]


def test_a_fork_at_the_head_is_noted_and_lasting_ones_left_alone(chain, faulty_rpcs, rpc_of):
    chain.mine(5)
    preferred, other = faulty_rpcs(2)
    other.freeze()
    chain.reorg(2)
    now = [1000.0]
    rpc = rpc_of(preferred, other, compare_s=0, clock=lambda: now[0])

    rpc.heads()
    assert [each["forked"] for each in rpc.state()] == [False, True]
    assert not rpc.state()[1]["failures"]

    now[0] += 31
    rpc.heads()
    assert "other newest blocks" in rpc.state()[1]["last_error"]


def test_a_silent_endpoint_holds_up_neither_heads_nor_logs_for_long(busy, endpoints, rpc_of, monkeypatch):
    silent, good = endpoints(2)
    silent.fail("silence", times=None)
    rpc = rpc_of(silent, good)
    monkeypatch.setattr(rpc_module, "GRACE_S", GRACE_S)
    began = time.monotonic()

    assert rpc.heads().head == 30
    assert places(rpc.logs(1, 30, ADDRESSES)) == places(busy.logs(1, 30))
    assert time.monotonic() - began < 15  # not the half minute that the silent endpoint may take
    silent.close()


def test_addresses_with_their_keys_are_never_shown(busy, endpoint, rpc_of):
    rpc = rpc_of(f"{endpoint.url}/v2/very-secret", rounds=1)
    endpoint.fail("http_500", times=None)

    with pytest.raises(Unavailable) as raised:
        rpc.blocks(1, 2)

    shown = f"{raised.value} {raised.value!r} {rpc.state()}"
    assert "very-secret" not in shown
    assert "500" in shown


def test_with_all_endpoints_down_it_ends_with_an_error_in_time(faulty_rpcs, rpc_of):
    first, second = faulty_rpcs(2)
    for each in (first, second):
        each.fail("reset", times=None)
    waits = []
    rpc = rpc_of(first, second, sleep=waits.append, rounds=3)

    with pytest.raises(Unavailable):
        rpc.heads()
    with pytest.raises(Unavailable):
        rpc.logs(1, 2, ADDRESSES)
    assert 0 < sum(waits) < 30


def test_an_endpoint_that_asks_for_patience_gets_it(busy, endpoint, rpc_of):
    now, waits = [100.0], []

    def sleep(seconds):
        waits.append(seconds)
        now[0] += seconds

    rpc = rpc_of(endpoint, clock=lambda: now[0], sleep=sleep)
    endpoint.retry_after = "3"
    endpoint.fail("http_429")

    rpc.blocks(1, 2)

    assert waits == [3.0]
    assert endpoint.count("eth_getBlockByNumber") == 4


def test_threads_may_share_it(busy, endpoint, rpc_of):
    rpc = rpc_of(endpoint, rounds=7)  # one thread may meet all six failures
    endpoint.fail("internal", times=6, every=5)
    read = []
    threads = [threading.Thread(target=lambda: read.append(places(rpc.logs(1, 30, ADDRESSES)))) for _ in range(6)]

    for each in threads:
        each.start()
    for each in threads:
        each.join()

    assert read == [places(busy.logs(1, 30))] * 6


def test_at_least_one_endpoint_is_needed():
    with pytest.raises(ValueError, match="no endpoint"):
        Rpc([])
