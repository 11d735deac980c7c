"""A backup is made, the database dropped and restored, recording continues: only the pause is missing, and named."""

from __future__ import annotations

import threading
import time
from contextlib import contextmanager

import pytest
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from api.app import create_app
from api.metering.ledger_location import LazyLedger
from api.service import Service
from api.stream.hub import StreamHub
from config.settings import Settings
from orchestration.ingest import session
from orchestration.ingest.committer import MARGIN_MS
from orchestration.settlement.feed import SettlementFeed
from sql import backup, database
from tests.api.conftest import Client, OneConnection, generous
from tests.orchestration.ingest.live_world import (
    MIN_COMPARED,
    MIN_COMPARED_BY_HASH,
    NO_DIFFERENCES,
    World,
    disable_listings,
    now_ms,
    wait_until,
)
from tests.orchestration.settlement import test_sandbox as settlements
from upstream.chain.contracts import POLYGON
from upstream.chain.rpc import Rpc
from upstream.sandbox.server import Sandbox


@pytest.fixture(autouse=True)
def quickly(monkeypatch):
    disable_listings(monkeypatch)
    for errand in ("BEAT_S", "TOKENS_S", "GAPS_S", "NEWS_S", "FETCH_S", "FIGURES_S"):
        monkeypatch.setattr(session, errand, 0.2)


@contextmanager
def following(sandbox, url, first):
    """Index the sandbox's chain for the duration of the block."""
    configured = Settings(_env_file=None, settlement_poll_ms=100, chain_start_block=first)
    stopped = threading.Event()
    with Rpc([sandbox.rpc_url], read_s=2, total_s=4, rounds=2) as rpc:
        feed = SettlementFeed(
            configured, url, rpc, POLYGON, run_id=f"s{time.monotonic_ns()}", window_s=600, observe_s=1
        )
        running = threading.Thread(target=feed.run, args=(stopped.is_set, lambda _: None))
        running.start()
        try:
            yield
        finally:
            stopped.set()
            running.join(60)


@contextmanager
def asking(url):
    """An API client over a database."""
    with database.connect(url, autocommit=True) as conn:
        pool, ledger = OneConnection(conn), LazyLedger()
        client = Client(create_app(Service(reads=pool, writes=pool, hub=StreamHub(pool, ledger.ended), ledger=ledger)))
        client.key = generous(conn, "someone@example.com")
        yield client


def test_nothing_is_lost_but_the_pause_and_coverage_names_it(database_url, tmp_path):
    file, log = tmp_path / "presage.dump", tmp_path / "truth.jsonl"
    name = conninfo_to_dict(database_url)["dbname"]
    with (
        Sandbox(simulate=31, rate=150, markets=15, log=log) as sandbox,
        World(sandbox, database_url, log) as world,
    ):
        first = sandbox.chain.head
        with following(sandbox, database_url, first):
            feed = world.feed(settle_s=0.5)
            wait_until(lambda: world.leader() == feed.run_id)
            began = world.recording_began()
            world.wait_until_sent(began, more_than=MIN_COMPARED, ago_ms=1000)
            kept_until = world.caught_up()
            backup.save(database_url, file)
            made = now_ms()
            feed.stop()
        world.conn.close()
        with database.connect(make_conninfo(database_url, dbname="postgres"), autocommit=True) as admin:
            admin.execute(sql.SQL("drop database {} with (force)").format(sql.Identifier(name)))
        world.wait_until_sent(made, more_than=5)
        backup.restore(database_url, file)

        world.conn = database.connect(database_url, autocommit=True)
        restored = world.conn.execute("select max(number) from chain_blocks").fetchone()[0]
        with following(sandbox, database_url, first):
            after = world.feed(settle_s=0.5)
            wait_until(lambda: world.leader() == after.run_id)
            wait_until(lambda: {closed for *_, closed, _ in world.gaps()} == {True})  # when it has recorded the pause
            resumed = now_ms()
            world.wait_until_sent(resumed, more_than=MIN_COMPARED)
            world.wait_until_sent(began, more_than=MIN_COMPARED_BY_HASH, ago_ms=2000)
            until = world.caught_up()
            wait_until(lambda: world.filled("trades") == {"data_api"})
            wait_until(lambda: settlements.indexed(world.conn) > restored + 1)
        last = settlements.indexed(world.conn)
        chain = sandbox.call(lambda: settlements.matched(sandbox, first, last))
        with asking(database_url) as client:
            answer = client.ask("/v1/coverage").json

        # The exchange's list has whole seconds: the last one before the pause may contain trades made during it.
        assert world.differences(began, kept_until - 1000) == NO_DIFFERENCES
        # From then on trades are known by their hash.
        assert world.differences(resumed, until)["level changes"] == ({}, {})
        assert world.differences_by_hash(began, until - 2000) == ({}, {})
        assert settlements.settled(world.conn) == chain

    pause = {gap["kind"]: gap for gap in answer["data"]}
    assert set(pause) == {"books", "trades"}
    for gap in pause.values():
        assert (gap["cause"], gap["market_id"]) == ("no feed running", None)
        # It begins a little before the pause: the delays of the old run and of the new one may differ.
        assert kept_until - MARGIN_MS <= gap["from_ts"] <= made
        assert gap["to_ts"] <= resumed
    assert (pause["books"]["status"], pause["trades"]["status"]) == ("lost", "filled")
    assert pause["trades"]["filled_by"] == "data_api"
    assert pause["trades"]["added"] > 0
    books = next(each for each in answer["kinds"] if each["kind"] == "books")
    (span,) = books["spans"]
    from_ts = max(pause["books"]["from_ts"], span["from_ts"])  # a quick first run begins within that margin
    assert books["missing_s"] == pytest.approx((pause["books"]["to_ts"] - from_ts) / 1000, abs=0.002)
