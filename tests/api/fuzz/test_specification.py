"""Every row of the interface specification, asked of a running server: status, record, order, default and maximum.

Its database is filled by the tape; what no recording has is said in `tests.api.fuzz.filled`.
"""

from __future__ import annotations

import itertools
import json
import re
import urllib.error
import urllib.parse
import urllib.request

import msgspec
import pytest

from tests.api.endpoints.test_shapes import without_defaults
from tests.api.endpoints.test_spec import NAMED, ROUTED, ROWS, named
from tests.api.fuzz.filled import DEBUG_TOKEN
from tests.patience import PATIENCE_S, until

READ = [row for row in ROWS if row[0] == "GET" and row[1] != "/stream"]
HEADERS = ("X-Credits-Limit", "X-Credits-Remaining", "X-Credits-Used", "X-Credits-Reset", "X-Request-Id", "ETag")


@pytest.fixture(scope="module")
def ask(api):
    """Ask by a path of the specification; what it needs is filled in."""

    def answer(path, *, method="GET", key=True, body=None, **query):
        needed = {
            "/v1/markets/search": {"q": "will"},
            "/v1/markets/compare": {"ids": ",".join(api.markets[:9])},
            "/v1/prices": {"ids": ",".join(api.markets[:9])},
            "/v1/positions": {"wallet": api.wallets[0]},
            "/v1/positions/closed": {"wallet": api.wallets[0]},
        }.get(path, {})
        of = {"/v1/events/{id}/markets": api.events[0]}.get(path, api.markets[0])
        places = {"{id}": of, "{slug}": api.categories[0], "{address}": api.wallets[0]}
        for braces, name in places.items():
            path = path.replace(braces, name)
        headers = {"X-API-Key": api.key if key is True else key} if key else {}
        if path.startswith("/debug") and key:
            headers = {"X-Debug-Token": DEBUG_TOKEN}
        data = None if body is None else json.dumps(body).encode()
        told = urllib.parse.urlencode({**needed, **{name.rstrip("_"): value for name, value in query.items()}})
        request = urllib.request.Request(f"{api.url}{path}?{told}", method=method, headers=headers, data=data)
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE_S) as found:
                return found.status, found.headers, json.loads(found.read())
        except urllib.error.HTTPError as refused:
            with refused:
                return refused.code, refused.headers, json.loads(refused.read())

    return answer


def listed(answer):
    """The rows of a list, wherever they stand."""
    return answer.get("data", answer) if isinstance(answer, dict) else answer


@pytest.mark.parametrize("path", [row[1] for row in READ])
def test_a_row_is_answered_with_its_record_and_every_header(ask, path):
    status, headers, answer = ask(path)

    assert status == 200, answer
    record = msgspec.convert(answer, ROUTED["GET", path].answers)
    assert without_defaults(msgspec.to_builtins(record)) == without_defaults(answer)
    assert all(headers[name] for name in HEADERS)
    assert headers["Access-Control-Allow-Origin"] == "*"
    if path.startswith("/v1/"):
        assert re.fullmatch(r'"burst";q=\d+;w=1', headers["RateLimit-Policy"])
        assert re.fullmatch(r'"burst";r=\d+;t=1', headers["RateLimit"])


# Longer on the tape than any answer may be: these are cut where they should be.
LONG = {
    *("/v1/markets", "/v1/markets/search", "/v1/markets/resolving", "/v1/markets/new"),
    *("/v1/categories/{slug}/markets", "/v1/signals/top"),
}
LIMITED = [(path, int(most[1])) for _, path, given, _ in READ if (most := re.search(r"`limit`[^;]*max (\d+)", given))]


@pytest.mark.parametrize(("path", "most"), LIMITED)
def test_a_limit_holds_up_to_its_maximum_and_is_refused_beyond(ask, path, most):
    status, _, answer = ask(path, limit=most)
    assert status == 200, answer
    if path != "/v1/markets/by-timeframe":
        assert len(listed(answer)) == most if path in LONG else len(listed(answer)) <= most
        assert len(listed(ask(path, limit=1)[2])) <= 1

    status, _, refused = ask(path, limit=most + 1)

    assert (status, refused["code"], refused["errors"][0]["name"]) == (400, "invalid_parameter", "limit")
    assert str(most) in refused["hint"]


DEFAULTS = [
    (path, name, usual[1])
    for _, path, given, _ in READ
    for name, told in (named(given).items() if "`" in given else ())
    if (usual := re.search(r"[(,;] ?default (?!is )(\w+)", told))
]


@pytest.mark.parametrize(("path", "name", "usual"), DEFAULTS)
def test_what_is_not_said_is_the_default(ask, path, name, usual):
    def gist(answer):
        rows = listed(answer)
        if path == "/v1/markets/by-timeframe":
            rows = [market for frame in answer["timeframes"] for market in frame["markets"]]
        if path == "/v1/markets/{id}/candles":
            return rows["t"]
        return [row.get("market_id") or row.get("id") or row.get("address") or row for row in rows]

    def compared():
        """Return a list once it is the same with the explicit default; each of the two may be cached for seconds."""
        usually = gist(ask(path)[2])
        status, _, explicit = ask(path, **{name: usual})
        assert status == 200
        return gist(explicit) == usually and [usually]

    [rows] = until(compared)
    if path in LONG and name == "limit":
        assert len(rows) == int(usual)
    elif name == "limit":
        assert len(rows) <= int(usual) * (7 if path == "/v1/markets/by-timeframe" else 1)


CHOICES = [
    (path, name, [NAMED.get(value, value) for value in re.split(r", | or ", values[1].strip())])
    for _, path, given, _ in READ
    for name, told in (named(given).items() if "`" in given else ())
    if (values := re.search(r"enum ([\w, <>-]+)", told.split("(")[0]))
]


@pytest.mark.parametrize(("path", "name", "values"), CHOICES)
def test_each_value_of_a_choice_is_taken_and_no_other(ask, path, name, values):
    for value in values:
        status, _, answer = ask(path, **{name: value})
        assert status == 200, (value, answer)
        if name == "status":
            assert {row["status"] for row in listed(answer)} == {value}

    status, _, refused = ask(path, **{name: "nonsense"})

    assert (status, refused["errors"][0]["name"]) == (400, name)
    assert all(value in refused["hint"] for value in values)


def descending(values):
    return all(before >= after for before, after in itertools.pairwise(values))


def ascending(values):
    return descending(list(values)[::-1])


ORDERS = {
    "/v1/markets/resolving?within=7d": lambda rows: ascending([row["resolves_at"] for row in rows]),
    "/v1/markets/trending": lambda rows: descending([row["spike_ratio"] or 0 for row in rows]),
    "/v1/markets/breaking": lambda rows: descending([abs(row["price_move"]) for row in rows]),
    "/v1/markets/new?hours=168": lambda rows: descending([row["created_at"] for row in rows]),
    "/v1/markets/top": lambda rows: descending([row["period_volume_usd"] for row in rows]),
    "/v1/markets/top?by=trades": lambda rows: descending([row["period_trades"] for row in rows]),
    "/v1/leaderboard?window=1d": lambda rows: descending([row["volume_usd"] for row in rows]),
    "/v1/signals/top": lambda rows: descending([row["score"] for row in rows]),
    "/v1/markets/{id}/trades": lambda rows: descending([row["ts"] for row in rows]),
    "/v1/trades/recent": lambda rows: descending([row["ts"] for row in rows]),
    "/v1/markets/{id}/price-history": lambda rows: ascending([row["ts"] for row in rows]),
    "/v1/wallets/{address}/markets": lambda rows: descending([row["last_trade"] for row in rows]),
    "/v1/wallets/{address}/onchain": lambda rows: descending([row["ts"] for row in rows]),
    "/v1/events/{id}/markets": lambda rows: ascending([row["end_time"] for row in rows]),
    "/v1/categories/{slug}/markets": lambda rows: descending([row["created_at"] for row in rows]),
    "/v1/categories": lambda rows: descending([row["market_count"] for row in rows]),
    "/debug/trades": lambda rows: descending([(row["ts"], row["seq"]) for row in rows]),
    "/debug/signals": lambda rows: descending([row["ts"] for row in rows]),
}


@pytest.mark.parametrize("asked", ORDERS)
def test_a_list_is_in_the_order_that_is_promised(ask, asked):
    path, _, query = asked.partition("?")
    status, _, answer = ask(path, **dict(urllib.parse.parse_qsl(query)))

    assert status == 200
    assert listed(answer), "there is nothing to be in order"
    assert ORDERS[asked](listed(answer))


def test_the_seven_buckets_are_there_by_minutes_until_the_end(ask):
    bounds = {"5m": 5, "15m": 15, "1h": 60, "4h": 240, "1d": 1440, "1w": 10_080, "long": float("inf")}
    _, _, answer = ask("/v1/markets/by-timeframe")

    assert [frame["timeframe"] for frame in answer["timeframes"]] == list(bounds)
    for (_, least), frame in zip([("", 0), *bounds.items()], answer["timeframes"], strict=False):
        for market in frame["markets"]:
            assert least <= market["mins_until_close"] <= bounds[frame["timeframe"]]  # rounded to 0.01
    assert sum(frame["count"] for frame in answer["timeframes"]) > 10


REFUSED = [
    ("POST", "/register", {"body": {"email": "a@example.com"}}, 400),
    ("POST", "/register", {"body": {"app_name": "bot"}}, 400),
    ("POST", "/register", {"body": {"app_name": "bot", "email": "nobody"}}, 400),
    ("POST", "/v1/keys/rotate", {"key": None}, 401),
    ("POST", "/v1/keys/rotate", {"key": "psg_wrong"}, 401),
    ("POST", "/v1/wallets/watch", {"body": {}}, 400),
    ("GET", "/v1/time", {"key": None}, 401),
    ("GET", "/v1/markets/nothing", {}, 404),
    ("GET", "/v1/markets/nothing/price", {}, 404),
    ("GET", "/v1/markets/nothing/orderbook", {}, 404),
    ("GET", "/v1/markets/nothing/liquidity", {}, 404),
    ("GET", "/v1/markets/compare", {"ids": ",".join(map(str, range(11)))}, 400),
    ("GET", "/v1/prices", {"ids": ",".join(map(str, range(101)))}, 400),
    ("GET", "/v1/markets/new", {"hours": 169}, 400),
    ("GET", "/v1/positions", {"wallet": "0x12"}, 400),
    ("GET", "/v1/positions/closed", {"wallet": ""}, 400),
    ("GET", "/v1/markets/{id}/trades", {"wallet": "0x" + "5d" * 20}, 400),
    ("GET", "/v1/markets/{id}/price-history", {"from_": "yesterday"}, 400),
    ("GET", "/v1/wallets/nobody/pnl", {}, 400),
    ("GET", "/stream", {"key": None}, 403),
    ("GET", "/stream", {"api_key": "psg_wrong"}, 403),
    ("GET", "/debug/markets", {"key": None}, 403),
    ("GET", "/nothing", {}, 404),
]


@pytest.mark.parametrize(("method", "path", "how", "status"), REFUSED)
def test_what_cannot_be_answered_is_refused_with_the_status_that_is_promised(ask, method, path, how, status):
    found, headers, problem = ask(path, method=method, **how)

    assert (found, problem["status"]) == (status, status), problem
    assert headers["Content-Type"] == "application/problem+json"
    assert headers["X-Request-Cost"] == "0"
    if path.startswith("/debug"):
        assert problem["detail"] == "debug endpoints disabled"


def test_a_key_is_registered_and_replaced(ask):
    status, _, key = ask("/register", method="POST", body={"app_name": "bot", "email": "spec@presage.example"})
    assert status == 201
    assert (key["tier"], key["credits_month"], key["credits_burst"], key["app_name"]) == ("free", 5000, 5, "bot")

    status, _, new = ask("/v1/keys/rotate", method="POST", key=key["key"])

    assert status == 200
    assert set(new) == {"key", "message"}
    assert ask("/v1/time", key=key["key"])[0] == 401
    assert ask("/v1/time", key=new["key"])[0] == 200


def test_a_wallet_is_watched_and_let_go(ask, api):
    wallet = api.wallets[1]
    assert ask("/v1/wallets/watch", method="POST", body={"address": wallet})[::2] == (
        200,
        {"address": wallet, "watching": True},
    )
    assert wallet in ask("/v1/wallets/watched")[2]["wallets"]

    assert ask(f"/v1/wallets/{wallet}/watch", method="DELETE")[::2] == (200, {"address": wallet, "watching": False})
    assert wallet not in ask("/v1/wallets/watched")[2]["wallets"]
