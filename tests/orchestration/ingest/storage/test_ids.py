import os
import subprocess
import sys

from orchestration.ingest.storage import ids
from upstream.polymarket import identity

TOKEN = "7" * 77
HASH = "0x" + "Ab" * 32


def test_ids_are_the_same_in_every_process():
    code = (
        "from orchestration.ingest.storage import ids; from upstream.polymarket import identity;"
        f"print(identity.trade_id({TOKEN!r}, {HASH!r}, 1, 1, 520000, 3000000),"
        f" ids.change_id({TOKEN!r}, 1, 'ff', 1, 2, 3), ids.snapshot_id({TOKEN!r}, 1, 'ff'))"
    )
    seeds = [{**os.environ, "PYTHONHASHSEED": seed} for seed in ("1", "2")]
    outputs = {subprocess.check_output([sys.executable, "-c", code], env=env, text=True) for env in seeds}

    assert outputs == {"-7656582193838500303 5581678614585604274 5280245323941336832\n"}


def test_a_trade_with_a_transaction_hash_is_one_from_every_source():
    socket = identity.trade_id(TOKEN, HASH, 1_700_000_000_123, 1, 520_000, 3_000_000)
    data_api = identity.trade_id(TOKEN, HASH.lower(), 1_700_000_000_000, 1, 520_000, 3_000_000)

    assert socket == data_api


def test_without_a_hash_the_instant_tells_trades_apart():
    assert identity.trade_id(TOKEN, None, 1, 1, 2, 3) != identity.trade_id(TOKEN, None, 2, 1, 2, 3)


def test_repeats_within_a_transaction_differ_by_their_number():
    assert identity.trade_id(TOKEN, HASH, 1, 1, 2, 3, 0) != identity.trade_id(TOKEN, HASH, 1, 1, 2, 3, 1)


def test_every_part_of_a_change_tells_it_apart():
    parts = [(TOKEN, 1, "ff", 1, 2, 3, 0), (TOKEN, 2, "ff", 1, 2, 3, 0), (TOKEN, 1, "fe", 1, 2, 3, 0)]
    parts += [(TOKEN, 1, "ff", -1, 2, 3, 0), (TOKEN, 1, "ff", 1, 3, 3, 0), (TOKEN, 1, "ff", 1, 2, 4, 0)]
    parts += [(TOKEN, 1, "ff", 1, 2, 3, 1), (TOKEN + "1", 1, "ff", 1, 2, 3, 0)]

    assert len({ids.change_id(*each) for each in parts}) == len(parts)


def test_seq_orders_by_instant_and_then_by_arrival():
    now = 1_800_000_000_000
    assert ids.seq(now, 0) < ids.seq(now, 1) < ids.seq(now, 10**9) < ids.seq(now + 1, 0) < 2**63
    assert ids.seq_ms(ids.seq(now, 77)) == now
