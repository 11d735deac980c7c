"""The simulated chain's node, as a client of Polygon's endpoints sees it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import httpx
import pytest

from tests.patience import until
from upstream.sandbox.chain import logs as chain_logs
from upstream.sandbox.chain.refusals import REFUSALS
from upstream.sandbox.common.faults import read_faults
from upstream.sandbox.faults import Fault
from upstream.sandbox.server import Sandbox

if TYPE_CHECKING:
    from collections.abc import Iterator

START_MS = 1_795_000_200_000
PLAYED_S = 60


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    """A simulation that stops after one minute."""
    with Sandbox(simulate=5, rate=200, start_ms=START_MS, hold=True) as exchange:
        exchange.call(lambda: exchange.source.advance(START_MS + PLAYED_S * 1000))
        exchange.call(exchange.chain.mine)
        yield exchange


@pytest.fixture
def ask(sandbox, http):
    def ask_(method: str, *params: object):
        told = http.post(sandbox.rpc_url, json={"jsonrpc": "2.0", "id": 9, "method": method, "params": params}).json()
        assert (told["id"], told["jsonrpc"]) == (9, "2.0")
        return told["result"] if "result" in told else told["error"]

    return ask_


@pytest.fixture
def faulty(sandbox, http):
    """Plan faults, and remove them all afterwards."""

    def plan(*faults: dict) -> list[dict]:
        return http.post(f"{sandbox.url}/sandbox/faults", json=list(faults)).json()

    yield plan
    http.delete(f"{sandbox.url}/sandbox/faults")


def whole(sandbox: Sandbox) -> dict:
    first, last = sandbox.call(lambda: (sandbox.chain.blocks[0].number, sandbox.chain.head))
    return {"fromBlock": hex(first), "toBlock": hex(last)}


def test_it_is_polygon_by_its_number_and_says_that_it_is_simulated(ask):
    assert ask("eth_chainId") == "0x89"
    assert "simulated" in ask("web3_clientVersion")


def test_blocks_are_found_by_number_tag_and_hash(sandbox, ask):
    head = int(ask("eth_blockNumber"), 16)

    latest, final = ask("eth_getBlockByNumber", "latest", False), ask("eth_getBlockByNumber", "finalized", False)
    before = ask("eth_getBlockByNumber", hex(head - 1), False)

    assert (int(latest["number"], 16), int(final["number"], 16)) == (head, head - 16)
    assert latest["parentHash"] == before["hash"]
    assert ask("eth_getBlockByHash", before["hash"], False) == before
    assert ask("eth_getBlockByHash", f"0x{'00' * 32}", False) is None
    assert ask("eth_getBlockByNumber", hex(head + 1), False) is None
    assert "safe block not found" in ask("eth_getBlockByNumber", "safe", False)["message"]
    assert ask("eth_getBlockByNumber", hex(1_000), False)["transactions"] == []


def test_logs_are_found_by_range_address_and_topics(sandbox, ask):
    everything = ask("eth_getLogs", whole(sandbox))
    filled = [log for log in everything if log["topics"][0] == chain_logs.ORDER_FILLED]
    maker = filled[0]["topics"][2]
    exchange = chain_logs.EXCHANGE

    def found(**wanted: object) -> list[dict]:
        return ask("eth_getLogs", {**whole(sandbox), **wanted})

    assert len(filled) > 100
    assert found(topics=[chain_logs.ORDER_FILLED]) == filled
    assert found(topics=[[chain_logs.ORDER_FILLED, chain_logs.ORDERS_MATCHED]]) == [
        log for log in everything if log["topics"][0] in (chain_logs.ORDER_FILLED, chain_logs.ORDERS_MATCHED)
    ]
    assert found(topics=[None, None, maker]) == [log for log in everything if log["topics"][2:3] == [maker]]
    upper = f"0x{exchange[2:].upper()}"
    assert found(address=upper) == found(address=[exchange]) == [x for x in everything if x["address"] == exchange]
    assert found(address=[exchange, chain_logs.TOKENS], topics=[]) == [
        log for log in everything if log["address"] in (exchange, chain_logs.TOKENS)
    ]
    block = filled[-1]["blockHash"]
    assert ask("eth_getLogs", {"blockHash": block}) == [log for log in everything if log["blockHash"] == block]


def test_logs_are_numbered_through_each_block(sandbox, ask):
    logs = ask("eth_getLogs", whole(sandbox))

    places: dict[str, list[int]] = {}
    for log in logs:
        places.setdefault(log["blockHash"], []).append(int(log["logIndex"], 16))
    assert all(of_block == list(range(len(of_block))) for of_block in places.values())
    assert not any(log["removed"] for log in logs)
    numbers = [int(log["blockNumber"], 16) for log in logs]
    assert numbers == sorted(numbers)
    header = ask("eth_getBlockByNumber", logs[0]["blockNumber"], False)
    assert (header["hash"], header["timestamp"]) == (logs[0]["blockHash"], logs[0]["blockTimestamp"])


def test_a_receipt_has_the_logs_of_its_transaction(sandbox, ask):
    logs = ask("eth_getLogs", whole(sandbox))
    tx = logs[len(logs) // 2]["transactionHash"]

    receipt = ask("eth_getTransactionReceipt", tx)

    assert receipt["logs"] == [log for log in logs if log["transactionHash"] == tx]
    header = ask("eth_getBlockByHash", receipt["blockHash"], False)
    assert header["transactions"][int(receipt["transactionIndex"], 16)] == tx
    assert ask("eth_getTransactionReceipt", f"0x{'ab' * 32}") is None


def test_a_batch_is_answered_in_its_order(sandbox, http):
    calls = [
        {"id": f"call {n}", "method": method} for n, method in enumerate(("eth_chainId", "no_such", "net_version"))
    ]

    told = http.post(sandbox.rpc_url, json=calls).json()

    assert [one["id"] for one in told] == ["call 0", "call 1", "call 2"]
    assert (told[0]["result"], told[1]["error"]["code"], told[2]["result"]) == ("0x89", -32601, "137")
    many = [{"id": n, "method": "eth_chainId"} for n in range(1001)]
    assert http.post(sandbox.rpc_url, json=many).json()["error"]["code"] == -32600


@pytest.mark.parametrize(
    ("params", "code"),
    [
        ([{"fromBlock": "0x5", "toBlock": "0x4"}], -32000),
        ([{"fromBlock": "five"}], -32602),
        ([{"topics": 7}], -32602),
        ([{"blockHash": f"0x{'11' * 32}"}], -32000),
        ([], -32602),
    ],
)
def test_what_cannot_be_meant_is_refused(ask, params, code):
    assert ask("eth_getLogs", *params)["code"] == code


def test_what_is_no_call_is_refused(sandbox, http):
    assert http.post(sandbox.rpc_url, content=b"{").json()["error"]["code"] == -32700
    assert http.post(sandbox.rpc_url, json={"id": 1}).json()["error"]["code"] == -32700


def test_ranges_and_answers_have_limits(sandbox, ask, faulty):
    span = whole(sandbox)
    assert ask("eth_getLogs", {"fromBlock": "0x0", "toBlock": "latest"})["message"] == "block range too large"

    faulty({"kind": "range_limit", "blocks": 5, "error": "range_limited"})
    assert ask("eth_getLogs", span) == {"code": -32614, "message": "eth_getLogs is limited to a 5 range"}
    five = {**span, "toBlock": hex(int(span["fromBlock"], 16) + 4)}
    assert isinstance(ask("eth_getLogs", five), list)


def test_too_many_logs_are_refused_with_a_range_to_try(sandbox, ask, faulty):
    span = whole(sandbox)
    everything = len(ask("eth_getLogs", span))
    faulty({"kind": "range_limit", "logs": everything - 1})

    refused = ask("eth_getLogs", span)

    assert refused["code"] == -32005
    assert f"[{span['fromBlock']}, " in refused["message"]


@pytest.mark.parametrize("error", REFUSALS)
def test_a_call_is_refused_in_every_way_that_nodes_have(ask, faulty, error):
    faulty({"kind": "rpc_error", "error": error, "method": "eth_getLogs"})

    refused = ask("eth_getLogs", {"fromBlock": "0x10", "toBlock": "0x20"})

    assert refused == REFUSALS[error](0x10, 0x20)
    assert ask("eth_chainId") == "0x89"


def test_a_node_lags(sandbox, ask, faulty):
    head = int(ask("eth_blockNumber"), 16)
    span = whole(sandbox)
    known = [log for log in ask("eth_getLogs", span) if int(log["blockNumber"], 16) <= head - 4]

    faulty({"kind": "lag", "depth": 4})

    assert int(ask("eth_blockNumber"), 16) == head - 4
    assert ask("eth_getBlockByNumber", hex(head), False) is None
    assert ask("eth_getLogs", span) == known


def test_logs_are_missing_from_an_answer(sandbox, ask, faulty):
    everything = ask("eth_getLogs", whole(sandbox))
    faulty({"kind": "missing_logs", "probability": 0.1})

    some = ask("eth_getLogs", whole(sandbox))

    assert 0.85 < len(some) / len(everything) < 0.95
    assert ask("eth_getLogs", whole(sandbox)) == some
    kept = {(log["blockHash"], log["logIndex"]) for log in some}
    assert [log for log in everything if (log["blockHash"], log["logIndex"]) in kept] == some


def test_the_newest_blocks_are_replaced_at_a_planned_moment(sandbox, ask, faulty):
    head = int(ask("eth_blockNumber"), 16)
    before = [ask("eth_getBlockByNumber", hex(head - depth), False)["hash"] for depth in range(5)]
    count = len(ask("eth_getLogs", whole(sandbox)))

    faulty({"kind": "reorg", "depth": 4})
    until(lambda: ask("eth_getBlockByNumber", hex(head), False)["hash"] != before[0])

    after = [ask("eth_getBlockByNumber", hex(head - depth), False)["hash"] for depth in range(5)]
    assert [one == other for one, other in zip(before, after, strict=True)] == [False] * 4 + [True]
    assert ask("eth_getBlockByHash", before[0], False) is None
    assert ask("eth_getLogs", {"blockHash": before[0]})["message"] == "unknown block"
    assert len(ask("eth_getLogs", whole(sandbox))) <= count
    assert sandbox.status()["chain"]["reorganisations"] == 1


@pytest.mark.parametrize(("kind", "status"), [("error", 503), ("rate_limit", 429)])
def test_faults_of_http_strike_the_node_too(sandbox, http, faulty, kind, status):
    faulty({"kind": kind, "target": "/rpc"})

    assert http.post(sandbox.rpc_url, json={"id": 1, "method": "eth_chainId"}).status_code == status
    assert http.get(f"{sandbox.clob_url}/ok").status_code == 200


def test_an_answer_may_be_longer_than_anyone_reads(sandbox, http, faulty):
    faulty({"kind": "oversized", "target": "/rpc"})

    with http.stream("POST", sandbox.rpc_url, json={"id": 1, "method": "eth_chainId"}) as answer:
        read = 0
        for piece in answer.iter_raw():
            read += len(piece)
            if read > 8 << 20:
                break

    assert read > 8 << 20
    assert httpx.get(f"{sandbox.url}/sandbox/status", trust_env=False).status_code == 200


def test_a_fault_of_no_known_error_is_not_planned(sandbox, http):
    answer = http.post(f"{sandbox.url}/sandbox/faults", json={"kind": "rpc_error", "error": "bad mood"})

    assert answer.status_code == 400
    assert "too_many_results" in answer.json()["error"]
    assert read_faults(Fault, '{"kind": "lag"}')[0].target == "/rpc"


def test_recorded_trades_are_settled_on_a_simulated_chain(small_tape, http):
    with Sandbox(tape=small_tape, speed=0) as exchange:
        until(lambda: exchange.source.ended and not exchange.chain.waiting)
        trades = exchange.call(lambda: list(exchange.exchange.trades.newest_first()))
        mined = exchange.call(
            lambda: {transaction.tx for block in exchange.chain.blocks for transaction in block.transactions}
        )
        row = http.get(f"{exchange.data_api_url}/trades", params={"limit": 1}).json()[0]

        assert exchange.status()["chain"]["source"] == "simulated"
        settled = [trade for trade in trades if bytes.fromhex(trade.tx[2:]) in mined]
        assert len(settled) > 0.9 * len(trades) > 100
        newest = http.post(
            exchange.rpc_url, json={"id": 1, "method": "eth_getTransactionReceipt", "params": [settled[0].tx]}
        ).json()["result"]
        own = [log for log in newest["logs"] if log["topics"][0] == chain_logs.ORDER_FILLED][-1]
        assert f"0x{own['topics'][2][-40:]}" == settled[0].taker.lower()
        assert row["proxyWallet"]
