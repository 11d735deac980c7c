"""What scripts and programs ask the site for: open figures, the chart's data feed, live events."""

from __future__ import annotations

import datetime as dt
from functools import partial

import pytest
from starlette.testclient import TestClient

from api.address import Proxies
from api.site.app import create_app
from api.site.middleware import Pace
from orchestration import activity, aggregates

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


def test_the_chart_is_fed_without_a_key_and_from_what_is_kept(site, api, market):
    told = [site.get("/udf/history?symbol=rain&resolution=1&from=0&to=4000000000&api_key=psg_guess") for _ in range(3)]

    assert told[0].json()["c"] == [0.52]
    assert len(api.asked) == 1
    assert "api_key" not in str(api.asked[0].url)
    assert site.get("/udf/time").text.isdigit()
    assert site.get("/udf/symbols?symbol=nothing").json() == {"s": "error", "errmsg": "unknown_symbol"}
    assert site.get("/udf/nothing").json()["error"]["code"] == "not_found"
    assert site.get("/udf/history?symbol=rain").json()["error"]["code"] == "missing_parameter"


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
    monkeypatch.setattr("api.site.app.Pace", partial(Pace, clock=lambda: 0.0))
    site = TestClient(create_app(made_site, requests_a_second=2))

    statuses = [site.get("/health").status_code for _ in range(15)]

    assert statuses == [200] * 10 + [429] * 5
    refused = site.get("/pricing")
    assert (refused.status_code, refused.json()["error"]["code"]) == (429, "too_many_requests")
    assert refused.headers["Retry-After"] == "1"
    assert site.get(made_site.assets.url("site.css")).status_code == 200


def test_addresses_are_told_apart_and_time_gives_back():
    now = 0.0
    pace = Pace(lambda *_: None, Proxies(), 2, clock=lambda: now)

    assert [pace.take("a") > 0 for _ in range(11)] == [False] * 10 + [True]
    assert pace.take("b") == 0
    now = 1.0
    assert [pace.take("a") > 0 for _ in range(3)] == [False, False, True]


def test_it_lives(site):
    assert site.get("/health").json() == {"status": "ok", "service": "presage-site", "live": 0}
