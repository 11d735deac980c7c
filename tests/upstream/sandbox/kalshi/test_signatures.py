"""Signatures of the socket's upgrade and of account endpoints."""

import asyncio
import json

import pytest
import websockets
from cryptography.hazmat.primitives import serialization

from tests.upstream.sandbox.kalshi.conftest import START_MS, Signer, converse
from upstream.sandbox.kalshi.server import KalshiSandbox
from upstream.sandbox.kalshi.signatures import public_key

PATH = "/trade-api/ws/v2"
LIMITS = "/trade-api/v2/account/limits"


@pytest.fixture(scope="module")
def fixed():
    """A sandbox whose clock for signatures stands still."""
    with KalshiSandbox(simulate=3, start_ms=START_MS, markets=20, hold=True, clock=lambda: START_MS / 1000) as exchange:
        yield exchange


def knock(sandbox, headers):
    """Return status and error of an upgrade."""

    async def run():
        try:
            async with websockets.connect(sandbox.socket_url, additional_headers=headers, proxy=None):
                return 101, None
        except websockets.InvalidStatus as refused:
            return refused.response.status_code, json.loads(refused.response.body)["error"]

    return asyncio.run(run())


@pytest.mark.parametrize("kind", ["rsa", "ed25519"])
def test_both_kinds_of_keys_sign_the_upgrade_and_requests(shared, http, kind):
    signer = Signer(shared, http, kind)

    assert knock(shared, signer.headers(PATH)) == (101, None)
    answer = http.get(f"{shared.url}{LIMITS}?any=query", headers=signer.headers(LIMITS))
    assert answer.json() == {
        "usage_tier": "basic",
        "read": {"refill_rate": 200, "bucket_capacity": 400},
        "write": {"refill_rate": 100, "bucket_capacity": 100},
        "grants": [],
    }


def test_an_upgrade_without_a_right_signature_is_refused_with_its_code(shared, http):
    signer = Signer(shared, http)
    right = signer.headers(PATH)

    def refused(**changed):
        headers = {name: value for name, value in (right | changed).items() if value is not None}
        status, error = knock(shared, headers)
        assert status == 401
        assert error["message"] == error["code"]
        return error["code"], error.get("details")

    key, timestamp, signature = right
    nothing = dict.fromkeys(right)
    assert refused(**nothing) == ("token_authentication_failure", None)
    assert refused(**{signature: None}) == ("signature_is_missing_from_headers", None)
    assert refused(**{timestamp: None}) == ("header_timestamp_expired", None)
    assert refused(**{timestamp: "now"}) == ("header_timestamp_expired", None)
    assert refused(**{key: "another"}) == ("authentication_error", "NOT_FOUND")
    for wrong in (
        "?",
        "AAAA",
        Signer(shared, http).headers(PATH)[signature],
        signer.headers("/trade-api/v2")[signature],
    ):
        assert refused(**{signature: wrong}) == ("authentication_error", "INCORRECT_API_KEY_SIGNATURE")


@pytest.mark.parametrize(
    ("off_s", "code"), [(19, None), (-19, None), (21, "header_timestamp_expired"), (-21, "header_timestamp_expired")]
)
def test_the_clocks_may_differ_by_twenty_seconds(fixed, http, off_s, code):
    status, error = knock(fixed, Signer(fixed, http).headers(PATH, at_s=START_MS / 1000 + off_s))

    assert (status, error and error["code"]) == ((101, None) if code is None else (401, code))


def test_public_endpoints_need_no_signature_and_those_of_accounts_do(shared, http):
    assert http.get(f"{shared.rest_url}/markets").status_code == 200
    refused = http.get(f"{shared.url}{LIMITS}")
    assert refused.status_code == 401
    assert refused.json()["error"]["code"] == "token_authentication_failure"
    assert http.get(f"{shared.rest_url}/portfolio/balance").status_code == 401


def test_keys_of_ones_own_are_known_by_their_public_half(http, shared):
    signer = Signer(shared, http)
    pem = signer._key.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    with KalshiSandbox(simulate=3, markets=20, hold=True, keys={signer.id: public_key(pem)}) as exchange:
        assert knock(exchange, signer.headers(PATH)) == (101, None)

    with pytest.raises(ValueError, match="PEM"):
        public_key(b"nonsense")


def test_a_key_of_another_kind_is_not_made(shared, http):
    for body in ({"kind": "dsa"}, {"sort": "rsa"}, []):
        assert http.post(f"{shared.url}/sandbox/keys", json=body).status_code == 400


def test_signatures_are_rejected_while_a_fault_says_so(shared, http):
    signer = Signer(shared, http)
    http.post(f"{shared.url}/sandbox/faults", json={"kind": "reject_signature"}).raise_for_status()

    status, error = knock(shared, signer.headers(PATH))
    account = http.get(f"{shared.url}{LIMITS}", headers=signer.headers(LIMITS))
    http.delete(f"{shared.url}/sandbox/faults")

    assert (status, error["details"]) == (401, "INCORRECT_API_KEY_SIGNATURE")
    assert account.status_code == 401
    assert knock(shared, signer.headers(PATH)) == (101, None)


def test_a_private_key_is_in_no_status_and_no_log(shared, http):
    signer = Signer(shared, http)

    async def talk(listener):
        await listener.settle()

    converse(shared, http, talk)
    told = http.get(f"{shared.url}/sandbox/status").text + http.get(f"{shared.url}/sandbox/log").text
    assert signer.pem.splitlines()[1] not in told
