"""Requests forwarded to the exchange, and fast errors while it is unavailable."""

from __future__ import annotations

import socket
import threading
import time
from contextlib import closing, contextmanager

import httpx
import msgspec
import pytest

from api.data.proxy import CircuitBreaker, ExchangeProxy
from api.endpoints.exchange import records as records_positions
from api.endpoints.table import ENDPOINTS
from api.metering import keys
from api.schemas import records
from tests.api.conftest import serving
from tests.patience import PATIENCE_S
from upstream.sandbox.server import Sandbox
from upstream.sandbox.tape.made import assigned_tx

WALLET = "0x" + "5d" * 20
START_MS = 1_795_000_199_000
PROXIED = {
    "/v1/events": {},
    "/v1/positions": {"wallet": WALLET},
    "/v1/positions/closed": {"wallet": WALLET},
    "/v1/markets/rain/positions": {},
    "/v1/markets/rain/trades": {"source": "data-api"},
    "/v1/markets": {"source": "polymarket"},
}


# --- A healthy exchange


@pytest.fixture(scope="module")
def sandbox():
    with Sandbox(simulate=11, rate=1500, start_ms=START_MS, hold=True) as exchange:
        exchange.call(lambda: exchange.source.advance(START_MS + 5_000))
        yield exchange


@pytest.fixture
def told(service, sandbox):
    """The application asks the sandbox."""
    service.exchange = ExchangeProxy(sandbox.gamma_url, sandbox.data_api_url, source="simulated")
    yield service.exchange
    service.exchange.close()


@pytest.fixture
def trade(sandbox):
    """The newest trade of the exchange."""
    return sandbox.call(lambda: next(sandbox.exchange.trades.newest_first()))


@pytest.fixture
def market(sandbox, add_market, trade):
    """The market of that trade, as we know it."""
    there = sandbox.call(lambda: sandbox.exchange.catalogue.find(trade.token)[0])
    return add_market(
        "traded", market_id=there.condition_id, outcomes=list(there.outcomes), token_ids=list(there.tokens)
    )


def test_events_come_as_the_exchange_lists_them(client, told, sandbox):
    ours = client.ask("/v1/events", limit=3, closed="false").json

    theirs = httpx.get(f"{sandbox.gamma_url}/events", params={"limit": 3, "offset": 0, "closed": "false"}).json()
    assert [event["id"] for event in ours] == [event["id"] for event in theirs]
    assert ours[0].keys() == theirs[0].keys()


def test_parameters_that_are_not_ours_are_passed_on(client, told):
    every = client.ask("/v1/events").json
    wanted = every[2]["slug"]

    assert [event["slug"] for event in client.ask("/v1/events", slug=wanted).json] == [wanted]
    two = client.simulate_get(
        "/v1/events", query_string=f"id={every[0]['id']}&id={every[1]['id']}", headers={"X-API-Key": client.key}
    )
    assert {event["id"] for event in two.json} == {every[0]["id"], every[1]["id"]}


@pytest.mark.parametrize(
    "asked",
    [
        {"limit": 501},
        {"exchange": "other"},
        {"active": "perhaps"},
        {"a-b": 1},
        {"x": "y" * 501},
        {f"p{number}": 1 for number in range(21)},
    ],
)
def test_what_is_passed_on_is_bounded(client, told, asked):
    assert client.ask("/v1/events", **asked).status_code == 400


def test_positions_of_a_wallet_are_told(client, told, trade):
    found = client.ask("/v1/positions", wallet=trade.taker.upper().replace("0X", "0x")).json

    assert {position["wallet"] for position in msgspec.to_builtins(found)} == {trade.taker.lower()}
    assert msgspec.convert(found, list[records_positions.Position])
    assert client.ask("/v1/positions", wallet=WALLET).json == []


def test_positions_in_a_market_are_told_of_one_wallet(client, told, market, trade):
    found = client.ask("/v1/markets/traded/positions", wallet=trade.taker).json

    assert {position["market_id"] for position in found} == {market["market_id"]}


def test_closed_positions_of_a_wallet_are_told(client, told, sandbox):
    found = [client.ask("/v1/positions/closed", wallet=wallet).json for wallet in sandbox.source.wallets[:20]]

    assert any(msgspec.convert(each, list[records_positions.ClosedPosition]) for each in found)


@pytest.mark.parametrize("path", ["/v1/positions", "/v1/positions/closed"])
def test_a_wallet_must_be_named(client, path):
    assert client.ask(path).json["code"] == "missing_parameter"
    assert client.ask(path, wallet="0x12").json["code"] == "invalid_parameter"
    assert client.ask(path, wallet=WALLET + "\n").json["code"] == "invalid_parameter"


def test_trades_right_from_the_exchange_are_of_one_outcome_newest_first(client, told, market, trade):
    outcome = market["token_ids"].index(trade.token)

    found = client.ask("/v1/markets/traded/trades", source="data-api", outcome=outcome, limit=5).json

    assert msgspec.convert(found, list[records.Trade])
    assert len(found) <= 5
    assert {each["token_id"] for each in found} == {trade.token}
    assert found[0]["tx_hash"] == trade.tx
    assert [each["ts"] for each in found] == sorted((each["ts"] for each in found), reverse=True)
    assert client.ask("/v1/markets/traded/trades", source="data-api", outcome=outcome, to=START_MS - 10**9).json == []


def test_a_hash_that_was_only_assigned_to_a_recorded_trade_is_not_shown(client, told, market, sandbox, trade):
    recorded = msgspec.structs.replace(trade, tx=assigned_tx("recorded without its hash"), ts_ms=trade.ts_ms + 1_000)
    sandbox.call(lambda: sandbox.exchange.trades.add(recorded))
    outcome = market["token_ids"].index(trade.token)

    found = client.ask("/v1/markets/traded/trades", source="data-api", outcome=outcome, limit=2).json

    assert [each["tx_hash"] for each in found] == [None, trade.tx]


def test_trades_of_a_wallet_are_only_its_own(client, told, market, trade):
    outcome = market["token_ids"].index(trade.token)
    asked = {"source": "data-api", "outcome": outcome}

    of_wallet = client.ask("/v1/markets/traded/trades", wallet=trade.taker, **asked).json

    assert of_wallet
    assert client.ask("/v1/markets/traded/trades", wallet=WALLET, **asked).json == []
    assert client.ask("/v1/markets/traded/trades", wallet=trade.taker).json["code"] == "invalid_parameter"


def test_trades_of_a_wallet_are_of_all_outcomes_unless_one_is_named(client, service, add_market):
    market = add_market("rain")
    sent = {"proxy_wallet": WALLET, "condition_id": market["market_id"], "side": "BUY", "size": 5, "price": 0.5}
    rows = [
        {**sent, "token_id": token, "timestamp": 1_795_000_000 - number, "transaction_hash": f"0x{number:064x}"}
        for number, token in enumerate([market["token_ids"][1], market["token_ids"][0], "77"])
    ]
    page = {"data": rows, "pagination": {"has_more": False, "next_cursor": None}}
    service.exchange = Answers(httpx.Response(200, json=page)).exchange()

    def outcomes(**asked):
        found = client.ask("/v1/markets/rain/trades", source="data-api", **asked).json
        return [(each["outcome"], each["token_id"] == market["token_ids"][each["outcome"]]) for each in found]

    assert outcomes(wallet=WALLET) == outcomes(wallet=WALLET, outcome="all") == [(1, True), (0, True)]
    assert outcomes(outcome="ALL") == [(1, True), (0, True)]
    assert outcomes(wallet=WALLET, outcome="No") == [(1, True)]
    assert outcomes() == [(0, True)]


def test_pages_of_the_exchanges_own_list_are_full_though_its_states_are_not_ours(client, service):
    def listed(number, **said):
        of = {"id": str(number), "conditionId": f"0x{number:064x}", "question": "?", "slug": f"m{number}"}
        return {**of, "outcomes": '["Yes","No"]', "clobTokenIds": '["1","2"]', **said}

    def answer(request):
        first = int(request.url.params.get("after_cursor", 0))
        numbers = range(first, min(first + int(request.url.params["limit"]), 20))
        # Of three that the exchange calls open, one is not active.
        rows = [listed(number, active=number % 3 != 0, closed=False) for number in numbers]
        return httpx.Response(
            200, json={"markets": rows, "next_cursor": str(numbers[-1] + 1) if numbers[-1] < 19 else ""}
        )

    service.exchange = ExchangeProxy(transport=httpx.MockTransport(answer))
    met, cursor, pages = [], None, []
    while cursor != "":
        page = client.ask(
            "/v1/markets", source="polymarket", status="ACTIVE", limit=5, **({"cursor": cursor} if cursor else {})
        ).json
        met += [market["slug"] for market in page["data"]]
        pages.append(len(page["data"]))
        cursor = page["next_cursor"]

    assert met == [f"m{number}" for number in range(20) if number % 3]
    assert pages == [5, 5, 3]
    refused = client.ask("/v1/markets", source="polymarket", status="CLOSED")
    assert (refused.status_code, refused.json["errors"][0]["name"]) == (400, "status")


def test_what_the_exchange_says_of_a_position_is_passed_on(client, service, add_market):
    market = add_market("rain")
    yes, no = market["token_ids"]
    sent = {"proxyWallet": WALLET, "asset": yes, "conditionId": market["market_id"], "size": 3, "avgPrice": 0.4}
    more = {"percentRealizedPnl": 12.5, "mergeable": True, "oppositeOutcome": "No", "oppositeAsset": no}
    position = {**sent, **more, "negativeRisk": True, "totalBought": 9, "realizedPnl": 2}
    for path, query in (("/v1/positions", {}), ("/v1/markets/rain/positions", {}), ("/v1/positions/closed", {})):
        rows = [[position], []]
        service.exchange = ExchangeProxy(
            transport=httpx.MockTransport(lambda _, rows=rows: httpx.Response(200, json=rows.pop(0)))
        )

        (found,) = client.ask(path, wallet=WALLET, **query).json

        assert (found["opposite_outcome_name"], found["opposite_token_id"]) == ("No", no)
        if not path.endswith("closed"):
            assert (found["percent_realized_pnl"], found["mergeable"], found["neg_risk"]) == (12.5, True, True)


def test_the_exchanges_own_list_is_walked_by_cursor(client, told):
    met, cursor = [], None
    while cursor != "":
        answer = client.ask(
            "/v1/markets", source="polymarket", status="ACTIVE", limit=7, **({"cursor": cursor} if cursor else {})
        )
        page = msgspec.json.decode(answer.content, type=records.MarketPage)
        met += [market.market_id for market in page.data]
        cursor = page.next_cursor
        assert page.has_more == bool(cursor)

    assert len(met) == len(set(met)) > 7
    assert {market.source for market in page.data} <= {"simulated"}


def test_the_exchanges_own_list_has_no_offset_and_its_cursors_are_not_ours(client, told, add_market):
    first = client.ask("/v1/markets", source="polymarket", limit=1).json["next_cursor"]

    assert client.ask("/v1/markets", source="polymarket", offset=5).status_code == 400
    assert client.ask("/v1/markets", source="polymarket", series="x").status_code == 400
    assert client.ask("/v1/markets", cursor=first).json["code"] == "invalid_cursor"
    assert client.ask("/v1/markets", source="polymarket", tag="no-such-tag").json["data"] == []


# --- An exchange with scripted responses


class Answers:
    """An exchange that gives one answer, and counts how often it was asked."""

    def __init__(self, answer):
        self.answer, self.asked = answer, []

    def __call__(self, request):
        self.asked.append(str(request.url))
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer

    def exchange(self):
        return ExchangeProxy(transport=httpx.MockTransport(self))


def test_those_who_hold_most_of_a_market_are_told(client, service, add_market):
    market = add_market("rain")
    yes, _ = market["token_ids"]
    row = {"proxyWallet": WALLET, "amount": 12.5, "asset": yes, "outcomeIndex": 0, "name": "someone"}
    service.exchange = Answers(httpx.Response(200, json=[{"token": yes, "holders": [row]}])).exchange()

    (found,) = client.ask("/v1/markets/rain/positions").json

    of = {"wallet": WALLET, "market_id": market["market_id"], "token_id": yes}
    assert found == {**of, "outcome": 0, "outcome_name": "Yes", "size": 12.5}
    assert msgspec.convert(found, records_positions.MarketPosition)


def test_what_was_just_heard_is_told_again(client, service):
    exchange = Answers(httpx.Response(200, json=[{"id": "1"}]))
    service.exchange = exchange.exchange()

    for _ in range(5):
        assert client.ask("/v1/events").json == [{"id": "1"}]
    assert client.ask("/v1/events", limit=2).json == [{"id": "1"}]

    assert len(exchange.asked) == 2


@pytest.mark.parametrize(
    ("asked", "sent"),
    [
        ({}, {"limit": "100", "offset": "0"}),
        ({"active": "true", "offset": 7}, {"limit": "100", "offset": "7", "active": "true"}),
        (
            {"active": "false", "closed": "true", "limit": 3},
            {"limit": "3", "offset": "0", "active": "false", "closed": "true"},
        ),
    ],
)
def test_what_is_asked_of_events_reaches_the_exchange(client, service, asked, sent):
    exchange = Answers(httpx.Response(200, json=[]))
    service.exchange = exchange.exchange()

    assert client.ask("/v1/events", **asked).json == []

    (url,) = map(httpx.URL, exchange.asked)
    assert (url.path, dict(url.params)) == ("/events", sent)


@pytest.mark.parametrize(
    ("asked", "of", "sent"),
    [
        ({}, [], {}),
        ({"status": "ACTIVE"}, [], {"closed": "false"}),
        ({"status": "RESOLVED", "category": "sports"}, ["/tags/slug/sports"], {"closed": "true", "tag_id": "7"}),
        ({"tag": "ball"}, ["/tags/slug/ball"], {"tag_id": "7"}),
        ({"tag": "../7?a=b#c"}, ["/tags/slug/..%2F7%3Fa%3Db%23c"], {"tag_id": "7"}),
        ({"tag": "\x16\x97\U0010bd19"}, ["/tags/slug/%16%C2%97%F4%8B%B4%99"], {"tag_id": "7"}),
    ],
)
def test_what_is_asked_of_the_exchanges_own_list_reaches_it(client, service, asked, of, sent):
    exchange = Answers(httpx.Response(200, json={"id": "7", "markets": []}))
    service.exchange = exchange.exchange()

    assert client.ask("/v1/markets", source="polymarket", **asked).json["data"] == []

    *before, url = map(httpx.URL, exchange.asked)
    assert [each.raw_path.decode() for each in before] == of
    usual = {"order": "volume24hr", "ascending": "false", "limit": "50", "include_tag": "true"}
    assert (url.path, dict(url.params)) == ("/markets/keyset", usual | sent)


@pytest.mark.parametrize("slug", [".", ".."])
def test_a_slug_that_would_lead_elsewhere_on_the_exchange_is_unknown(client, service, slug):
    exchange = Answers(httpx.Response(200, json={"id": "7", "markets": []}))
    service.exchange = exchange.exchange()

    assert client.ask("/v1/markets", source="polymarket", tag=slug).json["data"] == []
    assert exchange.asked == []


@pytest.mark.parametrize(
    ("answer", "status"),
    [
        (httpx.Response(500, text="oops"), 502),
        (httpx.Response(503, headers={"Retry-After": "7"}), 502),
        (httpx.Response(429, headers={"Retry-After": "30"}), 502),
        (httpx.Response(403, text="go away"), 502),
        (httpx.Response(302, headers={"Location": "https://example.com"}), 502),
        (httpx.Response(200, text="<html>"), 502),
        (httpx.Response(200, text='[{"id": 1'), 502),
        (httpx.Response(200, json={"not": "a list"}), 502),
        (httpx.Response(200, content=b"[" + b" " * (17 << 20) + b"]"), 502),
        (httpx.ConnectError("refused"), 502),
        (httpx.ReadTimeout("late"), 504),
        (httpx.ConnectTimeout("late"), 504),
    ],
)
@pytest.mark.parametrize("path", PROXIED)
def test_trouble_of_the_exchange_is_told_as_such(client, service, add_market, answer, status, path):
    add_market("rain")
    service.exchange = Answers(answer).exchange()
    started = time.monotonic()

    told = client.ask(path, **PROXIED[path])

    assert (told.status_code, told.json["code"]) == (status, "upstream_unavailable")
    assert told.headers["X-Request-Cost"] == "0"
    assert 1 <= int(told.headers["Retry-After"]) <= 60
    assert time.monotonic() - started < 6  # less than it may ask to be left alone


def test_what_the_exchange_refuses_is_the_askers_mistake(client, service):
    service.exchange = Answers(httpx.Response(422, json={"error": "tag_id is invalid"})).exchange()

    told = client.ask("/v1/events", tag_id="x")

    assert (told.status_code, told.json["code"]) == (400, "invalid_parameter")


def test_an_exchange_that_fails_again_and_again_is_left_alone(client, service):
    exchange = Answers(httpx.Response(403))
    service.exchange = exchange.exchange()

    answers = [client.ask("/v1/positions", wallet=WALLET) for _ in range(9)]

    assert {answer.status_code for answer in answers} == {502}
    assert len(exchange.asked) == 5
    assert service.exchange.breakers["gamma"].failures == 0  # another upstream


def test_after_a_rest_one_question_tries_and_success_trusts_again():
    now = [0.0]
    breaker = CircuitBreaker(threshold=2, cooldown_s=10, clock=lambda: now[0])
    assert breaker.admit() == 0
    breaker.failed()
    breaker.failed()

    assert breaker.admit() == 10
    now[0] = 10
    assert (breaker.admit(), breaker.admit()) == (0, 10)
    breaker.failed()
    assert breaker.admit() == 10
    now[0] = 20
    assert breaker.admit() == 0
    breaker.succeeded()
    assert breaker.admit() == breaker.admit() == 0


# --- An exchange that does not respond, over real sockets


@contextmanager
def silent(drip=b""):
    """A server that takes connections and never finishes an answer; with `drip`, a byte every so often."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        over = threading.Event()

        def serve():
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                threading.Thread(target=answer, args=(connection,), daemon=True).start()

        def answer(connection):
            with connection:
                while not over.wait(0.05):
                    try:
                        connection.send(drip)
                    except OSError:
                        return

        threading.Thread(target=serve, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            over.set()


def test_an_exchange_that_never_answers_is_given_up(client, service):
    with silent() as url, closing(ExchangeProxy(url, url, deadline_s=0.5)) as service.exchange:
        started = time.monotonic()

        told = client.ask("/v1/events")

    assert (told.status_code, told.json["code"]) == (504, "upstream_unavailable")
    assert time.monotonic() - started < 3.5  # sooner than with the time there is otherwise


def test_every_endpoint_that_asks_the_exchange_says_so():
    paths = {path.replace("rain", "{id}") for path in PROXIED}

    assert {each.path for each in ENDPOINTS if "upstream_unavailable" in each.errors} == paths


def test_an_exchange_that_drips_for_ever_is_given_up_after_five_seconds(conn, database_url):
    key = keys.create(conn, "someone@example.com", "tests", "pro")
    with silent(drip=b"H") as url, serving(database_url, PRESAGE_GAMMA_URL=url) as server:
        started = time.monotonic()
        told = httpx.get(f"{server.url}/v1/events", headers={"X-API-Key": key}, timeout=PATIENCE_S, trust_env=False)
        waited = time.monotonic() - started

    assert (told.status_code, told.json()["code"]) == (504, "upstream_unavailable")
    assert waited < 10
