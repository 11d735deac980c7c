"""Each error code of the catalogue occurs, and all errors have the same format."""

from __future__ import annotations

import psycopg
import pytest
from falcon import testing

from api import errors
from api.app import create_app
from api.data.pool import Pool, overloaded
from api.errors import CATALOGUE, without_secrets
from api.service import Service
from api.stream.hub import StreamHub

NOBODY = "00000000-0000-0000-0000-000000000000"
WEBHOOK_SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw+/=="
# Codes that other tests produce, by file.
ELSEWHERE = {
    "upstream_unavailable": "test_exchange",
    "quota_exhausted": "test_metering",
    "burst_exceeded": "test_metering",
}


def check(answer, status, code):
    """A problem, whole."""
    assert answer.status_code == status, answer.text
    assert answer.headers["Content-Type"] == "application/problem+json"
    problem = answer.json
    assert (problem["status"], problem["code"]) == (status, code)
    assert problem["type"] == f"urn:presage:problem:{code}"
    assert problem["title"] == CATALOGUE[code][1]
    assert problem["request_id"] == answer.headers["X-Request-Id"]
    assert set(problem) - {"errors"} == {"type", "title", "status", "detail", "code", "hint", "request_id"}
    assert "Traceback" not in answer.text
    return problem


CASES = {
    "invalid_parameter": (400, "GET", "/v1/markets?limit=999"),
    "unknown_parameter": (400, "GET", "/v1/markets?colour=red"),
    "missing_parameter": (400, "GET", "/v1/prices"),
    "invalid_cursor": (400, "GET", "/v1/markets?cursor=nonsense"),
    "invalid_body": (400, "POST", "/register"),
    "forbidden": (403, "GET", "/stream?api_key=wrong"),
    "not_found": (404, "GET", "/v1/markets/nothing"),
    "method_not_allowed": (405, "DELETE", "/v1/markets"),
}


@pytest.mark.parametrize("code", CASES)
def test_a_failure_is_a_problem_document(client, code):
    status, method, path = CASES[code]

    answer = client.simulate_request(method, path, headers={"X-API-Key": client.key})

    assert check(answer, status, code)["detail"]


def test_a_missing_key_is_a_problem_too(client):
    problem = check(client.ask("/v1/time", key=None), 401, "invalid_api_key")

    assert problem["hint"]


@pytest.mark.parametrize(
    "path", ["/", "/nothing", "/v1", "/v1/nothing", "/v1/markets/a/b/c", "/register/x", "/<script>"]
)
@pytest.mark.parametrize("method", ["GET", "POST", "PATCH"])
def test_an_unknown_route_is_not_found_whatever_is_asked_of_it(client, path, method):
    problem = check(client.simulate_request(method, path), 404, "not_found")

    assert path in problem["detail"]


def test_a_key_where_none_belongs_is_not_looked_up(client, service, monkeypatch):
    client.ask("/v1/time")  # the key is known from now on
    monkeypatch.setattr(service.reads, "read", None)
    paths = [f"/v1/markets/{client.key}", f"/v1/markets/{client.key}/price", f"/v1/events/{client.key}/markets"]
    answers = [client.ask(path) for path in paths]
    answers.append(client.ask("/v1/markets/search", q=f"a {client.key}"))
    answers.append(client.ask("/v1/markets", category=WEBHOOK_SECRET))
    answers.append(client.ask(f"/v1/exports/trades/2026-11-20/{client.key}"))

    assert [(answer.status_code, answer.json["code"]) for answer in answers] == [(400, "invalid_parameter")] * 6


def test_a_text_and_a_cursor_that_look_like_a_secret_are_none(client):
    assert client.ask("/v1/markets/search", q="the psg_marseille_final_2026").status_code == 200
    assert "secret" not in client.ask("/v1/markets", cursor=f"psg_{'a' * 60}").text


@pytest.mark.parametrize("parts", [True, False])
def test_secrets_are_redacted_also_when_encoded_and_their_parts_if_wanted(parts):
    key = "a" * 43

    assert without_secrets(f"/psg_{key}/x?q=psg%5F{key}&r=psg_{key[:9]}", parts=parts) == (
        "/psg_REDACTED/x?q=psg_REDACTED&r=psg_REDACTED" if parts else f"/psg_REDACTED/x?q=psg_REDACTED&r=psg_{key[:9]}"
    )


def test_a_key_where_none_belongs_is_not_repeated(client, service, monkeypatch, caplog):
    key, headers = client.key, {"X-API-Key": client.key}
    answers = [
        client.simulate_get(f"/{key}/v1"),
        client.ask(f"/v1/markets/{key}"),
        client.ask("/v1/markets", limit=key),
        client.ask("/v1/markets", cursor=key),
        client.ask("/v1/markets", **{key: 1}),
        client.simulate_post("/register", json={"app_name": key, "email": key, key: key}),
        client.simulate_post("/v1/webhooks", json={"url": key, "events": [key]}, headers=headers),
        client.simulate_post("/v1/webhooks", body=f'{{"url": "{key}', headers=headers),
        client.simulate_post(f"/v1/webhooks/{NOBODY}/rotate-secret", json={"step": WEBHOOK_SECRET}, headers=headers),
    ]
    monkeypatch.setattr(service.keys, "of", lambda *_given: 1 / 0)
    answers.append(client.ask(f"/v1/markets/{key[:20]}"))

    assert [answer.status_code for answer in answers] == [404, 400, 400, 400, 400, 400, 400, 400, 400, 500]
    assert answers[0].json["detail"] == "There is no endpoint /psg_REDACTED/v1"
    assert "'whsec_REDACTED'" in answers[8].json["detail"]
    assert [answer.text for answer in answers if key[:20] in answer.text or key[:20] in str(answer.headers)] == []
    assert "/v1/markets/psg_REDACTED failed" in caplog.text
    assert key[:20] not in caplog.text


def test_an_unknown_method_is_no_server_error(client):
    assert client.simulate_request("PUT", "/health").status_code == 405
    assert client.simulate_get("/register").status_code == 405
    assert client.simulate_get("/v1/keys/rotate", headers={"X-API-Key": client.key}).status_code == 405


def test_what_nobody_foresaw_is_logged_and_told_without_detail(client, service, monkeypatch, caplog):
    def fail(_given):
        raise RuntimeError("the secret detail")

    monkeypatch.setattr(service.markets, "of", fail)

    answer = client.ask("/v1/markets/rain")

    problem = check(answer, 500, "internal")
    assert "secret" not in answer.text
    assert problem["request_id"] in caplog.text
    assert "the secret detail" in caplog.text


@pytest.mark.parametrize(
    "error",
    [
        psycopg.OperationalError("gone"),
        psycopg.InterfaceError("closed"),
        psycopg.errors.QueryCanceled("statement timeout"),
        psycopg.errors.ReadOnlySqlTransaction("standby"),
    ],
)
def test_a_database_that_cannot_answer_now_may_be_asked_again(client, service, monkeypatch, error):
    def fail(_given):
        raise error

    monkeypatch.setattr(service.markets, "of", fail)

    answer = client.ask("/v1/markets/rain")

    check(answer, 503, "overloaded")
    assert answer.headers["Retry-After"] == "1"


def test_a_wrong_query_is_our_mistake(client, service, monkeypatch, caplog):
    def fail(_given):
        raise psycopg.errors.UndefinedColumn("no such column")

    monkeypatch.setattr(service.markets, "of", fail)

    check(client.ask("/v1/markets/rain"), 500, "internal")
    assert "no such column" in caplog.text


def test_a_database_that_is_away_is_told_at_once(tmp_path):
    pool = Pool(f"postgresql:///nothing?host={tmp_path}", 2)
    client = testing.TestClient(create_app(Service(reads=pool, writes=pool, hub=StreamHub(pool, lambda: 0))))

    for _ in range(5):
        answer = client.simulate_get("/v1/time", headers={"X-API-Key": "any"})
        check(answer, 503, "overloaded")
        assert answer.headers["Retry-After"] == "1"
    assert client.simulate_get("/health").status_code == 200


def test_a_body_beyond_the_limit_is_told_on_the_wire():
    said = errors.on_the_wire(413, "body_too_large", "A body is at most 65536 bytes")

    head, _, body = said.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 413 ")
    assert b"application/problem+json" in head
    assert b'"code":"body_too_large"' in body


def test_every_code_of_the_catalogue_is_made_by_a_test_here():
    elsewhere = {"invalid_api_key", "internal", "overloaded", "body_too_large"} | set(ELSEWHERE)

    assert set(CATALOGUE) == set(CASES) | elsewhere
    assert overloaded("busy").problem == "overloaded"
