"""Credit leases between database and hosts: no credit is lost or spent twice, whatever fails."""

from __future__ import annotations

import threading
import time
from collections import Counter
from contextlib import contextmanager

import psycopg
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from api.data.pool import Pool
from api.metering import credit_leases, keys
from api.metering.credit_ledger import WAYS
from api.metering.meter import CannotPay, Month, StaleKey
from sql.roles.rights import API
from tests.api.conftest import OneConnection, generous
from tests.api.metering.metered import hosts, key_id, known, pays, used
from tests.roles import login_url


@pytest.fixture
def host(conn):
    return hosts(conn)


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


def test_a_lease_is_topped_up_when_half_of_it_is_spent_so_that_a_key_pays_while_the_database_is_away(conn, host):
    pool = Breaking(conn)
    meter = host(pool, tops_up=True)
    text = generous(conn, "someone@example.com")  # 100 credits a lease
    key = known(conn, meter, text)
    meter.admit(key, 50)
    assert used(conn, text) == 100
    meter.admit(key, 1)
    assert used(conn, text) == 151  # 100 are there again

    meter.leases._topped_up.clear()  # a second later
    pool.always_breaks = "before"
    assert sum(paid(meter, key) for _ in range(200)) == 100

    pool.always_breaks = None
    assert meter.admit(key, 1).used == 152
    meter.leases.close()
    assert used(conn, text) == 152


def paid(meter, key):
    try:
        return pays(meter, key)
    except psycopg.OperationalError:
        return False


def test_a_key_is_topped_up_once_a_second_at_most_and_never_beyond_its_month(conn, host):
    asked = []
    pool = Interrupted(conn)
    meter = host(pool, tops_up=True)
    meter.leases.fetch = lambda *given, fetch=meter.leases.fetch: asked.append(given) or fetch(*given)
    text = generous(conn, "someone@example.com", credits_month=14)  # 10 credits a lease
    key = known(conn, meter, text)

    assert [pays(meter, key) for _ in range(15)] == [True] * 14 + [False]

    assert used(conn, text) == 14
    assert len(asked) == 3  # at first, when less than half was left, and when nothing was left
    meter.leases._topped_up.clear()  # a second later
    meter.admit(key, 0)
    assert len(asked) == 3


def test_a_key_whose_requests_cost_more_than_half_a_lease_is_not_topped_up(conn, host):
    meter = host(tops_up=True)
    text = generous(conn, "someone@example.com")
    key = known(conn, meter, text)

    meter.admit(key, 60)

    assert used(conn, text) == 100


def test_what_is_being_leased_in_the_background_at_the_end_is_waited_for(database_url, conn, host):
    pool = Pool(login_url(database_url, API), 2)
    meter, asks, goes_on = host(pool), threading.Event(), threading.Event()
    text = generous(conn, "someone@example.com")

    def slowly(lease, wanted, ask=meter.leases._ask):
        asks.set()
        goes_on.wait(30)
        return ask(lease, wanted)

    meter.leases._ask = slowly
    meter.leases.in_background = credit_leases.in_background
    meter.leases.top_up(key_id(conn, text), meter.month().number, 100)  # the first lease: it is inserted
    assert asks.wait(30)
    closing = threading.Thread(target=meter.leases.close)
    closing.start()
    closing.join(0.2)
    assert closing.is_alive()
    goes_on.set()
    closing.join()
    pool.close()

    assert used(conn, text) == 0
    assert conn.execute("select count(*) from credit_leases").fetchone() == (0,)


def test_what_is_still_being_leased_at_the_end_is_kept_for_the_next_start(conn, host, monkeypatch, caplog):
    monkeypatch.setattr(credit_leases, "LAST_LEASES_S", 0.0)
    meter = host()
    text = generous(conn, "someone@example.com")
    meter.admit(known(conn, meter, text), 1)
    meter.leases._asking[key_id(conn, text)] = credit_leases.PendingLease()

    meter.leases.close()

    assert used(conn, text) == 100
    assert "kept for the next start" in caplog.text


def test_a_key_that_only_tops_up_sweeps_idle_ones(conn, host):
    now = [Month.of(time.time()).first]  # what follows is in the same month
    meter = host(clock=lambda: now[0], tops_up=True)
    idle, busy = (generous(conn, f"{name}@example.com") for name in ("idle", "busy"))
    for text in (idle, busy):
        meter.admit(known(conn, meter, text), 30)
    now[0] += 700
    meter.leases._sweep_at = 0.0  # a minute has passed

    meter.admit(known(conn, meter, busy), 30)

    assert used(conn, idle) == 30


def test_what_is_leased_and_not_spent_is_returned_at_the_end(client, service, conn):
    for _ in range(3):
        client.ask("/v1/markets")
    assert used(conn, client.key) == 100

    service.close()

    assert used(conn, client.key) == 3
    assert conn.execute("select count(*) from credit_leases").fetchone() == (0,)


def test_a_key_that_is_not_used_gives_its_credits_back_and_its_place_away(conn, host):
    now = [max(time.time() // 1000 * 1000, Month.of(time.time()).first)]
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
    assert refusal.value.grant.headers()["x-credits-remaining"] == "0"
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
    pool = Pool(login_url(database_url, API), 8)
    meter = host(pool)
    key = known(conn, meter, generous(conn, "someone@example.com", credits_month=333))
    served = []

    def spend():
        served.extend([pays(meter, key) for _ in range(50)])

    threads = [threading.Thread(target=spend) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    pool.close()

    assert Counter(served) == {True: 333, False: 67}


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
    """A pool that fails on demand: before the query, or after it with the result lost."""

    breaks = always_breaks = None

    @contextmanager
    def connection(self):
        breaks, self.breaks = self.breaks or self.always_breaks, None
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
    """A pool that runs a callback just before a query."""

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

    with pytest.raises(StaleKey):  # its slot was freed
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


@settings(max_examples=min(1000, settings().max_examples))  # each takes many statements
@given(steps=STEPS)
def test_property_whatever_breaks_no_credit_is_spent_twice_and_none_is_lost(conn, host, steps):
    pools = [Breaking(conn), Breaking(conn)]
    hosts = [host(pools[0], buckets=1), host(pools[1], buckets=1, tops_up=True)]
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
