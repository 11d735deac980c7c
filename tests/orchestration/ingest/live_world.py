"""Live feeds run against the sandbox and a database of their own."""

import json
import os
import subprocess
import sys
import threading
import time
import uuid
from collections import Counter
from contextlib import ExitStack, contextmanager
from pathlib import Path

import httpx
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from config.settings import Settings
from orchestration.feeds.shards import WHOLE, Shard
from orchestration.ingest.exchanges.polymarket import PolymarketClient
from orchestration.ingest.feed import LiveFeed
from orchestration.markets import catalogue
from sql import database
from sql.roles.rights import PIPELINE
from tests.patience import until as wait_until
from tests.roles import login_url
from tests.soak import truth
from upstream.polymarket.gamma.client import Gamma
from upstream.sandbox.simulation import simulation
from upstream.transport.http import Client, tls_context

ROOT = Path(__file__).parents[3]


def disable_listings(monkeypatch):
    """Stop markets from being listed or ending in a test: trades of a new one may be stored a moment later."""
    monkeypatch.setattr(simulation, "FIRST_LISTING_MS", 1_000_000_000)
    monkeypatch.setattr(simulation.Simulation, "_next_window", lambda *_: None)


class World:
    """A sandbox, a database with its markets, and feeds between them; closed when its block ends."""

    family = "polymarket"

    def __init__(self, sandbox, url, log):
        self.sandbox, self.url, self.log = sandbox, url, log
        self.feeds = []
        self.conn = database.connect(url, autocommit=True)
        try:
            self.discover()
        except BaseException:
            self.conn.close()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def exchange(self):
        box = self.sandbox
        return PolymarketClient(box.gamma_url, box.clob_url, box.socket_url, box.data_api_url, box.source.source)

    def environment(self):
        """Return the settings of a process that follows this exchange."""
        box = self.sandbox
        return {
            "PRESAGE_GAMMA_URL": box.gamma_url,
            "PRESAGE_CLOB_URL": box.clob_url,
            "PRESAGE_CLOB_SOCKET_URL": box.socket_url,
            "PRESAGE_DATA_API_URL": box.data_api_url,
            "PRESAGE_SOURCE": box.source.source,
        }

    def discover(self):
        with Client() as client:
            markets = list(Gamma(client, self.sandbox.gamma_url).markets())
        catalogue.store(self.conn, [market.row(self.sandbox.source.source) for market in markets], cause="discovered")

    def feed(self, *, shard=WHOLE, window_s=600.0, settle_s=30.0, **settings):
        """Start a feed in this process."""
        running = ThreadFeed(self, shard, window_s, settle_s, settings)
        self.feeds.append(running)
        return running

    def process(self, *, shard=WHOLE, window_s=600.0, clock_ahead_s=None, **settings):
        """Start a feed in a process of its own, which may have a clock of its own."""
        running = ProcessFeed(self, shard, window_s, settings, clock_ahead_s)
        self.feeds.append(running)
        return running

    def leases(self):
        rows = self.conn.execute(
            "select run_id, role, ready, detail from feed_leases"
            " where beat_at > now() - interval '3 s' and role <> 'gone'"
        )
        return {run_id: (role, ready, detail) for run_id, role, ready, detail in rows}

    def leaders(self, shards):
        """Return the run that leads each of so many shards, and its lease's detail, once all have a ready one."""
        rows = self.conn.execute(
            "select feed, run_id, detail from feed_leases"
            " where beat_at > now() - interval '3 s' and role = 'leader' and ready order by beat_at"
        )
        held = {feed: (run_id, detail) for feed, run_id, detail in rows}
        feeds = [shard.feed("polymarket") for shard in Shard.all(shards)]
        return [held[feed] for feed in feeds] if held.keys() >= set(feeds) else []

    def shards_caught_up(self, shards, more_ms=0):
        """Wait until everything sent by now (plus `more_ms`) is committed by every shard; return now."""
        now = now_ms()
        wait_until(
            lambda: min((int(detail["written_ms"]) for _, detail in self.leaders(shards)), default=0) > now + more_ms
        )
        return now

    def leader(self):
        return next((run_id for run_id, (role, ready, _) in self.leases().items() if role == "leader" and ready), None)

    def ready(self, feed):
        return self.leases().get(feed.run_id, ("", False, {}))[1]

    def fault(self, **fault):
        response = httpx.post(f"{self.sandbox.url}/sandbox/faults", json=fault, verify=tls_context())
        response.raise_for_status()
        return response.json()

    def end_faults(self):
        httpx.delete(f"{self.sandbox.url}/sandbox/faults", verify=tls_context()).raise_for_status()

    def sent(self, from_ms, to_ms):
        """Return what the exchange's log says it sent in a span."""
        self.sandbox.call(self.sandbox.log.flush)
        return truth.sent(self.log, from_ms=from_ms, to_ms=to_ms)

    def wait_until_sent(self, since_ms, *, more_than, ago_ms=0):
        """Wait until the exchange sent more than `more_than` of every kind since an instant, `ago_ms` ago or more."""
        wait_until(lambda: all(n.total() > more_than for n in self.sent(since_ms, now_ms() - ago_ms).rows.values()))

    def differences(self, from_ms, to_ms):
        """Return rows lost and doubled in a span, by kind."""
        found = truth.compare(self.sent(from_ms, to_ms), truth.stored(self.conn, from_ms=from_ms, to_ms=to_ms))
        assert all(kind.compared > MIN_COMPARED for kind in found.values()), found
        return {name: (dict(kind.lost), dict(kind.doubled)) for name, kind in found.items()}

    def differences_by_hash(self, from_ms, to_ms):
        """Return trades lost and doubled, ignoring their timestamps."""

        def bare(trades):
            return Counter({(token, *rest): n for (token, _, *rest), n in trades.items()})

        sent = bare(self.sent(from_ms, to_ms).rows["trades"])
        found = bare(truth.stored(self.conn, from_ms=from_ms - 1000, to_ms=to_ms + 1000)["trades"])
        assert sent.total() > MIN_COMPARED_BY_HASH
        return dict(sent - found), {trade: n for trade, n in found.items() if n > max(sent[trade], 1)}

    @contextmanager
    def database_unavailable(self):
        """Refuse new connections to the database and terminate existing ones."""
        name = conninfo_to_dict(self.url)["dbname"]
        with database.connect(make_conninfo(self.url, dbname="postgres"), autocommit=True) as admin:
            admin.execute(sql.SQL("alter database {} allow_connections false").format(sql.Identifier(name)))
            admin.execute("select pg_terminate_backend(pid, 5000) from pg_stat_activity where datname = %s", [name])
            try:
                yield
            finally:
                admin.execute(sql.SQL("alter database {} allow_connections true").format(sql.Identifier(name)))
        self.conn.close()
        self.conn = database.connect(self.url, autocommit=True)

    def caught_up(self, more_ms=0):
        """Wait until everything sent by now (plus `more_ms`) is committed and the lease says so; return now.

        One socket sends levels in timestamp order, and they are committed in the order received: with a later one
        comes everything before it, however late the sandbox, the socket or the feed are.
        """
        now = now_ms()
        later = "select exists (select from book_events where side is not null and ts > to_timestamp(%s))"
        wait_until(lambda: self.conn.execute(later, [now / 1000]).fetchone() == (True,))
        wait_until(
            lambda: max((int(d.get("written_ms", 0)) for *_, d in self.leases().values()), default=0) > now + more_ms
        )
        return now

    def recording_began(self):
        """Wait until the feed counts as recording; return now. Nothing that it missed before then is a gap."""
        begun = "select recorded_since(%s) is not null"
        wait_until(lambda: self.conn.execute(begun, [self.family]).fetchone() == (True,))
        return now_ms()

    def gaps(self):
        rows = self.conn.execute(
            "select kind, market_key, cause, to_ts is not null, filled_by from coverage_gaps order by gap_id"
        )
        return rows.fetchall()

    def filled(self, kind):
        """Return who filled the gaps of a kind."""
        return {gap[4] for gap in self.gaps() if gap[0] == kind}

    def close(self):
        with ExitStack() as stack:
            stack.callback(self.conn.close)
            for feed in self.feeds:
                stack.callback(feed.stop)


# Fewer rows compared prove nothing.
MIN_COMPARED, MIN_COMPARED_BY_HASH = 20, 50
NO_DIFFERENCES = {"trades": ({}, {}), "level changes": ({}, {})}


def now_ms():
    return int(time.time() * 1000)


class ThreadFeed:
    """A feed in a thread of this process."""

    def __init__(self, world, shard, window_s, settle_s, settings):
        self.run_id = f"thread-{uuid.uuid4().hex[:8]}"
        self.observations, self.totals, self.fault = [], {}, None
        self._stopped = threading.Event()
        fast = {"live_flush_ms": 50, "live_book_flush_ms": 100, "live_silence_s": 3.0, **settings}
        self._feed = LiveFeed(
            Settings(_env_file=None, **fast),
            world.url,
            world.exchange(),
            run_id=self.run_id,
            feed=world.family,
            shard=shard,
            window_s=window_s,
            settle_s=settle_s,
            observe_s=0.5,
        )
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self):
        try:
            self.totals = self._feed.run(self._stopped.is_set, self.observations.append)
        except BaseException as fault:  # noqa: BLE001
            self.fault = fault

    @property
    def over(self):
        return not self._thread.is_alive()

    def stop(self):
        self._stopped.set()
        self._thread.join(60)
        assert self.over
        if self.fault:
            raise self.fault
        return self.totals


class ProcessFeed:
    """A feed in a process of its own."""

    def __init__(self, world, shard, window_s, settings, clock_ahead_s=None):
        program = ["orchestration.ingest"]
        if clock_ahead_s is not None:
            program = ["tests.orchestration.ingest.skewed_clock", str(clock_ahead_s)]
        self.run_id = f"process-{uuid.uuid4().hex[:8]}"
        self.process = subprocess.Popen(
            [
                *(sys.executable, "-m", *program, "--run-id", self.run_id, "--window", str(window_s)),
                *("--observe", "1", "--settle", "1", "--shard", f"{shard.number}/{shard.of}"),
                *("--exchange", world.family),
            ],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            env={
                **os.environ,
                "DATABASE_URL": login_url(world.url, PIPELINE),
                **world.environment(),
                "PRESAGE_LIVE_FLUSH_MS": "50",
                **{f"PRESAGE_{name.upper()}": str(value) for name, value in settings.items()},
            },
        )

    def kill(self):
        self.process.kill()
        self.process.wait()

    def stop(self):
        self.process.terminate()
        out, _ = self.process.communicate(timeout=60)
        return json.loads(out.splitlines()[-1]) if out else {}
