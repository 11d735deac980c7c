"""Contracts and topics: configuration, checked against other sources."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from eth_hash.auto import keccak

from upstream.chain.contracts import FOLLOWED, POLYGON, Contract, Kind, followed, load
from upstream.chain.topics import BY_TOPIC, EVENTS


@pytest.mark.parametrize("event", EVENTS, ids=lambda event: f"{event.kind}-{event.signature}")
def test_a_topic_is_its_signature_s_keccak(event):
    assert event.topic0 == f"0x{keccak(event.signature.encode()).hex()}"


def test_no_topic_is_there_twice():
    assert len(BY_TOPIC) == len(EVENTS)


def test_the_burn_address_is_the_one_the_adapter_computes():
    (burn,) = (contract.address for contract in POLYGON if contract.kind is Kind.BURN)

    assert burn == keccak(b"NO_TOKEN_BURN_ADDRESS")[:20]


def test_both_generations_are_followed_and_the_third_is_declared():
    kinds = [contract.kind for contract in POLYGON]

    assert (kinds.count(Kind.EXCHANGE_V1), kinds.count(Kind.EXCHANGE_V2), kinds.count(Kind.EXCHANGE_V3)) == (2, 3, 1)
    assert followed(POLYGON) == [contract.address for contract in POLYGON if contract.kind in FOLLOWED]
    assert bytes.fromhex("4D97DCd97eC945f40cF65F87097ACe5EA0476045") in followed(POLYGON)
    assert bytes.fromhex("2791Bca1f2de4661ED88A30C99A7a9449Aa84174") not in followed(POLYGON)


def test_a_file_replaces_them(tmp_path):
    file = tmp_path / "contracts.json"
    file.write_text(json.dumps([{"name": "Exchange", "address": f"0x{'aB' * 20}", "kind": "exchange_v2"}]))

    assert load(file) == (Contract("Exchange", b"\xab" * 20, Kind.EXCHANGE_V2),)
    assert load(None) is POLYGON


def test_the_example_in_the_operators_manual_is_such_a_file(tmp_path, pytestconfig):
    manual = (pytestconfig.rootpath / "docs/operations.md").read_text()
    example = manual.partition("```json\n[\n")[2].partition("```")[0]
    file = tmp_path / "contracts.json"
    file.write_text(f"[\n{example}")

    loaded = load(file)

    assert {contract.kind for contract in loaded} >= {Kind.EXCHANGE_V2, Kind.CONDITIONAL_TOKENS, Kind.COLLATERAL}
    assert set(loaded) <= set(POLYGON)


@pytest.mark.parametrize(
    ("told", "fault"),
    [
        ([{"name": "A", "address": "0x12", "kind": "exchange_v2"}], "not an address"),
        ([{"name": "A", "address": f"0x{'zz' * 20}", "kind": "exchange_v2"}], "hexadecimal"),
        ([{"name": "A", "address": f"0x{'11' * 20}", "kind": "exchange_v9"}], "exchange_v9"),
        ([{"name": "A", "address": f"0x{'11' * 20}", "kind": "collateral"}], "no contract to follow"),
        ([{"name": each, "address": f"0x{'11' * 20}", "kind": "exchange_v2"} for each in "AB"], "duplicate"),
        ([{"name": "A", "address": f"0x{'11' * 20}"}], "kind"),
        ({"name": "A"}, "array"),
    ],
)
def test_a_file_that_cannot_be_meant_is_an_error(tmp_path, told, fault):
    file = tmp_path / "contracts.json"
    file.write_text(json.dumps(told))

    with pytest.raises(ValueError, match=fault):
        load(file)


def test_decoding_loads_neither_web3_nor_an_http_client():
    code = (
        "import sys, upstream.chain.decode; "
        "print([m for m in ('web3', 'eth_abi', 'httpx', 'pandas', 'psycopg', 'dagster') if m in sys.modules])"
    )

    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
