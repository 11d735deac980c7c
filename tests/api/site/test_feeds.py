"""Routes for scripts and programs: public figures, the chart's data feed, live events."""

from __future__ import annotations

import datetime as dt
import re
from functools import partial

import pytest
from starlette.testclient import TestClient

from api.server.address import Proxies
from api.site.app import create_app
from api.site.middleware import RateLimit
from api.site.passes import Allowance, Passes
from orchestration.candles import activity, aggregates

ID = "0x" + "5d" * 32


@pytest.fixture
def market(conn, add_market, add_trades):
    row = add_market("rain", source="simulated")
    add_trades(row, [{"price": "0.52", "size": 120}])
    for work in (aggregates.compute_stats, aggregates.rank, activity.bring_up_to_date):
        work(conn, dt.datetime.now(dt.UTC))
    return row


def test_figures_of_the_platform_are_open_and_kept(site, api, market):
    told = [site.get("/api/platform-stats") for _ in range(5)]

    assert told[0].json()["total_markets"] == told[0].json()["active_markets"] == 1
    assert told[0].json()["source"] == "simulated"
    assert told[0].headers["Cache-Control"] == "public, max-age=10"
    assert told[0].headers["Access-Control-Allow-Origin"] == "*"
    assert [request.url.path for request in api.asked] == ["/v1/stats"]


def test_the_ticker_names_the_largest_markets(site, market):
    told = site.get("/api/ticker").json()

    assert told["count"] == 1
    assert told["data"][0] == {
        "market_id": market["market_id"],
        "slug": "rain",
        "question": "Rain?",
        "outcome": "Yes",
        "price": None,
        "volume_24h_usd": 62.4,
        "trades_24h": 1,
        "url": "/markets/rain",
    }


def test_a_ticker_of_nothing_is_empty(site):
    assert site.get("/api/ticker").json() == {"data": [], "count": 0, "source": "simulated"}


@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "DELETE"])
def test_an_unknown_route_says_which_there_are_and_is_never_a_page(site, method):
    answer = site.request(method, "/api/nothing", headers={"Accept": "text/html"})

    assert (answer.status_code, answer.headers["Content-Type"]) == (404, "application/json")
    error = answer.json()["error"]
    assert error["code"] == "not_found"
    assert set(error) == {"code", "message", "hint", "known_endpoints"}
    assert "GET /api/ticker" in error["known_endpoints"]


def test_a_wrong_method_is_said_in_the_same_shape(site):
    answer = site.post("/api/ticker")

    assert answer.status_code in {404, 405}
    assert set(answer.json()["error"]) >= {"code", "message", "hint"}


def test_while_the_api_is_away_that_is_said_in_the_same_shape(site, api):
    api.away = True

    for path in ("/api/ticker", "/api/platform-stats", "/udf/config"):
        answer = site.get(path)
        assert (answer.status_code, answer.headers["Retry-After"]) == (503, "2")
        assert answer.json()["error"]["code"] == "unavailable"


def pass_of(site, path):
    """Return the pass of a page."""
    return re.search(r'data-pass="([\w-]*)"', site.get(path).text)[1]


def test_the_chart_of_a_page_is_fed_without_a_key_and_from_what_is_kept(site, api, market):
    allowed = pass_of(site, "/markets/rain")
    api.asked.clear()
    until = int(dt.datetime.now(dt.UTC).timestamp()) + 60
    bars = f"/udf/history?symbol=rain&resolution=1&from=0&to={until}&countback=400"

    told = [site.get(f"{bars}&pass={allowed}&api_key=psg_guess") for _ in range(3)]

    assert told[0].json()["c"] == [0.52]
    assert len(api.asked) == 1
    assert "api_key" not in str(api.asked[0].url)
    assert "pass" not in str(api.asked[0].url)
    assert site.get("/udf/time").text.isdigit()
    assert site.get(f"/udf/symbols?symbol=rain&pass={allowed}").json()["ticker"] == "rain"
    assert site.get("/udf/nothing").json()["error"]["code"] == "not_found"
    assert site.get(f"/udf/history?symbol=rain&pass={allowed}").json()["error"]["code"] == "missing_parameter"


@pytest.mark.parametrize("name", ["symbols", "history", "marks", "timescale_marks"])
def test_a_chart_that_no_page_shows_is_refused(site, market, add_market, name):
    add_market("snow")
    rain = pass_of(site, "/markets/rain")
    question = f"/udf/{name}?resolution=1&from=0&to=4000000000&symbol="

    refused = [
        site.get(question + each) for each in ("rain", f"snow&pass={rain}", f"rain&pass={rain[:-2]}", "rain&pass=%00")
    ]

    assert [(each.status_code, each.json()["error"]["code"]) for each in refused] == [(403, "forbidden")] * 4
    assert "key" in refused[0].json()["error"]["hint"]


@pytest.mark.parametrize("name", ["search", "quotes"])
def test_what_no_page_asks_for_is_for_keys_alone(site, name):
    assert site.get(f"/udf/{name}?query=rain&symbols=rain").status_code == 404


@pytest.mark.parametrize(("asked", "given"), [("&countback=20000", 500), ("", 500), ("&countback=3", 3)])
def test_one_answer_has_no_more_bars_than_a_chart_shows(site, api, market, asked, given):
    allowed = pass_of(site, "/markets/rain")
    api.asked.clear()

    site.get(f"/udf/history?symbol=rain&resolution=1&from=0&to=4000000000&pass={allowed}{asked}")

    assert api.asked[0].url.params["countback"] == str(given)


def test_live_prices_are_of_the_markets_that_a_page_shows(made_site, site, market, add_market):
    other = add_market("snow")
    allowed = pass_of(site, "/markets/rain")

    for markets, pass_ in ((other["market_id"], allowed), (market["market_id"], "")):
        answer = site.get(f"/live?markets={markets}&pass={pass_}")
        assert (answer.status_code, answer.json()["error"]["code"]) == (403, "forbidden")
    assert made_site.passes.allows(allowed, [market["market_id"], "rain"])
    assert made_site.passes.allows(pass_of(site, "/markets?q=snow"), [other["market_id"]])
    assert 'data-pass=""' in site.get("/pricing").text  # nothing there changes


def test_a_page_stays_the_same_while_its_pass_does(site, market):
    page = site.get("/markets?q=rain")

    assert site.get("/markets?q=rain", headers={"If-None-Match": page.headers["ETag"]}).status_code == 304


def test_passes_end_and_are_of_one_secret():
    now = 1_800_000_000.0
    ours, theirs = (Passes([secret], clock=lambda: now) for secret in (b"one", b"two"))
    given = ours.write(["a", "b", "a"])

    assert ours.write(["a", "b"]) == given
    assert [ours.allows(given, asked) for asked in (["a"], ["b", "a"], ["a", "c"])] == [True, True, False]
    assert not theirs.allows(given, ["a"])
    assert Passes([b"two", b"one"], clock=lambda: now).allows(given, ["a"])
    now += 20 * 3600
    assert ours.allows(given, ["a"])
    now += 12 * 3600
    assert not ours.allows(given, ["a"])


def test_an_address_is_given_so_much_a_day(made_site, market):
    site = TestClient(create_app(made_site, requests_a_second=1000, allowance_a_day=1000), base_url="http://site")
    allowed = pass_of(site, "/markets/rain")
    question = f"/udf/history?symbol=rain&resolution=1&from=0&to=4000000000&pass={allowed}&countback="

    assert [site.get(f"{question}{count}").status_code for count in (400, 400, 400, 150)] == [200, 200, 429, 200]
    live = site.get(f"/live?markets={market['market_id']}&pass={allowed}")  # as many as 100 bars
    assert live.status_code == 429
    over = site.get(f"{question}400")
    assert (over.status_code, over.json()["error"]["code"]) == (429, "too_many_requests")
    assert 0 < int(over.headers["Retry-After"]) <= 86_400


def test_a_day_gives_room_again_and_a_network_of_ipv6_is_one_address():
    now = 0.0
    allowance = Allowance(10, clock=lambda: now)

    assert [allowance.take("192.0.2.1", 6), allowance.take("192.0.2.2", 6)] == [0, 0]
    assert allowance.take("192.0.2.1", 6) == 86_400
    assert [allowance.take("2001:db8::1", 6), allowance.take("2001:db8::2", 6)] == [0, 86_400]
    assert allowance.take("2001:db8:0:1::1", 6) == 0
    now = 86_400.0
    assert allowance.take("192.0.2.1", 6) == 0


@pytest.mark.parametrize(
    "query",
    [
        "",
        "markets=",
        "markets=rain",
        f"markets={ID}&types=nothing",
        f"markets={ID}&types=",
        f"markets={ID}&outcome=-1",
        f"markets={','.join(f'0x{number:064x}' for number in range(101))}",
        f"markets={','.join(f'0x{number:064x}' for number in range(5))}&types=book",
    ],
)
def test_what_cannot_be_followed_is_refused_by_name(site, query):
    answer = site.get(f"/live?{query}")

    assert answer.status_code == 400
    assert answer.json()["error"]["code"] == "invalid_parameter"


def test_one_address_cannot_keep_the_site_busy(made_site, monkeypatch):
    monkeypatch.setattr("api.site.app.RateLimit", partial(RateLimit, clock=lambda: 0.0))
    site = TestClient(create_app(made_site, requests_a_second=2))

    statuses = [site.get("/health").status_code for _ in range(15)]

    assert statuses == [200] * 10 + [429] * 5
    refused = site.get("/pricing")
    assert (refused.status_code, refused.json()["error"]["code"]) == (429, "too_many_requests")
    assert refused.headers["Retry-After"] == "1"
    assert site.get(made_site.assets.url("site.css")).status_code == 200


def test_addresses_are_told_apart_and_time_gives_back():
    now = 0.0
    pace = RateLimit(lambda *_: None, Proxies(), 2, clock=lambda: now)

    assert [pace.take("a") > 0 for _ in range(11)] == [False] * 10 + [True]
    assert pace.take("b") == 0
    now = 1.0
    assert [pace.take("a") > 0 for _ in range(3)] == [False, False, True]


def test_it_lives(site):
    assert site.get("/health").json() == {"status": "ok", "service": "presage-site", "live": 0}
