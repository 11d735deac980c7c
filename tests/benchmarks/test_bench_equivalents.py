"""The equivalents benchmark: its arithmetic, its labels, and its catalogues."""

from __future__ import annotations

import csv
import json
from collections import Counter
from math import sqrt

import pytest

from benchmarks.equivalents import catalogue, equivalents, evaluation
from benchmarks.harness import Options
from orchestration.equivalents.judge import Verdict


@pytest.mark.parametrize(("hits", "of"), [(1, 10), (5, 10), (99, 100), (12, 14), (1, 3)])
def test_an_intervals_bounds_are_the_shares_that_are_just_as_far_as_chance_goes(hits, of):
    share = evaluation.wilson(hits, of)

    assert share.share == hits / of
    for bound in (share.low, share.high):
        assert abs(hits / of - bound) == pytest.approx(evaluation.Z * sqrt(bound * (1 - bound) / of))


def test_the_interval_of_all_and_of_none_ends_at_one_and_zero():
    whole, none = evaluation.wilson(10, 10), evaluation.wilson(0, 10)

    assert (whole.low, whole.high) == pytest.approx((10 / (10 + evaluation.Z**2), 1))
    assert (none.low, none.high) == pytest.approx((0, 1 - 10 / (10 + evaluation.Z**2)))


def test_nothing_has_no_share():
    assert evaluation.wilson(0, 0) == evaluation.Share(0, 0, None, None, None)


def test_a_lower_bound_of_99_percent_needs_381_without_an_error():
    assert evaluation.wilson(380, 380).low < 0.99 <= evaluation.wilson(381, 381).low


def pair(label, within="", similarity=80):
    return evaluation.Label("0x1", "KX-1", similarity, "s", "train", label, within, "all", "", "")


def test_precision_and_recall_are_counted_by_class():
    found = [
        (pair("identical"), Verdict("identical", None, "")),
        (pair("identical"), Verdict("unreadable", "void", "left: a sentence")),
        (pair("related"), Verdict("identical", None, "")),
        (pair("subset", "polymarket"), Verdict("subset", "window", "", "left")),
        (pair("subset", "polymarket"), Verdict("subset", "window", "", "right")),
        (pair("different", similarity=99), Verdict("different", "event", "FL-19 / FL-20")),
    ]

    result = evaluation.evaluate("train", found)

    identical, subset = result.scores["identical"], result.scores["subset"]
    assert (identical.precision.hits, identical.precision.of) == (1, 2)
    assert (identical.recall.hits, identical.recall.of) == (1, 2)
    assert (subset.precision.hits, subset.precision.of) == (1, 2)
    assert result.confusion["related"]["identical"] == 1
    assert (result.refused[0].label, result.refused[0].clause) == ("different", "event")
    assert len(result.refused) == 4


def test_texts_that_are_missing_or_changed_are_not_judged(tmp_path):
    market = {"question": "Q?", "description": "D"}
    listed = {"event_title": "E", "yes_sub_title": "L", "rules_primary": "R", "rules_secondary": ""}
    (tmp_path / "polymarket.json").write_text(json.dumps({"0x1": market, "0x2": market}))
    (tmp_path / "kalshi.json").write_text(json.dumps({"KX-1": listed}))
    hashes = evaluation.sha256("Q?", "", "D"), evaluation.sha256("E", "L", "R", "")
    rows = [
        evaluation.Label("0x1", "KX-1", 1, "s", "train", "related", "", "event", *hashes),
        evaluation.Label("0x2", "KX-1", 1, "s", "train", "related", "", "event", "another", hashes[1]),
        evaluation.Label("0x3", "KX-1", 1, "s", "train", "related", "", "event", *hashes),
    ]

    found, missing = evaluation.judged(rows, tmp_path)

    assert ([row.polymarket for row, _ in found], missing) == (["0x1"], 2)


def test_labels_are_complete_and_no_event_of_kalshi_is_in_both_splits():
    rows = evaluation.labels()
    events = {
        split: {row.kalshi.rsplit("-", 1)[0] for row in rows if row.split == split} for split in ("train", "held_out")
    }

    assert len(rows) >= 500
    assert len({(row.polymarket, row.kalshi) for row in rows}) == len(rows)
    assert {row.label for row in rows} <= set(evaluation.CLASSES)
    assert all((row.label == "subset") == bool(row.within) for row in rows)
    assert all(row.clause and len(row.polymarket_sha256) == len(row.kalshi_sha256) == 64 for row in rows)
    assert 0.25 < Counter(row.split for row in rows)["held_out"] / len(rows) < 0.4
    assert not events["train"] & events["held_out"]


def test_candidates_are_measured_and_planted_pairs_are_found():
    time, memory, planted = equivalents.run(Options(markets=600, live=300), lambda _: None)

    assert time.value >= 0
    assert memory.value > 0
    assert planted.value > 0.8


def test_a_catalogue_is_as_large_as_asked_for_and_its_planted_pairs_are_where_it_says():
    left, right, planted = catalogue.catalogues(50, 30, 10)

    assert (len(left), len(right), len(planted)) == (50, 30, 10)
    assert "" not in (*left, *right)
    assert catalogue.catalogues(50, 30, 10) == (left, right, planted)


def test_refused_pairs_are_listed_with_their_clause_and_without_the_texts_words(tmp_path):
    found = [
        (pair("related"), Verdict("related", "source", "a sentence of theirs")),
        (pair("identical"), Verdict("identical", None, "")),
    ]

    evaluation.write_refused(tmp_path / "refused.csv", [evaluation.evaluate("train", found)])

    written = (tmp_path / "refused.csv").read_text().splitlines()
    assert written == [
        "split,polymarket,kalshi,similarity,label,verdict,clause",
        "train,0x1,KX-1,80,related,related,source",
    ]


def test_every_refused_pair_of_the_last_evaluation_is_a_labelled_one():
    rows = {(row.polymarket, row.kalshi): row for row in evaluation.labels()}
    listed = list(csv.DictReader((evaluation.LABELS.parent / "refused.csv").read_text().splitlines()))

    assert listed
    for each in listed:
        row = rows[each["polymarket"], each["kalshi"]]
        assert (each["split"], each["label"]) == (row.split, row.label)
        assert each["clause"] in {"event", "subject", "threshold", "window", "source", "polarity", "void"}
        assert each["verdict"] not in {"identical", "inverted"}
