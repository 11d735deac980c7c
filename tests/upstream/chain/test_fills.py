"""Fills: sides, prices and fees, and which rows of a match count."""

from __future__ import annotations

import random

import msgspec
import pytest

from tests.upstream.chain.encoded import NEG_RISK_V1, NO_HASH, TOKENS, V1, V2, V3, Chain, condition, token, wallet
from upstream.chain.contracts import POLYGON
from upstream.chain.decode import decode
from upstream.chain.decoded import REFUSED_KEPT

BUY, SELL = 0, 1
SHARES, USD = 10_000_000, 5_200_000


def v2(chain, maker, taker, side=BUY, *, token_id=1, shares=SHARES, usd=USD, fee=0, at=V2):
    given, got = (usd, shares) if side == BUY else (shares, usd)
    return chain.say(at, "fill_v2", NO_HASH, maker, taker, side, token(token_id), given, got, fee, NO_HASH, NO_HASH)


def v1(chain, maker, taker, side=BUY, *, token_id=1, shares=SHARES, usd=USD, fee=0, at=V1):
    assets = (0, token(token_id)) if side == BUY else (token(token_id), 0)
    amounts = (usd, shares) if side == BUY else (shares, usd)
    return chain.say(at, "fill_v1", NO_HASH, maker, taker, *assets, *amounts, fee)


def matched(chain, taker, *, at=V2):
    if at in {V1, NEG_RISK_V1}:
        return chain.say(at, "matched_v1", NO_HASH, taker, 0, token(1), USD, SHARES)
    return chain.say(at, "matched_v2", NO_HASH, taker, BUY, token(1), USD, SHARES)


def fills(logs):
    made = decode(logs, POLYGON)
    assert not made.refused
    return made.fills


@pytest.fixture
def chain():
    return Chain()


@pytest.mark.parametrize(("fill", "at"), [(v1, V1), (v2, V2)], ids=["V1", "V2"])
def test_in_both_versions_a_side_is_that_of_the_order_s_owner(chain, fill, at):
    fill(chain, wallet(1), wallet(2), BUY, at=at)
    fill(chain, wallet(1), wallet(2), SELL, at=at)

    made = fills(chain.logs)

    assert made.side.tolist() == [1, -1]
    assert made.size.tolist() == [SHARES, SHARES]
    assert made.value.tolist() == [USD, USD]
    assert made.price.tolist() == [520_000, 520_000]


def test_a_fee_is_usd_but_in_v1_when_buying(chain):
    v1(chain, wallet(1), wallet(2), BUY, fee=100_000)
    v1(chain, wallet(1), wallet(2), SELL, fee=100_000)
    v2(chain, wallet(1), wallet(2), BUY, fee=100_000)
    v2(chain, wallet(1), wallet(2), SELL, fee=100_000)

    assert fills(chain.logs).fee_usd.tolist() == [52_000, 100_000, 100_000, 100_000]


def test_prices_are_rounded_half_to_even_and_exact_for_the_largest_amounts(chain):
    for usd, shares in [(5, 2 * 10**6), (15, 2 * 10**6), (7 * 10**17, 10**18), (2**62, 2**63 - 1), (1, 3 * 10**5)]:
        v2(chain, wallet(1), wallet(2), usd=usd, shares=shares)

    assert fills(chain.logs).price.tolist() == [2, 8, 700_000, 500_000, 3]


def test_what_has_no_possible_price_is_kept_without_one_and_counted(chain):
    for usd, shares in [(0, 0), (0, 5), (5, 0), (11, 10), (1, 10**10), (10, 10), (1, 9_999)]:
        v2(chain, wallet(1), wallet(2), usd=usd, shares=shares)

    made = decode(chain.logs, POLYGON)

    assert made.fills.price.tolist() == [-1, -1, -1, -1, -1, 1_000_000, 100]
    assert made.fills.value.tolist() == [0, 0, 5, 11, 1, 10, 1]
    assert made.fills.counted.all()
    assert {name: made.counts[name] for name in ("fills", "zero_amounts", "dust", "impossible_prices")} == {
        "fills": 7,
        "zero_amounts": 3,
        "dust": 4,
        "impossible_prices": 2,
    }


@pytest.mark.parametrize(("fill", "at"), [(v1, V1), (v1, NEG_RISK_V1), (v2, V2)], ids=["V1", "V1 neg-risk", "V2"])
def test_of_a_match_the_taker_s_row_counts(chain, fill, at):
    for maker in (1, 2, 3):
        fill(chain, wallet(maker), wallet(9), SELL, at=at)
    fill(chain, wallet(9), at, BUY, shares=3 * SHARES, usd=3 * USD, at=at)
    matched(chain, wallet(9), at=at)

    made = fills(chain.logs)

    assert made.is_taker_order.tolist() == [False, False, False, True]
    assert made.counted.tolist() == [False, False, False, True]
    assert made.match_index.tolist() == [3, 3, 3, 3]


def test_several_matches_of_one_transaction_are_told_apart(chain):
    for maker in (1, 2):
        v2(chain, wallet(maker), wallet(9), SELL)
    v2(chain, wallet(9), V2, BUY)
    matched(chain, wallet(9))
    v2(chain, wallet(3), wallet(9), SELL)
    v2(chain, wallet(9), V2, BUY)
    matched(chain, wallet(9))
    v1(chain, wallet(4), wallet(8), SELL, at=NEG_RISK_V1)
    v1(chain, wallet(8), NEG_RISK_V1, BUY, at=NEG_RISK_V1)
    matched(chain, wallet(8), at=NEG_RISK_V1)

    made = fills(chain.logs)

    assert made.match_index.tolist() == [2, 2, 2, 5, 5, 8, 8]
    assert made.counted.sum() == 3


def test_a_match_in_which_a_set_was_minted_counts_the_taker_s_token(chain):
    v2(chain, wallet(1), wallet(9), BUY, token_id=2, usd=SHARES - USD)
    v2(chain, wallet(9), V2, BUY, token_id=1)
    matched(chain, wallet(9))

    made = decode(chain.logs, POLYGON)

    assert [made.tokens[at] for at in made.fills.token.tolist()] == [str(token(2)), str(token(1))]
    assert made.fills.price.tolist() == [480_000, 520_000]
    assert made.fills.counted.tolist() == [False, True]


def test_a_match_without_the_taker_s_row_counts_its_makers(chain):
    v2(chain, wallet(1), wallet(9), SELL)
    matched(chain, wallet(9))
    v2(chain, wallet(2), wallet(9), SELL)
    v2(chain, wallet(9), V2, BUY)
    matched(chain, wallet(9))

    made = fills(chain.logs)

    assert made.counted.tolist() == [True, False, True]
    assert made.match_index.tolist() == [-1, 3, 3]


def test_a_plain_fill_counts_itself_even_beside_a_match(chain):
    v1(chain, wallet(1), wallet(5), SELL)
    v1(chain, wallet(2), wallet(9), SELL)
    v1(chain, wallet(9), V1, BUY)
    matched(chain, wallet(9), at=V1)

    made = fills(chain.logs)

    assert made.counted.tolist() == [True, False, True]
    assert made.match_index.tolist() == [-1, 2, 2]


def test_the_next_transaction_s_match_is_another(chain):
    v2(chain, wallet(1), wallet(9), SELL)
    chain.tx()
    v2(chain, wallet(9), V2, BUY)
    matched(chain, wallet(9))
    chain.block()
    v2(chain, wallet(9), V2, BUY)

    made = fills(chain.logs)

    assert made.counted.tolist() == [True, True, True]
    assert made.match_index.tolist() == [-1, 1, 0]


def test_logs_may_come_in_any_order_and_more_than_once(chain):
    for number in range(50):
        v2(chain, wallet(number), wallet(99), SELL, token_id=number % 7)
        v2(chain, wallet(99), V2, BUY)
        matched(chain, wallet(99))
        if number % 9 == 0:
            chain.block()
    straight = fills(chain.logs)
    logs = [*chain.logs, *chain.logs[:20]]
    random.Random(1).shuffle(logs)

    shuffled = decode(logs, POLYGON)

    for name in ("block_number", "log_index", "maker", "size", "price", "counted", "match_index"):
        assert getattr(shuffled.fills, name).tolist() == getattr(straight, name).tolist()
    assert shuffled.counts["duplicates"] == 14  # six of the twenty were OrdersMatched


def test_amounts_beyond_int64_are_refused_and_not_wrapped(chain):
    v2(chain, wallet(1), wallet(2), usd=1, shares=2**63)
    v2(chain, wallet(1), wallet(2), usd=2**255, shares=1)
    v1(chain, wallet(1), wallet(2), fee=2**64)
    v1(chain, wallet(1), wallet(2), usd=2**62, shares=1, fee=2**62)
    v2(chain, wallet(1), wallet(2), usd=1, shares=2**63 - 1)

    made = decode(chain.logs, POLYGON)

    assert made.fills.size.tolist() == [2**63 - 1]
    assert made.counts["refused"] == 4
    assert {refused.reason for refused in made.refused} == {"an amount beyond int64", "a fee beyond int64"}
    assert {refused.log.log_index for refused in made.refused} == {"0x0", "0x1", "0x2", "0x3"}


def test_impossible_fields_are_refused(chain):
    v1(chain, wallet(1), wallet(2))
    chain.say(V1, "fill_v1", NO_HASH, wallet(1), wallet(2), 0, 0, 1, 1, 0)
    chain.say(V1, "fill_v1", NO_HASH, wallet(1), wallet(2), 5, 6, 1, 1, 0)
    bad = v2(chain, wallet(1), wallet(2))
    bad.topics[2] = f"0x{'11' * 32}"
    side = v2(chain, wallet(1), wallet(2))
    side.data = f"0x{2:064x}{side.data[66:]}"

    made = decode(chain.logs, POLYGON)

    assert len(made.fills) == 1
    assert sorted(refused.reason for refused in made.refused) == [
        "a maker or taker that is no address",
        "a side that is neither BUY nor SELL",
        "two tokens, or none",
        "two tokens, or none",
    ]


def test_unknown_layouts_are_refused_with_their_log_and_all_of_them_counted(chain):
    log = v2(chain, wallet(1), wallet(2))
    unknown = [
        msgspec.structs.replace(log, address=f"0x{V3.hex()}", log_index=hex(100 + n)) for n in range(REFUSED_KEPT + 20)
    ]
    stranger = msgspec.structs.replace(log, address=f"0x{wallet(7).hex()}")
    misplaced = msgspec.structs.replace(log, address=f"0x{TOKENS.hex()}")
    bare = msgspec.structs.replace(log, topics=[])

    made = decode([log, *unknown, stranger, misplaced, bare], POLYGON)

    assert len(made.fills) == 1
    assert made.counts["refused"] == REFUSED_KEPT + 23
    reasons = [refused.reason for refused in made.refused]
    assert sum("Exchange V3: its layout is not known" in reason for reason in reasons) == REFUSED_KEPT
    assert reasons[REFUSED_KEPT:] == [
        "not one of the contracts",
        f"Conditional Tokens: unknown event: {log.topics[0]}",
        "CTF Exchange V2: unknown event: ",
    ]


def test_known_events_of_no_use_are_ignored_and_removed_logs_left_out(chain):
    chain.say(V2, "fee_v2", wallet(1), 5)
    chain.say(TOKENS, "prepared", condition(1), wallet(3), NO_HASH, 2)
    taken_back = v2(chain, wallet(1), wallet(2))
    taken_back.removed = True

    made = decode(chain.logs, POLYGON)

    assert [made.counts[name] for name in ("ignored", "removed", "refused")] == [1, 1, 0]
    assert [(each.condition_id, each.oracle, each.outcomes) for each in made.preparations] == [
        (condition(1), wallet(3), 2)
    ]
    assert len(made.fills) == 0


def test_text_in_capitals_is_read_as_well(chain):
    v2(chain, wallet(1), wallet(2))
    v2(chain, wallet(2), V2, SELL)
    plain = fills(chain.logs)
    for log in chain.logs:
        log.address = f"0x{log.address[2:].upper()}"
        log.topics = [f"0x{topic[2:].upper()}" for topic in log.topics]
        log.data = f"0x{log.data[2:].upper()}"

    shouted = fills(chain.logs)

    assert shouted.maker.tolist() == plain.maker.tolist()
    assert shouted.is_taker_order.tolist() == [False, True]


def test_nothing_decodes_to_nothing():
    made = decode([], POLYGON)

    assert len(made.fills) == 0
    assert (made.ledger, made.tokens, made.refused) == ([], [], [])
