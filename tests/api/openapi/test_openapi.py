from __future__ import annotations

import json
import re
import subprocess
import sys

import falcon.inspect
import pytest
from jsonschema import Draft202012Validator
from openapi_spec_validator import validate

from api.app import create_app
from api.endpoints.table import ENDPOINTS
from api.openapi import document as openapi
from api.schemas.requests import parse

DOCUMENT = json.loads(openapi.encoded())


def resolved(part):
    """What a reference stands for; anything else as it is."""
    while "$ref" in part:
        place, part = part["$ref"].split("/")[1:], DOCUMENT
        for name in place:
            part = part[name]
    return part


def test_the_document_is_valid_openapi_3_1():
    assert DOCUMENT["openapi"].startswith("3.1")
    validate(DOCUMENT)


def test_router_and_document_agree(service):
    routes = falcon.inspect.inspect_app(create_app(service)).routes
    routed = {
        (route.path, method.method.lower())
        for route in routes
        for method in route.methods
        if not method.internal and method.method not in {"HEAD", "OPTIONS", "WEBSOCKET"}
    }

    assert routed == {(path, method) for path, found in DOCUMENT["paths"].items() for method in found}
    assert routed == {(endpoint.path, endpoint.method.lower()) for endpoint in ENDPOINTS}


def test_it_is_served_to_anyone_and_printed_without_a_server(client):
    assert client.simulate_get("/openapi.json").json == DOCUMENT

    printed = subprocess.run([sys.executable, "-m", "api.openapi.document"], capture_output=True, check=True)

    assert json.loads(printed.stdout) == DOCUMENT


def test_every_operation_tells_its_price_its_answers_and_its_failures():
    for path, operations in DOCUMENT["paths"].items():
        for operation in operations.values():
            assert operation["x-credits"] in (0, 1, 2, 5, 10) or re.match("1[;,]? [a-z]", operation["x-credits"])
            assert operation["summary"]
            assert {"400", "500", "503"} <= set(operation["responses"])
            needs_key = path.startswith("/v1/")
            assert ("401" in operation["responses"]) == needs_key
            for parameter in map(resolved, operation.get("parameters", [])):
                assert parameter["description"], (path, parameter)


def test_patterns_mean_the_same_in_python_as_in_ecma():
    patterns = set(re.findall(r'"pattern": ("(?:[^"\\]|\\.)*")', json.dumps(openapi.document())))

    assert len(patterns) > 5
    # These classes and this boundary are Unicode's in Python; the document's readers have ECMA's.
    assert [pattern for pattern in patterns if re.search(r"\\[sSdDwWbB]", json.loads(pattern))] == []


def test_names_are_told_once():
    names = [endpoint.name for endpoint in ENDPOINTS]

    assert len(set(names)) == len(names)
    assert {endpoint.tag for endpoint in ENDPOINTS} == set(openapi.TAGS)


def test_what_endpoints_have_in_common_is_said_once():
    responses = [
        response
        for operations in DOCUMENT["paths"].values()
        for operation in operations.values()
        for status, response in operation["responses"].items()
        if int(status) >= 300
    ]
    assert all("$ref" in response for response in responses)
    assert {resolved(response)["description"] for response in responses if "InvalidApiKey" in response["$ref"]} == {
        "`invalid_api_key`: the api key is missing or not valid"
    }
    assert len(openapi.encoded()) < 3700 * len(ENDPOINTS)  # some 3,540 with ranges, cursors and notes of their own


def test_every_answer_has_an_example_that_is_one():
    answers = [*DOCUMENT["components"]["responses"].values()]
    answers += [
        response
        for operations in DOCUMENT["paths"].values()
        for operation in operations.values()
        for response in operation["responses"].values()
    ]
    for answer in answers:
        for media, content in answer.get("content", {}).items():
            if media.endswith("json"):
                several = [each["value"] for each in content.get("examples", {}).values()]
                whole = Draft202012Validator({**content["schema"], "components": DOCUMENT["components"]})
                for example in several or [content["example"]]:
                    whole.validate(example)

    shown = DOCUMENT["paths"]["/v1/markets"]["get"]["responses"]["200"]["content"]["application/json"]["example"]
    assert shown["data"][0]["question"] == "Will it rain tomorrow?"


def test_an_array_that_is_computed_says_when_in_a_header():
    said = {
        path
        for path, operations in DOCUMENT["paths"].items()
        if "Last-Modified" in operations.get("get", {}).get("responses", {}).get("200", {}).get("headers", {})
    }

    assert said >= {"/v1/markets/top", "/v1/categories", "/v1/tags", "/v1/series"}


# What requests cost, as it was agreed; all that is not named costs 1.
COSTS = {
    0: [
        *("/v1/time", "/v1/status/pipeline", "/v1/keys/rotate"),
        *("/v1/webhooks", "/v1/webhooks/{id}", "/v1/webhooks/{id}/test", "/v1/webhooks/{id}/rotate-secret"),
        "/v1/webhooks/{id}/verify",
        *("/v1/webhooks/{id}/deliveries", "/v1/webhooks/{id}/deliveries/{delivery_id}/redeliver"),
    ],
    2: [
        *("/v1/markets/search", "/v1/markets/top", "/v1/markets/trending", "/v1/markets/breaking"),
        *("/v1/markets/by-timeframe", "/v1/markets/compare", "/v1/markets/{id}/summary", "/v1/markets/{id}/sentiment"),
        *("/v1/signals/top", "/v1/leaderboard", "/v1/udf/search"),
        *("/v1/events", "/v1/positions", "/v1/positions/closed", "/v1/markets/{id}/positions"),
    ],
    5: [
        *("/v1/wallets/{address}/onchain", "/v1/wallets/{address}/summary", "/v1/wallets/{address}/markets"),
        *("/v1/wallets/{address}/positions/open", "/v1/markets/{id}/orderbook/history"),
        "/replay/ws/market",
    ],
    10: ["/v1/wallets/{address}/pnl"],
}


def test_every_operation_costs_what_was_agreed():
    agreed = {path: cost for cost, paths in COSTS.items() for path in paths}
    fixed = [each for each in ENDPOINTS if each.cost is None and each.key not in {"debug", "none"}]

    assert {each.path: each.credits for each in fixed} == {each.path: agreed.get(each.path, 1) for each in fixed}
    assert {each.credits for each in ENDPOINTS if each.key in {"debug", "none"}} == {0}


@pytest.mark.parametrize(
    ("name", "asked", "cost"),
    [
        ("markets", {}, 1),
        ("markets", {"source": "polymarket"}, 2),
        ("market_trades", {"limit": "1000"}, 1),
        ("market_trades", {"limit": "1001"}, 2),
        ("market_trades", {"limit": "5000"}, 5),
        ("market_trades", {"source": "data-api"}, 2),
        ("market_trades", {"source": "data-api", "limit": "5000"}, 5),
        ("market_price_history", {}, 1),
        ("market_price_history", {"limit": "20000"}, 20),
        ("prices", {"ids": ",".join(map(str, range(25)))}, 1),
        ("prices", {"ids": ",".join(map(str, range(26)))}, 2),
        ("market_orderbook", {}, 1),
        ("market_orderbook", {"at": "1795262400000"}, 5),
    ],
)
def test_what_a_request_costs_follows_from_what_it_asks(name, asked, cost):
    endpoint = next(each for each in ENDPOINTS if each.name == name)

    assert endpoint.price(parse(endpoint.parameters, asked)) == cost
