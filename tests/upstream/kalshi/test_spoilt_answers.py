import json
from datetime import UTC, datetime

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.upstream.kalshi import samples
from tests.upstream.kalshi.samples import TICKER
from tests.upstream.kalshi.test_frames import drop, fields, leaf, odd_values, rename, spoilt, values
from upstream.kalshi.rest.client import Kalshi
from upstream.transport.errors import UpstreamError
from upstream.transport.http import Client

START, END = (datetime(2026, 4, 13, 12, minute, tzinfo=UTC) for minute in (0, 1))
EVENT = samples.EVENT | {"markets": [samples.MARKET]}
FOUND = {"ticker": TICKER, "orderbook_fp": samples.ORDERBOOK}
SEVERAL = {"markets": [{"market_ticker": TICKER, "candlesticks": [samples.CANDLE]}]}
ANSWERS = {
    "markets": ({"markets": [samples.FINAL], "cursor": ""}, lambda api: list(api.markets())),
    "market": ({"market": samples.FINAL}, lambda api: api.market(TICKER)),
    "events": (
        {"events": [EVENT], "cursor": ""},
        lambda api: [(each, api.nested_markets(each)) for each in api.events()],
    ),
    "event": ({"event": EVENT}, lambda api: api.event("KXFED-27APR")),
    "series": ({"series": [samples.SERIES]}, lambda api: api.all_series()),
    "one series": ({"series": samples.SERIES}, lambda api: api.series("KXFED")),
    "book": ({"orderbook_fp": samples.ORDERBOOK}, lambda api: api.book(TICKER)),
    "books": ({"orderbooks": [FOUND]}, lambda api: api.books([TICKER])),
    "trades": ({"trades": [samples.TRADE], "cursor": "", **samples.CUTOFF}, lambda api: list(api.trades(TICKER, END))),
    "candles": ({"candlesticks": [samples.CANDLE]}, lambda api: list(api.candles("KXFED", TICKER, START, END))),
    "old candles": (
        {"candlesticks": [samples.HISTORICAL_CANDLE]},
        lambda api: list(api.candles("A", TICKER, START, END)),
    ),
    "several candles": (SEVERAL, lambda api: list(api.candles_of_markets([TICKER], START, END))),
    "status": (samples.STATUS, lambda api: api.status()),
    "schedule": (samples.SCHEDULE, lambda api: api.schedule()),
    "cutoff": (samples.CUTOFF, lambda api: api.cutoff()),
}


def read(answer, reader):
    """Return what the client reads from an answer, an error that it documents, or a refusal of any part."""
    refused = []
    transport = httpx.MockTransport(lambda _: httpx.Response(200, text=json.dumps(answer)))
    with Client(transport=transport, attempts=1, sleep=lambda _: None) as client:
        try:
            return reader(Kalshi(client, on_refused=refused.append)), refused
        except UpstreamError as fault:
            return fault, refused


@pytest.mark.parametrize("name", ANSWERS)
def test_an_answer_with_a_field_dropped_or_renamed_is_refused_or_says_less_and_nothing_else(name):
    answer, reader = ANSWERS[name]
    whole, refused = read(answer, reader)
    assert not isinstance(whole, UpstreamError)
    assert refused == []
    sent = {value for path in fields(answer) for value in [leaf(answer, path)] if isinstance(value, str)}
    known = values(whole) | sent | {None, 0, ""}

    for path in fields(answer):
        for change in (drop, rename):
            said, refused = read(spoilt(answer, path, change), reader)
            if not isinstance(said, UpstreamError):
                numbers = {each for each in values(said) if not isinstance(each, str)}
                assert numbers <= known, path


@given(st.sampled_from(sorted(ANSWERS)), st.data())
def test_property_an_answer_with_anything_in_any_field_raises_nothing_but_what_is_documented(name, data):
    answer, reader = ANSWERS[name]
    path = data.draw(st.sampled_from(sorted(fields(answer), key=str)))
    value = data.draw(odd_values)

    read(spoilt(answer, path, lambda inner, field: inner.__setitem__(field, value)), reader)
