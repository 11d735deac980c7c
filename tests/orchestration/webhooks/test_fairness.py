"""An account's webhooks delay nobody else's, however slow, many or busy they are."""

from __future__ import annotations

import threading
import time

from orchestration.webhooks import dispatcher
from tests.factories import insert
from tests.orchestration.webhooks.receiving import add_webhook, new_secret, tell, trade
from tests.patience import PATIENCE_S

DAY_S = 86_400


def account(conn, name):
    return insert(conn, "accounts", {"email": f"{name}@example.com", "app_name": "tests"})["account_id"]


def add_many(conn, account_id, url, count, event="trade"):
    """Add an account's webhooks, whose paths end in their numbers."""
    conn.execute(
        """insert into webhooks (account_id, url, events, secret, since_seq)
        select %s, %s || n, array[%s], %s, last_seq from stream_head, generate_series(1, %s) as n order by n""",
        [account_id, url, event, new_secret(), count],
    )
    conn.execute("update webhook_head set version = version + 1")


def step_until(work, condition, within_s=PATIENCE_S):
    until = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < until, work.dispatcher.standing()
        work.dispatcher.step()
        work.attempts.wait(0.01)


def used(conn, account_id):
    return conn.execute("select attempts from webhook_usage where account_id = %s", [account_id]).fetchone()[0]


def test_fifty_receivers_that_do_not_answer_yet_hold_ten_slots_and_no_others_message(conn, receiver, delivering):
    over = threading.Event()
    receiver.answer = lambda _number, seen: over.wait(60) and 200 if "slow" in seen.path else 200
    slow = account(conn, "slow")
    add_many(conn, slow, f"{receiver.url}/slow/", 50)
    work = delivering()
    tell(conn, trade(1))
    try:
        step_until(work, lambda: len(receiver.seen) >= 10)
        work.clock.now += 5
        add_webhook(conn, f"{receiver.url}/quick")
        tell(conn, trade(2))

        step_until(work, lambda: any(seen.path.endswith("quick") for seen in receiver.seen))

        assert len([seen for seen in receiver.seen if "slow" in seen.path]) == 10
    finally:
        over.set()
    work.settle()
    assert len(receiver.seen) == 10 + 1 + 90


def test_with_every_slot_taken_the_next_free_one_goes_to_the_account_that_holds_none(conn, receiver, delivering):
    free = threading.Semaphore(0)
    receiver.answer = lambda _number, seen: free.acquire(timeout=60) and 200 if "slow" in seen.path else 200
    for name in ("first", "second"):
        add_many(conn, account(conn, name), f"{receiver.url}/slow/{name}/", 20)
    work = delivering(at_once=6, at_once_per_account=3)
    tell(conn, trade(1))
    step_until(work, lambda: len(receiver.seen) == 6)
    work.clock.now += 5
    quick = add_webhook(conn, f"{receiver.url}/quick", events=["market"])
    tell(conn, ("market", {"from_status": None, "to_status": "ACTIVE"}))
    for _ in range(10):
        work.dispatcher.step()
    assert len(receiver.seen) == 6
    assert quick["waiting"] == 0

    free.release()
    step_until(work, lambda: len(receiver.seen) == 7)

    assert receiver.seen[6].path.endswith("quick")
    free.release(1000)
    work.settle()
    assert len(receiver.seen) == 41


def test_removing_and_making_webhooks_anew_gains_no_slots(conn, receiver, delivering):
    over = threading.Event()
    receiver.answer = lambda _number, _seen: over.wait(60) and 200
    greedy = account(conn, "greedy")
    add_many(conn, greedy, f"{receiver.url}/slow/", 5)
    work = delivering(at_once=20, at_once_per_account=5)
    tell(conn, trade(1))
    try:
        step_until(work, lambda: len(receiver.seen) == 5)
        conn.execute("delete from webhooks")
        add_many(conn, greedy, f"{receiver.url}/slow/", 5)
        tell(conn, trade(2))
        for _ in range(10):
            work.dispatcher.step()

        assert len(receiver.seen) == 5
    finally:
        over.set()
    work.settle()
    assert len(receiver.seen) == 10


def test_five_webhooks_for_all_trades_end_at_their_accounts_budget_and_go_on_the_next_day(conn, receiver, delivering):
    conn.execute("update tiers set webhook_messages_day = 130 where tier = 'free'")
    greedy = account(conn, "greedy")
    add_many(conn, greedy, f"{receiver.url}/greedy/", 5)
    work = delivering()
    tell(conn, *(trade(number) for number in range(100)))
    other = add_webhook(conn, f"{receiver.url}/other", events=["market"])
    tell(conn, ("market", {"from_status": None, "to_status": "ACTIVE"}))

    work.settle()

    of_greedy = [seen for seen in receiver.seen if "greedy" in seen.path]
    assert len(of_greedy) == used(conn, greedy) == 130
    assert (len(receiver.seen), used(conn, other["account_id"])) == (131, 1)
    states = conn.execute(
        """select state, count(*)::int from webhook_deliveries join webhooks using (webhook_id)
        where account_id = %s group by state order by state""",
        [greedy],
    ).fetchall()
    assert states == [("delivered", 130), ("waiting", 370)]
    midnight = work.clock.now // DAY_S * DAY_S + DAY_S
    held = conn.execute(
        """select array_agg(distinct extract(epoch from over_budget_until)::bigint), sum(waiting)::int from webhooks
        where account_id = %s""",
        [greedy],
    ).fetchone()
    assert held == ([midnight], 370)
    assert work.dispatcher.standing()["due"] == 0, "what is held back does not make the stage late"

    work.clock.now = midnight - 1
    work.settle()
    assert len(receiver.seen) == 131
    for _ in range(3):
        work.clock.now += DAY_S
        work.settle()

    assert len(receiver.seen) == 501
    for number in range(1, 6):
        came = [int(seen.event["data"]["id"]) for seen in receiver.seen if seen.path.endswith(f"greedy/{number}")]
        assert came == list(range(100)), "in order, once, none left out"


def test_a_budget_that_is_raised_is_noticed_the_same_day(conn, receiver, delivering):
    conn.execute("update tiers set webhook_messages_day = 5 where tier = 'free'")
    add_webhook(conn, receiver.url)
    work = delivering()
    tell(conn, *(trade(number) for number in range(12)))
    work.settle()
    assert len(receiver.seen) == 5

    conn.execute("update tiers set webhook_messages_day = null where tier = 'free'")
    work.clock.now += dispatcher.RECHECK.total_seconds()
    work.settle()

    assert len(receiver.seen) == 12
    assert conn.execute("select over_budget_until from webhooks").fetchone() == (None,)


def test_the_most_generous_valid_key_of_an_account_counts(conn):
    owner = account(conn, "owner")
    budget = "select a_day from webhook_budgets where account_id = %s"
    assert conn.execute(budget, [owner]).fetchone() == (10_000,)

    def add_key(tier, **columns):
        key = {"account_id": owner, "key_hash": new_secret().encode(), "prefix": "psg_", "tier": tier, **columns}
        return insert(conn, "api_keys", key)

    add_key("free")
    assert conn.execute(budget, [owner]).fetchone() == (10_000,)
    add_key("pro")
    assert conn.execute(budget, [owner]).fetchone() == (1_000_000,)
    unlimited = add_key("enterprise")
    assert conn.execute(budget, [owner]).fetchone() == (None,)
    conn.execute("update api_keys set webhook_messages_day = 7 where key_id = %s", [unlimited["key_id"]])
    assert conn.execute(budget, [owner]).fetchone() == (1_000_000,)
    conn.execute("update api_keys set revoked_at = now()")
    assert conn.execute(budget, [owner]).fetchone() == (10_000,)


def test_a_webhook_over_its_budget_is_disabled_before_much_waits(conn, receiver, delivering, monkeypatch):
    monkeypatch.setattr(dispatcher, "MAX_HELD_BACK", 10)
    conn.execute("update tiers set webhook_messages_day = 5 where tier = 'free'")
    add_webhook(conn, receiver.url)
    work = delivering()

    for number in range(30):
        tell(conn, trade(number))
        work.settle()

    assert len(receiver.seen) == 5
    waiting, reason = conn.execute("select waiting, disabled_reason from webhooks").fetchone()
    assert waiting == 11
    assert reason.endswith("the next day's budget")
