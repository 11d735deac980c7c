"""Events become deliveries, and deliveries arrive: in order, on schedule, signed, at least once."""

from __future__ import annotations

import json
import subprocess
import threading
import time
from itertools import accumulate
from pathlib import Path

import pytest
from standardwebhooks import Webhook, WebhookVerificationError

from orchestration.webhooks import dispatcher
from orchestration.webhooks.schedule import DELAYS_S
from sql.queries import webhooks as queries
from sql.webhook_secrets import SecretBox
from tests import stream_rows
from tests.factories import insert
from tests.orchestration.webhooks.receiving import MARKET, add_webhook, deliveries, new_secret, tell, trade

ROOT = Path(__file__).parents[3]


def numbers(receiver):
    return [int(seen.event["data"]["id"]) for seen in receiver.seen]


def test_events_arrive_in_the_order_of_the_stream_each_under_one_id(conn, receiver, delivering):
    webhook = add_webhook(conn, receiver.url)
    other = add_webhook(conn, f"{receiver.url}/other", events=["market"])
    last = tell(conn, *(trade(number) for number in range(20)), ("price", {"mid": 0.5}))

    delivering().settle()

    assert numbers(receiver) == list(range(20))
    assert len({seen.id for seen in receiver.seen}) == 20
    assert {seen.path for seen in receiver.seen} == {"/hook"}
    assert receiver.seen[-1].event == {
        "type": "trade",
        "timestamp": "2026-11-21T12:00:00.123Z",
        "seq": last - 1,
        "market_id": MARKET,
        "data": {"market_id": MARKET, "id": "19", "price": 0.5, "size": 10, "value_usd": 5.0, "side": "BUY"},
    }
    assert deliveries(conn, webhook) == [("delivered", 1, [200])] * 20
    assert deliveries(conn, other) == []


def missed(receiver):
    return [seen.event["data"] for seen in receiver.seen if seen.event["type"] == "webhook.missed"]


def test_places_of_the_stream_that_were_dropped_before_they_were_looked_at_are_told_first(conn, receiver, delivering):
    webhook = add_webhook(conn, receiver.url)
    last = tell(conn, *(trade(number) for number in range(5)))
    stream_rows.remove(conn, lambda seq: seq <= last - 2)
    later = add_webhook(conn, f"{receiver.url}/later", events=["market"])
    work = delivering()

    work.settle()

    assert [seen.event["type"] for seen in receiver.seen] == ["webhook.missed", "trade", "trade"]
    assert missed(receiver) == [{"from_seq": last - 4, "to_seq": last - 2}]
    assert receiver.seen[0].event["timestamp"] == "2026-11-21T12:00:00.000Z"
    assert deliveries(conn, webhook) == [("delivered", 1, [200])] * 3
    assert deliveries(conn, later) == [], "it is told of what came after it"
    assert work.dispatcher.counted.missed == 3


def test_that_nothing_is_left_of_what_happened_is_told_too_and_once(conn, receiver, delivering):
    add_webhook(conn, receiver.url)
    before = tell(conn, trade(1))
    work = delivering()
    work.settle()
    last = tell(conn, trade(2), trade(3))
    conn.execute("delete from stream_blocks")

    work.settle()
    tell(conn, trade(4))
    work.settle()

    assert missed(receiver) == [{"from_seq": before + 1, "to_seq": last}]
    assert [seen.event["type"] for seen in receiver.seen] == ["trade", "webhook.missed", "trade"]


def test_messages_that_cannot_be_read_are_told_as_missed_in_their_place_and_hold_nobody_up(conn, receiver, delivering):
    add_webhook(conn, receiver.url)
    before = tell(conn, trade(1))
    damaged = tell(conn, trade(2), trade(3))
    tell(conn, trade(4))
    stream_rows.spoil(conn, damaged)
    work = delivering()

    work.settle()

    assert [seen.event["type"] for seen in receiver.seen] == ["trade", "webhook.missed", "trade"]
    assert missed(receiver) == [{"from_seq": before + 1, "to_seq": damaged}]
    assert work.dispatcher.counted.missed == 2


def test_ten_attempts_are_made_at_the_seconds_that_the_standard_names(conn, receiver, delivering):
    receiver.answer = lambda _number, _seen: 500
    webhook = add_webhook(conn, receiver.url)
    tell(conn, trade(1))
    work = delivering()
    began = work.clock.now
    planned = [began + seconds for seconds in accumulate(DELAYS_S)]

    work.settle()
    assert len(receiver.seen) == 1
    for nth, moment in enumerate(planned[1:], start=2):
        work.clock.now = moment - 1  # a second too early
        work.settle()
        assert len(receiver.seen) == nth - 1
        work.clock.now = moment
        work.settle()
        assert len(receiver.seen) == nth

    assert [int(seen.headers["webhook-timestamp"]) for seen in receiver.seen] == planned
    assert planned[-1] - began == 75 * 3600 + 35 * 60 + 5
    assert len({seen.id for seen in receiver.seen}) == 1
    assert deliveries(conn, webhook) == [("failed", 10, [500] * 10)]
    work.clock.now += 10**6
    work.settle()
    assert len(receiver.seen) == 10


def test_what_follows_waits_for_what_fails_and_other_webhooks_do_not(conn, receiver, delivering):
    failing = add_webhook(conn, f"{receiver.url}/failing")
    fine = add_webhook(conn, f"{receiver.url}/fine")
    receiver.answer = lambda _number, seen: 503 if seen.path.endswith("failing") else 204
    work = delivering()
    tell(conn, trade(1), trade(2))

    work.settle()
    assert deliveries(conn, failing) == [("waiting", 1, [503]), ("waiting", 0, [])]
    assert deliveries(conn, fine) == [("delivered", 1, [204])] * 2

    receiver.answer = lambda _number, _seen: 204
    receiver.seen.clear()
    work.clock.now += 5
    work.settle()

    assert numbers(receiver) == [1, 2]
    assert deliveries(conn, failing) == [("delivered", 2, [503, 204]), ("delivered", 1, [204])]


@pytest.mark.parametrize("status", [301, 302, 307, 400, 404, 418, 500])
def test_whatever_is_not_2xx_is_tried_again_and_redirects_lead_nowhere(conn, receiver, delivering, status):
    receiver.answer = lambda number, _seen: (status, {"location": "/elsewhere"}) if number == 1 else 201
    webhook = add_webhook(conn, receiver.url)
    tell(conn, trade(1))
    work = delivering()

    work.settle()
    work.clock.now += 5
    work.settle()

    assert deliveries(conn, webhook) == [("delivered", 2, [status, 201])]
    assert {seen.path for seen in receiver.seen} == {"/hook"}


def test_410_disables_a_webhook_and_keeps_what_waits(conn, receiver, delivering):
    receiver.answer = lambda number, _seen: 410 if number == 1 else 200
    webhook = add_webhook(conn, receiver.url)
    tell(conn, trade(1), trade(2))
    work = delivering()

    work.settle()
    tell(conn, trade(3))
    work.settle()

    assert deliveries(conn, webhook) == [("failed", 1, [410]), ("waiting", 0, [])]
    reason = conn.execute("select disabled_reason from webhooks").fetchone()[0]
    assert reason == "the receiver answered 410 Gone"
    queries.enable(conn, account_id=webhook["account_id"], webhook_id=webhook["webhook_id"])
    queries.changed(conn)
    work.clock.now = time.time() + 1
    tell(conn, trade(4))
    work.settle()
    assert numbers(receiver) == [1, 2, 4]


def test_an_overloaded_receiver_is_left_alone_for_as_long_as_it_asks(conn, receiver, delivering):
    receiver.answer = lambda number, _seen: (429, {"retry-after": "120"}) if number == 1 else 200
    add_webhook(conn, receiver.url)
    tell(conn, trade(1))
    work = delivering()

    work.settle()
    work.clock.now += 119
    work.settle()
    assert len(receiver.seen) == 1
    work.clock.now += 1
    work.settle()

    assert len(receiver.seen) == 2


def test_a_receiver_that_does_not_answer_costs_its_time_and_nobody_elses(conn, receiver, delivering):
    over = threading.Event()
    receiver.answer = lambda _number, seen: over.wait(60) or 200 if seen.path.endswith("slow") else 200
    slow = add_webhook(conn, f"{receiver.url}/slow")
    quick = add_webhook(conn, f"{receiver.url}/quick")
    tell(conn, *(trade(number) for number in range(5)))
    work = delivering(timeout_s=2.0)

    work.settle()
    over.set()

    (waited_for,) = [seen.at for seen in receiver.seen if seen.path.endswith("slow")]
    others = [seen.at for seen in receiver.seen if seen.path.endswith("quick")]
    assert max(others) < waited_for + 2.0
    assert deliveries(conn, quick) == [("delivered", 1, [200])] * 5
    assert deliveries(conn, slow)[0] == ("waiting", 1, [None])
    assert conn.execute(
        "select log -> 0 ->> 'error' from webhook_deliveries where log -> 0 ->> 'error' is not null"
    ).fetchone() == ("no complete answer within 2 s",)


def test_signatures_are_accepted_by_the_standards_own_libraries(conn, receiver, delivering):
    webhook = add_webhook(conn, receiver.url)
    rotating = add_webhook(conn, f"{receiver.url}/rotating", next_secret=new_secret())
    tell(conn, trade(1, note="ümläut ✓"))

    delivering(time.time).settle()

    by_path = {seen.path: seen for seen in receiver.seen}
    plain, both = by_path["/hook"], by_path["/hook/rotating"]
    assert Webhook(webhook["secret"]).verify(plain.body, plain.headers)["type"] == "trade"
    for secret in (rotating["secret"], rotating["next_secret"]):
        assert Webhook(secret).verify(both.body, both.headers)["data"]["note"] == "ümläut ✓"
    with pytest.raises(WebhookVerificationError):
        Webhook(webhook["secret"]).verify(both.body, both.headers)
    given = [
        {"secret": webhook["secret"], "headers": plain.headers, "body": plain.body.decode()},
        {"secret": rotating["next_secret"], "headers": both.headers, "body": both.body.decode()},
        {"secret": webhook["secret"], "headers": both.headers, "body": both.body.decode()},
    ]
    program = """
        import { Webhook } from "standardwebhooks";
        for (const { secret, headers, body } of JSON.parse(process.argv[1])) {
          try { console.log(new Webhook(secret).verify(body, headers).type); } catch { console.log("refused"); }
        }"""
    said = subprocess.run(
        ["node", "--input-type=module", "-e", program, json.dumps(given)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    ).stdout.split()
    assert said == ["trade", "trade", "refused"]


def test_encrypted_secrets_sign_and_without_their_key_messages_wait(conn, receiver, delivering):
    box, secret = SecretBox(lambda: ["cHJlc2FnZSBwcmVzYWdlIHByZXNhZ2UgcHJlc2FnZSE="]), new_secret()
    webhook = add_webhook(conn, receiver.url, secret=box.encrypt(secret))
    tell(conn, trade(1))

    without = delivering()
    without.settle()
    assert receiver.seen == []
    assert deliveries(conn, webhook) == [("waiting", 1, [None])]
    assert "PRESAGE_WEBHOOK_ENCRYPTION_KEYS" in conn.execute("select log::text from webhook_deliveries").fetchone()[0]
    conn.execute("update webhooks set due_at = now()")
    conn.execute("update webhook_deliveries set next_at = now()")
    delivering(time.time, box=box).settle()

    (seen,) = receiver.seen
    assert Webhook(secret).verify(seen.body, seen.headers)["data"]["id"] == "1"


def test_a_connection_that_was_closed_meanwhile_costs_no_attempt(conn, receiver, delivering):
    receiver.stray = b"x"  # what follows an answer makes its connection useless for the next
    webhook = add_webhook(conn, receiver.url)
    tell(conn, *(trade(number) for number in range(5)))

    delivering().settle()

    assert deliveries(conn, webhook) == [("delivered", 1, [200])] * 5
    assert receiver.connections > 1


def test_events_that_were_before_a_webhook_are_not_told(conn, receiver, delivering):
    tell(conn, trade(1))
    add_webhook(conn, receiver.url)
    tell(conn, trade(2))

    delivering().settle()

    assert numbers(receiver) == [2]


def test_what_happened_while_there_was_nobody_to_tell_is_not_looked_through(conn, receiver, delivering):
    conn.execute("update stream_head set last_seq = 10000000000")
    add_webhook(conn, receiver.url)
    tell(conn, trade(1))
    work = delivering()

    work.dispatcher.step()

    assert conn.execute("select last_seq from webhook_head").fetchone() == (10_000_000_001,)
    work.settle()
    assert numbers(receiver) == [1]


def test_a_deliverer_that_begins_anew_goes_on_where_the_other_stopped(conn, receiver, delivering):
    receiver.answer = lambda number, _seen: 500 if number == 1 else 200
    webhook = add_webhook(conn, receiver.url)
    tell(conn, trade(1))
    first = delivering()
    first.settle()
    tell(conn, trade(2))

    second = delivering()
    second.clock.now += 5
    second.settle()

    assert numbers(receiver) == [1, 1, 2]
    assert receiver.seen[0].id == receiver.seen[1].id
    assert deliveries(conn, webhook) == [("delivered", 2, [500, 200]), ("delivered", 1, [200])]


def test_an_event_queued_twice_is_one_delivery(conn, receiver, delivering):
    webhook = add_webhook(conn, receiver.url)
    tell(conn, trade(1), trade(2))
    delivering().settle()
    conn.execute("update webhook_head set last_seq = 0")  # as if the step had not been committed

    delivering().settle()

    assert numbers(receiver) == [1, 2]
    assert conn.execute("select waiting from webhooks").fetchone() == (0,)
    assert len(deliveries(conn, webhook)) == 2


def test_a_webhook_that_falls_too_far_behind_is_disabled(conn, receiver, delivering):
    receiver.answer = lambda _number, _seen: 500
    add_webhook(conn, receiver.url)
    work = delivering(max_waiting=10)
    tell(conn, *(trade(number) for number in range(11)))

    work.settle()
    tell(conn, trade(12))
    work.settle()

    assert conn.execute("select waiting, disabled_reason from webhooks").fetchone() == (
        11,
        "more than 10 deliveries were waiting",
    )


def test_what_an_outage_of_ours_has_gathered_disables_no_webhook_that_answers(conn, receiver, delivering, monkeypatch):
    monkeypatch.setattr(dispatcher, "MAX_EVENTS_PER_STEP", 25)
    webhook = add_webhook(conn, receiver.url)
    work = delivering(max_waiting=10)
    work.settle()
    tell(conn, *(trade(number) for number in range(60)))

    for _ in range(3):
        work.dispatcher.step()
    assert conn.execute("select waiting > 10 from webhooks").fetchone() == (True,)
    work.settle()

    assert deliveries(conn, webhook) == [("delivered", 1, [200])] * 60


def test_a_receiver_that_answers_too_slowly_is_disabled_when_far_more_waits(conn, receiver, delivering, monkeypatch):
    monkeypatch.setattr(dispatcher, "MAX_WAITING_FACTOR", 20)
    over = threading.Event()
    receiver.answer = lambda _number, _seen: over.wait(60) and 200
    webhook = add_webhook(conn, receiver.url)
    work = delivering(max_waiting=10)
    found = []
    for events in (200, 1, 1):
        tell(conn, *(trade(number) for number in range(events)))
        work.dispatcher.step()
        found.append(conn.execute("select waiting, disabled_reason from webhooks").fetchone())
    over.set()

    assert found == [(200, None), (201, None), (201, "more than 200 deliveries were waiting")]
    assert deliveries(conn, webhook)[0] == ("waiting", 0, [])


def test_a_failure_before_too_much_waited_disables_nobody(conn, receiver, delivering):
    receiver.answer = lambda number, _seen: 500 if number == 1 else 200
    webhook = add_webhook(conn, receiver.url)
    work = delivering(max_waiting=10)
    tell(conn, trade(0))
    work.settle()
    work.clock.now += 1
    tell(conn, *(trade(number) for number in range(1, 20)))
    work.settle()
    tell(conn, trade(20))
    work.settle()
    work.clock.now += 5
    work.settle()

    assert deliveries(conn, webhook) == [("delivered", 2, [500, 200])] + [("delivered", 1, [200])] * 20


def test_a_webhook_that_was_enabled_again_and_answers_stays_so(conn, receiver, delivering):
    receiver.answer = lambda _number, _seen: 500
    webhook = add_webhook(conn, receiver.url)
    work = delivering(time.time, max_waiting=10)
    tell(conn, *(trade(number) for number in range(50)))
    work.settle()
    tell(conn, trade(50))
    work.settle()
    assert conn.execute("select waiting, disabled_at is null from webhooks").fetchone() == (50, False)

    receiver.answer = lambda _number, _seen: 200
    queries.enable(conn, account_id=webhook["account_id"], webhook_id=webhook["webhook_id"])
    queries.changed(conn)
    tell(conn, trade(51))
    work.settle()

    assert conn.execute("select waiting, disabled_at is null from webhooks").fetchone() == (0, True)
    assert numbers(receiver)[-51:] == [*range(50), 51]


@pytest.mark.parametrize(("most", "steps"), [(7, [9, 15]), (1, [3, 6, 9, 12, 15])])
def test_events_that_many_want_are_queued_a_bounded_number_at_a_time(
    conn, receiver, delivering, monkeypatch, most, steps
):
    monkeypatch.setattr(dispatcher, "MAX_DELIVERIES_PER_STEP", most, raising=False)
    webhooks = [add_webhook(conn, f"{receiver.url}/{name}") for name in "abc"]
    last = tell(conn, *(trade(number) for number in range(6)))
    stream_rows.remove(conn, (last - 2, last - 1).__contains__)
    work = delivering()
    queued = []

    while not queued or work.dispatcher.behind:
        work.dispatcher.step()
        queued.append(work.dispatcher.counted.queued)
    work.settle()

    assert queued == steps
    assert work.dispatcher.counted.missed == 2
    assert [deliveries(conn, webhook) for webhook in webhooks] == [[("delivered", 1, [200])] * 5] * 3
    for name in "abc":
        seen = [each.event for each in receiver.seen if each.path.endswith(name)]
        assert [each["seq"] for each in seen] == [last - 5, last - 4, last - 3, last - 1, last]
        assert [each["type"] for each in seen] == [*["trade"] * 3, "webhook.missed", "trade"]


def test_removing_a_webhook_amid_its_deliveries_harms_nobody(conn, receiver, delivering):
    gone = add_webhook(conn, f"{receiver.url}/gone")
    kept = add_webhook(conn, f"{receiver.url}/kept")

    def answer(_number, seen):
        if seen.path.endswith("gone"):
            conn.execute("delete from webhooks where webhook_id = %s", [gone["webhook_id"]])
            conn.execute("update webhook_head set version = version + 1")
        return 200

    receiver.answer = answer
    tell(conn, trade(1), trade(2))

    delivering().settle()

    assert deliveries(conn, kept) == [("delivered", 1, [200])] * 2
    assert conn.execute("select count(*) from webhook_deliveries").fetchone() == (2,)


def test_webhooks_are_delivered_to_side_by_side_each_in_order(conn, receiver, delivering):
    account = insert(conn, "accounts", {"email": "many@example.com", "app_name": "tests"})
    conn.execute(
        """insert into webhooks (account_id, url, events, secret, since_seq)
        select %s, %s, '{trade}', %s, 0 from generate_series(1, 40)""",
        [account["account_id"], receiver.url, new_secret()],
    )
    conn.execute("update webhook_head set version = version + 1")
    tell(conn, *(trade(number) for number in range(5)))

    delivering().settle(60)

    assert len(receiver.seen) == 200
    assert len({seen.id for seen in receiver.seen}) == 200
    orders = {}
    for row in conn.execute("select webhook_id, delivery_id::text from webhook_deliveries"):
        orders.setdefault(row[0], []).append("msg_" + row[1].replace("-", ""))
    places = {seen.id: place for place, seen in enumerate(receiver.seen)}
    in_order = [
        sorted(ids, key=places.get)
        == [
            f"msg_{row[0].hex}"
            for row in conn.execute(
                "select delivery_id from webhook_deliveries where webhook_id = %s order by number", [webhook_id]
            )
        ]
        for webhook_id, ids in orders.items()
    ]
    assert in_order == [True] * 40
