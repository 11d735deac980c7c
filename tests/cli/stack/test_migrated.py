"""A service waits for the schema of its release."""

import pytest

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

    def clock(self):
        return self.now


@pytest.mark.parametrize("role", [PIPELINE, API, SITE])
def test_with_the_schema_of_this_release_nobody_waits(database_url, role):
    time = Time()

    assert migrated.wait(login_url(database_url, role), time.sleep, time.clock)
    assert time.now == 0


def test_it_waits_for_the_migration_and_says_once_why(new_database, capsys):
    with new_database() as url:
        migrate.downgrade(url, "-1")
        time = Time(lambda: None, lambda: None, lambda: migrate.upgrade(url))

        assert migrated.wait(url, time.sleep, time.clock)

    assert capsys.readouterr().err == "waiting for the database: it lacks migrations of this release\n"


def test_without_a_database_it_gives_up_in_the_end(capsys):
    time = Time()

    assert not migrated.wait("postgresql://presage@127.0.0.1:1/presage", time.sleep, time.clock)
    assert time.now == pytest.approx(migrated.WAIT_S, abs=migrated.RETRY_S)
    assert "refused" in capsys.readouterr().err


def test_a_replica_is_not_the_primary_and_that_is_said_once(capsys):
    time = Time()
    with replicas.standby() as url:
        until(lambda: replicas.connected(url)).close()

        assert not migrated.wait_for_primary(url, time.sleep, time.clock)

    assert time.now >= migrated.WAIT_S
    assert capsys.readouterr().err == "waiting for the database: it is a replica\n"


def test_a_server_that_accepts_writes_is_not_waited_for(database_url):
    time = Time()

    assert migrated.wait_for_primary(database_url, time.sleep, time.clock)
    assert time.now == 0
