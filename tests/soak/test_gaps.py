"""Missed data is in a gap, and its trades are fetched: short-lived markets, refused sockets, a day without a feed."""

from __future__ import annotations

import datetime as dt
import json
import time
from contextlib import ExitStack

import pytest

from config.settings import Settings
from orchestration.coverage import days
from orchestration.markets.discovery import Discovery
from tests.orchestration.ingest.live_world import World, now_ms, wait_until
from tests.soak.audit import audit
from upstream.polymarket.gamma.client import Gamma
from upstream.polymarket.gamma.listings import GammaListings
from upstream.sandbox.server import Sandbox
from upstream.sandbox.simulation import simulation, universe
from upstream.transport.http import Client

DAY_AND_AN_HOUR_S = 25 * 3600


class GapWorld(World):
    """A sandbox, a database, its feeds and, where a test runs them, the jobs beside them."""

    def __enter__(self):
        self.scan_catalogue()
        return self

    def scan_catalogue(self):
        """Read the catalogue as discovery does: open, new and closed markets."""
        with Client() as client:
            configured = Settings(_env_file=None, source=self.sandbox.source.source)
            discovery = Discovery(self.conn, GammaListings(Gamma(client, self.sandbox.gamma_url)), configured)
            discovery.scan_open()
            discovery.look()
            discovery.scan_closed()

    def unfilled(self):
        query = "select count(*) from coverage_gaps where kind = 'trades' and filled_at is null"
        return self.conn.execute(query).fetchone()[0]

    def fast_forward(self, rate, *, until_ms):
        """Have the exchange, whose clock is behind, catch up at a low event rate, as fast as it can."""
        source = self.sandbox.source
        usual, source.rate = source.rate, rate
        pace, self.sandbox.pace = self.sandbox.pace, None  # it would skip the time that the clock is behind
        self.sandbox.call(lambda: setattr(self.sandbox, "_began", self.sandbox._began - DAY_AND_AN_HOUR_S))
        wait_until(lambda: source.now_ms > until_ms() - 10_000, 300)
        source.rate, self.sandbox.pace = usual, pace

    def audited(self, from_ms, to_ms):
        self.sandbox.call(self.sandbox.log.flush)
        report = audit(self.url, self.log, from_ms=from_ms, to_ms=to_ms)
        rows = self.conn.execute(
            "select kind, cause, filled_by, count(*), sum(coalesce((detail ->> 'trades')::int, 0)) from coverage_gaps"
            " group by 1, 2, 3 order by 1, 2, 3"
        ).fetchall()
        print(f"\n{report}\n  " + "\n  ".join(map(str, rows)), flush=True)
        return report

    def short_lived_markets(self, from_ms, to_ms):
        """Return the markets listed and resolved within a span."""
        listed, resolved = set(), set()
        self.sandbox.call(self.sandbox.log.flush)
        for line in map(json.loads, self.log.read_bytes().splitlines()):
            if line["kind"] in {"new_market", "resolved"} and from_ms <= line["ts_ms"] <= to_ms:
                (listed if line["kind"] == "new_market" else resolved).add(line["condition_id"])
        return listed & resolved


@pytest.fixture
def install(database_url, tmp_path):
    """`install(rate=100)`: an exchange and a database that knows its markets, until the test ends."""
    with ExitStack() as stack:

        def start(**options):
            log = tmp_path / "truth.jsonl"
            sandbox = stack.enter_context(Sandbox(simulate=21, log=log, **options))
            return stack.enter_context(GapWorld(sandbox, database_url, log))

        yield start


@pytest.mark.soak
def test_markets_that_were_listed_and_closed_while_everything_was_down(install, monkeypatch):
    monkeypatch.setattr(universe, "WINDOW_S", 20)
    monkeypatch.setattr(simulation, "WINDOW_S", 20)
    monkeypatch.setattr(simulation, "TURNOVER_MS", 20_000)
    world = install(rate=100, markets=30)
    before = world.feed(settle_s=2)
    wait_until(lambda: world.leader() == before.run_id)
    began = world.recording_began()
    time.sleep(20)
    before.stop()
    ended = now_ms()
    wait_until(lambda: len(world.short_lived_markets(ended, now_ms())) >= 6, 240)
    gone = world.short_lived_markets(ended, now_ms())

    again = world.feed(settle_s=2)
    wait_until(lambda: world.leader() == again.run_id)
    wait_until(lambda: world.unfilled() == 0 and len(world.gaps()) > 1, 120)
    known = world.conn.execute("select count(*) from markets where market_id = any(%s)", [list(gone)]).fetchone()[0]
    world.scan_catalogue()
    time.sleep(20)
    until = world.caught_up()
    wait_until(lambda: world.unfilled() == 0, 120)

    print(f"{len(gone)} markets came and went unnoticed, {known} of them were found by their trades")
    assert len(gone) >= 5
    assert known > 0
    assert again.stop()["mismatches"] == 0
    report = world.audited(began, until)
    report.assert_clean()
    assert report.missing["trades"] == 0


@pytest.mark.soak
def test_a_new_socket_that_is_refused_for_five_minutes(install):
    world = install(rate=100, markets=20)
    (tokens,) = world.conn.execute("select count(*) from tokens").fetchone()
    feeds = [world.feed(settle_s=2, live_assets_per_socket=tokens) for _ in range(2)]
    wait_until(lambda: all(world.ready(feed) for feed in feeds))
    world.recording_began()
    began = world.caught_up()
    world.fault(kind="refuse", for_s=300)  # open sockets stay open and are full: new markets need a new one
    refused = "select count(*) from coverage_gaps where cause = 'listed before it was followed' and to_ts is null"
    wait_until(lambda: world.conn.execute(refused).fetchone()[0] >= 2, 120)
    seen = now_ms()
    time.sleep(285 - (seen - began) / 1000)
    still = world.conn.execute(refused).fetchone()[0]
    wait_until(lambda: world.conn.execute(refused).fetchone()[0] == 0, 120)
    time.sleep(10)
    until = world.caught_up()
    wait_until(lambda: world.unfilled() == 0, 120)

    print(f"{still // 2} markets could not be subscribed to at the end of five minutes")
    assert still >= 2
    report = world.audited(began, until)
    report.assert_clean()
    assert report.missing["trades"] == 0
    assert report.missing["level changes"] > 0, "changes of books that nobody received"


@pytest.mark.soak
def test_twenty_five_hours_without_a_feed(install, monkeypatch):
    monkeypatch.setattr(simulation, "TURNOVER_MS", 1_800_000)
    started = int(time.time() * 1000) - DAY_AND_AN_HOUR_S * 1000
    world = install(rate=40, markets=10, start_ms=started)
    before = world.feed(settle_s=2)
    wait_until(lambda: world.leader() == before.run_id)
    world.recording_began()
    clock = "select as_ms(max(ts)) from book_events"
    wait_until(lambda: (world.conn.execute(clock).fetchone()[0] or 0) > started + 10_000)
    began = world.conn.execute(clock).fetchone()[0]
    time.sleep(15)
    before.stop()
    with world.conn.transaction():  # moved, not updated: a row stays within its chunk's week
        world.conn.execute("create temp table earlier on commit drop as select * from feed_stats")
        world.conn.execute("update earlier set ts = ts - interval '25 hours'")
        world.conn.execute("delete from feed_stats")
        world.conn.execute("insert into feed_stats select * from earlier")
    # Their progress is in the exchange's time, and so 25 hours ago already.
    world.conn.execute(
        "update feed_leases set beat_at = beat_at - interval '25 hours', started_at = started_at - interval '25 hours'"
    )
    world.conn.execute("update stage_clocks set beat_at = beat_at - interval '25 hours' where stage = 'ingestion'")
    (ended,) = world.conn.execute("select max((detail ->> 'written_ms')::bigint) from feed_leases").fetchone()
    world.fast_forward(0.3, until_ms=now_ms)
    gone = world.short_lived_markets(ended, now_ms())
    exchange = world.exchange()
    reconciled = days.reconcile_trades(world.conn, exchange, dt.datetime.now(dt.UTC).date() - dt.timedelta(days=1))
    exchange.close()

    again = world.feed(settle_s=2)
    wait_until(lambda: world.leader() == again.run_id)
    wait_until(lambda: world.unfilled() == 0 and len(world.gaps()) > 1, 240)
    world.scan_catalogue()
    time.sleep(10)
    until = world.caught_up()
    wait_until(lambda: world.unfilled() == 0, 120)

    print(
        f"{len(gone)} markets came and went; reconciliation brought {reconciled.added} trades before the feed was back"
    )
    (first,) = world.conn.execute(
        "select as_ms(min(from_ts)) from coverage_gaps where kind = 'books' and market_key is null"
    ).fetchone()
    assert ended - 60_000 < first <= ended
    report = world.audited(began, until)
    report.assert_clean()
    assert report.missing["trades"] == 0
