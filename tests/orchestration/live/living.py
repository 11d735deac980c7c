"""Feeds against the sandbox and a database of their own."""

import json
import os
import subprocess
import sys
import threading
import time
import uuid
from collections import Counter
from contextlib import contextmanager
from pathlib import Path

import httpx
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from orchestration import catalogue
from orchestration.live.exchange import Exchange
from orchestration.live.feed import Feed
from settings import Settings
from sql import database
from tests.soak import truth
from upstream.gamma import Gamma
from upstream.http import Client

ROOT = Path(__file__).parents[3]


def wait_until(what, within_s=15.0):
    began = time.monotonic()
    while not (found := what()):
        assert time.monotonic() - began < within_s, f"not within {within_s} s"
        time.sleep(0.05)
    return found


class World:
    """A sandbox, a database that knows its markets, and the feeds in between."""

    def __init__(self, sandbox, url, log):
        self.sandbox, self.url, self.log = sandbox, url, log
        self.feeds = []
        self.conn = database.connect(url, autocommit=True)
        self.discover()

    def exchange(self):
        box = self.sandbox
        return Exchange(box.gamma_url, box.clob_url, box.socket_url, box.data_api_url, "simulated")

    def discover(self):
        with Client() as client:
            markets = list(Gamma(client, self.sandbox.gamma_url).markets())
        catalogue.store(self.conn, [market.row("simulated") for market in markets], cause="discovered")

    def feed(self, *, window_s=600.0, settle_s=30.0, **settings):
        """Start a feed in this process."""
        running = Running(self, window_s, settle_s, settings)
        self.feeds.append(running)
        return running

    def process(self, *, window_s=600.0, **settings):
        """Start a feed in a process of its own."""
        running = Process(self, window_s, settings)
        self.feeds.append(running)
        return running

    def leases(self):
        rows = self.conn.execute(
            "select run_id, role, ready, detail from feed_leases"
            " where beat_at > now() - interval '3 s' and role <> 'gone'"
        )
        return {run_id: (role, ready, detail) for run_id, role, ready, detail in rows}

    def leader(self):
        return next((run_id for run_id, (role, ready, _) in self.leases().items() if role == "leader" and ready), None)

    def ready(self, feed):
        return self.leases().get(feed.run_id, ("", False, {}))[1]

    def fault(self, **fault):
        response = httpx.post(f"{self.sandbox.url}/sandbox/faults", json=fault)
        response.raise_for_status()
        return response.json()

    def exact(self, from_ms, to_ms):
        """What was lost or doubled in a span."""
        self.sandbox.call(self.sandbox.log.flush)
        told = truth.told(self.log, from_ms=from_ms, to_ms=to_ms)
        found = truth.compare(told, truth.held(self.conn, from_ms=from_ms, to_ms=to_ms))
        assert all(kind.compared > 20 for kind in found.values()), found
        return {name: (dict(kind.lost), dict(kind.doubled)) for name, kind in found.items()}

    def trades_by_hash(self, from_ms, to_ms):
        """Trades lost and doubled, whatever instant their source gave them."""
        self.sandbox.call(self.sandbox.log.flush)

        def bare(trades):
            return Counter({(token, *rest): n for (token, _, *rest), n in trades.items()})

        told = bare(truth.told(self.log, from_ms=from_ms, to_ms=to_ms).rows["trades"])
        found = bare(truth.held(self.conn, from_ms=from_ms - 1000, to_ms=to_ms + 1000)["trades"])
        assert told.total() > 50
        return dict(told - found), {trade: n for trade, n in found.items() if n > max(told[trade], 1)}

    @contextmanager
    def database_away(self):
        """Nobody gets in, and whoever is in is thrown out."""
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

    def caught_up(self):
        """Wait until everything said by now is committed; give now.

        A lease tells up to when what was *heard* is committed: what was said now may be heard a moment later, behind
        what was said before and heard after.
        """
        now = now_ms()
        heard_by = now + UNDERWAY_MS
        wait_until(
            lambda: max((int(d.get("written_ms", 0)) for _, _, d in self.leases().values()), default=0) > heard_by
        )
        return now

    def gaps(self):
        rows = self.conn.execute(
            "select kind, market_key, cause, to_ts is not null, filled_by from coverage_gaps order by gap_id"
        )
        return rows.fetchall()

    def filled(self, kind):
        """Who filled the gaps of a kind."""
        return {gap[4] for gap in self.gaps() if gap[0] == kind}

    def close(self):
        for feed in self.feeds:
            feed.stop()
        self.conn.close()


UNDERWAY_MS = 1_000  # longer than anything the sandbox says is on its way, on a busy machine
NOTHING = {"trades": ({}, {}), "level changes": ({}, {})}


def now_ms():
    return int(time.time() * 1000)


class Running:
    def __init__(self, world, window_s, settle_s, settings):
        self.run_id = f"thread-{uuid.uuid4().hex[:8]}"
        self.said, self.totals, self.fault = [], {}, None
        self._stopped = threading.Event()
        quick = {"live_flush_ms": 50, "live_book_flush_ms": 100, "live_silence_s": 3.0, **settings}
        self._feed = Feed(
            Settings(_env_file=None, **quick),
            world.url,
            world.exchange(),
            run_id=self.run_id,
            window_s=window_s,
            settle_s=settle_s,
            observe_s=0.5,
        )
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self):
        try:
            self.totals = self._feed.run(self._stopped.is_set, self.said.append)
        except BaseException as fault:  # noqa: BLE001
            self.fault = fault

    @property
    def over(self):
        return not self._thread.is_alive()

    def stop(self):
        self._stopped.set()
        self._thread.join(20)
        assert self.over
        if self.fault:
            raise self.fault
        return self.totals


class Process:
    def __init__(self, world, window_s, settings):
        self.run_id = f"process-{uuid.uuid4().hex[:8]}"
        exchange = world.exchange()
        self.process = subprocess.Popen(
            [
                *(sys.executable, "-m", "orchestration.live", "--run-id", self.run_id, "--window", str(window_s)),
                *("--observe", "1", "--settle", "1"),
            ],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            env={
                **os.environ,
                "DATABASE_URL": world.url,
                "PRESAGE_GAMMA_URL": exchange.gamma_url,
                "PRESAGE_CLOB_URL": exchange.clob_url,
                "PRESAGE_CLOB_SOCKET_URL": exchange.socket_url,
                "PRESAGE_DATA_API_URL": exchange.data_api_url,
                "PRESAGE_SOURCE": exchange.source,
                "PRESAGE_LIVE_FLUSH_MS": "50",
                **{f"PRESAGE_{name.upper()}": str(value) for name, value in settings.items()},
            },
        )

    def kill(self):
        self.process.kill()
        self.process.wait()

    def stop(self):
        self.process.terminate()
        out, _ = self.process.communicate(timeout=20)
        return json.loads(out.splitlines()[-1]) if out else {}
