from __future__ import annotations

import contextlib
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from api.endpoints.exchange.requests import EventParameters
from api.endpoints.markets.requests import MarketParameters
from api.endpoints.prices.requests import CandleParameters, PriceHistoryParameters, PriceParameters
from api.endpoints.trades.requests import TradeParameters
from api.errors import Problem
from api.schemas.requests import Parameters, parse

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    "text",
    [
        "2026-11-21T12:00:00Z",
        "2026-11-21T12:00:00.000Z",
        "2026-11-21t12:00:00z",
        "2026-11-21T13:00:00+01:00",
        "2026-11-21T13:00:00 01:00",  # a plus sign that was not escaped
        "1795262400000",
    ],
)
def test_a_moment_is_rfc_3339_or_unix_milliseconds(text):
    assert parse(TradeParameters, {"from": text}).from_ == NOON


@pytest.mark.parametrize(
    ("kind", "query", "code", "named"),
    [
        (MarketParameters, {"limit": "201"}, "invalid_parameter", "limit"),
        (MarketParameters, {"limit": "0"}, "invalid_parameter", "limit"),
        (MarketParameters, {"limit": "many"}, "invalid_parameter", "limit"),
        (MarketParameters, {"limit": ["1", "2"]}, "invalid_parameter", "limit"),
        (MarketParameters, {"offset": "-1"}, "invalid_parameter", "offset"),
        (MarketParameters, {"status": "open"}, "invalid_parameter", "status"),
        (MarketParameters, {"status": "active"}, "invalid_parameter", "status"),
        (MarketParameters, {"status": "null"}, "invalid_parameter", "status"),
        (EventParameters, {"closed": "Null"}, "invalid_parameter", "closed"),
        (TradeParameters, {"from": "null"}, "invalid_parameter", "from"),
        (CandleParameters, {"from": "null"}, "invalid_parameter", "from"),
        (MarketParameters, {"exchange": "another"}, "invalid_parameter", "exchange"),
        (MarketParameters, {"tag": "a\0b"}, "invalid_parameter", "tag"),
        (MarketParameters, {"colour": "red"}, "unknown_parameter", "colour"),
        (PriceParameters, {}, "missing_parameter", "ids"),
        (TradeParameters, {"from": "yesterday"}, "invalid_parameter", "from"),
        (TradeParameters, {"from": "999999999999999"}, "invalid_parameter", "from"),
        (TradeParameters, {"limit": "5001"}, "invalid_parameter", "limit"),
        (TradeParameters, {"wallet": "0x12"}, "invalid_parameter", "wallet"),
        (PriceHistoryParameters, {"resolution": "2m"}, "invalid_parameter", "resolution"),
        (PriceHistoryParameters, {"limit": "20001"}, "invalid_parameter", "limit"),
        (CandleParameters, {"from": "2026-11-21T12:00:00Z"}, "invalid_parameter", "from"),
        (Parameters, {"any": "thing"}, "unknown_parameter", "any"),
    ],
)
def test_what_is_wrong_is_named(kind, query, code, named):
    with pytest.raises(Problem) as problem:
        parse(kind, query)

    assert problem.value.problem == code
    assert f"`{named}`" in problem.value.description
    assert [error["name"] for error in problem.value.errors or [{"name": named}]] == [named]


def test_a_refusal_says_what_is_allowed():
    with pytest.raises(Problem) as problem:
        parse(MarketParameters, {"status": "open"})

    assert problem.value.hint == "Allowed: ACTIVE, CLOSED, RESOLVED"

    with pytest.raises(Problem) as problem:
        parse(MarketParameters, {"limit": "201"})

    assert problem.value.hint == "Allowed: 1 to 200"

    with pytest.raises(Problem) as problem:
        parse(PriceParameters, {"ids": "a", "limit": "1"})

    assert problem.value.hint == "Allowed parameters: ids"


def test_a_text_may_say_null():
    assert parse(MarketParameters, {"tag": "null"}).tag == "null"


@given(st.dictionaries(st.sampled_from(["from", "to", "limit", "outcome", "x"]), st.text(max_size=40)))
def test_any_query_is_parsed_or_refused(query):
    with contextlib.suppress(Problem):
        parsed = parse(TradeParameters, query)

        assert parsed.outcome == query.get("outcome")
        assert (parsed.from_ is None, parsed.to is None) == ("from" not in query, "to" not in query)
