"""The workers' key cache, and how soon a revoked key is dropped from it."""

from __future__ import annotations

import pytest

from api.data.pool import overloaded
from api.errors import Problem
from api.metering import keys
from api.metering.meter import StaleKey
from tests.api.conftest import OneConnection, generous
from tests.api.metering.metered import key_id, used


def test_a_key_that_ends_is_refused_by_every_worker_at_once(service, conn):
    ledger = service.ledger()
    workers = [keys.Keys(OneConnection(conn), lambda: ledger) for _ in range(3)]
    text = generous(conn, "someone@example.com")
    old = [worker.of(text) for worker in workers]

    new = keys.rotate(conn, text)
    workers[0].end(old[0].key_id)

    assert [worker.find(text) for worker in workers] == [None] * 3
    assert {worker.of(new).key_id for worker in workers} == {old[0].key_id}
    with pytest.raises(StaleKey):
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


@pytest.mark.parametrize("path", ["/v1/time", "/v1/wallets/watched", "/v1/webhooks"])
def test_a_request_looks_its_key_up_once(client, service, monkeypatch, path):
    asked, find = [], service.keys.find
    monkeypatch.setattr(service.keys, "find", lambda text, req: asked.append(text) or find(text, req))

    assert client.ask(path).status_code == 200

    assert asked == [client.key]


def test_a_change_of_tier_is_seen_within_half_a_minute(client, conn, service):
    now = 0.0
    service.keys = keys.Keys(OneConnection(conn), service.ledger, clock=lambda: now)
    assert client.ask("/v1/time").headers["X-Credits-Limit"] == "100000"
    conn.execute("update api_keys set tier = 'free'")

    assert client.ask("/v1/time").headers["X-Credits-Limit"] == "100000"
    now = 30.0

    assert client.ask("/v1/time").headers["X-Credits-Limit"] == "5000"


class Away(OneConnection):
    """A pool whose database is away at times."""

    is_away = False

    def read(self, work):
        if self.is_away:
            raise overloaded("The database does not answer")
        return super().read(work)


@pytest.mark.parametrize("busy", [True, False])
def test_while_the_database_is_away_a_key_is_valid_for_two_minutes_after_it_was_looked_up(service, conn, busy):
    now, pool = 0.0, Away(conn)
    worker = keys.Keys(pool, service.ledger, clock=lambda: now)
    text, other = (generous(conn, f"{name}@example.com") for name in ("someone", "other"))
    known = worker.of(text)

    pool.is_away = True
    for after_s in [*range(30, 120), 119.9] if busy else [119.9]:
        now = after_s
        assert worker.of(text) == known
        with pytest.raises(Problem):
            worker.of(other)  # never seen
    now = 120.0
    with pytest.raises(Problem):
        worker.of(text)

    pool.is_away = False
    assert worker.of(text) == known


def test_a_key_that_has_ended_is_not_valid_while_the_database_is_away(service, conn):
    now, pool = 0.0, Away(conn)
    worker = keys.Keys(pool, service.ledger, clock=lambda: now)
    text = generous(conn, "someone@example.com")
    known = worker.of(text)
    worker.end(known.key_id)  # another worker of this host, or the database, has said so

    pool.is_away, now = True, 30.0

    with pytest.raises(Problem):
        worker.of(text)


def test_a_key_of_which_the_database_has_said_that_it_is_invalid_is_not_taken_for_valid(service, conn):
    now = 0.0

    class Failing(OneConnection):
        asked = 0

        def read(self, work):
            self.asked += 1
            if self.asked == 3:  # why the key is not valid
                raise overloaded("All connections are busy")
            return super().read(work)

    worker = keys.Keys(Failing(conn), service.ledger, clock=lambda: now)
    text = generous(conn, "someone@example.com")
    worker.of(text)
    keys.rotate(conn, text)
    now = 30.0

    assert worker.find(text) is None


def test_a_replaced_key_goes_on_where_the_old_one_stood(client, conn):
    for _ in range(3):
        client.ask("/v1/markets")

    new = client.simulate_post("/v1/keys/rotate", headers={"X-API-Key": client.key}).json["key"]

    assert client.ask("/v1/markets", key=new).headers["X-Credits-Used"] == "4"
    assert client.ask("/v1/markets").status_code == 401
    assert used(conn, new) == 100


def test_guesses_do_not_push_out_the_keys_that_are_known(service, conn, monkeypatch):
    monkeypatch.setattr(keys, "MAX_KEYS", 10)
    worker = keys.Keys(OneConnection(conn), service.ledger)
    text = generous(conn, "someone@example.com")
    worker.of(text)

    for number in range(50):
        assert worker.find(f"guess-{number}") is None

    assert (len(worker._known), len(worker._unknown)) == (1, 10)
