"""Formatting of figures on pages; the script formats identically."""

from __future__ import annotations

import json
import subprocess
import time

import pytest

from api.site import formatting as words
from api.site.assets import FOLDER

PRICES = [None, 0, 0.0004, 0.004, 0.01, 0.0555, 0.1234, 0.5, 0.515, 0.994, 0.9951, 0.999, 1]
AMOUNTS = [
    None,
    0,
    0.5,
    12.345,
    999.99,
    9999.994,
    10_000,
    12_345.6,
    999_499,
    1_000_000,
    2_345_678.9,
    3.2e9,
    -5,
    -45_678,
]
SECONDS = [0, 0.2, 1, 59.9, 60, 3599, 3600, 86_399, 86_400, 1e7]


@pytest.mark.parametrize(
    ("price", "cents", "chance"),
    [
        (0.52, "52.0¢", "52 %"),
        (0.004, "0.4¢", "<1 %"),
        (0.996, "99.6¢", ">99 %"),
        (1, "100.0¢", "100 %"),
        (None, words.NOTHING, words.NOTHING),
    ],
)
def test_prices(price, cents, chance):
    assert (words.cents(price), words.chance(price)) == (cents, chance)


@pytest.mark.parametrize(
    ("amount", "said"),
    [
        (0, "$0.00"),
        (1234.5, "$1,234.50"),
        (12_345, "$12k"),
        (-1_200_000, "-$1.20M"),
        (7.5e9, "$7.50B"),
        (None, words.NOTHING),
    ],
)
def test_amounts(amount, said):
    assert words.usd(amount) == said


def test_a_gain_shows_its_sign():
    assert [words.usd(amount, sign=True) for amount in (5, -5, 0)] == ["+$5.00", "-$5.00", "$0.00"]


def test_moments_in_seconds_and_milliseconds():
    assert words.instant(1_795_262_400) == words.instant(1_795_262_400_000) == "2026-11-21 12:00:00 UTC"
    assert words.iso(1_795_262_400_123) == "2026-11-21T12:00:00.123Z"
    assert words.ago(time.time() - 90) == "1 min ago"
    assert words.ago(time.time() + 7300) == "in 2 h"


def test_text_from_outside_stays_text_in_markdown():
    assert words.cell("a|b\n*c* [d](e) <f> `g`") == r"a\|b \*c\* \[d\](e) \<f\> \`g\`"


def test_the_script_writes_figures_alike():
    asked = json.dumps({"prices": PRICES, "amounts": AMOUNTS, "seconds": SECONDS})
    code = (
        f"import * as w from {json.dumps((FOLDER / 'words.js').as_uri())};"
        f"const a = {asked};"
        "const told = [a.prices.map(w.cents), a.prices.map(w.chance), a.amounts.map(w.usd), a.seconds.map(w.duration)];"
        "console.log(JSON.stringify(told));"
    )
    done = subprocess.run(
        ["node", "--no-warnings", "--input-type=module", "-e", code], capture_output=True, text=True, check=True
    )

    assert json.loads(done.stdout) == [
        [words.cents(price) for price in PRICES],
        [words.chance(price) for price in PRICES],
        [words.usd(amount) for amount in AMOUNTS],
        [words.duration(each) for each in SECONDS],
    ]
