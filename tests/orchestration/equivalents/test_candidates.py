"""Candidates: pairs that may ask the same are found, and a catalogue of look-alikes costs no more than its share."""

from hypothesis import given, settings
from hypothesis import strategies as st

from orchestration.equivalents import candidates as module
from orchestration.equivalents.candidates import KEPT, candidates, forms, title
from tests.orchestration.equivalents.written import house, nominee


def found(left, right):
    return {(each.left, each.right) for each in candidates(left, right)}


def test_a_pair_is_found_among_others_by_its_rare_words():
    left = ["Will Ada Byron be the Republican nominee for FL-19?", "Will it rain in Oslo on May 5, 2026?"]
    right = [f"Who will be the Republican nominee for TX-{n}? Somebody{n}" for n in range(1, 40)]
    right.append("Who will be the Republican nominee for FL-19? Ada Byron")

    best = max(candidates(left, right), key=lambda each: each.score)

    assert (best.left, best.right) == (0, len(right) - 1)


def test_seats_parties_and_demonyms_have_one_form():
    assert forms("Will the Democrats win AZ-05?") == ("democratic", "az-5")
    assert forms("the Brazilian vote at $100,000") == ("brazil", "vote", "100000")


def test_the_label_is_part_of_a_title_that_does_not_name_it():
    assert title(nominee()) == "Who will be the Republican nominee for FL-19? Ada Byron"
    assert title(house()) == "Will Ada Byron be the Republican nominee for FL-19?"


def test_markets_without_a_word_in_common_are_no_candidates():
    assert found(["Zorblatt quits"], ["Quuxly wins"]) == set()


def test_a_market_has_no_more_candidates_than_are_kept():
    left = ["Will Ada Byron resign?"]
    right = [f"Will Ada Byron resign in week {n}?" for n in range(100)]

    assert len(list(candidates(left, right))) == KEPT


def test_a_word_of_too_many_markets_finds_nothing(monkeypatch):
    monkeypatch.setattr(module, "MAX_FILED", 10)
    right = ["Byron resigns"] * 11

    assert found(["Byron resigns"], right) == set()
    assert found(["Byron resigns"], right[:10]) != set()


def test_no_more_are_compared_than_the_bound(monkeypatch):
    compared = []
    true = module.fuzz.token_set_ratio
    monkeypatch.setattr(module, "MAX_COMPARED", 7)
    monkeypatch.setattr(module.fuzz, "token_set_ratio", lambda a, b, **more: compared.append(b) or true(a, b, **more))

    found(["Will Ada Byron resign?"], [f"Will Ada Byron resign in week {n}?" for n in range(100)])

    assert len(compared) == 7


@settings(max_examples=50, deadline=None)
@given(st.lists(st.text(max_size=600), max_size=8), st.lists(st.text(max_size=600), max_size=8))
def test_no_title_raises_and_each_candidate_is_of_both_catalogues(left, right):
    for each in candidates(left, right):
        assert 0 <= each.left < len(left)
        assert 0 <= each.right < len(right)
        assert 0 < each.score <= 100
