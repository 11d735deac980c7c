import json
from datetime import UTC, datetime

import httpx
import pytest

from sql.tables import metadata
from tests.upstream.kalshi.keys import KEY_ID, private_key
from tests.upstream.kalshi.samples import COMBO, CUTOFF, EVENT, FINAL, MARKET, SERIES, TICKER
from upstream.kalshi.rest.client import HISTORICAL_MARKETS, Kalshi
from upstream.kalshi.rest.events import KalshiEvent, KalshiSeries
from upstream.kalshi.rest.markets import KalshiMarket
from upstream.kalshi.signing import Signer
from upstream.polymarket.gamma.events import GammaEvent
from upstream.polymarket.gamma.markets import GammaMarket
from upstream.transport.errors import Incomplete, Malformed, NotFound, RateLimited, Rejected, Unavailable

NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)
LATER = datetime(2027, 5, 1, tzinfo=UTC)


def market(**changes):
    return KalshiMarket.read(json.dumps(MARKET | changes).encode())


def final(**changes):
    return KalshiMarket.read(json.dumps(FINAL | changes).encode())


def event(**changes):
    return KalshiEvent.read(json.dumps(EVENT | changes).encode())


SERIES_READ = KalshiSeries.read(json.dumps(SERIES).encode())


# --- Rows ---


def test_a_market_becomes_a_row_of_the_catalogue():
    row = market().row(NOW, event(), SERIES_READ)

    assert row.pop("raw") == json.dumps(MARKET)
    assert row == {
        "market_id": TICKER,
        "gamma_id": None,
        "slug": "kxfed-27apr-t4.25",
        "question": MARKET["title"],
        "description": f"{MARKET['rules_primary']}\n\nYes: Above 4.25% (greater 4.25)",
        "status": "ACTIVE",
        "exchange": "kalshi",
        "version": "v1",
        "event_id": "KXFED-27APR",
        "event_title": "Fed funds rate in April 2027",
        "category": "economics",
        "series": "KXFED",
        "tags": ["fed", "interest-rates", "economics", "world-affairs"],
        "outcomes": ["Yes", "No"],
        "token_ids": [f"{TICKER}:yes", f"{TICKER}:no"],
        "outcome_prices": [280_000, 720_000],
        "start_time": datetime(2025, 10, 13, 14, tzinfo=UTC),
        "end_time": datetime(2027, 4, 28, 17, 55, tzinfo=UTC),
        "created_at": datetime(2025, 10, 13, 13, 50, tzinfo=UTC),
        "closed_at": None,
        "resolved_at": None,
        "winning_outcome": None,
        "volume_usd": None,
        "volume_24h_usd": None,
        "liquidity_usd": None,
        "neg_risk": True,
        "order_book": True,
        "tick_size": 10_000,
        "image": None,
        "url": "https://kalshi.com/markets/KXFED",
        "source": "exchange",
    }


def test_rows_have_the_columns_of_the_first_exchanges():
    gamma = GammaMarket.read(b'{"id":"1","question":"?"}').row()

    assert market().row(NOW).keys() == gamma.keys() <= set(metadata.tables["markets"].c.keys())
    assert event().row().keys() == GammaEvent(id="1").row().keys() <= set(metadata.tables["events"].c.keys())


def test_an_event_becomes_a_row_with_its_series_topics():
    assert event().row(SERIES_READ) == {
        "event_id": "KXFED-27APR",
        "slug": "kxfed-27apr",
        "title": "Fed funds rate in April 2027",
        "category": "economics",
        "series": "KXFED",
        "tags": ["fed", "interest-rates", "economics", "world-affairs"],
        "start_time": None,
        "end_time": None,
        "closed": False,
        "neg_risk": True,
        "image": None,
    }
    assert event(mutually_exclusive=False).row()["neg_risk"] is False
    assert event().row()["category"] == "economics"


def test_a_market_without_a_title_is_asked_by_its_events():
    row = market(title=None).row(NOW, event())

    assert row["question"] == "Fed funds rate in April 2027: Above 4.25%"
    assert market(title="").row(NOW)["question"] == TICKER


@pytest.mark.parametrize(
    ("state", "now", "status"),
    [
        ("initialized", NOW, "ACTIVE"),
        ("active", NOW, "ACTIVE"),
        ("inactive", NOW, "ACTIVE"),
        ("active", LATER, "CLOSED"),  # the exchange says nothing when the time passes
        ("initialized", LATER, "CLOSED"),
        ("closed", NOW, "CLOSED"),
        ("determined", NOW, "CLOSED"),
        ("disputed", LATER, "CLOSED"),
        ("amended", NOW, "CLOSED"),
        ("finalized", NOW, "RESOLVED"),
    ],
)
def test_states_become_ours(state, now, status):
    read = market(status=state)

    assert read.status(now) == read.row(now)["status"] == status
    assert read.paused == (state == "inactive")


def test_only_a_final_market_has_a_winner_and_payouts():
    row = final().row(LATER)

    assert (row["status"], row["winning_outcome"], row["outcome_prices"]) == ("RESOLVED", 1, [0, 1_000_000])
    assert row["resolved_at"] == datetime(2027, 4, 28, 18, 1, tzinfo=UTC)
    assert row["closed_at"] == row["end_time"]
    determined = final(status="determined").row(LATER)
    assert (determined["winning_outcome"], determined["resolved_at"]) == (None, None)
    assert determined["outcome_prices"] == [280_000, 720_000]  # the last prices


@pytest.mark.parametrize(
    ("changes", "winner", "prices"),
    [
        ({"result": "yes", "settlement_value_dollars": "1.0000"}, 0, [1_000_000, 0]),
        ({"result": "yes", "settlement_value_dollars": None}, 0, [1_000_000, 0]),
        ({"result": "no", "settlement_value_dollars": None}, 1, [0, 1_000_000]),
        ({"result": "scalar", "settlement_value_dollars": "0.6100"}, None, [610_000, 390_000]),
        ({"result": "scalar", "settlement_value_dollars": "1.0000"}, None, [1_000_000, 0]),
        ({"result": "scalar", "settlement_value_dollars": None}, None, []),
        ({"result": "yes", "settlement_value_dollars": "0.5000"}, None, [500_000, 500_000]),  # the value is right
        ({"result": "yes", "settlement_value_dollars": "0.0000"}, 1, [0, 1_000_000]),
        ({"result": ""}, None, []),
        ({"result": "void"}, None, []),
        ({"result": None}, None, []),
    ],
)
def test_settlements_are_read_as_they_paid(changes, winner, prices):
    read = final(**changes)

    assert (read.winning_outcome(), read.outcome_prices()) == (winner, prices)


def test_quotes_of_empty_sides_are_none():
    assert market().quotes() == (270_000, 280_000)
    assert final().quotes() == (None, None)
    assert market(yes_ask_dollars="1.0000").quotes() == (270_000, 1_000_000)  # somebody asks for 1
    assert market(yes_bid_dollars="", yes_ask_dollars=None).quotes() == (None, None)
    assert market(last_price_dollars="0.0000").outcome_prices() == []


def test_the_tick_size_is_that_of_the_band_of_the_last_price():
    bands = [
        {"start": "0.0000", "end": "0.1000", "step": "0.0010"},
        {"start": "0.1000", "end": "0.9000", "step": "0.0100"},
        {"start": "0.9000", "end": "1.0000", "step": "0.0001"},
    ]
    found = [market(price_ranges=bands, last_price_dollars=last).tick_size() for last in ("0.05", "0.5", "0.95", None)]

    assert found == [1_000, 10_000, 100, 1_000]
    assert market(price_ranges=[]).tick_size() is None


def test_old_rows_with_zero_times_and_empty_sizes_are_read():
    old = market(created_time="0001-01-01T00:00:00Z", yes_bid_size_fp="", volume_fp="").row(NOW)

    assert old["created_at"] is None


@pytest.mark.parametrize(
    "changes",
    [
        {"ticker": "kxfed"},
        {"ticker": "A:yes"},
        {"ticker": ""},
        {"event_ticker": "a b"},
        {"status": "frozen"},
        {"status": None},
        {"notional_value_dollars": "100.0000"},
        {"last_price_dollars": "1.5"},
        {"yes_bid_dollars": "-0.1"},
        {"yes_ask_dollars": "NaN"},
        {"volume_fp": "many"},
        {"price_ranges": [{"start": "0", "end": "1", "step": "0"}]},
        {"price_ranges": [{"start": "1", "end": "0", "step": "0.01"}]},
        {"title": 7},
    ],
)
def test_a_market_that_would_be_stored_wrongly_is_refused(api_of, changes):
    bad = MARKET | changes
    api = api_of({"/markets": {"markets": [bad, MARKET], "cursor": ""}})

    assert [each.ticker for each in api.markets()] == [TICKER]
    assert [json.loads(refusal.payload) for refusal in api.refused] == [bad]
    assert api.refused[0].source == "kalshi"


# --- Listings ---


def test_a_walk_follows_cursors_until_there_is_none(api_of):
    for last in ("", None, ...):
        pages = {
            None: {"markets": [MARKET], "cursor": "abc="},
            "abc=": {"markets": [MARKET | {"ticker": "B"}], "cursor": last},
        }
        if last is ...:
            del pages["abc="]["cursor"]
        api = api_of({"/markets": lambda request, pages=pages: pages[request.url.params.get("cursor")]})

        assert [each.ticker for each in api.markets(status="open")] == [TICKER, "B"]
        assert [dict(request.url.params) for request in api.asked] == [
            {"limit": "1000", "status": "open", "mve_filter": "exclude"},
            {"limit": "1000", "status": "open", "mve_filter": "exclude", "cursor": "abc="},
        ]


def test_a_walk_stops_where_rows_repeat(api_of):
    count = iter(range(100))
    api = api_of({"/markets": lambda _: {"markets": [MARKET], "cursor": f"garbage{next(count)}"}})

    with pytest.raises(Incomplete, match="came before"):
        list(api.markets())
    assert len(api.asked) == 2


def test_a_walk_goes_on_from_the_cursor_of_an_earlier_one(api_of):
    api = api_of({"/markets": {"markets": [MARKET], "cursor": ""}})
    [page] = api.market_pages("abc=", tickers=TICKER)

    assert page.next_cursor is None
    assert api.asked[0].url.params["cursor"] == "abc="


def test_combos_are_left_out_and_counted(api_of):
    collected = MARKET | {"ticker": "X-1", "mve_collection_ticker": "KXMVE-1"}
    api = api_of({"/markets": {"markets": [COMBO, MARKET, collected], "cursor": ""}})
    [page] = api.market_pages()

    assert ([each.ticker for each in page.items], page.skipped, page.refused) == ([TICKER], 2, [])


def test_historical_markets_take_one_filter_only(api_of):
    api = api_of({HISTORICAL_MARKETS: {"markets": [FINAL, COMBO], "cursor": ""}})

    assert [each.ticker for each in api.markets(HISTORICAL_MARKETS)] == [TICKER]
    assert [each.ticker for each in api.markets(HISTORICAL_MARKETS, event_ticker="KXFED-27APR")] == [TICKER]
    assert [request.url.params.get("mve_filter") for request in api.asked] == ["exclude", None]


def test_one_market_is_found_live_or_in_history(api_of):
    assert api_of({f"/markets/{TICKER}": {"market": MARKET}}).market(TICKER).state == "active"
    assert api_of({f"/historical/markets/{TICKER}": {"market": FINAL}}).market(TICKER).state == "finalized"
    assert api_of({}).market(TICKER) is None


def test_another_object_than_was_asked_for_is_malformed(api_of):
    other = {"ticker": "OTHER", "event_ticker": "OTHER"}
    api = api_of(
        {
            f"/markets/{TICKER}": {"market": MARKET | other},
            "/events/KXFED-27APR": {"event": EVENT | other},
            "/series/KXFED": {"series": SERIES | other},
        }
    )
    for ask, name in ((api.market, TICKER), (api.event, "KXFED-27APR"), (api.series, "KXFED")):
        with pytest.raises(Malformed, match="another one than"):
            ask(name)
    assert len(api.refused) == 3


def test_what_is_no_ticker_is_never_asked_for(api_of):
    api = api_of({"/historical/cutoff": CUTOFF})
    for ask in (
        api.market,
        api.event,
        api.series,
        api.book,
        lambda text: api.books([text]),
        lambda t: [*api.trades(t)],
    ):
        with pytest.raises(Rejected, match="not a ticker") as caught:
            ask("../portfolio")
        assert caught.value.status == 0
    assert [request.url.path for request in api.asked if "portfolio" in request.url.path] == []


@pytest.mark.parametrize("nesting", ["inside", "beside"])
def test_an_events_markets_may_be_inside_it_or_beside_it(api_of, nesting):
    broken = MARKET | {"ticker": "?"}
    markets = [MARKET, broken, COMBO | {"event_ticker": "KXFED-27APR"}]
    if nesting == "inside":
        listed = {"events": [EVENT | {"markets": markets}], "cursor": ""}
        one = {"event": EVENT | {"markets": markets}}
    else:
        listed = {"events": [EVENT], "markets": [*markets, {"event_ticker": 7}], "cursor": ""}
        one = {"event": EVENT, "markets": markets}
    api = api_of({"/events": listed, "/events/KXFED-27APR": one})

    for found in [*api.events(with_nested_markets=True), api.event("KXFED-27APR")]:
        api.refused.clear()
        assert [each.ticker for each in api.nested_markets(found)] == [TICKER]
        assert [json.loads(refusal.payload) for refusal in api.refused] == [broken]
    assert api.asked[0].url.params["with_nested_markets"] == "true"
    assert api.asked[0].url.params["limit"] == "200"


def test_events_and_series_that_cannot_be_read_are_refused_and_their_neighbours_kept(api_of):
    odd = EVENT | {"event_ticker": "?"}
    combo = EVENT | {"event_ticker": "KXMVESPORTS-1"}
    series = SERIES | {"ticker": None}
    api = api_of({"/events": {"events": [odd, combo, EVENT]}, "/series": {"series": [series, SERIES]}})

    assert [each.event_ticker for each in api.events()] == ["KXFED-27APR"]
    assert [each.ticker for each in api.all_series(category="Economics")] == ["KXFED"]
    assert [json.loads(refusal.payload) for refusal in api.refused] == [odd, series]
    assert api.asked[1].url.params["category"] == "Economics"


def test_events_and_series_that_are_not_found_are_none(api_of):
    api = api_of({"/series": {"series": None}})

    assert (api.event("A"), api.series("A"), api.all_series()) == (None, None, [])
    assert api_of({"/series/KXFED": {"series": SERIES}}).series("KXFED").title == "Federal funds rate"
    assert event().title == "Fed funds rate in April 2027"


# --- Errors ---


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"error": {"code": "bad_request", "message": "bad request", "details": "limit"}}, "bad_request: bad request"),
        (
            {"code": "invalid_parameters", "message": "invalid parameters", "details": "limit"},
            "invalid_parameters: inv",
        ),
        ({"msg": "Invalid format for parameter limit: …"}, "Invalid format for parameter limit"),
        ("<html>Bad Request</html>", "<html>Bad"),
    ],
)
def test_each_form_of_an_error_is_told_by_its_own_words(api_of, body, said):
    answer = httpx.Response(400, **({"text": body} if isinstance(body, str) else {"json": body}))
    api = api_of({"/markets": answer})

    with pytest.raises(Rejected, match=f"/markets: 400 .*{said}") as caught:
        list(api.markets(limit=5000))
    assert caught.value.status == 400
    assert len(api.asked) == 1


def test_a_limit_without_retry_after_is_waited_out_longer_each_time(api_of, clock):
    left = [httpx.Response(429, json={"error": "too many requests"})] * 3
    api = api_of({"/markets": lambda _: left.pop() if left else {"markets": [MARKET]}})

    assert len(list(api.markets())) == 1
    assert clock.slept == [0.5, 1, 2]
    left += [httpx.Response(429, json={"error": "too many requests"})] * 9
    with pytest.raises(RateLimited):
        list(api.markets())


def test_a_server_error_with_any_body_is_unavailable(api_of):
    for body in ("", "<html>", "{"):
        with pytest.raises(Unavailable):
            list(api_of({"/markets": httpx.Response(502, text=body)}).markets())
    with pytest.raises(Malformed):
        list(api_of({"/markets": {"market": []}}).markets())
    with pytest.raises(NotFound):
        list(api_of({}).markets())


def test_requests_keep_to_the_lowest_tiers_limits(client_of, clock):
    api = Kalshi(client_of(lambda _: httpx.Response(200, json={"markets": []})))
    began = clock.now
    for _ in range(60):
        list(api.markets())

    assert clock.now - began == pytest.approx(20 / 16)  # 40 at once, and four fifths of 20 a second


def test_what_the_account_may_ask_for_replaces_the_limits(client_of, clock):
    def exchange(request):
        if request.url.path.endswith("/limits"):
            read = {"refill_rate": 300, "bucket_capacity": 100}
            return httpx.Response(200, json={"usage_tier": "odd", "read": read, "write": read, "grants": []})
        return httpx.Response(200, json={"markets": []})

    api = Kalshi(client_of(exchange), signer=Signer(KEY_ID, private_key("ed25519"), wall=clock))
    api.read_limits()
    clock.now += 60
    began = clock.now
    for _ in range(34):
        list(api.markets())

    assert clock.now - began == pytest.approx(24 / 24)  # 10 at once, and four fifths of 30 a second


@pytest.mark.parametrize("rate", [0, -1, 1e30])
def test_limits_that_are_none_are_malformed(client_of, clock, rate):
    body = {"usage_tier": "x", "read": {"refill_rate": rate, "bucket_capacity": 200}}
    api = Kalshi(
        client_of(lambda _: httpx.Response(200, json=body)),
        signer=Signer(KEY_ID, private_key("ed25519"), wall=clock),
    )

    with pytest.raises(Malformed, match="not limits"):
        api.read_limits()
