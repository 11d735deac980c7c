"""Every recorded log of the real chain decodes to its known content."""

from __future__ import annotations

import json

import msgspec
import pytest

from tests.upstream.chain.encoded import INDEX, V2, encoded
from upstream.chain.contracts import POLYGON
from upstream.chain.decode import decode
from upstream.chain.wire import RawLog


@pytest.fixture(scope="module")
def mixed(recorded):
    return json.loads((recorded / "onchain/mixed_event_logs.json").read_text())


@pytest.fixture(scope="module")
def match(recorded):
    return msgspec.json.decode((recorded / "onchain/orderfilled_v2_logs.json").read_bytes(), type=list[RawLog])


def decoded(*logs):
    made = decode([msgspec.convert(log, RawLog) if isinstance(log, dict) else log for log in logs], POLYGON)
    assert not made.refused
    return made


def rows(made):
    """Return fills as dictionaries, with names and text in place of the arrays' numbers."""
    told = []
    for at in range(len(made.fills)):
        row = {name: getattr(made.fills, name)[at].item() for name in made.fills.__slots__}
        row |= {name: row[name].hex() for name in ("tx_hash", "maker", "taker")}
        row["contract"] = POLYGON[row["contract"]].name
        row["token"] = made.tokens[row["token"]]
        told.append(row)
    return told


def test_a_v2_sale(mixed):
    made = decoded(mixed["V2_OrderFilled_maker_sell"])

    assert rows(made) == [
        {
            "block_number": 90_840_326,
            "log_index": 533,
            "tx_hash": "21d27b0fde210ccb5e6480e3f479f342743aa1f854199d57cafab2553d9a516e",
            "contract": "CTF Exchange V2",
            "token": "92995309462039665251203590892224533684024782310651466832592596015862972883776",
            "maker": "a253d75c2dfb2c6650291d5e8d54076d2fb40181",
            "taker": "92c9ad93ba0e400ffc8d716edf70a588d246bde3",
            "side": -1,
            "size": 4_180_000,
            "value": 3_929_200,
            "price": 940_000,
            "fee_usd": 0,
            "is_taker_order": False,
            "counted": True,
            "match_index": -1,
        }
    ]
    assert made.block_times == {90_840_326: 1_784_965_486}


def test_a_v1_purchase_whose_fee_was_taken_in_shares(mixed):
    made = decoded(mixed["V1_OrderFilled_maker_buy"])

    assert rows(made) == [
        {
            "block_number": 81_344_785,
            "log_index": 1357,
            "tx_hash": "31d5dca405136cb4ed09bcf817d2b6c2ce1331b18d4b5738eae2e76f7e73e391",
            "contract": "CTF Exchange V1",
            "token": "114856201873541567677341731370365137173235058495071385195611596664202155739948",
            "maker": "00000003a358014c7c0e227483dbe01619871000",
            "taker": "e55b90febea370d4611a4b0a9ff201183268b24e",
            "side": 1,
            "size": 17_700_000,
            "value": 7_434_000,
            "price": 420_000,
            "fee_usd": 743_400,  # 1.77 shares at 0.42
            "is_taker_order": False,
            "counted": True,
            "match_index": -1,
        }
    ]


def test_a_v2_match_is_counted_once_and_stands_in_two_histories(match):
    maker, taker = rows(decoded(*match))

    same = ("block_number", "tx_hash", "token", "size", "value", "price", "match_index")
    assert {name: maker[name] for name in same} == {name: taker[name] for name in same}
    assert (maker["size"], maker["value"], maker["price"]) == (2_560_000, 2_355_200, 920_000)
    assert [row["log_index"] for row in (maker, taker)] == [0x18A, 0x18D]
    assert [row["match_index"] for row in (maker, taker)] == [0x18D, 0x18D]
    assert [row["side"] for row in (maker, taker)] == [1, -1]
    assert [row["fee_usd"] for row in (maker, taker)] == [0, 13_180]
    assert [row["is_taker_order"] for row in (maker, taker)] == [False, True]
    assert [row["counted"] for row in (maker, taker)] == [False, True]
    assert [row["maker"] for row in (maker, taker)] == [
        "335ac48637a3bc37c2eac9e0c9799c32b3cda494",
        "686024b5c1fcc10eb86b8d551fae78488b1b6279",
    ]
    assert maker["taker"] == taker["maker"]
    assert bytes.fromhex(taker["taker"]) == V2


def test_rows_that_another_decoder_published(recorded):
    published = json.loads((recorded / "onchain/orderfilled_v2_decoded_rows.json").read_text())
    logs = [
        encoded(
            V2,
            "fill_v2",
            (
                bytes.fromhex(row["order_hash"][2:]),
                *(row["maker"], row["taker"], row["side"], int(row["token_id"])),
                *(int(row["maker_amount_filled"]), int(row["taker_amount_filled"]), int(row["fee"])),
                *(bytes(32), bytes(32)),
            ),
            block=row["block_number"],
            index=row["log_index"],
            tx=bytes.fromhex(row["transaction_hash"][2:]),
        )
        for row in published
    ]

    earlier, own = rows(decoded(*logs))

    assert (own["price"], own["size"], own["fee_usd"], own["is_taker_order"]) == (800_000, 10_000_000, 115_200, True)
    assert (earlier["price"], earlier["size"], earlier["is_taker_order"]) == (470_000, 330_000, False)
    assert [row["token"] for row in (own, earlier)] == [row["token_id"] for row in published]
    assert [f"0x{row['maker']}" for row in (own, earlier)] == [row["maker"].lower() for row in published]


def test_a_split(mixed):
    (entry,) = decoded(mixed["CTF_PositionSplit"]).ledger

    assert (entry.block_number, entry.log_index, entry.entry, entry.kind) == (87_004_000, 1784, 0, "split")
    assert entry.wallet.hex() == "20d2309cd92b797ae7ca175ed828ed8a27fbe29d"
    assert entry.condition_id.hex() == "b907d819a95244f9e19dc779e3db2a33133a864d22e9ce222d09a16b48759f49"
    assert (entry.amount, entry.counterparty, entry.token, entry.detail) == (20_000_000, None, -1, {})
    assert POLYGON[entry.contract].name == "Conditional Tokens"


def test_a_redemption(mixed):
    (entry,) = decoded(mixed["CTF_PayoutRedemption"]).ledger

    assert (entry.block_number, entry.log_index, entry.kind, entry.amount) == (90_715_029, 1088, "redeem", 59_076_955)
    assert entry.wallet.hex() == "5d4aba8ad45bb5eab3499a0294b42da5d1e455d3"
    assert entry.condition_id.hex() == "62530e00e2f67d9757e0b06e168e9929e0661daff1276354a3018f1568120c2f"
    assert entry.detail == {"index_sets": ["1", "2"]}


def test_a_redemption_at_the_neg_risk_adapter(mixed):
    (entry,) = decoded(mixed["NegRiskAdapter_PayoutRedemption"]).ledger

    assert (entry.block_number, entry.log_index, entry.kind, entry.amount) == (90_715_039, 962, "redeem", 11_000_000)
    assert entry.wallet.hex() == "41792a63ad17e7a210c808de4177e64a561eccee"
    assert entry.condition_id.hex() == "95dbea2403eefccc30a0b4f276e0dd94d8030ac0f826aa2702ebd835cd75985c"
    assert entry.detail == {"amounts": [0, 11_000_000]}
    assert POLYGON[entry.contract].name == "NegRisk Adapter"


def test_a_resolution(mixed):
    (resolved,) = decoded(mixed["CTF_ConditionResolution"]).resolutions

    assert (resolved.block_number, resolved.log_index, resolved.numerators) == (90_715_113, 600, (1, 0))
    assert resolved.condition_id.hex() == "da4bfca4a2f26cce689ac3e2b89cc60a17fb0b994ee79f61ec8beb65f6886236"
    assert resolved.oracle.hex() == "65070be91477460d8a7aeeb94ef92fe056c2f2a7"
    assert resolved.question_id.hex() == "b7576115f85ca1f02c40bd07ae7373640423e87fcffd4c2a8986af23f2a01438"


def test_all_of_them_at_once(mixed, match):
    made = decoded(*mixed.values(), *match)

    assert len(made.fills) == 4
    assert [entry.kind for entry in made.ledger] == ["split", "redeem", "redeem"]
    assert len(made.resolutions) == 1
    assert made.fills.block_number.tolist() == sorted(made.fills.block_number.tolist())
    assert made.block_hashes[91_660_288].hex() == match[0].block_hash[2:]
    assert made.block_logs[91_660_288] == 2


def test_the_logs_of_the_exchange_s_deployment_are_not_guessed_at(recorded):
    receipts = json.loads((recorded / "onchain/deploy_receipts_polygon.json").read_text())
    logs = msgspec.convert([log for receipt in receipts for log in receipt["logs"]], list[RawLog])

    made = decode(logs, POLYGON)

    assert len(logs) > 0
    assert made.counts["refused"] + made.counts["ignored"] == len(logs)
    assert not len(made.fills)
    assert {refused.log.address for refused in made.refused} >= {logs[0].address}
    assert all(POLYGON[INDEX[V2]].name not in refused.reason for refused in made.refused)
