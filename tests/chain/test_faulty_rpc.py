"""The tests' faulty endpoint: each fault, as a client sees it."""

from __future__ import annotations

import socket
import time

import httpx
import pytest

from tests.chain import events, refusals, scenario

LOGS = {"fromBlock": "0x0", "toBlock": "latest"}


@pytest.fixture
def client():
    with httpx.Client(timeout=5) as one:
        yield one


@pytest.fixture
def ask(client, faulty_rpc):
    def ask_(method, *params, at=faulty_rpc):
        told = client.post(at.url, json={"jsonrpc": "2.0", "id": 7, "method": method, "params": params}).json()
        assert told["id"] == 7
        return told["result"] if "result" in told else told["error"]

    return ask_


def test_untouched_it_says_what_the_node_says(chain, ask, client, faulty_rpc):
    chain.emit(events.fill_v2())

    batch = [
        {"jsonrpc": "2.0", "id": f"id {n}", "method": method, "params": params}
        for n, (method, params) in enumerate([("eth_blockNumber", []), ("eth_chainId", []), ("eth_getLogs", [LOGS])])
    ]

    assert ask("eth_getLogs", LOGS) == chain.logs()
    assert [(told["id"], told["result"]) for told in client.post(faulty_rpc.url, json=batch).json()] == [
        ("id 0", "0x1"),
        ("id 1", "0x89"),
        ("id 2", chain.logs()),
    ]
    assert (faulty_rpc.count("eth_getLogs"), faulty_rpc.count("eth_chainId")) == (2, 1)


def test_a_lagging_endpoint_knows_nothing_of_the_newest_blocks(chain, ask, faulty_rpc):
    blocks = chain.extend([[events.fill_v2()] for _ in range(5)])

    faulty_rpc.lag = 2

    assert int(ask("eth_blockNumber"), 16) == 3
    assert int(ask("eth_getBlockByNumber", "latest", False)["number"], 16) == 3
    assert ask("eth_getBlockByNumber", "0x4", False) is None
    assert ask("eth_getBlockByHash", f"0x{blocks[4].hash.hex()}", False) is None
    assert ask("eth_getTransactionReceipt", f"0x{blocks[4].transactions[0].hex()}") is None
    assert ask("eth_getLogs", {"fromBlock": "0x2", "toBlock": "0x5"}) == chain.logs(2, 3)
    assert ask("eth_getLogs", {"fromBlock": "0x4", "toBlock": "0x5"}) == []
    faulty_rpc.beyond_head = "refuse"
    assert "beyond current head" in ask("eth_getLogs", {"fromBlock": "0x2", "toBlock": "0x5"})["message"]


def test_finality_is_as_near_as_the_test_wants_it_or_unknown(chain, ask, faulty_rpc):
    chain.mine(70)

    of_the_node = int(ask("eth_getBlockByNumber", "finalized", False)["number"], 16)
    faulty_rpc.finality = 4
    near = int(ask("eth_getBlockByNumber", "finalized", False)["number"], 16)
    faulty_rpc.finality = "missing"

    assert (of_the_node, near) == (6, 66)
    assert ask("eth_getBlockByNumber", "safe", False) == {"code": -32000, "message": "safe block not found"}


def test_more_than_the_limits_allow_is_refused(chain, ask, faulty_rpc):
    chain.extend([[events.fill_v2()] for _ in range(9)])

    faulty_rpc.max_blocks, faulty_rpc.limit_by = 4, "range_too_large"
    too_wide = ask("eth_getLogs", {"fromBlock": "0x1", "toBlock": "0x5"})
    fits = ask("eth_getLogs", {"fromBlock": "0x1", "toBlock": "0x4"})
    faulty_rpc.max_blocks, faulty_rpc.max_logs, faulty_rpc.limit_by = None, 4, "too_many_results"
    too_many = ask("eth_getLogs", {"fromBlock": "0x1", "toBlock": "0x9"})

    assert too_wide["message"] == "block range too large"
    assert len(fits) == 4
    assert too_many["code"] == -32005
    assert "[0x1, 0x5]" in too_many["message"]


@pytest.mark.parametrize("kind", refusals.RPC)
def test_every_refusal_of_a_call_comes_as_often_as_asked(chain, ask, faulty_rpc, kind):
    faulty_rpc.fail(kind, times=2, methods={"eth_getLogs"})

    assert ask("eth_blockNumber") == "0x0"
    assert [ask("eth_getLogs", LOGS) for _ in range(2)] == [refusals.RPC[kind]({"params": [LOGS]})] * 2
    assert ask("eth_getLogs", LOGS) == []
    assert faulty_rpc.refused[kind] == 2


@pytest.mark.parametrize(
    ("kind", "status", "retry"),
    [("http_429", 429, "1"), ("http_500", 500, None), ("http_502", 502, None), ("http_503", 503, None)],
)
def test_a_refusal_of_the_whole_request_is_told_in_http(client, faulty_rpc, kind, status, retry):
    faulty_rpc.fail(kind)

    refused, fine = (
        client.post(faulty_rpc.url, json={"id": 1, "method": "eth_chainId", "params": []}) for _ in range(2)
    )

    assert (refused.status_code, refused.headers.get("retry-after")) == (status, retry)
    assert fine.json()["result"] == "0x89"


@pytest.mark.parametrize("kind", ["reset", "truncated", "cut_json", "html", "empty_body"])
def test_an_answer_that_is_no_answer_cannot_be_read(client, faulty_rpc, kind):
    faulty_rpc.fail(kind)

    with pytest.raises((httpx.RemoteProtocolError, ValueError)):
        client.post(faulty_rpc.url, json={"id": 1, "method": "eth_chainId", "params": []}).json()


def test_a_batch_may_be_refused_by_one_object(client, faulty_rpc):
    faulty_rpc.fail("one_for_all")

    answer = client.post(faulty_rpc.url, json=[{"id": n, "method": "eth_chainId", "params": []} for n in (1, 2)]).json()

    assert answer["error"]["message"] == "batch too large"


def test_silence_lasts_until_the_client_goes(client, faulty_rpc):
    faulty_rpc.fail("silence")
    started = time.monotonic()

    with pytest.raises(httpx.ReadTimeout):
        client.post(faulty_rpc.url, json={"id": 1, "method": "eth_chainId", "params": []}, timeout=0.2)

    assert time.monotonic() - started < 20


def test_a_request_that_ends_early_is_not_answered_and_no_fault_of_the_test(faulty_rpc):
    with socket.create_connection(("127.0.0.1", int(faulty_rpc.url.rpartition(":")[2])), timeout=30) as client:
        client.sendall(b"POST / HTTP/1.1\r\nContent-Length: 100\r\n\r\n")
        client.shutdown(socket.SHUT_WR)

        assert client.recv(1) == b""
    assert faulty_rpc.errors == []


def test_an_oversized_answer_is_longer_than_anyone_reads(client, faulty_rpc):
    faulty_rpc.fail("oversized")

    with client.stream("POST", faulty_rpc.url, json={"id": 1, "method": "eth_chainId", "params": []}) as answer:
        read = 0
        for piece in answer.iter_raw():
            read += len(piece)
            if read > 4 << 20:
                break

    assert read > 4 << 20
    assert int(answer.headers["content-length"]) > 200 << 20


def test_missing_logs_are_the_same_ones_each_time(chain, ask, faulty_rpc):
    chain.emit([events.fill_v2() for _ in range(200)])

    faulty_rpc.missing = 0.25
    first, second = ask("eth_getLogs", LOGS), ask("eth_getLogs", LOGS)
    faulty_rpc.seed = 1
    others = ask("eth_getLogs", LOGS)

    assert first == second
    assert 20 < 200 - len(first) < 90
    assert others != first
    assert all(log in chain.logs() for log in first)


def test_older_nodes_have_no_time_in_their_logs(chain, ask, faulty_rpc):
    chain.emit(events.fill_v2())

    faulty_rpc.timestamps = False

    (log,) = ask("eth_getLogs", LOGS)
    assert log == {name: value for name, value in chain.logs()[0].items() if name != "blockTimestamp"}


def test_two_endpoints_disagree_when_one_stays_on_the_losing_branch(chain, ask, faulty_rpcs):
    here, there = faulty_rpcs(2)
    chain.extend([[events.fill_v2()], [events.fill_v2()], [events.fill_v2(), events.split(*_split())]])
    losing, lost = chain.blocks(), chain.logs()

    there.freeze()
    chain.reorg(2, [[events.fill_v1()], [], []])

    assert ask("eth_getLogs", LOGS, at=here) == chain.logs()
    assert ask("eth_getLogs", LOGS, at=there) == lost
    assert ask("eth_blockNumber", at=there) == "0x3"
    assert ask("eth_getBlockByNumber", "0x3", False, at=there)["hash"] == f"0x{losing[3].hash.hex()}"
    assert ask("eth_getBlockByHash", f"0x{losing[3].hash.hex()}", False, at=there)["number"] == "0x3"
    one_kind = {**LOGS, "address": lost[0]["address"], "topics": [[lost[0]["topics"][0]], None]}
    assert ask("eth_getLogs", one_kind, at=there) == lost[:3]
    assert ask("eth_getLogs", {"blockHash": lost[0]["blockHash"]}, at=there) == lost[:1]
    there.thaw()
    assert ask("eth_getLogs", LOGS, at=there) == chain.logs()


def test_all_is_well_again_after_clear(chain, ask, faulty_rpc):
    chain.emit(events.fill_v2())
    faulty_rpc.lag, faulty_rpc.missing, faulty_rpc.finality = 1, 1.0, "missing"
    faulty_rpc.fail("http_500", times=None)
    faulty_rpc.freeze()
    chain.mine(3)

    faulty_rpc.clear()

    assert ask("eth_blockNumber") == "0x4"
    assert ask("eth_getLogs", LOGS) == chain.logs()


def test_a_scenario_is_told_by_its_seed_and_leaves_well_endpoints_behind(chain, ask, faulty_rpcs):
    pair = faulty_rpcs(2)
    played = scenario.random_steps(11)

    for step in played:
        scenario.play(step, chain, pair)
    scenario.clear_faults(pair)

    assert played == scenario.random_steps(11) != scenario.random_steps(12)
    assert [ask("eth_getLogs", LOGS, at=one) for one in pair] == [chain.logs()] * 2


def test_scenarios_hold_every_kind_of_step_and_keep_to_what_is_final():
    told = [scenario.random_steps(seed) for seed in range(300)]

    kinds = {step.kind for steps in told for step in steps}
    deepest = [
        (step.depth, steps[0].fault["finality"] or 64) for steps in told for step in steps if step.kind == "reorg"
    ]

    assert kinds == {"emit", "mine", "reorg", "swap", "fail", "set", "freeze", "clear"}
    assert all(depth <= finality for depth, finality in deepest)
    assert max(depth for depth, _ in deepest) == 64


def _split():
    return events.wallet(1), events.word(3), 5
