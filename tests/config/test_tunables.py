"""Tunables, changed while everything runs."""

from __future__ import annotations

import pytest
from psycopg.types.json import Jsonb

from config import tunables
from tests.factories import insert

NAME = "whale_alert_usd"
DECLARED = list(tunables.TUNABLES.values())


@pytest.mark.parametrize("parameter", DECLARED, ids=lambda parameter: parameter.name)
def test_each_says_what_it_means_and_allows_its_own_default(parameter):
    assert parameter.meaning
    assert parameter.unit
    assert parameter.checked(parameter.default) == parameter.default
    assert parameter.least < parameter.most


def test_what_nobody_has_changed_has_its_default(conn):
    assert tunables.value(conn, NAME) == 25_000
    assert tunables.values(conn) == {parameter.name: parameter.default for parameter in DECLARED}


def test_a_change_is_seen_at_once_and_can_be_taken_back(conn):
    assert tunables.set_(conn, NAME, "1234.5") == 1234.5
    assert tunables.value(conn, NAME) == 1234.5
    assert tunables.values(conn)[NAME] == 1234.5

    tunables.set_(conn, NAME, "50000")
    assert tunables.value(conn, NAME) == 50_000

    tunables.set_(conn, NAME, "default")
    assert tunables.value(conn, NAME) == 25_000


@pytest.mark.parametrize("text", ["", "much", "nan", "inf", "-1", "0", "1e10"])
def test_a_value_that_is_not_allowed_is_refused_with_what_is(conn, text):
    with pytest.raises(ValueError, match=r"whale_alert_usd is a number from 0.01 to 1,000,000,000.0 \(USD\)"):
        tunables.set_(conn, NAME, text)

    assert tunables.value(conn, NAME) == 25_000


def test_an_unknown_name_is_refused_with_the_known_ones(conn):
    with pytest.raises(ValueError, match=r"no parameter whale, only .*whale_alert_usd"):
        tunables.set_(conn, "whale", "1")


@pytest.mark.parametrize("stored", ["many", -5, True, None, [1]])
def test_a_row_that_makes_no_sense_is_no_value(conn, stored):
    insert(conn, "settings", {"name": f"parameters.{NAME}", "value": Jsonb(stored)})

    assert tunables.value(conn, NAME) == 25_000


def test_whole_numbers_stay_whole():
    hours = tunables.Tunable(name="hours", meaning="How long", unit="h", default=5, least=1, most=10)

    assert hours.parsed("7") == 7
    with pytest.raises(ValueError, match="hours is an integer from 1 to 10"):
        hours.parsed("7.5")
