"""Lists of random catalogues: skipping whole days or looking at the nearest markets only gives what a sort does."""

from __future__ import annotations

import datetime as dt
import itertools
import random

import pytest

from api.endpoints.markets import lists
from tests.api.endpoints.test_lists import slugs

NOW = dt.datetime.now(dt.UTC)
TODAY = NOW.replace(hour=0, minute=0, second=0, microsecond=0)
STATUSES = ["ACTIVE", "CLOSED", "RESOLVED"]
MINUTES = {"5m": 5, "15m": 15, "1h": 60, "4h": 240, "1d": 1440, "1w": 10_080, "long": 10**9}
pytestmark = pytest.mark.usefixtures("present")


# --- Categories


@pytest.fixture
def grouped(conn, add_market):
    """Markets of two categories, on a few days and at their edges, some changed or deleted since; by their keys."""
    chance = random.Random(20)

    def drawn():
        instant = dt.timedelta(hours=chance.choice([0, 0, 12, 23.9999999]))
        return {
            "status": chance.choice(STATUSES),
            "category": chance.choice(["a", "a", "b", None]),
            "created_at": chance.choice([None, *(TODAY - dt.timedelta(days=day) + instant for day in range(5))]),
            "end_time": chance.choice([None, *(TODAY + dt.timedelta(days=day) - instant for day in range(5))]),
        }

    markets = [add_market(f"m{number}", **drawn()) for number in range(90)]
    for market in markets[::3]:
        market.update(drawn())
        conn.execute(
            "update markets set status = %(status)s, category = %(category)s, created_at = %(created_at)s,"
            " end_time = %(end_time)s where market_key = %(market_key)s",
            market,
        )
    for market in markets[::10]:
        conn.execute("delete from markets where market_key = %s", [market["market_key"]])
        markets.remove(market)
    return markets


def newest_first(market):
    return (-(market["created_at"] or dt.datetime.min.replace(tzinfo=dt.UTC)).timestamp(), -market["market_key"])


def ending_first(market):
    return (market["end_time"] or dt.datetime.max.replace(tzinfo=dt.UTC), market["market_key"])


@pytest.mark.parametrize(("sort", "order"), [("created", newest_first), ("resolution", ending_first)])
def test_any_page_of_a_category_has_what_the_order_says(client, grouped, sort, order):
    for category, status in itertools.product(["a", "b"], [None, *STATUSES]):
        chosen = [
            each for each in grouped if each["category"] == category and (status is None or each["status"] == status)
        ]
        expected = [market["slug"] for market in sorted(chosen, key=order)]
        assert len(expected) > 1

        for offset in range(0, len(expected) + 2, 3):
            asked = {"sort": sort, "limit": 5, "offset": offset} | ({} if status is None else {"status": status})
            assert slugs(client.ask(f"/v1/categories/{category}/markets", **asked)) == expected[offset : offset + 5]


def test_the_days_of_a_category_are_counted_whoever_writes(conn, grouped):
    counted = conn.execute(
        "select category, exchange, sort, status, day::text, markets from category_days where markets <> 0"
        " order by 1, 3, 4, 5"
    ).fetchall()

    assert (
        counted
        == conn.execute(
            """
        select category, exchange, sort, status, day::text, count(*)
        from markets
        cross join lateral (values
            ('created', coalesce(date_trunc('day', created_at, 'UTC'), '-infinity')),
            ('resolution', coalesce(date_trunc('day', end_time, 'UTC'), 'infinity'))
        ) as times (sort, day)
        where category is not null
        group by 1, 2, 3, 4, 5
        order by 1, 3, 4, 5
        """
        ).fetchall()
    )


# --- Titles


@pytest.fixture
def titled(add_market):
    """Markets that end at random minutes of few timeframes, many of them at once, with titles of few words."""
    chance = random.Random(14)
    words = ["up", "Rain", "RAINY day", "100%", "é"]

    def drawn():
        minutes = chance.choice(
            [None, 3, 3.5, chance.uniform(20, 50), *(chance.uniform(20_000, 30_000) for _ in range(4))]
        )
        said = " ".join(chance.choices(words, [9, 3, 1, 1, 1], k=2))
        return {
            "question": said,
            "event_title": chance.choice([None, said, "Weather"]),
            "status": chance.choice([*STATUSES, "ACTIVE", "ACTIVE", "ACTIVE"]),
            "end_time": None if minutes is None else NOW + dt.timedelta(minutes=minutes),
        }

    late = {"question": "only late", "end_time": NOW + dt.timedelta(days=90)}
    return [add_market(f"m{number}", **drawn()) for number in range(120)] + [
        add_market(f"late-{number}", **late) for number in range(3)
    ]


def having(markets, text, status):
    """Those whose titles contain a text."""
    return [
        market
        for market in markets
        if (status is None or market["status"] == status)
        and any(text.lower() in (market[name] or "").lower() for name in ("question", "slug", "event_title"))
    ]


TEXTS = ["up", "e", "É", "rain", "rainy d", "100%", "weather", "late", "m1", "none", "zz", "_"]


@pytest.mark.parametrize("limit", [1, 3])
@pytest.mark.parametrize("few", [4000, 0], ids=["sorted", "looked for"])
def test_timeframes_have_the_first_of_all_markets_with_a_text(client, titled, monkeypatch, limit, few):
    monkeypatch.setattr(lists, "FEW", few)
    for text, status in itertools.product(TEXTS, STATUSES):
        ending = sorted(
            (each for each in having(titled, text, status) if each["end_time"] is not None), key=ending_first
        )
        answer = client.ask("/v1/markets/by-timeframe", asset=text, status=status, limit=limit).json

        before = NOW
        for found, (name, minutes) in zip(answer["timeframes"], MINUTES.items(), strict=True):
            until = NOW + dt.timedelta(minutes=min(minutes, 10**7))
            expected = [market["slug"] for market in ending if before < market["end_time"] <= until]
            assert (found["timeframe"], found["count"]) == (name, len(expected)), text
            assert [market["slug"] for market in found["markets"]] == expected[:limit], text
            before = until


def test_a_search_finds_all_markets_with_a_text_the_newest_first_if_none_trades(client, titled):
    for text, status in itertools.product(TEXTS, [None, *STATUSES]):
        expected = [market["slug"] for market in reversed(having(titled, text, status))]
        asked = {"q": text, "limit": 100} | ({} if status is None else {"status": status})

        assert slugs(client.ask("/v1/markets/search", **asked)) == expected[:100]
