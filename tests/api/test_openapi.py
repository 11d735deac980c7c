from __future__ import annotations

import json
import subprocess
import sys

import falcon.inspect
from openapi_spec_validator import validate

from api import openapi
from api.app import create_app
from api.endpoints import ENDPOINTS

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

    printed = subprocess.run([sys.executable, "-m", "api.openapi"], capture_output=True, check=True)

    assert json.loads(printed.stdout) == DOCUMENT


def test_every_operation_tells_its_price_its_answers_and_its_failures():
    for path, operations in DOCUMENT["paths"].items():
        for operation in operations.values():
            assert operation["x-credits"] in (0, 1, 2, 5, 10) or "for each" in operation["x-credits"]
            assert operation["summary"]
            assert {"400", "500", "503"} <= set(operation["responses"])
            needs_key = path.startswith("/v1/")
            assert ("401" in operation["responses"]) == needs_key
            for parameter in map(resolved, operation.get("parameters", [])):
                assert parameter["description"], (path, parameter)


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
    assert len(openapi.encoded()) < 3500 * len(ENDPOINTS)
