"""A pass over two stored catalogues: what is paired, judged, judged again and forgotten."""

from __future__ import annotations

import json
from decimal import Decimal

import pytest

from orchestration.equivalents import passes
from sql.queries import equivalents as queries
from tests.factories import insert
from tests.orchestration.equivalents import written


@pytest.fixture
def listed(conn):
    """`listed(text)` stores a market as its exchange would have sent it, and returns its key."""
    numbers = iter(range(1, 1000))

    def add(text, **columns):
        number = next(numbers)
        of_kalshi = text.exchange == "kalshi"
        raw = kalshi_object(text) if of_kalshi else polymarket_object(text)
        row = {
            "market_id": f"KX-{number}" if of_kalshi else f"0x{number:064x}",
            "slug": f"market-{number}",
            "question": text.title,
            "status": "ACTIVE",
            "exchange": text.exchange,
            "outcomes": list(text.outcomes),
            "token_ids": [f"{number}0", f"{number}1"],
            "raw": json.dumps(raw),
        }
        return insert(conn, "markets", row | columns)["market_key"]

    return add


def polymarket_object(text):
    return {
        "question": text.title,
        "description": text.rules,
        "groupItemTitle": text.label,
        "outcomes": json.dumps(text.outcomes),
        "endDate": text.closes_at,
    }


def kalshi_object(text):
    strikes = {name: getattr(text, name) for name in ("floor_strike", "cap_strike")}
    return {
        "title": text.title,
        "rules_primary": text.rules,
        "rules_secondary": text.more_rules,
        "yes_sub_title": text.label,
        "close_time": text.closes_at,
        "strike_type": text.strike_type,
        **{name: float(value) for name, value in strikes.items() if isinstance(value, Decimal)},
    }


def verdicts(conn):
    rows = conn.execute("select left_key, right_key, coalesce(overruled, verdict) from equivalents").fetchall()
    return {(left, right): verdict for left, right, verdict in rows}


def test_pairs_with_similar_titles_are_judged_by_their_clauses(conn, listed):
    ada, other_seat = listed(written.house()), listed(written.house(seat="OH-2"))
    nominee, bob = listed(written.nominee()), listed(written.nominee(person="Bob Noyce"))

    report = passes.compare(conn)

    found = verdicts(conn)
    assert (report.left, report.right, report.due) == (2, 2, 0)
    assert report.judged == report.candidates == len(found)
    assert found[ada, nominee] == "identical"
    assert found[ada, bob] == "related"
    assert found.get((other_seat, nominee), "different") == "different"


def test_each_written_pair_gets_the_verdict_of_the_judge(conn, listed):
    pairs = {(listed(pair.polymarket), listed(pair.kalshi)): pair for pair in written.PAIRS}

    passes.compare(conn)

    found = verdicts(conn)
    compared = {keys: pair for keys, pair in pairs.items() if keys in found}
    assert len(compared) > 15
    assert {pair.name: found[keys] for keys, pair in compared.items()} == {
        pair.name: pair.verdict for pair in compared.values()
    }


def test_a_second_pass_judges_nothing(conn, listed):
    listed(written.house())
    listed(written.nominee())
    passes.compare(conn)

    assert passes.compare(conn).judged == 0


def shown(conn):
    rows = conn.execute("select left_key, right_key, verdict from equivalent_verdicts").fetchall()
    return {(left, right): verdict for left, right, verdict in rows}


def change(conn, key, **fields):
    conn.execute("update markets set raw = raw || %s where market_key = %s", [json.dumps(fields), key])


def overruled(conn, pair, verdict="related"):
    queries.overrule(conn, left_key=pair[0], right_key=pair[1], verdict=verdict, within=None, why="another reading")


def test_a_pair_is_judged_again_when_a_text_changes_also_after_its_end(conn, listed):
    pair = listed(written.house()), listed(written.nominee())
    passes.compare(conn)
    conn.execute("update markets set status = 'CLOSED' where market_key = %s", [pair[1]])
    change(conn, pair[1], **kalshi_object(written.nominee(year=2028)))

    assert passes.compare(conn).judged == 1
    assert verdicts(conn)[pair] == "different"


@pytest.mark.parametrize(
    "field", ["rules_primary", "rules_secondary", "title", "yes_sub_title", "strike_type", "floor_strike", "cap_strike"]
)
def test_every_field_that_is_read_counts_as_text(conn, listed, field):
    listed(written.house())
    nominee = listed(written.nominee())
    passes.compare(conn)
    change(conn, nominee, **{field: "other"})

    assert passes.compare(conn).judged == 1


def test_what_is_not_read_is_no_text(conn, listed):
    house, nominee = listed(written.house()), listed(written.nominee())
    passes.compare(conn)
    change(conn, nominee, close_time="2026-11-30T15:00:00Z", volume_fp="7.00")
    change(conn, house, endDate="2026-12-01T00:00:00Z", resolutionSource="elsewhere")
    conn.execute("update markets set event_title = 'another'")

    assert passes.compare(conn).judged == 0


def test_an_operators_verdict_stands_until_a_text_changes_and_then_nothing_is_said(conn, listed):
    pair = listed(written.house()), listed(written.nominee())
    passes.compare(conn)
    overruled(conn, pair)
    passes.compare(conn)
    before = shown(conn)
    change(conn, pair[0], description="This market will resolve to “Yes” if it rains.")
    passes.compare(conn)
    after = shown(conn)
    overruled(conn, pair, verdict="different")

    assert before == {pair: "related"}
    assert after == {pair: "unreadable"}
    assert queries.lapsed(conn) == 0
    assert shown(conn) == {pair: "different"}


def test_only_an_operator_ends_what_an_operator_said_of_a_former_text(conn, listed):
    pair = listed(written.house()), listed(written.nominee())
    passes.compare(conn)
    overruled(conn, pair)
    change(conn, pair[1], strike_type="custom")
    passes.compare(conn)

    assert queries.lapsed(conn) == 1
    assert verdicts(conn)[pair] == "related"
    assert shown(conn)[pair] == "unreadable"
    queries.overrule(conn, left_key=pair[0], right_key=pair[1], verdict=None, within=None, why=None)
    assert shown(conn)[pair] == "identical"


def test_other_rules_judge_every_open_pair_again(conn, listed, monkeypatch):
    listed(written.house())
    listed(written.nominee())
    passes.compare(conn)
    monkeypatch.setattr(passes, "RULES_VERSION", 7)

    assert passes.compare(conn).judged == 1
    assert conn.execute("select distinct rules_version from equivalents").fetchall() == [(7,)]


def test_what_a_pass_has_no_time_for_is_left_to_the_next_and_counted(conn, listed):
    listed(written.house())
    listed(written.nominee())
    listed(written.nominee(person="Bob Noyce"))

    first = passes.compare(conn, seconds=-1)
    left = queries.state(conn)[2]
    second = passes.compare(conn)

    assert (first.judged, first.due, left) == (0, 2, 2)
    assert (second.judged, second.due) == (2, 0)
    assert queries.state(conn)[2] == 0


def test_of_ended_markets_only_pairs_that_say_something_are_kept(conn, listed):
    pair = listed(written.house()), listed(written.nominee())
    unlike = listed(written.nominee(seat="FL-18"))
    passes.compare(conn)
    before = verdicts(conn)
    conn.execute("update markets set status = 'RESOLVED'")

    report = passes.compare(conn)

    assert before == {pair: "identical", (pair[0], unlike): "different"}
    assert report.forgotten == 1
    assert verdicts(conn) == {pair: "identical"}


def test_a_market_without_a_readable_text_stops_no_pass(conn, listed):
    listed(written.house())
    listed(written.nominee(), raw=json.dumps({"title": 7, "rules_primary": None, "floor_strike": "NaN"}))
    listed(written.nominee(), raw=None)

    passes.compare(conn)

    assert set(verdicts(conn).values()) <= {"unreadable", "different"}
