"""The probes of a feed's container judge it by its lease, and never while the database is away."""

import pytest

from orchestration.feeds import probe
from sql.roles.rights import PIPELINE
from tests.roles import login_url

HOST = "presage-live-1of2-0"
NOBODY = "postgresql://presage@127.0.0.1:1/presage"


def lease(conn, run_id, *, role="standby", ready=True, silent_s=0, started_s=60, host=HOST):
    conn.execute(
        "insert into feed_leases (run_id, feed, role, ready, started_at, beat_at, window_ends_at, pid, host, detail)"
        " values (%s, 'polymarket/1of2', %s, %s, now() - make_interval(secs => %s), now() - make_interval(secs => %s),"
        " now(), 1, %s, '{}')",
        [run_id, role, ready, started_s, silent_s, host],
    )


@pytest.fixture
def judged(conn, database_url):
    """Judge the container's run: whether it is alive, and whether it is ready, or why not."""

    def ask(url=None):
        conn.commit()
        url = url or login_url(database_url, PIPELINE)
        return tuple(probe.failure(url, HOST, ready=ready) for ready in (False, True))

    return ask


def test_a_run_with_every_book_is_alive_and_ready(conn, judged):
    lease(conn, "one")

    assert judged() == ("", "")


def test_a_run_that_syncs_its_books_is_alive_and_not_ready(conn, judged):
    lease(conn, "one", ready=False)

    assert judged() == ("", "polymarket/1of2: not ready to lead")


@pytest.mark.parametrize("state", [{"silent_s": 11}, {"role": "gone"}])
def test_a_run_that_does_not_renew_its_lease_is_dead(conn, judged, state):
    lease(conn, "one", **state)

    assert judged() == ("polymarket/1of2: its lease is not renewed",) * 2


def test_the_run_that_began_last_counts_and_no_run_of_another_host(conn, judged):
    lease(conn, "before", silent_s=500, started_s=900)
    lease(conn, "now")
    lease(conn, "elsewhere", silent_s=500, started_s=1, host="presage-live-1of2-1")

    assert judged() == ("", "")


def test_before_its_first_lease_a_run_is_neither(judged):
    assert judged() == ("it has not taken a lease",) * 2


def test_while_the_database_is_away_no_run_is_dead_and_none_is_ready(judged):
    alive, ready = judged(NOBODY)

    assert alive == ""
    assert "the database does not answer" in ready
