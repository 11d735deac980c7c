import json
from datetime import UTC, datetime

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sql import tables
from tests.upstream import recordings
from upstream.polymarket.gamma.client import GammaEvent, nested_markets
from upstream.polymarket.gamma.markets import GammaMarket
from upstream.transport.errors import FAULTS

OURS = {"market_key", "first_seen_at", "updated_at"}

SENT = {
    "id": "1237864",
    "conditionId": "0xA6D544024ed0b1de9e0cd6c0327a7c18a872e5875f40ceafb61937bccd43f248",
    "question": "Will it rain?",
    "slug": "rain",
    "outcomes": '["Yes", "No"]',
    "outcomePrices": '["0.185", "0.815"]',
    "clobTokenIds": '["11", "22"]',
    "active": True,
    "closed": False,
}


def market(**changes) -> GammaMarket:
    return GammaMarket.read(json.dumps(SENT | changes).encode())


def test_every_recorded_market_is_read_into_a_row_of_the_table(recorded):
    columns = {column.name for column in tables.markets.c} - OURS
    required = [c.name for c in tables.markets.c if not c.nullable and c.name in columns]
    objects = recordings.gamma_markets(recorded)

    rows = [GammaMarket.read(text).row("tape") for text in objects]

    assert len(rows) == 1132
    assert all(set(row) == columns for row in rows)
    assert [name for row in rows for name in required if row[name] is None] == []
    assert {len(row["token_ids"]) for row in rows} == {2}
    for text, row in zip(objects, rows, strict=True):
        sent = json.loads(text)
        assert json.loads(row["raw"]) == sent
        assert row["outcomes"] == json.loads(sent["outcomes"])
        assert row["token_ids"] == json.loads(sent["clobTokenIds"])
        if "volume" in sent:
            assert row["volume_usd"] == pytest.approx(float(sent["volume"]) * 1e6, abs=0.51)
        assert (row["end_time"] is None) == ("endDate" not in sent)
        assert row["category"] is not None or "sportsMarketType" not in sent


def test_recorded_markets_are_in_the_state_that_they_were_in(recorded):
    for text in recordings.gamma_markets(recorded):
        sent, read = json.loads(text), GammaMarket.read(text)
        prices = [float(price) for price in json.loads(sent["outcomePrices"])]
        if not sent["closed"]:
            assert (read.status(), read.winning_outcome(), read.resolved_at()) == ("ACTIVE", None, None)
        elif max(prices) > 0.999:
            assert (read.status(), read.winning_outcome()) == ("RESOLVED", prices.index(max(prices)))
            assert read.resolved_at() is not None
        elif prices == [0.5, 0.5] and sent.get("umaResolutionStatus") == "resolved":
            assert (read.status(), read.winning_outcome()) == ("RESOLVED", None)
        else:
            assert (read.status(), read.winning_outcome(), read.resolved_at()) == ("CLOSED", None, None)
            assert read.closed_at() is not None


@pytest.mark.parametrize(
    ("sent", "status", "winner"),
    [
        ({}, "ACTIVE", None),
        ({"umaResolutionStatus": "proposed"}, "ACTIVE", None),
        ({"outcomePrices": '["1", "0"]'}, "ACTIVE", None),
        ({"umaResolutionStatus": "resolved"}, "ACTIVE", None),
        ({"active": False}, "CLOSED", None),
        ({"closed": True}, "CLOSED", None),
        ({"closed": True, "outcomePrices": '["1", "0"]'}, "RESOLVED", 0),
        ({"closed": True, "outcomePrices": '["0", "1"]', "umaResolutionStatus": "resolved"}, "RESOLVED", 1),
        ({"closed": True, "outcomePrices": '["0.0000004", "0.9999995"]'}, "RESOLVED", 1),
        ({"closed": True, "outcomePrices": '["0.9999", "0.0001"]', "umaResolutionStatus": "proposed"}, "CLOSED", None),
        ({"closed": True, "outcomePrices": '["0.9999", "0.0001"]', "umaResolutionStatus": "disputed"}, "CLOSED", None),
        ({"closed": True, "outcomePrices": '["0.999", "0.001"]', "umaResolutionStatus": "resolved"}, "CLOSED", None),
        ({"closed": True, "outcomePrices": '["1", "1"]', "umaResolutionStatus": "resolved"}, "CLOSED", None),
        ({"closed": True, "outcomePrices": '["0", "0"]', "umaResolutionStatus": "resolved"}, "CLOSED", None),
        ({"closed": True, "outcomePrices": '["0.5", "0.5"]'}, "CLOSED", None),
        ({"closed": True, "outcomePrices": '["0.5", "0.5"]', "umaResolutionStatus": "resolved"}, "RESOLVED", None),
        ({"closed": True, "outcomePrices": '["0.5", "0.5"]', "automaticallyResolved": True}, "RESOLVED", None),
        ({"closed": True, "outcomePrices": None, "umaResolutionStatus": "resolved"}, "CLOSED", None),
        ({"closed": True, "outcomePrices": '["0.58", "0.42"]', "umaResolutionStatus": "resolved"}, "CLOSED", None),
    ],
)
def test_a_market_is_resolved_only_once_its_payout_is_known(sent, status, winner):
    read = market(**sent)

    assert (read.status(), read.winning_outcome()) == (status, winner)


def test_tokens_are_those_of_the_protocol_that_the_market_is_traded_under():
    both = {"clobTokenIds": '["11", "22"]', "positionIds": ["33", "44"]}

    assert market(**both).token_ids == ["11", "22"]
    assert market(**both, version="v1").token_ids == ["11", "22"]
    assert market(**both, version="v2").token_ids == ["33", "44"]
    assert market(version="v2").token_ids == ["11", "22"]
    assert market(clobTokenIds=["11", "22"]).token_ids == ["11", "22"]
    assert market(**both, version="v2").row()["version"] == "v2"


def test_a_market_from_before_the_order_book_has_no_tokens():
    row = market(clobTokenIds=None).row()

    assert (row["token_ids"], row["order_book"]) == ([], False)
    assert market().row()["order_book"] is True
    assert market(enableOrderBook=False).row()["order_book"] is False


@pytest.mark.parametrize(
    "sent",
    [
        {"conditionId": "0x12"},
        {"conditionId": "a6d5"},
        {"clobTokenIds": '["11"]'},
        {"clobTokenIds": '["11", "11"]'},
        {"clobTokenIds": '["11", "-2"]'},
        {"clobTokenIds": '["11", "0x22"]'},
        {"clobTokenIds": json.dumps(["1" * 79, "2"])},
        {"clobTokenIds": "[11, 22]"},
        {"clobTokenIds": '["11", "22"'},
        {"clobTokenIds": '{"11": "22"}'},
        {"outcomes": "Yes, No"},
        {"outcomes": '["Yes"]'},
        {"outcomes": 7},
        {"outcomePrices": '["NaN", "0"]'},
        {"outcomePrices": '["1.5", "-0.5"]'},
        {"outcomePrices": '["1", "0", "0"]'},
        {"closed": "yes"},
        {"id": None},
        {"id": [1]},
        {"events": "none"},
        {"conditionId": None, "question": None},
    ],
)
def test_a_market_that_contradicts_itself_is_refused(sent):
    with pytest.raises((ValueError, msgspec.MsgspecError)):
        market(**sent)


def test_numbers_come_as_text_or_number_and_nonsense_among_them_is_passed_over():
    assert market(volume="9999.995006").row()["volume_usd"] == 9_999_995_006
    assert market(volume=12).row()["volume_usd"] == 12_000_000
    assert market(volumeNum=0.1).row()["volume_usd"] == 100_000
    assert market(volume="", volumeNum=3).row()["volume_usd"] == 3_000_000
    assert market(volume="-0.000001", volumeNum=3).row()["volume_usd"] == 3_000_000
    assert market(liquidity="NaN").row()["liquidity_usd"] is None
    assert market(orderPriceMinTickSize=0.001).row()["tick_size"] == 1_000


def test_times_are_read_whatever_their_format():
    row = market(
        startDate="2026-01-22T00:01:27.770446Z",
        endDate="2026-01-23T18:30:00Z",
        createdAt="2026-01-22T00:00:11Z",
        closedTime="2026-01-23 20:56:36+00",
        closed=True,
        outcomePrices='["1", "0"]',
    ).row()

    assert row["start_time"] == datetime(2026, 1, 22, 0, 1, 27, 770446, tzinfo=UTC)
    assert row["end_time"] == datetime(2026, 1, 23, 18, 30, tzinfo=UTC)
    assert row["created_at"] == datetime(2026, 1, 22, 0, 0, 11, tzinfo=UTC)
    assert row["closed_at"] == row["resolved_at"] == datetime(2026, 1, 23, 20, 56, 36, tzinfo=UTC)
    assert market(endDateIso="2026-02-01").row()["end_time"] == datetime(2026, 2, 1, tzinfo=UTC)
    assert market(eventStartTime="2026-07-23T23:55:00Z", startDate="2026-07-22T00:00:00Z").row()[
        "start_time"
    ] == datetime(2026, 7, 23, 23, 55, tzinfo=UTC)


@pytest.mark.parametrize(
    ("sent", "category"),
    [
        ({}, None),
        ({"category": "US-current-affairs"}, "us-current-affairs"),
        ({"category": "Pop-Culture "}, "pop-culture"),
        ({"tags": [{"slug": "jto", "label": "jto"}, {"slug": "crypto"}]}, "crypto"),
        ({"tags": [{"slug": "jto"}, {"label": "Rain"}]}, "jto"),
        ({"tags": ["Stocks", "Economy"]}, "economy"),
        ({"events": [{"id": "1", "tags": [{"slug": "rain"}, {"slug": "weather"}]}]}, "weather"),
        ({"events": [{"id": "1", "category": "Sports"}]}, "sports"),
        ({"sportsMarketType": "moneyline"}, "sports"),
        ({"feeType": "crypto_fees_v2"}, "crypto"),
    ],
)
def test_the_category_is_the_first_word_that_names_a_topic(sent, category):
    assert market(**sent).row()["category"] == category


def test_an_event_gives_its_markets_series_title_and_address():
    event = {"id": 7, "slug": "rain-week", "title": "Rain?", "series": [{"slug": "rains"}], "negRisk": True}
    read = market(events=[event], tags=[{"slug": "weather"}])
    row = read.row()

    assert (row["event_id"], row["event_title"], row["series"]) == ("7", "Rain?", "rains")
    assert row["url"] == "https://polymarket.com/event/rain-week/rain"
    assert read.event_row() == {
        "event_id": "7",
        "slug": "rain-week",
        "title": "Rain?",
        "category": "weather",
        "series": "rains",
        "tags": ["weather"],
        "start_time": None,
        "end_time": None,
        "closed": False,
        "neg_risk": True,
        "image": None,
    }
    assert set(read.event_row()) == {column.name for column in tables.events.c} - {"updated_at"}
    assert market(events=[{"id": "8", "seriesSlug": "daily"}]).row()["series"] == "daily"
    assert market().event_row() is None
    assert market().row()["url"] == "https://polymarket.com/market/rain"


def test_recorded_events_hand_their_markets_on(recorded):
    for sent in recordings.gamma_events(recorded):
        event = msgspec.json.decode(json.dumps(sent), type=GammaEvent)
        markets, refusals = nested_markets(event)

        assert refusals == []
        assert [read.raw for read in markets] == [json.dumps(each) for each in sent["markets"]]
        assert {read.row()["event_id"] for read in markets} == {sent["id"]}
        assert {json.dumps(read.event_row(), default=str) for read in markets} == {json.dumps(event.row(), default=str)}


def test_fields_that_the_exchange_may_think_of_do_no_harm():
    read = market(**{"presage:raw": "x", "presage:token_ids": ["9"], "newThing": {"a": [1e300, None]}})

    assert read.token_ids == ["11", "22"]
    assert json.loads(read.raw)["newThing"] == {"a": [1e300, None]}
    with pytest.raises(msgspec.ValidationError):
        GammaMarket.read(b'{"id": "1", "question": "?", "newThing": 1e999}')  # no database could hold it


RICH = SENT | {
    "volume": "1",
    "endDate": "2026-01-23T18:30:00Z",
    "events": [{"id": "7", "slug": "e", "tags": [{"slug": "t"}]}],
    "tags": [{"slug": "t"}],
    "version": "v1",
    "positionIds": ["1", "2"],
    "umaResolutionStatus": "resolved",
}
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["id", "slug", "tags", "x"]), inner),
    max_leaves=8,
)


@given(st.sampled_from(sorted(RICH)), values | values.map(json.dumps) | st.text(alphabet="0123456789.e-+", max_size=30))
def test_anything_in_any_field_makes_a_row_or_a_refusal(field, value):
    try:
        row = GammaMarket.read(json.dumps(RICH | {field: value}).encode()).row()
    except FAULTS:
        return

    assert row["status"] in {"ACTIVE", "CLOSED", "RESOLVED"}
    assert isinstance(row["question"], str)
    assert all(isinstance(name, str) for name in row["outcomes"])
    assert len(row["token_ids"]) in {0, len(row["outcomes"])}
    assert all(0 <= amount <= 10**18 for name, amount in row.items() if name.endswith("_usd") and amount is not None)
