"""Reads go to the replica while it is close behind, and to the primary otherwise."""

from __future__ import annotations

import psycopg
import pytest

from api.app import create_app
from api.data.pool import Pool
from api.data.replica import ReplicaReads, lag_of_answer
from api.errors import Problem
from api.service import Service
from api.stream.hub import StreamHub
from sql.queries import pipeline as queries
from tests.api.conftest import Client, OneConnection, generous
from tests.patience import until
from tests.replicas import connected, standby


@pytest.fixture(scope="module")
def replica_url():
    with standby() as url:
        until(lambda: connected(url)).close()
        yield url


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


@pytest.fixture
def reads_of(replica_url, database_url):
    """Make reads with a limit of the lag: the replica's grows by itself, as its primary is gone."""
    made = []

    def make(max_lag_s, url=replica_url):
        clock = Clock()
        made.append(ReplicaReads(Pool(url, 2), Pool(database_url, 2), max_lag_s=max_lag_s, clock=clock))
        return made[-1], clock

    yield make
    for each in made:
        each.close()


def of_the_replica(conn):
    return conn.execute("select pg_is_in_recovery()").fetchone()[0]


def test_a_replica_that_is_close_behind_is_read_and_its_lag_is_known(reads_of):
    reads, clock = reads_of(3600)

    assert reads.read(of_the_replica)
    first = lag_of_answer.get()
    with reads.connection() as conn:
        assert of_the_replica(conn)
    assert reads.read(of_the_replica)
    assert 0 < first == lag_of_answer.get()
    clock.now += 1
    assert reads.read(of_the_replica)
    assert lag_of_answer.get() > first


def test_one_that_falls_too_far_behind_is_not_read_until_it_has_caught_up(reads_of):
    reads, clock = reads_of(3600)
    assert reads.read(of_the_replica)
    reads._max_lag_s = 0.0  # it falls behind

    clock.now += 1
    assert not reads.read(of_the_replica)
    assert lag_of_answer.get() is None
    reads._max_lag_s = 3600.0
    clock.now += 1
    assert reads.read(of_the_replica)


def test_one_that_does_not_answer_is_not_read(reads_of):
    reads, _ = reads_of(3600, "postgresql:///nothing?host=/nowhere")

    assert not reads.read(of_the_replica)
    with reads.connection() as conn:
        assert not of_the_replica(conn)


@pytest.mark.parametrize("goes", ["no connection can be made", "the connection is lost"])
def test_what_is_under_way_when_it_goes_is_asked_of_the_primary(reads_of, tmp_path, goes):
    reads, _ = reads_of(3600)
    assert reads.read(of_the_replica)
    if goes == "no connection can be made":
        reads.replica.close()
        reads.replica.url = f"postgresql:///nothing?host={tmp_path}"

    def work(conn):
        if goes == "the connection is lost" and of_the_replica(conn):
            conn.close()
        return of_the_replica(conn)

    assert not reads.read(work)
    assert not reads.read(of_the_replica)  # nor do the next ones try


def test_a_request_whose_connection_to_the_replica_is_lost_does_not_wait_for_another(reads_of, monkeypatch):
    reads, clock = reads_of(3600)
    with reads.connection(), reads.connection():
        pass
    lent = []

    def work(conn):
        if of_the_replica(conn):
            lent.append(conn)
            conn.close()
        return of_the_replica(conn)

    monkeypatch.setattr(reads.replica, "_connect", lambda: pytest.fail("it connects again"))
    assert not reads.read(work)
    assert len(lent) == 1
    monkeypatch.undo()
    clock.now += 1
    assert reads.read(of_the_replica)  # once a look has found it


def test_while_the_primary_is_away_a_lost_connection_to_the_replica_is_replaced(reads_of, tmp_path):
    reads, _ = reads_of(3600)
    reads._primary.close()
    reads._primary.url = f"postgresql:///nothing?host={tmp_path}"
    lent = []

    def work(conn):
        lent.append(conn)
        if len(lent) == 1:
            conn.close()
        return of_the_replica(conn)

    assert reads.read(work)
    assert len(lent) == 2
    assert reads.read(of_the_replica)  # nor do the next ones try the primary first
    assert lag_of_answer.get() > 0


def test_while_neither_answers_the_error_is_the_databases(reads_of, tmp_path):
    reads, _ = reads_of(3600)
    assert reads.read(of_the_replica)
    for pool in (reads._primary, reads.replica):
        pool.close()
        pool.url = f"postgresql:///nothing?host={tmp_path}"

    with pytest.raises((Problem, psycopg.OperationalError)):
        reads.read(of_the_replica)


def test_while_the_primary_is_away_the_replica_is_read_however_old(reads_of, tmp_path):
    reads, _ = reads_of(0.0)
    assert not reads.read(of_the_replica)
    reads._primary.close()
    reads._primary.url = f"postgresql:///nothing?host={tmp_path}"

    assert reads.read(of_the_replica)
    assert lag_of_answer.get() > 0
    reads._lag_s = None
    with pytest.raises((Problem, psycopg.OperationalError)):
        reads.read(of_the_replica)


def test_a_replica_whose_connections_are_busy_is_not_away(reads_of):
    reads, _ = reads_of(3600)
    reads.replica.wait_s = 0.05
    with reads.connection(), reads.connection(), pytest.raises(Problem) as said:
        reads.read(of_the_replica)

    assert "busy" in said.value.description
    assert reads.read(of_the_replica)


def test_a_query_that_conflicts_with_what_is_replayed_is_asked_of_the_primary(reads_of):
    reads, _ = reads_of(3600)

    def work(conn):
        if of_the_replica(conn):
            raise psycopg.errors.SerializationFailure("canceling statement due to conflict with recovery")
        return "the primary"

    assert reads.read(work) == "the primary"


def test_a_replica_that_does_not_know_how_far_it_is_behind_is_not_read(reads_of, monkeypatch):
    reads, _ = reads_of(3600)
    monkeypatch.setattr("api.data.replica.queries.lag_of_reads", lambda conn: None if of_the_replica(conn) else 0)

    assert not reads.read(of_the_replica)


def test_one_that_has_replayed_nothing_since_it_started_does_not_know(replica_url):
    query = queries.lag_of_reads.sql.replace("pg_last_xact_replay_timestamp()", "null::timestamptz")
    with connected(replica_url) as conn:
        assert conn.execute(query).fetchone() == (None,)


def test_a_pool_of_the_primary_refuses_a_replica(replica_url, database_url):
    with pytest.raises(psycopg.OperationalError, match="leads to a replica"):
        Pool(replica_url, 1, of_the_primary=True).read(of_the_replica)
    pool = Pool(database_url, 1, of_the_primary=True)
    assert pool.read(of_the_replica) is False
    pool.close()


def test_a_question_that_fails_on_both_fails_as_it_does_on_one(reads_of):
    reads, _ = reads_of(3600)

    with pytest.raises(psycopg.errors.UndefinedTable):
        reads.read(lambda conn: conn.execute("select from nowhere"))
    with pytest.raises(psycopg.errors.QueryCanceled):
        reads.read(lambda conn: conn.execute("set statement_timeout = 50; select pg_sleep(5)"))


def test_an_answer_says_how_far_the_replica_is_behind(conn, database_url):
    there, away = Pool(database_url, 2), Pool("postgresql:///nothing?host=/nowhere", 2)
    pool, answers = OneConnection(conn), []
    key = generous(conn, "someone@example.com")
    for replica in (there, away):
        reads = ReplicaReads(replica, there, max_lag_s=5)
        client = Client(create_app(Service(reads=reads, writes=pool, hub=StreamHub(pool, lambda: 0))))
        answers.append(client.ask("/v1/categories", key=key))
        reads.close()

    assert [answer.status_code for answer in answers] == [200, 200]
    assert [answer.headers.get("x-replica-lag") for answer in answers] == ["0.000", None]  # a primary is never behind
