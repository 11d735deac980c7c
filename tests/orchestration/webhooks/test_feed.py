"""The feed as a whole: leader and standby, clock and lease, and recovery from a kill."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from config.settings import Settings
from orchestration.webhooks import feed
from orchestration.webhooks.feed import WebhookFeed
from sql.roles.rights import PIPELINE
from tests.orchestration.running import Running
from tests.orchestration.webhooks import killing
from tests.orchestration.webhooks.receiving import add_webhook, tell, trade
from tests.patience import until
from tests.roles import login_url

ROOT = Path(__file__).parents[3]


@pytest.fixture
def start(database_url):
    running = []

    def start(name, **given):
        settings = Settings(_env_file=None, webhook_networks="127.0.0.0/8", webhook_poll_ms=10)
        terms = {"window_s": 600.0, "observe_s": 0.2, **given}
        running.append(Running(WebhookFeed(settings, database_url, run_id=name, **terms)))
        return running[-1]

    yield start
    for each in running:
        each.stop()


def stage(conn):
    return conn.execute(
        "select status, lag_s, detail from pipeline_status where stage = 'delivery' and not off"
    ).fetchone()


def roles(conn):
    return dict(conn.execute("select run_id, role from feed_leases where feed = 'delivery'").fetchall())


def test_one_delivers_the_other_takes_over_and_the_stage_says_so(conn, receiver, start):
    webhook = add_webhook(conn, receiver.url)
    first = start("first")
    until(lambda: roles(conn).get("first") == "leader")
    second = start("second")
    until(lambda: roles(conn).get("second") == "standby")
    tell(conn, trade(1))
    until(lambda: len(receiver.seen) == 1)
    status, lag_s, detail = until(lambda: stage(conn) if (stage(conn) or [0, 0, {}])[2].get("delivered") else None)

    totals = first.stop()
    until(lambda: roles(conn).get("second") == "leader")
    tell(conn, trade(2))
    until(lambda: len(receiver.seen) == 2)

    assert (status, detail["webhooks"], detail["waiting"]) == ("fresh", 1, 0)
    assert lag_s < 15
    assert (totals["queued"], totals["delivered"], totals["faults"]) == (1, 1, 0)
    assert until(lambda: second.feed.figures.counted.delivered == 1)
    assert roles(conn)["first"] == "gone"
    assert conn.execute(
        "select count(*) from webhook_deliveries where webhook_id = %s", [webhook["webhook_id"]]
    ).fetchone() == (2,)


def test_attempts_under_way_are_brought_to_an_end_before_the_lead_is_left(conn, receiver, start):
    add_webhook(conn, receiver.url)
    began = threading.Event()
    receiver.answer = lambda _number, _seen: began.set() or time.sleep(0.5) or 200
    leaving = start("leaving")
    tell(conn, trade(1))
    assert began.wait(60)

    leaving.stop()

    assert conn.execute("select state, attempts from webhook_deliveries").fetchall() == [("delivered", 1)]


def test_what_is_not_got_round_to_makes_the_stage_late(conn, receiver, start):
    add_webhook(conn, receiver.url)
    running = start("late")
    until(lambda: stage(conn))
    running.stop()
    conn.execute("update stage_clocks set last_data_at = now() - interval '31 s' where stage = 'delivery'")

    assert stage(conn)[0] == "late"

    start("again")
    until(lambda: stage(conn)[0] == "fresh")


def test_a_slow_receiver_with_much_to_get_is_not_the_stages_fault(conn, receiver, start, monkeypatch):
    monkeypatch.setattr(feed, "BEAT_S", 0.1)
    receiver.answer = lambda _number, _seen: time.sleep(0.075) or 200
    add_webhook(conn, receiver.url)
    tell(conn, *(trade(number) for number in range(40)))
    start("slow")

    lags = []
    until(lambda: lags.append((stage(conn) or (0, 0))[1] or 0) or len(receiver.seen) >= 40)

    assert max(lags) < 2.5  # all of it took longer


def test_with_nobody_to_tell_a_run_ends(conn, start, monkeypatch):
    monkeypatch.setattr(feed, "IDLE_S", 0.5)
    leader, standby = start("idle"), start("idle too")

    until(lambda: not leader.thread.is_alive() and not standby.thread.is_alive())

    off = conn.execute("select detail ->> 'off' from stage_clocks where stage = 'delivery'").fetchone()[0]
    assert off.startswith("no webhook is enabled")


def test_a_database_that_goes_away_is_come_back_to(conn, receiver, start):
    add_webhook(conn, receiver.url)
    running = start("faithful")
    until(lambda: roles(conn).get("faithful") == "leader")
    conn.execute(
        "select pg_terminate_backend(pid) from pg_stat_activity"
        " where application_name like 'presage feed delivery%' and datname = current_database()"
    )
    tell(conn, trade(1))

    until(lambda: len(receiver.seen) >= 1)

    assert running.feed.figures.standing()["faults"] >= 1


def test_the_command_delivers_without_dagster(conn, database_url, receiver):
    add_webhook(conn, receiver.url)
    tell(conn, trade(1))
    process = subprocess.Popen(
        [sys.executable, "-m", "orchestration.webhooks", "--observe", "0.2"],
        cwd=ROOT,
        env={
            **os.environ,
            "DATABASE_URL": login_url(database_url, PIPELINE),
            "PRESAGE_WEBHOOK_NETWORKS": "127.0.0.0/8",
        },
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        until(lambda: receiver.seen)
        process.send_signal(signal.SIGTERM)
        said, _ = process.communicate(timeout=60)
    finally:
        process.kill()

    assert process.returncode == 0
    assert json.loads(said.splitlines()[-1])["delivered"] == 1


def test_three_kills_lose_nothing_and_change_no_id(database_url):
    wrong, _ = killing.kill_many(database_url, 3, seed=1, webhooks=2, failing=0)

    assert wrong == []
