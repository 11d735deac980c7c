"""A browser and the real site on real ports: the site, the API with its stream, and a database."""

from __future__ import annotations

import contextlib
import datetime as dt
import os
import random
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from playwright import sync_api

from orchestration import stream
from orchestration.candles import activity, aggregates
from sql import database
from sql.database import micro
from sql.roles.rights import SITE
from tests import factories
from tests.api.conftest import serving
from tests.api.endpoints.test_shapes import book
from tests.patience import PATIENCE_S, until
from tests.ports import free_port
from tests.processes import terminate
from tests.roles import login_url

if TYPE_CHECKING:
    from collections.abc import Iterator

sync_api.expect.set_options(timeout=PATIENCE_S * 1000)
ROOT = Path(__file__).parents[2]
CHROMIUM = Path("/usr/bin/chromium")
WALLET = "0x" + "5d" * 20


class Served:
    """The running site: its URL, the API's URL, and a connection to the database."""

    def __init__(self, url: str, api_url: str, conn: Any) -> None:
        self.url, self.api_url, self.conn = url, api_url, conn
        self.markets: dict[str, dict[str, Any]] = {}

    def tell(self, kind: str, market: dict[str, Any], data: dict[str, Any]) -> None:
        """Publish an event on the stream, as the live feed does."""
        now = int(time.time() * 1000)
        with self.conn.transaction():
            stream.publish(self.conn, [stream.message(kind, now, market["market_id"], data)], now)


def site(database_url: str, api_url: str, log: Any, **environment: str) -> tuple[subprocess.Popen[bytes], str]:
    """Start the site like the stack does; return the process and its URL."""
    port = free_port()
    variables = {
        "DATABASE_URL": login_url(database_url, SITE),
        "PRESAGE_API_URL": api_url,
        "PRESAGE_SOURCE": "simulated",
    }
    process = subprocess.Popen(
        [
            *(sys.executable, "-m", "uvicorn", "api.site.app:app", "--port", str(port), "--no-proxy-headers"),
            *("--log-level", "warning", "--timeout-graceful-shutdown", "1"),
        ],
        cwd=ROOT,
        env={**os.environ, **variables, "PRESAGE_SITE_REQUESTS_A_SECOND": "1000", **environment},
        stdout=log,
        stderr=subprocess.STDOUT,
    )
    return process, f"http://127.0.0.1:{port}"


@pytest.fixture(scope="module")
def served(new_database: Any) -> Iterator[Served]:
    """The running service with a few markets, one with much trading."""
    with contextlib.ExitStack() as stack:
        url = stack.enter_context(new_database())
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        conn = stack.enter_context(database.connect(url, autocommit=True, name="presage test"))
        markets = add_data(conn)
        api = stack.enter_context(serving(url, PRESAGE_METERING_DIR=folder, PRESAGE_TRUSTED_PROXIES="127.0.0.1"))
        log = stack.enter_context((Path(folder) / "site.log").open("w+b"))
        process, address = site(url, api.url, log)
        stack.callback(terminate, process)
        until(lambda: process.poll() is not None or answers(f"{address}/health"))
        assert process.poll() is None, Path(log.name).read_text()
        made = Served(address, api.url, conn)
        made.markets = markets
        yield made


def answers(address: str) -> bool:
    """Return whether the URL responds."""
    with contextlib.suppress(OSError), urllib.request.urlopen(address, timeout=PATIENCE_S):
        return True
    return False


def add_data(conn: Any) -> dict[str, dict[str, Any]]:
    """Add a few markets, and a day of trades to one of them."""
    now = dt.datetime.now(dt.UTC)
    of = {"source": "simulated", "category": "weather", "event_id": "e1", "end_time": now + dt.timedelta(days=3)}
    markets = {
        slug: factories.add_market(conn, slug, outcome_prices=[520_000, 480_000], created_at=now, **of)
        for slug in ("rain-tomorrow", "snow-this-winter", "hail-in-may")
    }
    busy = markets["rain-tomorrow"]
    trades, cents, chance = [], 45.0, random.Random(7)
    for minute in range(1440, 0, -3):
        cents = min(70.0, max(30.0, cents + chance.gauss(0.015, 0.6)))
        at, side = now - dt.timedelta(minutes=minute), chance.choice((1, -1))
        trades.append({"ts": at, "price": f"{cents / 100:.3f}", "size": chance.randint(5, 400), "side": side})
    factories.add_trades(conn, busy, trades)
    price = {"outcome": 0, "bid": micro("0.52"), "ask": micro("0.53"), "mid": micro("0.525"), "last": micro("0.52")}
    for market in markets.values():
        factories.go_live(conn, market, **price)
    levels = {
        "bid_prices": [520_000 - 10_000 * step for step in range(20)],
        "bid_sizes": [(100 + 37 * step) * 1_000_000 for step in range(20)],
        "ask_prices": [530_000 + 10_000 * step for step in range(20)],
        "ask_sizes": [(80 + 51 * step) * 1_000_000 for step in range(20)],
    }
    conn.execute("delete from live_books where market_key = %s", [busy["market_key"]])
    factories.insert(conn, "live_books", {**book(busy["market_key"]), **levels})
    signal = {"type": "momentum", "value": 0.1, "threshold": 0.05, "score": 2, "direction": 1, "window_s": 3900}
    factories.insert(
        conn, "signals", {**signal, "signal_id": 7, "ts": now, "market_key": busy["market_key"], "outcome": 0}
    )
    conn.execute("update stage_clocks set last_data_at = now(), beat_at = now()")
    factories.keep_alive(conn)
    for work in (aggregates.compute_stats, aggregates.rank, activity.bring_up_to_date):
        work(conn, now)
    return markets


@pytest.fixture(scope="module")
def browser() -> Iterator[sync_api.Browser]:
    """A Chromium browser."""
    assert CHROMIUM.exists(), "`make browser` installs it"
    with sync_api.sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=str(CHROMIUM), args=["--no-sandbox"])
        yield opened
        opened.close()
