"""A receiver proves that it wants a webhook's messages before it is sent any."""

from __future__ import annotations

import json

import pytest

from orchestration.webhooks import challenge, dispatcher
from tests.orchestration.webhooks.challenging import CHALLENGE, pend
from tests.orchestration.webhooks.receiving import add_webhook, deliveries, tell, trade


def types(receiver):
    return [seen.event["type"] for seen in receiver.seen]


def state(conn):
    return conn.execute("select challenge is null, verified_at is not null, waiting from webhooks").fetchone()


@pytest.fixture
def answers(receiver):
    """Make the receiver answer with a text that `how(seen)` returns."""

    def set_answer(how):
        receiver.answer = lambda _number, seen: (200, {}, how(seen))

    return set_answer


@pytest.mark.parametrize(
    "answer",
    [CHALLENGE, f" {CHALLENGE}\n", json.dumps({"challenge": CHALLENGE}), json.dumps({"challenge": CHALLENGE, "ok": 1})],
)
def test_a_receiver_that_repeats_the_challenge_is_sent_what_happens_from_then_on(
    conn, receiver, delivering, answers, answer
):
    webhook = add_webhook(conn, receiver.url, verified_at=None)
    pend(conn, webhook)
    tell(conn, trade(1))
    answers(lambda _seen: answer)
    work = delivering()

    work.settle()
    assert types(receiver) == [challenge.TYPE]
    assert state(conn) == (True, True, 0)
    tell(conn, trade(2))
    work.settle()

    assert types(receiver) == [challenge.TYPE, "trade"]
    assert receiver.seen[-1].event["data"]["id"] == "2"
    assert receiver.seen[0].headers["webhook-signature"].startswith("v1,")


@pytest.mark.parametrize(
    "how",
    [
        lambda _seen: "ok",
        lambda _seen: "",
        lambda seen: seen.body.decode(),
        lambda _seen: json.dumps({"challenge": CHALLENGE[:-1]}),
        lambda _seen: json.dumps([CHALLENGE]),
        lambda _seen: f"you sent {CHALLENGE}",
    ],
    ids=["no answer to it", "empty", "whatever it is sent", "another", "a list", "amid other text"],
)
def test_a_receiver_that_does_not_repeat_the_challenge_is_sent_nothing_else(conn, receiver, delivering, answers, how):
    webhook = add_webhook(conn, receiver.url, verified_at=None)
    pend(conn, webhook)
    answers(how)
    work = delivering()

    work.settle()
    tell(conn, trade(1))
    work.clock.now += 10**6
    work.settle()

    assert types(receiver) == [challenge.TYPE]
    assert state(conn) == (False, False, 0)
    ((kept, error),) = conn.execute("select state, log -> 0 ->> 'error' from webhook_deliveries").fetchall()
    assert (kept, error) == ("failed", challenge.NOT_ECHOED)


def test_an_answer_that_is_no_2xx_verifies_nothing(conn, receiver, delivering):
    webhook = add_webhook(conn, receiver.url, verified_at=None)
    pend(conn, webhook)
    receiver.answer = lambda _number, _seen: (400, {}, CHALLENGE)

    delivering().settle()

    assert state(conn) == (False, False, 0)
    assert deliveries(conn, webhook) == [("failed", 1, [400])]


def test_what_waits_for_a_url_is_kept_while_the_next_one_is_verified(conn, receiver, delivering, answers):
    webhook = add_webhook(conn, receiver.url)
    answers(lambda _seen: "not yet")
    work = delivering()
    pend(conn, webhook)
    tell(conn, trade(1))
    work.settle()
    assert types(receiver) == [challenge.TYPE]
    assert state(conn) == (False, True, 1)

    tell(conn, trade(2))
    pend(conn, webhook, "another one")
    answers(lambda _seen: "another one")
    work.settle()

    assert types(receiver) == [challenge.TYPE, challenge.TYPE, "trade", "trade"]
    assert [seen.event["data"].get("id") for seen in receiver.seen[2:]] == ["1", "2"]


def test_an_answer_to_a_challenge_that_was_replaced_meanwhile_verifies_nothing(conn, receiver, delivering):
    webhook = add_webhook(conn, receiver.url, verified_at=None)
    pend(conn, webhook)

    def answer(_number, _seen):
        conn.execute("update webhooks set challenge = 'for another URL'")
        return 200, {}, CHALLENGE

    receiver.answer = answer

    delivering().settle()

    assert state(conn) == (False, False, 0)


def test_a_webhook_that_nobody_verifies_is_disabled_before_much_waits(conn, receiver, delivering, monkeypatch):
    monkeypatch.setattr(dispatcher, "MAX_HELD_BACK", 10)
    webhook = add_webhook(conn, receiver.url)
    conn.execute("update webhooks set challenge = 'x' where webhook_id = %s", [webhook["webhook_id"]])
    work = delivering()

    for number in range(30):
        tell(conn, trade(number))
        work.settle()

    assert receiver.seen == []
    waiting, reason = conn.execute("select waiting, disabled_reason from webhooks").fetchone()
    assert waiting == 11
    assert reason == "more than 10 deliveries were waiting for the URL's verification or the next day's budget"
