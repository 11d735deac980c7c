"""The tests' own chain: it logs the given events, and a reorganisation removes them."""

from __future__ import annotations

import json
import random

import pytest

from tests.chain import Chain, abi, contracts, events, scenario
from tests.chain.solidity import compiled

# As published for the exchange's contracts; the compiler hashes the signatures itself.
TOPICS = {
    "d0a08e8c493f9c94f29311604c9de1b4e8c8d4c06bd0c789af57f2d65bfec0f6": events.fill_v1(),
    "63bf4d16b7fa898ef4c4b2b6d90fd201e9c56313b65638af6088d149d2ce956c": events.matched_v1(events.fill_v1()),
    "5152abf959f6564662358c2e52b702259b78bac5ee7842a0f01937e670efcc7d": events.Event(
        "exchange_v1", "OrderCancelled", (events.word(1),)
    ),
    "acffcc86834d0f1a64b0d5a675798deed6ff0bcfc2231edd3480e7288dba7ff4": events.Event(
        "exchange_v1", "FeeCharged", (events.wallet(1), 1, 2)
    ),
    "bc9a2432e8aeb48327246cddd6e872ef452812b4243c04e6bfb786a2cd8faf0d": events.Event(
        "exchange_v1", "TokenRegistered", (1, 2, events.word(1))
    ),
    "d543adfd945773f1a62f74f0ee55a5e3b9b1a28262980ba90b1a89f2ea84d8ee": events.fill_v2(),
    "174b3811690657c217184f89418266767c87e4805d09680c39fc9c031c0cab7c": events.matched_v2(events.fill_v2()),
    "55bb3cade9d43b798a4fe5ffdd05024b2d7870df53920673bfc7e68047cd0ab1": events.Event(
        "exchange_v2", "FeeCharged", (events.wallet(1), 2)
    ),
    "ab3760c3bd2bb38b5bcf54dc79802ed67338b4cf29f3054ded67ed24661e4177": events.preparation(events.word(1)),
    "b44d84d3289691f71497564b85d4233648d9dbae8cbdbb4329f301c3a0185894": events.resolution(events.word(1), (1, 0)),
    "2e6bb91f8cbcda0c93623c54d0403a43514fabc40084ec96b6d5379a74786298": events.split(
        events.wallet(1), events.word(1), 5
    ),
    "6f13ca62553fcc2bcd2372180a43949c1e4cebba603901ede2f4e14f36b282ca": events.merge(
        events.wallet(1), events.word(1), 5
    ),
    "2682012a4a4f1973119f1c9b90745d1bd91fa2bab387344f044cb3586864d18d": events.redemption(
        events.wallet(1), events.word(1), 5
    ),
    "bbed930dbfb7907ae2d60ddf78345610214f26419a0128df39b6cc3d9e5df9b0": events.adapter_split(
        events.wallet(1), events.word(1), 5
    ),
    "ba33ac50d8894676597e6e35dc09cff59854708b642cd069d21eb9c7ca072a04": events.adapter_merge(
        events.wallet(1), events.word(1), 5
    ),
    "b03d19dddbc72a87e735ff0ea3b57bef133ebe44e1894284916a84044deb367e": events.conversion(
        events.wallet(1), events.word(1), 3, 5
    ),
    "9140a6a270ef945260c03894b3c6b3b2695e9d5101feef0ff24fec960cfd3224": events.adapter_redemption(
        events.wallet(1), events.word(1), (5, 0), 5
    ),
    "f059ab16d1ca60e123eab60e3c02b68faf060347c701a5d14885a8e1def7b3a8": events.Event(
        "neg_risk_adapter", "MarketPrepared", (events.word(1), events.wallet(1), 0, b"a question")
    ),
    "aac410f87d423a922a7b226ac68f0c2eaf5bf6d15e644ac0758c7f96e2c253f7": events.Event(
        "neg_risk_adapter", "QuestionPrepared", (events.word(1), events.word(2), 0, b"a question")
    ),
    "9e9fa7fd355160bd4cd3f22d4333519354beff1f5689bde87f2c5e63d8d484b2": events.Event(
        "neg_risk_adapter", "OutcomeReported", (events.word(1), events.word(2), True)
    ),
    "c3d58168c5ae7397731d063d5bbf3d657854427343f4c083240f7aacaa2d0f62": events.transfer(
        events.wallet(1), events.wallet(2), 7, 5
    ),
    "4a39dc06d4c0dbc64b70af90fd698a233a518aa5d07e595d983b8c0526c8f7fb": events.transfers(
        events.wallet(1), events.wallet(2), {7: 5, 8: 6}
    ),
    "ddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef": events.collateral(
        events.wallet(1), events.wallet(2), 5
    ),
}


def test_every_published_event_is_said_with_its_topic_and_from_its_contract(chain):
    chain.emit(list(TOPICS.values()))

    logs = chain.logs()

    assert [log["topics"][0] for log in logs] == [f"0x{topic}" for topic in TOPICS]
    assert [log["address"] for log in logs] == [
        f"0x{contracts.address(event.contract).hex()}" for event in TOPICS.values()
    ]


def test_arguments_arrive_where_solidity_puts_them(chain):
    chain.emit(events.split(events.wallet(7), events.word(5), 1_500_000))

    (log,) = chain.logs()

    assert [log["topics"][1][-40:], log["topics"][3][-1:]] == [events.wallet(7).hex(), "5"]
    words = bytes.fromhex(log["data"][2:])
    collateral, where, amount, length, yes, no = (int.from_bytes(words[n : n + 32]) for n in range(0, 192, 32))
    assert collateral == int.from_bytes(contracts.address("usdc_e"))
    assert (where, amount, length, yes, no) == (96, 1_500_000, 2, 1, 2)


def test_a_recorded_log_is_said_again_to_the_byte(chain, recorded):
    """The exchange's own log, decoded and logged again by our emitter."""
    maker_row, taker_row = json.loads((recorded / "onchain/orderfilled_v2_logs.json").read_text())
    said = []
    for row in (maker_row, taker_row):
        order_hash, maker, taker = (bytes.fromhex(topic[2:]) for topic in row["topics"][1:])
        words = [int(row["data"][2:][n : n + 64], 16) for n in range(0, len(row["data"]) - 2, 64)]
        args = (order_hash, maker[12:], taker[12:], *words[:5], words[5].to_bytes(32), words[6].to_bytes(32))
        said.append(events.Event("exchange_v2", "OrderFilled", args))

    chain.emit(said)

    assert [(log["topics"], log["data"]) for log in chain.logs()] == [
        (row["topics"], row["data"]) for row in (maker_row, taker_row)
    ]


def test_logs_are_numbered_through_a_block_and_all_found_by_eth_get_logs(chain):
    chain.emit([events.fill_v2(), events.fill_v2()], events.fill_v1())
    chain.mine(2)
    chain.emit(events.fill_v2())

    logs = chain.logs()

    assert [(int(log["blockNumber"], 16), int(log["logIndex"], 16)) for log in logs] == [(1, 0), (1, 1), (1, 2), (4, 0)]
    assert chain.node.call("eth_getLogs", {"fromBlock": "0x0", "toBlock": "latest"}) == logs


def test_a_match_holds_a_row_a_maker_the_takers_own_and_the_summary(chain):
    taker, exchange = events.wallet(3), contracts.address("exchange_v2")
    sold = events.fill_v2(maker=events.wallet(1), taker=taker, side=events.SELL, token=8, shares=100, usd=40)
    minted = events.fill_v2(maker=events.wallet(2), taker=taker, side=events.BUY, token=9, shares=50, usd=30)

    *makers, own, matched = events.match_v2([sold, minted])

    assert makers == [sold, minted]
    assert own.args[1:7] == (taker, exchange, events.BUY, 8, 60, 150)
    assert matched.args[1:] == (taker, events.BUY, 8, 60, 150)


@pytest.mark.parametrize("depth", [1, 2, 17, 64])
def test_a_reorganisation_replaces_as_many_blocks_as_asked(chain, depth):
    chain.extend([[events.fill_v2()] for _ in range(70)])
    before = chain.blocks()

    chain.reorg(depth, [[events.fill_v1()] for _ in range(depth)])

    after = chain.blocks()
    kept = 70 - depth + 1
    assert after[:kept] == before[:kept]
    assert {block.hash for block in after[kept:]}.isdisjoint(block.hash for block in before)
    assert [block.parent for block in after[1:]] == [block.hash for block in after[:-1]]
    assert len({log["topics"][0] for log in chain.logs(kept)}) == 1
    assert chain.node.call("eth_getLogs", {"fromBlock": "0x0", "toBlock": "latest"}) == chain.logs()


def test_the_same_transactions_on_another_branch_are_in_other_blocks(chain):
    told = [[events.fill_v2()], []]
    before = chain.extend(told)

    after = chain.reorg(2, told)

    assert [block.transactions for block in after] == [block.transactions for block in before]
    assert {block.hash for block in after}.isdisjoint(block.hash for block in before)


def test_a_branch_may_be_shorter_or_longer_than_what_it_replaces(chain):
    chain.mine(5)

    chain.reorg(3, [[events.fill_v2()]])
    shorter = chain.head
    chain.reorg(1, [[], [], [events.fill_v2()]])

    assert (shorter, chain.head, len(chain.logs())) == (3, 5, 1)


def test_the_nodes_own_reorganisation_is_at_one_blow(chain):
    chain.extend([[events.fill_v2()] for _ in range(5)])
    before = chain.blocks()

    swapped = chain.swap(2)

    assert chain.blocks()[:4] == before[:4]
    assert {block.hash for block in swapped}.isdisjoint(block.hash for block in before)
    assert len(chain.logs()) == 3
    assert chain.emit(events.fill_v2()).number == 6


def test_what_came_after_a_snapshot_never_was(chain):
    chain.emit(events.fill_v2())
    before = chain.blocks()
    point = chain.snapshot()
    chain.emit(events.fill_v1())

    chain.revert(point)

    assert chain.blocks() == before
    assert chain.emit(events.fill_v1()).number == 2


def test_the_same_steps_give_the_same_chain(chain):
    def steps():
        for step in scenario.random_steps(7):
            scenario.play(step, chain)
        return chain.blocks(), chain.logs()

    first = steps()
    chain.reset()

    assert steps() == first
    assert first[1]


def test_random_histories_hold_every_kind_of_event(chain):
    rng = random.Random(1)

    chain.emit(*(scenario.transaction(rng) for _ in range(300)))

    logs = chain.logs()
    said = {log["topics"][0][2:] for log in logs if log["topics"]}
    assert len(said & set(TOPICS)) >= 13
    assert {contracts.address(name).hex() for name in contracts.CONTRACTS if name != "usdc_e"} <= {
        log["address"][2:] for log in logs
    }


def test_another_driver_of_the_same_node_starts_at_genesis_again(anvil, chain):
    chain.extend([[events.fill_v2()]] * 3)

    again = Chain(anvil)

    assert (again.head, again.logs(), int(anvil.call("eth_blockNumber"), 16)) == (0, [], 0)


def test_the_encoder_writes_what_the_compiler_reads():
    types = ["address", "uint256[]", "bytes", "bool"]

    encoded = abi.encode(types, [events.wallet(1), [1, 2], b"abc", True])

    words = [int.from_bytes(encoded[n : n + 32]) for n in range(0, len(encoded), 32)]
    assert words == [int.from_bytes(events.wallet(1)), 128, 224, 1, 2, 1, 2, 3, int.from_bytes(b"abc" + bytes(29))]
    assert compiled()["Caller"]["selectors"] == {"run(address[],bytes[])": "4d618e3b"}
