import logging
import os
from email.utils import formatdate
from pathlib import Path

import httpx
import pytest
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import PrivateFormat

from config.settings import Settings
from tests.upstream.kalshi import samples
from tests.upstream.kalshi.keys import KEY_ID, pem, private_key, stored, verify
from upstream.kalshi.rest.client import Kalshi
from upstream.kalshi.signing import Signer, read_signer
from upstream.transport.errors import Unauthenticated

PATH = "/trade-api/v2/account/limits"


@pytest.mark.parametrize("kind", ["rsa", "ed25519"])
def test_what_is_signed_is_the_time_the_method_and_the_path(kind, clock):
    signer = Signer(KEY_ID, private_key(kind), wall=clock)
    headers = signer.headers("GET", PATH)

    assert verify(private_key(kind), headers, "GET", PATH) == int(clock.now * 1000)
    for method, path in (("POST", PATH), ("GET", PATH + "?limit=1"), ("GET", "/account/limits")):
        with pytest.raises(InvalidSignature):
            verify(private_key(kind), headers, method, path)


@pytest.mark.parametrize(
    ("kind", "form"),
    [("rsa", PrivateFormat.PKCS8), ("rsa", PrivateFormat.TraditionalOpenSSL), ("ed25519", PrivateFormat.PKCS8)],
)
def test_keys_are_read_from_the_file_that_the_settings_name(kind, form, tmp_path, monkeypatch):
    file = stored(tmp_path, pem(private_key(kind), form), 0o640)
    monkeypatch.setenv("PRESAGE_KALSHI_KEY_ID", KEY_ID)
    monkeypatch.setenv("PRESAGE_KALSHI_PRIVATE_KEY_FILE", str(file))
    settings = Settings(_env_file=None)
    signer = read_signer(settings.kalshi_key_id.get_secret_value(), settings.kalshi_private_key_file)

    verify(private_key(kind), signer.headers("GET", PATH), "GET", PATH)
    assert KEY_ID not in repr(settings) + repr(signer)


def test_without_settings_there_is_no_key():
    assert read_signer(None, None) is None
    assert read_signer("", None) is None


def refusal(key_id, file):
    with pytest.raises(Unauthenticated) as caught:
        read_signer(key_id, file)
    assert caught.value.__cause__ is None
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_half_of_the_settings_says_which_half_is_missing(tmp_path):
    assert refusal(KEY_ID, None) == "PRESAGE_KALSHI_KEY_ID is set, but not PRESAGE_KALSHI_PRIVATE_KEY_FILE"
    assert refusal(None, tmp_path) == "PRESAGE_KALSHI_PRIVATE_KEY_FILE is set, but not PRESAGE_KALSHI_KEY_ID"
    assert "is not a key's id" in refusal("two\nlines", tmp_path)


def test_a_key_file_that_cannot_be_used_is_one_clear_line_without_its_content(tmp_path):
    secret = pem(private_key("ed25519"))
    cut = secret[:60] + b"\n-----END PRIVATE KEY-----\n"
    cases = [
        (stored(tmp_path, secret, 0o644), "is open to every user: chmod o= it"),
        (stored(tmp_path / "a", cut, 0o600), "is not a private key in PEM format"),
        (stored(tmp_path / "b", b"", 0o600), "is not a private key in PEM format"),
        (stored(tmp_path / "c", b"x" * 70_000, 0o600), "is too large for a key"),
        (stored(tmp_path / "d", pem(private_key("rsa"), password=b"secret")), "is encrypted"),
        (stored(tmp_path / "e", pem(ec.generate_private_key(ec.SECP256R1()))), "is neither an RSA nor an Ed25519 key"),
        (tmp_path / "none.pem", "cannot be read: No such file or directory"),
        (tmp_path, "cannot be read: Is a directory"),
        (Path("/dev/zero"), "is not a file"),
        (Path("nul\0"), "cannot be read: not a path"),
    ]
    for file, reason in cases:
        said = refusal(KEY_ID, file)

        assert reason in said
        assert str(file) in said
        assert secret.splitlines()[1].decode()[:20] not in said


def test_a_key_file_that_may_not_be_read_says_so(tmp_path, monkeypatch):
    file = stored(tmp_path, pem(private_key("ed25519")))

    def denied(*_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "open", denied)

    assert refusal(KEY_ID, file) == f"Kalshi's private key {file} cannot be read: Permission denied"


def test_a_pipe_in_place_of_a_key_file_does_not_block(tmp_path):
    os.mkfifo(tmp_path / "pipe", 0o600)

    assert "is not a file" in refusal(KEY_ID, tmp_path / "pipe")


def test_the_clock_is_set_by_the_exchanges_where_it_is_off(clock):
    signer = Signer(KEY_ID, private_key("ed25519"), wall=clock)

    for date in (None, "", "yesterday", formatdate(clock.now + 3, usegmt=True)):
        assert not signer.resync(date)
    assert signer.resync(formatdate(clock.now + 60, usegmt=True))
    assert verify(private_key("ed25519"), signer.headers("GET", PATH), "GET", PATH) == int(clock.now + 60) * 1000
    assert not signer.resync(formatdate(clock.now + 61, usegmt=True))
    assert signer.resync(formatdate(clock.now, usegmt=True))
    assert signer.skew_s == 0


def test_signed_requests_are_signed_anew_and_once_again_by_the_exchanges_clock(client_of, clock, caplog):
    caplog.set_level(1)
    times = []

    def exchange(request):
        times.append(verify(private_key("rsa"), request.headers, "GET", PATH) / 1000 - clock.now)
        if len(times) == 1:
            clock.now += 7  # time passes until it is tried again
            return httpx.Response(502)
        if abs(times[-1] - 300) > 20:
            now = formatdate(clock.now + 300, usegmt=True)
            return httpx.Response(401, json=samples.CLOCK_ERROR, headers={"Date": now})
        return httpx.Response(200, json=samples.ACCOUNT_LIMITS)

    api = Kalshi(client_of(exchange), signer=Signer(KEY_ID, private_key("rsa"), wall=clock))

    assert api.read_limits().usage_tier == "basic"
    assert times == pytest.approx([0, 0, 300], abs=1)
    assert KEY_ID not in caplog.text


def test_a_key_that_the_exchange_refuses_is_told_with_its_reason(client_of, clock):
    def exchange(request):
        exchange.asked += 1
        return httpx.Response(401, json=samples.NESTED_ERROR, headers={"Date": formatdate(clock.now, usegmt=True)})

    exchange.asked = 0
    api = Kalshi(client_of(exchange), signer=Signer(KEY_ID, private_key("rsa"), wall=clock))

    with pytest.raises(Unauthenticated, match="401 authentication_error: INCORRECT_API_KEY_SIGNATURE") as caught:
        api.read_limits()
    assert exchange.asked == 1
    assert KEY_ID not in str(caught.value)
    assert logging.getLogger("upstream.kalshi.socket.connection").getEffectiveLevel() >= logging.INFO


def test_what_needs_a_key_says_what_is_missing(client_of):
    api = Kalshi(client_of(lambda _: httpx.Response(500)))

    with pytest.raises(Unauthenticated, match="PRESAGE_KALSHI_KEY_ID and PRESAGE_KALSHI_PRIVATE_KEY_FILE"):
        api.read_limits()
