import json
from datetime import UTC, datetime
from decimal import ROUND_HALF_EVEN, Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from upstream.transport.numbers import DAY_MS, MAX_AMOUNT, instant, micro, milliseconds, of_seconds, price


@pytest.mark.parametrize(
    ("sent", "kept"),
    [
        (".48", 480_000),
        ("0", 0),
        ("0.", 0),
        ("5579792.8", 5_579_792_800_000),
        ("0.000001", 1),
        ("0.0000005", 0),
        ("0.0000015", 2),
        ("0.00000151", 2),
        ("1e-3", 1_000),
        ("1E3", 1_000_000_000),
        ("0.5843311669077693146635445446077281", 584_331),
        ("-0", 0),
        (0, 0),
        (7, 7_000_000),
        (0.1 + 0.2, 300_000),
        (0.21999995306666104, 220_000),
        (43042905.16152, 43_042_905_161_520),
        (Decimal("0.0000025"), 2),
        ("1000000000000", MAX_AMOUNT),
    ],
)
def test_amounts_are_read_exactly_and_rounded_half_to_even(sent, kept):
    assert micro(sent) == kept


@pytest.mark.parametrize(
    "sent",
    ["", ".", "-", "-1", "-0.0000001", "NaN", "inf", "-Infinity", "1_000", " 1", "1 ", "0x10", "१२", "1.2.3", "1e9999",
     "1e13", "9" * 200, "1000000000000.000001", "1,5", -1, 10**13, 1e15, 1e16, float("nan"), float("inf"), -0.5, 1e300,
     Decimal("NaN"), Decimal(-1), True, False, None, [], {}],
)  # fmt: skip
def test_what_is_no_amount_is_refused(sent):
    with pytest.raises(ValueError, match="not an amount"):
        micro(sent)


@given(st.decimals(min_value=0, max_value=10**12, allow_nan=False, places=9))
def test_any_decimal_text_agrees_with_decimal_arithmetic(value):
    exact = int((value * 10**6).to_integral_value(ROUND_HALF_EVEN))

    assert micro(format(value, "f")) == exact
    assert micro(value) == exact


@given(st.integers(min_value=0, max_value=MAX_AMOUNT))
def test_what_the_chain_counts_comes_back_unchanged_through_text_and_json(amount):
    text = f"{amount // 10**6}.{amount % 10**6:06}"

    assert micro(text) == amount
    assert micro(text.rstrip("0")) == amount
    if amount < 10**15:  # what a float still holds to the millionth
        assert micro(json.loads(text)) == amount


@given(st.text() | st.floats() | st.integers() | st.none() | st.booleans() | st.binary())
def test_anything_is_an_amount_within_bounds_or_a_value_error(sent):
    try:
        amount = micro(sent)
    except ValueError:
        return

    assert isinstance(amount, int)
    assert 0 <= amount <= MAX_AMOUNT


def test_a_price_is_between_nothing_and_one():
    assert price("1") == 1_000_000
    assert price("0") == 0
    with pytest.raises(ValueError, match="not a price"):
        price("1.000001")


@pytest.mark.parametrize(
    ("sent", "kept"),
    [
        ("2026-01-23T18:30:00Z", datetime(2026, 1, 23, 18, 30, tzinfo=UTC)),
        ("2026-01-22T00:01:27.770446Z", datetime(2026, 1, 22, 0, 1, 27, 770446, tzinfo=UTC)),
        ("2020-10-12T22:00:05.791Z", datetime(2020, 10, 12, 22, 0, 5, 791000, tzinfo=UTC)),
        ("2026-01-23 20:56:36+00", datetime(2026, 1, 23, 20, 56, 36, tzinfo=UTC)),
        ("2026-01-23 20:56:36.5+01", datetime(2026, 1, 23, 19, 56, 36, 500000, tzinfo=UTC)),
        ("2026-01-23", datetime(2026, 1, 23, tzinfo=UTC)),
        ("April 11, 2022", datetime(2022, 4, 11, tzinfo=UTC)),
        ("0001-01-01T00:00:00Z", None),
        ("0001-01-01T00:00:00+14:00", None),
        ("TBD", None),
        ("2026-13-45", None),
        ("", None),
        (None, None),
    ],
)
def test_every_date_format_of_the_exchange_becomes_utc(sent, kept):
    assert instant(sent) == kept


def test_the_exchange_clock_is_believed_within_reason():
    now_ms = int(datetime.now(UTC).timestamp() * 1000)

    assert milliseconds("1778997825875") == 1_778_997_825_875
    assert milliseconds(now_ms + DAY_MS - 60_000) == now_ms + DAY_MS - 60_000
    for impossible in (
        "",
        "-1",
        "1778997825",
        "1778997825.5",
        "٣" * 13,
        0,
        now_ms + DAY_MS + 60_000,
        10**30,
        None,
        True,
    ):
        with pytest.raises(ValueError, match="not"):
            milliseconds(impossible)


def test_seconds_may_have_a_fraction():
    assert of_seconds(1760098160) == datetime(2025, 10, 10, 12, 9, 20, tzinfo=UTC)
    assert of_seconds("1760098160.5") == datetime(2025, 10, 10, 12, 9, 20, 500000, tzinfo=UTC)
    for impossible in ("soon", 0, float("nan"), float("inf"), 10**400):
        with pytest.raises(ValueError, match="not a"):
            of_seconds(impossible)
