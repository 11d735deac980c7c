"""What is read of texts, and of hostile ones: nothing raises, nothing takes more steps than the budget."""

import sys
from datetime import UTC, date, datetime
from decimal import Decimal

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestration.equivalents import grammar, instants, names, quantities, reader, words
from orchestration.equivalents.judge import judge
from orchestration.equivalents.questions import MarketText, from_kalshi, from_polymarket
from orchestration.equivalents.templates import MAX_STEPS, Budget, BudgetError, template
from tests.orchestration.equivalents.written import PAIRS, house, nominee

VOCABULARY = sorted(
    {word for family in grammar.FAMILIES for each in (*family.asked, *family.conditions) for word in each.needed}
    | words.listed(
        "Ada FL-19 2026 $100,000 90° ET PM 5 May 15, . ? “ ” or and not unless Binance BTC/USDT Yes No 50-50"
    )
    | {"\n"}
)
HOSTILE = st.one_of(
    st.text(max_size=400),
    st.lists(st.sampled_from(VOCABULARY), max_size=300).map(" ".join),
    st.tuples(st.sampled_from(VOCABULARY), st.integers(1, 3_000)).map(lambda each: f"{each[0]} " * each[1]),
)


@settings(max_examples=60, deadline=None)
@given(HOSTILE, HOSTILE, HOSTILE, HOSTILE)
def test_no_text_raises_or_takes_more_steps_than_are_allowed(title, rules, more, label):
    left = MarketText("polymarket", "0x1", title, rules, more, label)
    right = MarketText("kalshi", "KX", rules, title, label, more, label_names_yes=True)

    verdict = judge(left, right)

    assert verdict.verdict in {"unreadable", "different", "related", "subset", "inverted", "identical"}


@settings(max_examples=60, deadline=None)
@given(st.integers(0, len(PAIRS) - 1), st.integers(0, 400), HOSTILE)
def test_a_text_with_foreign_words_inside_is_never_identical(which, place, foreign):
    pair = PAIRS[which]
    rules = pair.kalshi.rules
    spoilt = msgspec.structs.replace(pair.kalshi, rules=f"{rules[:place]} \n{foreign}\n {rules[place:]}")
    known = spoilt.rules.split() == rules.split() or not any(c.isalnum() for c in foreign)

    verdict = judge(pair.polymarket, spoilt)

    assert known or place >= len(rules) or place == 0 or verdict.verdict not in {"identical", "inverted"}


def test_a_template_of_many_slots_ends_with_its_budget():
    many = template("{a} x {b} x {c} x {d} x {e} x {f} y")
    budget = Budget(20_000)

    with pytest.raises(BudgetError):
        list(map(many.match, [["x"] * 500] * 1_000, [budget] * 1_000))

    assert budget.left < 0


def test_one_match_costs_at_most_words_times_items_times_the_longest_slot():
    many = template("{a} x {b} x {c} x {d} x {e} x {f} y")
    budget = Budget(10**9)

    assert many.match(["x"] * 500, budget) is None
    assert 10**9 - budget.left <= 500 * len(many.items) * 14


def test_a_market_that_needs_more_steps_is_not_read(monkeypatch):
    monkeypatch.setattr(reader, "Budget", lambda: Budget(5))

    reading = reader.read(nominee())

    assert reading.question is None
    assert reading.unread[0].text == "the texts take too many steps to be read"


def test_the_budget_is_far_above_what_known_texts_take(monkeypatch):
    budgets = []
    monkeypatch.setattr(reader, "Budget", lambda: budgets.append(Budget()) or budgets[-1])

    for pair in PAIRS:
        reader.read(pair.polymarket)
        reader.read(pair.kalshi)

    assert max(MAX_STEPS - each.left for each in budgets) < MAX_STEPS / 10


@pytest.mark.parametrize("size", [words.MAX_TEXT, 1_000_000])
def test_a_text_beyond_the_bound_is_not_read(size):
    reading = reader.read(MarketText("kalshi", "KX", "", "If " * size))

    assert reading.question is None
    assert "too long" in reading.unread[0].text


def test_more_sentences_than_the_bound_are_not_read():
    reading = reader.read(house(rest="So it is. " * (words.MAX_SENTENCES + 1)))

    assert "more sentences" in reading.unread[0].text


def test_a_nomination_is_read_clause_by_clause():
    question = reader.read(house()).question

    assert question.event == (
        ("kind", "house nomination"),
        ("party", "republican"),
        ("place", "fl-19"),
        ("year", "2026"),
    )
    assert (question.happening, question.subject, question.source) == ("wins the nomination", "ada byron", "record")
    assert question.void == (("nobody", "no"),)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The U.S. Senate votes. It ends.", ["The U.S. Senate votes.", "It ends."]),
        ("By 11:59 p.m. ET it closes.\nNext", ["By 11:59 p.m. ET it closes.", "Next"]),
        ("A price of 4.25% is paid. Yes", ["A price of 4.25% is paid.", "Yes"]),
        ("John F. Kennedy Jr. wins? No", ["John F. Kennedy Jr. wins?", "No"]),
        ("... !", []),
    ],
)
def test_sentences_end_where_they_end(text, expected):
    assert words.sentences(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("$91,499.99", Decimal("91499.99")),
        ("100k", Decimal(100_000)),
        ("1.5m", Decimal(1_500_000)),
        ("-3", Decimal(-3)),
        ("90°", Decimal(90)),
        ("4.00%", Decimal("4.00")),
        ("1,00", None),
        ("12,34,567", None),
        ("1.2.3", None),
        ("", None),
        ("k", None),
        ("9" * 40, None),
        ("٣", None),
        ("nan", None),
        ("1e9", None),
    ],
)
def test_a_number_is_read_exactly_or_not_at_all(text, expected):
    assert quantities.number(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("may 15 2026 5 pm et", datetime(2026, 5, 15, 21, tzinfo=UTC)),
        ("5pm edt on may 15 2026", datetime(2026, 5, 15, 21, tzinfo=UTC)),
        ("january 15 2026 5 pm et", datetime(2026, 1, 15, 22, tzinfo=UTC)),
        ("12:00 am et january 1 2026", datetime(2026, 1, 1, 5, tzinfo=UTC)),
        ("noon et 1 march 2026", datetime(2026, 3, 1, 17, tzinfo=UTC)),
        ("may 15 2026 5 pm", None),
        ("may 32 2026 5 pm et", None),
        ("february 29 2026 5 pm et", None),
        ("may 15 2026 25 pm et", None),
        ("may 15 5 pm et", None),
        ("may 15 2026 5 pm mars", None),
    ],
)
def test_a_moment_needs_day_year_time_and_zone(text, expected):
    assert instants.moment(text.split()) == expected


def test_the_last_minute_that_is_named_still_counts():
    for time in ("11:59", "11:59:59"):
        until = instants.end_of(["december", "31", "2025", time, "pm", "et"])

        assert until == instants.start_of_day(date(2026, 1, 1))


@pytest.mark.parametrize(
    ("word", "expected"),
    [("FL-19", "fl-19"), ("AZ-05", "az-5"), ("AK-AL", "ak-al"), ("XX-1", None), ("FL-0", None), ("FL", None)],
)
def test_a_seat_has_one_form(word, expected):
    assert names.seat(word) == expected


def test_ranges_of_whole_numbers_have_one_form():
    over = quantities.compare("over", Decimal("2.5"), count=True)

    assert over.normal() == quantities.compare("at least", Decimal(3), count=True).normal()
    assert over.complements(quantities.compare("at most", Decimal(2), count=True))
    assert not over.complements(quantities.compare("at most", Decimal(3), count=True))


def test_the_exchanges_rows_become_texts():
    gamma = from_polymarket({"conditionId": "0x1", "question": "Q?", "description": "D", "outcomes": '["Yes", "No"]'})
    listed = from_kalshi({"ticker": "KX-1", "rules_primary": "R", "floor_strike": 4.25, "cap_strike": "x"}, "Event?")

    assert (gamma.title, gamma.outcomes) == ("Q?", ("Yes", "No"))
    assert (listed.title, listed.floor_strike, listed.cap_strike) == ("Event?", Decimal("4.25"), None)
    assert from_polymarket({"outcomes": "[broken"}).outcomes == ()
    assert from_polymarket({"outcomes": 7}).outcomes == ()


def test_the_engine_needs_neither_dagster_nor_a_database():
    import subprocess

    code = (
        "import sys; import orchestration.equivalents.judge, orchestration.equivalents.candidates; "
        "print([m for m in sys.modules if m.split('.')[0] in ('dagster', 'psycopg', 'sqlalchemy', 'sql')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "[]"
