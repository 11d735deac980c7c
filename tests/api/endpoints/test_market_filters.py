"""Lists of markets by any combination of filters, read from bitmaps that triggers keep."""

from __future__ import annotations

import itertools
import random

import pytest

from api.endpoints.markets import resource
from sql.queries import aggregates
from tests import factories
from tests.api.endpoints.test_markets import rank, slugs, walk

VALUES = {
    "status": ["ACTIVE", "CLOSED", "RESOLVED"],
    "category": ["a", "b", None],
    "series": ["a", "b", None],
    "tags": [["a", "b"], ["b"], ["c", "c", "a"], []],
}
BLOCK = 16_384  # keys that share a bitmap


@pytest.fixture(params=[1, 4001], ids=["", "apart"])
def listed(conn, request):
    """Markets of two blocks of keys, some changed or deleted since, in one band or more; in the list's order."""
    chance = random.Random(17)
    conn.execute("select setval(pg_get_serial_sequence('markets', 'market_key'), %s)", [2 * BLOCK - 60])
    markets = [
        factories.add_market(conn, f"m{number}", **{name: chance.choice(several) for name, several in VALUES.items()})
        for number in range(120)
    ]
    for market in markets[::3]:
        market |= {name: chance.choice(several) for name, several in VALUES.items()}
        conn.execute(
            "update markets set status = %(status)s, category = %(category)s, series = %(series)s, tags = %(tags)s "
            "where market_key = %(market_key)s",
            market,
        )
    for market in markets[::10]:
        conn.execute("delete from markets where market_key = %s", [market["market_key"]])
        markets.remove(market)
    ranked = chance.sample(markets, 50)
    rank(conn, 7, ranked, apart=request.param)
    return ranked + sorted((each for each in markets if each not in ranked), key=lambda each: -each["market_key"])


@pytest.mark.parametrize("few", [1000, 0], ids=["sorted", "walked"])
def test_every_combination_of_filters_lists_in_order_what_passes(client, listed, monkeypatch, few):
    monkeypatch.setattr(resource, "FEW", few)
    choices = [[None, "ACTIVE", "RESOLVED"], [None, "a", "none"], [None, "b"], [None, "a", "c", "none"]]

    for status, category, series, tag in itertools.product(*choices):
        chosen = {"status": status, "category": category, "series": series, "tag": tag}
        chosen = {name: value for name, value in chosen.items() if value is not None}
        expected = [
            market["slug"]
            for market in listed
            if all(
                value in market["tags"] if name == "tag" else market[name] == value for name, value in chosen.items()
            )
        ]

        assert slugs(client.ask("/v1/markets", limit=200, **chosen)) == expected
        for offset in {len(expected) // number for number in (2, 3, 5)}:
            assert slugs(client.ask("/v1/markets", limit=4, offset=offset, **chosen)) == (expected[offset : offset + 4])
        if len(chosen) < 2:
            assert walk(client, 13, **chosen) == expected


def test_the_bitmaps_of_a_forgotten_ranking_are_deleted(conn, add_market):
    markets = [add_market(), add_market()]
    rank(conn, 9, markets)
    rank(conn, 10, markets)

    aggregates.forget_rankings(conn, before=10)

    kept = "select kind, name from market_bitmaps where kind in ('ranking', 'ranks') order by kind"
    assert conn.execute(kept).fetchall() == [("ranking", "10"), ("ranks", "10/0")]


def test_a_ranking_from_before_its_bands_had_bitmaps_is_walked(client, conn, listed):
    conn.execute("delete from market_bitmaps where kind = 'ranks'")

    assert slugs(client.ask("/v1/markets", limit=4, offset=45)) == [market["slug"] for market in listed[45:49]]


def test_a_change_of_other_fields_rewrites_no_bitmap(conn, add_market):
    add_market()
    before = conn.execute("select ctid from market_bitmaps order by kind, name").fetchall()

    conn.execute("update markets set volume_usd = 1")

    assert conn.execute("select ctid from market_bitmaps order by kind, name").fetchall() == before
