"""Credits: exact in the second and in the month, whoever counts, and whatever breaks meanwhile."""

from __future__ import annotations

import datetime as dt
import threading
import time
from collections import Counter
from contextlib import contextmanager

import psycopg
import pytest
from falcon import testing
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from api import keys
from api.ledger import WAYS, Ledger
from api.ledgers import Opener
from api.metering import CannotPay, Meter, Month, Stale
from api.pool import Pool
from sql.queries import keys as queries
from tests.api.conftest import OneConnection, generous


def used(conn, key, month=None):
    begin = dt.datetime.fromtimestamp((month or Month.of(time.time())).first, dt.UTC)
    row = conn.execute(
        "select used from credit_usage join api_keys using (key_id) where key_hash = %s and month = %s",
        [keys.digest(key), begin],
    ).fetchone()
    return row[0] if row else 0


def known(conn, meter, key):
    """A key as a worker knows it that uses this meter's ledger."""
    return keys.Key(*queries.by_hash(conn, key_hash=keys.digest(key)), meter._ledger().generation(key_id(conn, key)))


def key_id(conn, key):
    return conn.execute("select key_id from api_keys where key_hash = %s", [keys.digest(key)]).fetchone()[0]


def pays(meter, key, cost=1):
    try:
        meter.admit(key, cost)
    except CannotPay:
        return False
    return True


@pytest.fixture
def clock(service):
    """A clock of seconds that moves when told."""
    now = [time.time() // 1000 * 1000]
    service.meter._clock = lambda: now[0]
    return now


@pytest.fixture
def host(conn):
    """Makes hosts: a meter each, with a ledger of its own, on the same database."""

    def made(pool=None, *, buckets=4, clock=time.time):
        ledger = Ledger.private(buckets)
        return Meter(pool or OneConnection(conn), Opener(lambda: ledger), clock)

    return made


# --- The second


def test_the_credits_of_a_second_are_exact(client, conn, clock):
    key = generous(conn, "bursty@example.com", credits_burst=5)

    answers = [client.ask("/v1/markets", key=key) for _ in range(8)]

    assert [answer.status_code for answer in answers] == [200] * 5 + [429] * 3
    assert [answer.headers["RateLimit"] for answer in answers[:5]] == [
        f'"burst";r={left};t=1' for left in (4, 3, 2, 1, 0)
    ]
    refused = answers[-1]
    assert (refused.json["code"], refused.headers["Retry-After"]) == ("burst_exceeded", "1")
    assert refused.headers["RateLimit-Policy"] == '"burst";q=5;w=1'
    assert (refused.headers["X-Credits-Used"], refused.headers["X-Request-Cost"]) == ("5", "0")
    clock[0] += 1
    assert client.ask("/v1/markets", key=key).status_code == 200


def test_a_request_takes_what_it_costs_and_one_at_least(client, conn, clock, add_market):
    key = generous(conn, "bursty@example.com", credits_burst=5)
    add_market("rain")

    assert client.ask("/v1/markets/rain/trades", key=key, limit=4000).headers["RateLimit"] == '"burst";r=1;t=1'
    assert client.ask("/v1/markets/rain/trades", key=key, limit=4000).status_code == 429
    assert client.ask("/v1/time", key=key).headers["RateLimit"] == '"burst";r=0;t=1'
    assert client.ask("/v1/time", key=key).status_code == 429


def test_what_costs_more_than_a_second_gives_takes_the_following_seconds_as_well(client, conn, clock, add_market):
    key = generous(conn, "bursty@example.com", credits_burst=5)
    add_market("rain")
    dear = ("/v1/markets/rain/price-history", {"limit": 17_001})

    assert client.ask(dear[0], key=key, **dear[1]).headers["X-Request-Cost"] == "18"
    assert client.ask("/v1/time", key=key).headers["Retry-After"] == "3"
    clock[0] += 2
    assert client.ask("/v1/time", key=key).status_code == 429
    clock[0] += 1
    assert client.ask("/v1/time", key=key).headers["RateLimit"] == '"burst";r=1;t=1'
    assert client.ask(dear[0], key=key, **dear[1]).status_code == 429
    clock[0] += 1
    assert client.ask(dear[0], key=key, **dear[1]).status_code == 200


def test_mistakes_are_free_but_not_without_end(client, conn, clock):
    key = generous(conn, "bursty@example.com", credits_burst=3)

    answers = [client.ask("/v1/markets", key=key, limit=-1) for _ in range(5)]

    assert [answer.status_code for answer in answers] == [400] * 3 + [429] * 2
    assert {answer.headers["X-Credits-Used"] for answer in answers} == {"0"}
    assert {answer.headers["X-Credits-Limit"] for answer in answers} == {"100000"}


def test_a_clock_that_is_set_back_grants_no_second_twice(conn, host):
    now = [1_800_000_000]
    meter = host(clock=lambda: now[0])
    key = known(conn, meter, generous(conn, "bursty@example.com", credits_burst=2))
    assert [pays(meter, key) for _ in range(3)] == [True, True, False]

    now[0] -= 100

    assert not pays(meter, key)
    now[0] += 1
    assert pays(meter, key)


# --- The month


def test_the_credits_of_a_month_are_exact(client, conn, add_market):
    key = generous(conn, "frugal@example.com", credits_month=7)
    add_market("rain")

    answers = [client.ask("/v1/markets", key=key) for _ in range(5)]
    dear = client.ask("/v1/markets/rain/trades", key=key, limit=3000)
    answers += [client.ask("/v1/markets", key=key) for _ in range(4)]

    assert [answer.status_code for answer in answers] == [200] * 7 + [402] * 2
    assert [answer.headers["X-Credits-Remaining"] for answer in answers] == [*"6543210", "0", "0"]
    assert dear.status_code == 402
    refused = answers[-1]
    assert refused.json["code"] == "quota_exhausted"
    assert (refused.headers["X-Credits-Limit"], refused.headers["X-Credits-Used"]) == ("7", "7")
    reset = int(refused.headers["X-Credits-Reset"])
    assert abs(int(refused.headers["Retry-After"]) - (reset - time.time())) < 5
    assert client.ask("/v1/time", key=key).status_code == 200
    assert used(conn, key) == 7


@pytest.mark.parametrize("path", ["/v1/markets/nothing", "/v1/markets/rain/price", "/v1/prices"])
def test_a_request_that_finds_nothing_is_paid_back(client, path, add_market):
    add_market("rain")
    before = client.ask("/v1/markets").headers["X-Credits-Used"]

    answer = client.ask(path)

    assert answer.status_code in {400, 404}
    assert (answer.headers["X-Credits-Used"], answer.headers["X-Request-Cost"]) == (before, "0")
    assert client.ask("/v1/time").headers["X-Credits-Used"] == before


@pytest.mark.parametrize(
    ("failure", "status"), [(RuntimeError("a bug"), 500), (psycopg.errors.QueryCanceled("slow"), 503)]
)
def test_our_own_failure_is_paid_back(client, service, monkeypatch, add_market, failure, status):
    add_market("rain")
    before = client.ask("/v1/markets/rain").headers["X-Credits-Used"]

    def fail(_work):
        raise failure

    with monkeypatch.context() as broken:
        broken.setattr(service, "reads", type("Broken", (), {"read": staticmethod(fail)}))
        answer = client.ask("/v1/markets/rain")

    assert (answer.status_code, answer.headers["X-Request-Cost"]) == (status, "0")
    assert answer.headers["X-Credits-Used"] == before
    assert client.ask("/v1/markets/rain").headers["X-Credits-Used"] == str(int(before) + 1)


def test_when_credits_cannot_be_fetched_the_answer_tells_how_the_key_stood(client, conn, service, monkeypatch):
    key = generous(conn, "frugal@example.com", credits_month=5000)
    for _ in range(10):
        client.ask("/v1/markets", key=key)

    def fail(_work):
        raise psycopg.OperationalError("away")

    monkeypatch.setattr(service.meter.leases, "_pool", type("Away", (), {"read": staticmethod(fail)}))
    answer = client.ask("/v1/markets", key=key)

    assert (answer.status_code, answer.headers["Retry-After"]) == (503, "1")
    assert (answer.headers["X-Credits-Used"], answer.headers["X-Credits-Limit"]) == ("10", "5000")


def test_what_is_not_sent_again_is_not_paid_but_counts_in_the_second(client, conn, clock, add_market):
    key = generous(conn, "bursty@example.com", credits_burst=3)
    add_market("rain")
    tag = client.ask("/v1/markets/rain", key=key).headers["ETag"]

    same = client.ask("/v1/markets/rain", key=key, headers={"If-None-Match": tag})

    assert (same.status_code, same.headers["X-Request-Cost"], same.headers["X-Credits-Used"]) == (304, "0", "1")
    assert same.headers["RateLimit"] == '"burst";r=1;t=1'


def test_a_new_month_begins_with_all_credits(client, conn, clock):
    key = generous(conn, "frugal@example.com", credits_month=13)
    old, following = Month.of(clock[0]), Month.of(Month.of(clock[0]).end)
    clock[0] = old.end - 1
    for _ in range(11):
        client.ask("/v1/markets", key=key)
    assert client.ask("/v1/markets", key=key).headers["X-Credits-Reset"] == str(old.end)
    assert used(conn, key, old) == 13  # leased, one of them not spent

    clock[0] = old.end
    answer = client.ask("/v1/markets", key=key)

    assert (answer.status_code, answer.headers["X-Credits-Used"]) == (200, "1")
    assert answer.headers["X-Credits-Reset"] == str(following.end)
    assert (used(conn, key, old), used(conn, key, following)) == (12, 10)
    assert [client.ask("/v1/markets", key=key).status_code for _ in range(13)] == [200] * 12 + [402]


@pytest.mark.parametrize(
    ("moment", "begin", "end"),
    [
        ("2026-11-21T12:00:00", "2026-11-01T00:00:00", "2026-12-01T00:00:00"),
        ("2026-12-31T23:59:59.999999", "2026-12-01T00:00:00", "2027-01-01T00:00:00"),
        ("2027-01-01T00:00:00", "2027-01-01T00:00:00", "2027-02-01T00:00:00"),
        ("2028-02-29T00:00:00", "2028-02-01T00:00:00", "2028-03-01T00:00:00"),
    ],
)
def test_months_are_those_of_the_calendar_in_utc(moment, begin, end):
    instants = [dt.datetime.fromisoformat(f"{text}+00:00") for text in (moment, begin, end)]

    month = Month.of(instants[0].timestamp())

    assert (month.first, month.end) == (instants[1].timestamp(), instants[2].timestamp())
    assert month.number == instants[1].year * 12 + instants[1].month - 1


def test_a_key_without_limits_is_counted_all_the_same(client, conn):
    key = keys.create(conn, "big@example.com", "tests", "enterprise")

    answer = client.ask("/v1/markets", key=key)

    assert (answer.headers["X-Credits-Limit"], answer.headers["X-Credits-Used"]) == ("unlimited", "1")
    assert "RateLimit" not in answer.headers


def test_an_enterprise_key_has_the_limits_set_for_it(client, conn, clock):
    key = keys.create(conn, "big@example.com", "tests", "enterprise")
    conn.execute("update api_keys set credits_month = 3, credits_burst = 2 where key_hash = %s", [keys.digest(key)])

    assert [client.ask("/v1/markets", key=key).status_code for _ in range(3)] == [200, 200, 429]
    clock[0] += 1
    assert [client.ask("/v1/markets", key=key).status_code for _ in range(2)] == [200, 402]


# --- Leases


@pytest.mark.parametrize(
    ("quota", "leased"), [(7, 7), (5000, 10), (50_000, 50), (100_000, 100), (10_000_000, 1000), (None, 1000)]
)
def test_a_lease_is_a_thousandth_of_the_month_within_limits(conn, host, quota, leased):
    text = generous(conn, "someone@example.com", credits_month=quota)
    if quota is None:
        conn.execute("update api_keys set tier = 'enterprise' where key_hash = %s", [keys.digest(text)])
    meter = host()

    meter.admit(known(conn, meter, text), 1)

    assert used(conn, text) == leased


def test_what_is_leased_and_not_spent_is_returned_at_the_end(client, service, conn):
    for _ in range(3):
        client.ask("/v1/markets")
    assert used(conn, client.key) == 100

    service.close()

    assert used(conn, client.key) == 3
    assert conn.execute("select count(*) from credit_leases").fetchone() == (0,)


def test_a_key_that_is_not_used_gives_its_credits_back_and_its_place_away(conn, host):
    now = [time.time() // 1000 * 1000]
    meter = host(clock=lambda: now[0])
    idle, busy = (generous(conn, f"{name}@example.com") for name in ("idle", "busy"))
    meter.admit(known(conn, meter, idle), 30)
    now[0] += 100
    meter.admit(known(conn, meter, busy), 1)

    meter.leases.sweep(int(now[0]))

    assert (used(conn, idle), used(conn, busy)) == (30, 100)
    again = known(conn, meter, idle)
    assert meter.admit(again, 1).used == 31


def test_a_lowered_quota_holds_at_once_and_never_turns_negative(conn, host):
    text = generous(conn, "someone@example.com")
    meter = host()
    for _ in range(50):
        meter.admit(known(conn, meter, text), 1)

    conn.execute("update api_keys set credits_month = 20 where key_hash = %s", [keys.digest(text)])
    lowered = known(conn, meter, text)

    with pytest.raises(CannotPay) as refusal:
        meter.admit(lowered, 1)
    assert refusal.value.grant.headers()["X-Credits-Remaining"] == "0"
    assert not pays(meter, lowered, 200)
    assert used(conn, text) == 100


def test_a_raised_quota_is_there_at_once(conn, host):
    text = generous(conn, "someone@example.com", credits_month=2)
    meter = host()
    before = known(conn, meter, text)
    assert [pays(meter, before) for _ in range(4)] == [True, True, False, False]

    conn.execute("update api_keys set credits_month = 3 where key_hash = %s", [keys.digest(text)])

    after = known(conn, meter, text)
    assert [pays(meter, after) for _ in range(3)] == [True, False, False]
    assert not pays(meter, before)


def test_hosts_that_share_a_key_get_exactly_its_credits_together(conn, host):
    text = generous(conn, "someone@example.com", credits_month=137)
    hosts = [(meter, known(conn, meter, text)) for meter in (host(), host(), host())]

    served = [pays(meter, key) for _ in range(60) for meter, key in hosts]

    assert sum(served) == 137
    assert used(conn, text) == 137


def test_many_who_share_a_key_get_exactly_its_credits(database_url, conn, host):
    pool = Pool(database_url, 8)
    meter = host(pool)
    key = known(conn, meter, generous(conn, "someone@example.com", credits_month=333))
    served = Counter()

    def spend():
        for _ in range(50):
            served[pays(meter, key)] += 1

    threads = [threading.Thread(target=spend) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    pool.close()

    assert served == {True: 333, False: 67}


def test_more_keys_than_the_ledger_has_places_for_lose_nothing(conn, host):
    meter = host(buckets=1)
    texts = [generous(conn, f"{number}@example.com", credits_month=20) for number in range(WAYS + 9)]

    for _ in range(3):
        for text in texts:
            assert pays(meter, known(conn, meter, text))
    meter.leases.close()

    assert [used(conn, text) for text in texts] == [3] * len(texts)


# --- What breaks


class Breaking(OneConnection):
    """Breaks when told to: before the database hears of it, or when it has done all and the answer is lost."""

    breaks = None

    @contextmanager
    def connection(self):
        breaks, self.breaks = self.breaks, None
        if breaks == "before":
            raise psycopg.OperationalError("unreachable")
        with super().connection() as conn:
            yield conn
        if breaks == "after":
            raise psycopg.OperationalError("the answer was lost")


@pytest.mark.parametrize("breaks", ["before", "after"])
def test_a_lease_whose_answer_was_lost_is_neither_lost_nor_taken_twice(conn, host, breaks):
    pool = Breaking(conn)
    meter = host(pool)
    text = generous(conn, "someone@example.com")
    key = known(conn, meter, text)
    pool.breaks = breaks
    with pytest.raises(psycopg.OperationalError):
        meter.admit(key, 1)

    grant = meter.admit(key, 1)

    assert grant.used == 1
    assert used(conn, text) == 100


@pytest.mark.parametrize("breaks", ["before", "after"])
def test_a_return_that_was_interrupted_loses_nothing(conn, host, breaks):
    pool = Breaking(conn)
    meter = host(pool)
    text = generous(conn, "someone@example.com", credits_month=100_000)
    key = known(conn, meter, text)
    meter.admit(key, 40)
    pool.breaks = breaks
    meter.leases.sweep(1 << 33)

    assert meter.admit(key, 1).used == 41

    meter.leases.close()
    assert used(conn, text) == 41


class Interrupted(OneConnection):
    """Has something else happen just before it asks the database."""

    meanwhile = None

    def read(self, work):
        meanwhile, self.meanwhile = self.meanwhile, None
        if meanwhile:
            meanwhile()
        return super().read(work)


def test_a_lease_that_is_returned_while_more_is_asked_for_is_not_spent_after(conn, host):
    pool = Interrupted(conn)
    meter = host(pool)
    text = generous(conn, "someone@example.com", credits_month=5000)
    key = known(conn, meter, text)
    meter.admit(key, 7)
    pool.meanwhile = lambda: meter.leases.sweep(1 << 33)

    with pytest.raises(Stale):  # its slot was freed
        meter.admit(key, 5)
    key = known(conn, meter, text)
    assert meter.admit(key, 5).used == 12

    meter.leases.close()
    assert used(conn, text) == 12


def test_a_lease_that_is_returned_but_kept_its_slot_is_begun_anew(conn, host):
    pool = Interrupted(conn)
    meter = host(pool)
    text = generous(conn, "someone@example.com", credits_month=5000)
    key = known(conn, meter, text)
    grants = [meter.admit(key, 1) for _ in range(7)]
    ledger = meter._ledger()

    def returned():
        (lease,) = ledger.withdraw()
        conn.execute("select return_credits(key_id, month, lease_id, step, 7) from credit_leases")
        meter.refund(grants[0])
        ledger.clear(lease)

    pool.meanwhile = returned

    meter.admit(key, 5)

    meter.leases.close()
    assert used(conn, text) == 12  # the refund came too late to be counted


STEPS = st.lists(
    st.tuples(
        st.integers(0, 1),  # which host
        st.sampled_from(["pay", "pay", "pay", "pay dear", "fail", "sweep", "crowd out"]),
        st.sampled_from([None, None, "before", "after"]),
    ),
    max_size=40,
)


@settings(
    max_examples=min(1000, settings().max_examples),  # each takes many statements
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(steps=STEPS)
def test_property_whatever_breaks_no_credit_is_spent_twice_and_none_is_lost(conn, host, steps):
    pools = [Breaking(conn), Breaking(conn)]
    hosts = [host(pool, buckets=1) for pool in pools]
    conn.execute("delete from credit_leases; delete from credit_usage; delete from api_keys; delete from accounts")
    text = generous(conn, "someone@example.com", credits_month=60)
    crowd = [generous(conn, f"{number}@example.com") for number in range(WAYS)]
    paid = 0
    for which, what, breaks in steps:
        meter, pool = hosts[which], pools[which]
        pool.breaks = breaks
        try:
            if what == "sweep":
                meter.leases.sweep(1 << 33)
            elif what == "crowd out":
                for other in crowd:
                    pays(meter, known(conn, meter, other))
            else:
                cost = 7 if what == "pay dear" else 1
                grant = meter.admit(known(conn, meter, text), cost)
                if what == "fail":
                    meter.refund(grant)
                else:
                    paid += cost
                assert grant.used <= 60
        except (CannotPay, psycopg.OperationalError):
            pass
        pool.breaks = None
        assert paid <= used(conn, text) <= 60

    for meter in hosts:
        meter.leases.close()

    assert used(conn, text) == paid


# --- Whether the key holds


def test_a_key_that_ends_is_refused_by_every_worker_at_once(service, conn):
    ledger = service.ledger()
    workers = [keys.Keys(OneConnection(conn), lambda: ledger) for _ in range(3)]
    text = generous(conn, "someone@example.com")
    old = [worker.of(text) for worker in workers]

    new = keys.rotate(conn, text)
    workers[0].end(old[0].key_id)

    assert [worker.find(text) for worker in workers] == [None] * 3
    assert {worker.of(new).key_id for worker in workers} == {old[0].key_id}
    with pytest.raises(Stale):
        service.meter.admit(old[1], 1)


def test_a_key_that_ends_while_it_is_looked_up_is_not_remembered(service, conn):
    text = generous(conn, "someone@example.com")
    ledger, number = service.ledger(), key_id(conn, text)

    class Ending(OneConnection):
        def read(self, work):
            found = super().read(work)
            if keys.rotate(conn, text):
                ledger.end(number)
            return found

    worker = keys.Keys(Ending(conn), lambda: ledger)

    assert worker.find(text) is None


def test_a_change_of_tier_is_seen_within_half_a_minute(client, conn, monkeypatch):
    assert client.ask("/v1/time").headers["X-Credits-Limit"] == "100000"
    conn.execute("update api_keys set tier = 'free'")

    assert client.ask("/v1/time").headers["X-Credits-Limit"] == "100000"
    now = time.monotonic()
    monkeypatch.setattr(keys.time, "monotonic", lambda: now + 30)

    assert client.ask("/v1/time").headers["X-Credits-Limit"] == "5000"


def test_a_replaced_key_goes_on_where_the_old_one_stood(client, conn):
    for _ in range(3):
        client.ask("/v1/markets")

    new = client.simulate_post("/v1/keys/rotate", headers={"X-API-Key": client.key}).json["key"]

    assert client.ask("/v1/markets", key=new).headers["X-Credits-Used"] == "4"
    assert client.ask("/v1/markets").status_code == 401
    assert used(conn, new) == 100


def test_guesses_do_not_push_out_the_keys_that_are_known(service, conn, monkeypatch):
    monkeypatch.setattr(keys, "MOST_KEYS", 10)
    text = generous(conn, "someone@example.com")
    service.keys.of(text)

    for number in range(50):
        assert service.keys.find(f"guess-{number}") is None

    assert (len(service.keys._known), len(service.keys._unknown)) == (1, 10)


def test_a_request_without_a_key_is_told_of_no_credits(client):
    answer = testing.TestClient(client.app).simulate_get("/v1/time")

    shown = {name: answer.headers[f"X-Credits-{name}"] for name in ("Limit", "Remaining", "Used")}
    assert (answer.status_code, shown) == (401, {"Limit": "0", "Remaining": "0", "Used": "0"})
    assert int(answer.headers["X-Credits-Reset"]) == Month.of(time.time()).end
