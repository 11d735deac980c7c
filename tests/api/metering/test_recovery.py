"""Accounts and their owners: new registrations, mailed links, recovered keys."""

from __future__ import annotations

import time

import pytest

from api.app import create_app
from api.metering import keys
from api.metering.mail import MailServer
from api.service import Service
from api.stream.hub import StreamHub
from tests.api.conftest import Client, OneConnection, serving
from tests.api.metering.mailbox import receiving
from tests.api.metering.test_unauthenticated import Caller

ME = "me@example.com"
SENDER = "Presage <presage@example.com>"


@pytest.fixture
def box():
    with receiving() as box:
        yield box


class Jobs:
    """A mail queue whose jobs run when asked for."""

    def __init__(self):
        self.waiting = []
        self.put = self.waiting.append

    def run(self):
        while self.waiting:
            self.waiting.pop(0)()


@pytest.fixture
def clock():
    return [time.time() // 86_400 * 86_400 + 3600]


@pytest.fixture
def jobs():
    return Jobs()


@pytest.fixture
def service(conn, box, clock, jobs):
    """A service that sends mail, when the test says so."""
    pool = OneConnection(conn)
    service = Service(
        reads=pool,
        writes=pool,
        hub=StreamHub(pool, lambda: 0),
        mail=MailServer.of(box.url, SENDER),
        site_url="https://presage.example/",
        clock=lambda: clock[0],
        registrations_a_day=1000,
    )
    service.recovery._queue = jobs
    return service


@pytest.fixture
def client(service):
    return Client(create_app(service))


@pytest.fixture
def mailed(jobs, box):
    """`mailed()` sends what waits, and gives the token of the newest mail."""

    def send():
        jobs.run()
        return box.tokens()[-1]

    return send


def register(client, email=ME):
    return client.simulate_post("/register", json={"app_name": "bot", "email": email})


def recover(client, email=ME, **how):
    return client.simulate_post("/recover", json={"email": email}, **how)


def confirm(client, token):
    return client.simulate_post("/confirm", json={"token": token})


def account(conn, key):
    row = conn.execute("select account_id from api_keys where key_hash = %s", [keys.digest(key)]).fetchone()
    return row and row[0]


def revoke_all(conn):
    conn.execute("update api_keys set revoked_at = now()")


def test_whoever_registers_an_address_gets_nothing_of_an_earlier_account(client, conn):
    old = register(client).json["key"]
    conn.execute(
        "insert into webhooks (account_id, url, secret, events, since_seq)"
        " values (%s, 'https://a.example', 'x', '{trade}', 0)",
        [account(conn, old)],
    )
    before = account(conn, old)
    revoke_all(conn)

    new = register(client)

    assert new.status_code == 201
    assert account(conn, new.json["key"]) != before
    assert client.ask("/v1/webhooks", key=new.json["key"]).json["data"] == []
    assert client.ask("/v1/time", key=old).status_code == 401


def test_an_address_whose_account_is_closed_does_not_register_again(client, conn):
    register(client)
    conn.execute("update accounts set closed_at = now()")
    revoke_all(conn)

    answer = register(client)

    assert (answer.status_code, answer.json["code"], answer.json["errors"][0]["name"]) == (
        400,
        "invalid_parameter",
        "email",
    )
    assert keys.create(conn, ME, "bot")  # unless the operator says so
    assert conn.execute("select count(*) from accounts where former_email = %s", [ME]).fetchone() == (1,)


def test_no_number_of_keys_that_a_tier_allows_gives_a_stranger_one_of_an_account(client, conn):
    conn.execute("update tiers set max_keys = 3 where tier = 'free'")
    register(client)

    assert register(client).status_code == 400


def test_a_verified_address_gets_its_lost_key_replaced(client, conn, mailed, box):
    old = register(client).json["key"]
    assert client.ask("/v1/markets", key=old).status_code == 200
    first = confirm(client, mailed())
    assert (first.json["purpose"], first.json["key"]) == ("verify", None)

    assert recover(client).status_code == 202
    done = confirm(client, mailed())

    assert done.json["purpose"] == "recover"
    new = done.json["key"]
    assert client.ask("/v1/markets", key=new).headers["X-Credits-Used"] == "2"
    assert client.ask("/v1/markets", key=old).status_code == 401
    assert [to for to, _ in box.messages] == [[ME], [ME]]
    assert box.messages[-1][1]["From"] == SENDER
    assert "https://presage.example/confirm?token=" in box.messages[-1][1].get_content()


def test_an_address_that_was_never_verified_gets_a_new_account_and_the_old_keeps_its_key(client, conn, mailed):
    old = register(client).json["key"]
    mailed()
    recover(client)

    new = confirm(client, mailed()).json["key"]

    assert account(conn, new) != account(conn, old)
    assert client.ask("/v1/time", key=old).status_code == client.ask("/v1/time", key=new).status_code == 200
    assert conn.execute("select verified_at is not null from accounts where email = %s", [ME]).fetchone() == (True,)
    recover(client)
    assert confirm(client, mailed()).json["purpose"] == "recover"
    assert client.ask("/v1/time", key=new).status_code == 401  # replaced: the new account is verified


def test_a_verified_account_without_a_valid_key_is_recovered_by_mail(client, conn, mailed):
    old = register(client).json["key"]
    confirm(client, mailed())
    revoke_all(conn)
    recover(client)

    new = confirm(client, mailed()).json["key"]

    assert account(conn, new) == account(conn, old)


def test_a_link_works_once_and_for_its_time(client, mailed, clock):
    register(client)
    token = mailed()
    assert confirm(client, token).status_code == 200
    assert confirm(client, token).status_code == 400
    recover(client)
    late = mailed()
    clock[0] += 3601

    answer = confirm(client, late)

    assert (answer.status_code, answer.json["code"], answer.json["errors"][0]["name"]) == (
        400,
        "invalid_parameter",
        "token",
    )


def test_a_closed_account_is_not_recovered(client, conn, jobs, box, mailed):
    register(client)
    mailed()
    recover(client)
    token = mailed()
    conn.execute("update accounts set closed_at = now()")
    revoke_all(conn)

    recover(client)
    jobs.run()

    assert len(box.messages) == 2
    assert confirm(client, token).status_code == 400
    assert conn.execute("select count(*) from api_keys where revoked_at is null").fetchone() == (0,)


def test_tokens_are_kept_as_their_digest_only(client, conn, mailed):
    register(client)
    token = mailed()

    stored = conn.execute("select token_hash from account_tokens").fetchall()

    assert stored == [(keys.digest(token),)]
    assert token not in str(conn.execute("select * from account_tokens").fetchall())


def test_the_answer_does_not_tell_whether_there_is_an_account(client, jobs, box):
    register(client)
    jobs.run()

    known, unknown = recover(client), recover(client, "nobody@example.com")
    jobs.run()

    assert (known.status_code, known.content) == (unknown.status_code, unknown.content) == (202, unknown.content)
    assert len(box.messages) == 2


def test_an_address_is_mailed_three_times_a_day(client, jobs, box, clock):
    register(client)
    for _ in range(5):
        assert recover(client).status_code == 202
    jobs.run()
    assert len(box.messages) == 3
    clock[0] += 86_400

    recover(client)
    jobs.run()

    assert len(box.messages) == 4


def test_one_client_asks_for_so_many_mails_a_day(client, service):
    service.registrations_a_day = 2

    answers = [recover(client, f"{number}@example.com").status_code for number in range(3)]

    assert answers == [202, 202, 429]
    assert recover(client, remote_addr="192.0.2.7").status_code == 202
    assert register(client).status_code == 201


@pytest.mark.parametrize(
    ("path", "body", "code"),
    [
        ("/recover", {}, "missing_parameter"),
        ("/recover", {"email": "me"}, "invalid_parameter"),
        ("/recover", {"email": "me@example.com\r\nBcc: you@example.com"}, "invalid_parameter"),
        ("/confirm", {}, "missing_parameter"),
        ("/confirm", {"token": ""}, "invalid_parameter"),
        ("/confirm", {"token": "é"}, "invalid_parameter"),
        ("/confirm", {"token": "x" * 201}, "invalid_parameter"),
    ],
)
def test_what_is_wrong_is_named(client, path, body, code):
    answer = client.simulate_post(path, json=body)

    assert (answer.status_code, answer.json["code"]) == (400, code)


def test_without_a_mail_server_nothing_is_recovered_by_mail(service, client):
    service.recovery = None

    for path, body in (("/recover", {"email": ME}), ("/confirm", {"token": "x"})):
        answer = client.simulate_post(path, json=body)
        assert (answer.status_code, answer.json["code"]) == (404, "not_found")
        assert "operator" in answer.json["hint"]
    assert register(client).status_code == 201


@pytest.mark.parametrize(
    ("url", "sender", "said"),
    [
        ("http://mail.example", SENDER, "smtps://"),
        ("smtps://", SENDER, "smtps://"),
        ("smtp://user:secret@mail.example", SENDER, "smtp\\+starttls"),
        ("smtps://mail.example", "", "PRESAGE_MAIL_FROM"),
    ],
)
def test_settings_that_cannot_work_are_refused_at_the_start(url, sender, said):
    with pytest.raises(ValueError, match=said) as refused:
        MailServer.of(url, sender)
    assert "secret" not in str(refused.value)


def test_a_server_mails_links_and_recovers_keys(database_url, conn, box):
    env = {
        "PRESAGE_SMTP_URL": box.url,
        "PRESAGE_MAIL_FROM": SENDER,
        "PRESAGE_PUBLIC_SITE_URL": "https://presage.example",
    }
    with serving(database_url, **env) as server:
        caller = Caller(server, "127.0.5.1")
        assert caller.ask("/register", body=f'{{"app_name": "bot", "email": "{ME}"}}')[0] == 201
        assert caller.ask("/confirm", body=f'{{"token": "{box.token(1)}"}}')[0] == 200
        assert caller.ask("/recover", body=f'{{"email": "{ME}"}}')[0] == 202
        assert caller.ask("/confirm", body=f'{{"token": "{box.token(2)}"}}')[0] == 200
        log = server.stop()
        caller.close()

    assert conn.execute("select count(*), bool_and(verified_at is not null) from accounts").fetchone() == (1, True)
    assert not any(token in log for token in box.tokens())
