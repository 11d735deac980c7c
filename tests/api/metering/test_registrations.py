"""Registrations are limited per address; forwarded addresses count only from trusted proxies."""

from __future__ import annotations

import time

import pytest

from api.server.address import SITE_TOKEN, Proxies


def register(client, number=0, **how):
    email = f"{number}@example.com"
    return client.simulate_post("/register", json={"app_name": "bot", "email": email}, **how)


@pytest.fixture
def clock(service):
    """A clock that is advanced manually, in seconds."""
    now = [time.time() // 86_400 * 86_400 + 3600]
    service.clock = lambda: now[0]
    return now


def test_an_address_has_so_many_keys_a_day(client, service, clock):
    service.registrations_a_day = 3

    answers = [register(client, number) for number in range(4)]

    assert [answer.status_code for answer in answers] == [201] * 3 + [429]
    assert answers[-1].json["code"] == "burst_exceeded"
    assert answers[-1].headers["Retry-After"] == str(23 * 3600 + 1)
    assert register(client, 9, remote_addr="192.0.2.7").status_code == 201
    clock[0] += 86_400
    assert register(client, 3).status_code == 201


def test_looking_for_who_has_a_key_counts_and_mistakes_do_not(client, service, clock):
    service.registrations_a_day = 3
    assert client.simulate_post("/register", json={"app_name": "bot", "email": "nobody"}).status_code == 400

    answers = [register(client) for _ in range(4)]

    assert [answer.status_code for answer in answers] == [201, 400, 400, 429]


def test_yesterdays_addresses_are_forgotten(client, conn, clock):
    register(client)
    clock[0] += 86_400
    register(client, 1, remote_addr="192.0.2.7")

    assert conn.execute("select address, asked from registrations").fetchall() == [("192.0.2.7", 1)]


def test_who_is_not_behind_a_trusted_proxy_cannot_claim_another_address(client, service, clock):
    service.registrations_a_day = 1
    forged = {"X-Forwarded-For": "198.51.100.9"}
    assert register(client, 1, headers=forged).status_code == 201
    assert register(client, 2, headers={"X-Forwarded-For": "198.51.100.10"}).status_code == 429

    service.proxies = Proxies("127.0.0.1")

    assert register(client, 3, headers=forged).status_code == 201
    assert register(client, 4, headers=forged).status_code == 429


def test_the_site_is_believed_by_its_token_and_no_other_program_of_its_address(client, service, clock):
    service.registrations_a_day = 1
    service.proxies = Proxies("", "a token of 32 characters, at least")
    from_site = {SITE_TOKEN: "a token of 32 characters, at least", "X-Forwarded-For": "198.51.100.9"}

    assert register(client, 1, headers=from_site).status_code == 201
    assert register(client, 2, headers=from_site).status_code == 429
    assert register(client, 3, headers=from_site | {"X-Forwarded-For": "203.0.113.1, 198.51.100.9"}).status_code == 429
    for number, token in enumerate(("", "another token of 32 characters, too", "é"), start=4):
        forged = {SITE_TOKEN: token, "X-Forwarded-For": f"198.51.100.1{number}"}
        assert register(client, number, headers=forged).status_code == (201 if number == 4 else 429)  # 127.0.0.1's one


@pytest.mark.parametrize(
    ("trusted", "remote", "forwarded", "origin"),
    [
        ("", "192.0.2.1", None, "192.0.2.1"),
        ("", "192.0.2.1", "198.51.100.1", "192.0.2.1"),
        ("192.0.2.1", "192.0.2.1", None, "192.0.2.1"),
        ("192.0.2.1", "192.0.2.1", "198.51.100.1", "198.51.100.1"),
        ("192.0.2.1", "192.0.2.1", "203.0.113.5, 198.51.100.1", "198.51.100.1"),
        ("192.0.2.0/24, 198.51.100.0/24", "192.0.2.1", "203.0.113.5,198.51.100.1", "203.0.113.5"),
        ("192.0.2.1", "192.0.2.1", "nonsense", "192.0.2.1"),
        ("192.0.2.1", "192.0.2.1", "198.51.100.1, ", "192.0.2.1"),
        ("::1", "::1", "2001:db8:1:2:3::4", "2001:db8:1:2::/64"),
        ("", "2001:db8:1:2:ffff::1", None, "2001:db8:1:2::/64"),
        ("", "::ffff:192.0.2.1", None, "192.0.2.1"),
        ("192.0.2.1", "::ffff:192.0.2.1", "198.51.100.1", "198.51.100.1"),
        ("", "", "198.51.100.1", "local"),
    ],
)
def test_a_proxys_word_is_taken_as_far_as_proxies_are_trusted(trusted, remote, forwarded, origin):
    assert Proxies(trusted).origin(remote, forwarded) == origin


def test_what_is_no_network_is_refused_at_the_start():
    with pytest.raises(ValueError, match="somewhere"):
        Proxies("127.0.0.1, somewhere")
