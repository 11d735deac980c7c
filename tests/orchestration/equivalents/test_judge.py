"""Verdicts over pairs of texts of our own."""

import msgspec
import pytest

from orchestration.equivalents.judge import RULES_VERSION, judge
from tests.orchestration.equivalents.written import PAIRS, nominee

MIRRORED = {"left": "right", "right": "left", None: None}


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair.name)
def test_a_pair_is_judged_by_the_clause_that_decides(pair):
    verdict = judge(pair.polymarket, pair.kalshi)

    assert (verdict.verdict, verdict.clause, verdict.within) == (pair.verdict, pair.clause, pair.within), verdict.detail


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair.name)
def test_a_verdict_is_the_same_from_the_other_side(pair):
    there, back = judge(pair.polymarket, pair.kalshi), judge(pair.kalshi, pair.polymarket)

    assert (back.verdict, back.clause, back.within) == (there.verdict, there.clause, MIRRORED[there.within])


def test_each_verdict_carries_the_version_of_the_rules():
    assert {judge(pair.polymarket, pair.kalshi).rules_version for pair in PAIRS} == {RULES_VERSION}


@pytest.mark.parametrize(
    "pair", [p for p in PAIRS if p.verdict in {"identical", "inverted"}], ids=lambda pair: pair.name
)
@pytest.mark.parametrize("side", ["polymarket", "kalshi"])
def test_one_sentence_more_that_is_not_known_refuses_identity(pair, side):
    texts = pair._asdict()
    texts[side] = msgspec.structs.replace(
        texts[side], more_rules=texts[side].more_rules + " The exchange may decide otherwise."
    )

    assert judge(texts["polymarket"], texts["kalshi"]).verdict == "unreadable"


def test_a_market_is_identical_with_itself():
    assert judge(nominee(), nominee()).verdict == "identical"
