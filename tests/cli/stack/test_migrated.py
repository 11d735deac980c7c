"""A service waits for the schema of its release."""

import psycopg
import pytest
from sqlalchemy import create_engine

from cli.stack import migrated
from sql import migrate
from sql.roles.rights import API, PIPELINE, SITE
from tests import replicas
from tests.patience import until
from tests.roles import login_url


class Time:
    """A clock that sleeping moves, and what happens at each sleep."""

    def __init__(self, *events):
        self.now, self.events = 0.0, list(events)

    def sleep(self, seconds):
        self.now += seconds
        if self.events:
            self.events.pop(0)()

    @property
    def waiting(self):
        return migrated.Waiting(self.sleep, lambda: self.now)


@pytest.mark.parametrize("role", [PIPELINE, API, SITE])
def test_with_the_schema_of_this_release_nobody_waits(database_url, role):
    time = Time()

    assert migrated.wait(login_url(database_url, role), time.waiting)
    assert time.now == 0


def test_it_waits_for_the_migration_and_says_once_why(new_database, capsys):
    with new_database() as url:
        migrate.downgrade(url, "-1")
        time = Time(lambda: None, lambda: None, lambda: migrate.upgrade(url))

        assert migrated.wait(url, time.waiting)

    assert capsys.readouterr().err == "waiting for the database: it lacks migrations of this release\n"


def test_without_a_database_it_gives_up_in_the_end(capsys):
    time = Time()

    assert not migrated.wait("postgresql://presage@127.0.0.1:1/presage", time.waiting)
    assert time.now == pytest.approx(migrated.WAIT_S, abs=migrated.RETRY_S)
    assert "refused" in capsys.readouterr().err


def test_a_replica_is_not_the_primary_and_that_is_said_once(capsys):
    time = Time()
    with replicas.standby() as url:
        until(lambda: replicas.connected(url)).close()

        assert not migrated.with_primary(url, lambda: pytest.fail("a replica was written to"), time.waiting)

    assert time.now >= migrated.WAIT_S
    assert capsys.readouterr().err == "waiting for the database: it is a replica\n"


def fails_over(url):
    """Fail as what writes does whose primary becomes a replica."""
    with psycopg.connect(url) as conn:
        conn.execute("set transaction read only")
        conn.execute("create table t ()")


def is_shut_down(url):
    """Fail as SQLAlchemy does whose server ends."""
    with create_engine(url.replace("postgresql://", "postgresql+psycopg://")).connect() as conn:
        conn.exec_driver_sql("select pg_terminate_backend(pg_backend_pid())")


@pytest.mark.parametrize("lost", [fails_over, is_shut_down])
def test_what_a_failover_interrupts_is_done_again(database_url, capsys, lost):
    time, left = Time(), [lost, lost, lambda _: None]  # which is said once

    assert migrated.with_primary(database_url, lambda: left.pop(0)(database_url), time.waiting)

    assert (time.now, left) == (2 * migrated.RETRY_S, [])
    assert capsys.readouterr().err.count("waiting for the database: it was lost: ") == 1


def test_a_database_that_is_lost_again_and_again_is_given_up(database_url):
    time = Time()

    assert not migrated.with_primary(database_url, lambda: fails_over(database_url), time.waiting)
    assert time.now == pytest.approx(migrated.WAIT_S, abs=migrated.RETRY_S)


@pytest.mark.parametrize(
    ("statement", "error"),
    [
        ("table nothing", psycopg.errors.UndefinedTable),
        ("set statement_timeout = 1; select pg_sleep(5)", psycopg.errors.QueryCanceled),
    ],
)
def test_other_errors_are_not_repeated(database_url, statement, error):
    with pytest.raises(error), psycopg.connect(database_url) as conn:
        migrated.with_primary(database_url, lambda: conn.execute(statement), Time().waiting)
