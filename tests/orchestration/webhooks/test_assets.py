"""Webhooks under Dagster: two runs while any webhook is registered, none otherwise."""

from __future__ import annotations

import threading

import dagster as dg
import pytest

from config import settings
from orchestration.assets import webhooks as delivery
from orchestration.resources import Database
from orchestration.webhooks import feed
from sql.roles.rights import PIPELINE
from tests.orchestration.webhooks.receiving import add_webhook, tell, trade
from tests.patience import until
from tests.roles import login_url


@pytest.fixture
def instance():
    with dg.DagsterInstance.ephemeral() as made:
        yield made


@pytest.fixture
def tick(instance, database_url):
    def evaluate(cursor=None):
        context = dg.build_sensor_context(instance=instance, cursor=cursor)
        return delivery.delivery_keeper(context, database=Database(url=login_url(database_url, PIPELINE)))

    return evaluate


def off(conn):
    return conn.execute("select detail ->> 'off' from stage_clocks where stage = 'delivery'").fetchone()[0]


def test_with_nobody_to_tell_nothing_runs_and_the_stage_says_so(conn, tick):
    first = tick()
    second = tick(first.cursor)

    assert first.run_requests == []
    assert [event.asset_key.to_user_string() for event in first.asset_events] == ["webhook_deliveries"]
    assert isinstance(second, dg.SkipReason)
    assert off(conn) == delivery.OFF


def test_two_runs_are_kept_while_a_webhook_is_enabled(conn, tick):
    webhook = add_webhook(conn, "https://example.com/")

    started = tick()

    assert len(started.run_requests) == 1
    assert started.run_requests[0].tags["presage/why"].endswith("started 2")
    assert off(conn) is None
    conn.execute("update webhooks set disabled_at = now() where webhook_id = %s", [webhook["webhook_id"]])
    assert not getattr(tick(), "run_requests", None)
    assert off(conn) == delivery.OFF


def test_a_run_delivers_and_says_what_it_did(conn, database_url, receiver, monkeypatch):
    monkeypatch.setenv("PRESAGE_WEBHOOK_NETWORKS", "127.0.0.0/8")
    settings.get.cache_clear()
    monkeypatch.setattr(feed, "IDLE_S", 0.2)
    monkeypatch.setattr(delivery, "OBSERVE_S", 0.2)
    webhook = add_webhook(conn, receiver.url)
    tell(conn, trade(1), trade(2))

    def end():
        arrived = "select count(*) from webhook_deliveries where state = 'delivered'"
        until(lambda: conn.execute(arrived).fetchone() == (2,))
        conn.execute("update webhooks set disabled_at = now() where webhook_id = %s", [webhook["webhook_id"]])

    ending = threading.Thread(target=end)
    ending.start()
    done = dg.materialize(
        [delivery.webhook_deliveries], resources={"database": Database(url=login_url(database_url, PIPELINE))}
    )
    ending.join()

    assert done.success
    metadata = done.asset_materializations_for_node("webhook_deliveries")[-1].metadata
    assert (metadata["queued"].value, metadata["delivered"].value) == (2, 2)
    settings.get.cache_clear()
