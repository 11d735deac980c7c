"""A database that the live feed filled from the tape, behind a real API of two workers; the exchange stays there.

Recorded markets, books and trades are played again, twice as fast as they happened. Two things no recording has, and
they are added beside it: the chain, on which the sandbox settles the recorded trades, and signals, as a tape of some
seconds is shorter than the hour that each of them compares with.
"""

from __future__ import annotations

import datetime as dt
import os
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from unittest import mock

from orchestration.candles import activity, aggregates
from orchestration.signals import passes
from orchestration.wallets import leaderboards, positions
from sql import database
from tests.api.conftest import generous, serving
from tests.factories import keep_alive
from tests.orchestration.ingest.live_world import ROOT, World, wait_until
from tests.processes import terminate
from upstream.sandbox.chain import chain
from upstream.sandbox.server import Sandbox

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.api.conftest import Server

# Of the recordings: books of level upon level, trades of known wallets, and catalogues longer than any answer. Some of
# them go on for hours: what is said to end soon still does when the last question is asked.
TAPE = (
    "ws_market/20250619_mlb-min-cin-2025-06-19_polymarket-market-events.csv.gz",
    "books/selcuk_active_markets.csv.gz",
    "books/selcuk_book_snapshots.csv.gz",
    "trades/live_trades_updown_2026-03-10.csv.gz",
    "trades/btc5m_1779805500_trades_ticks.json.gz",
    "trades/data_api_trades_100_raw.json",
    "gamma/markets_600_2026-01.json.gz",
    "gamma/markets_open_200_2026-02-13.json.gz",
    "clob/sampling_markets_1000.json.gz",
)
SPEED = 2
DEBUG_TOKEN = "only-for-the-fuzzer-" + "0" * 32
MIN_COMPARED = """
    select (select count(*) from trades) > 300
    and (select count(*) from settlements where block_number <= (select max(finalized) from chain_heads)) > 50
"""


@dataclass
class Filled:
    """The API, and what its data is about."""

    server: Server
    key: str
    markets: list[str]  # by each kind of id
    events: list[str]
    categories: list[str]
    wallets: list[str]

    @property
    def url(self) -> str:
        return self.server.url


@contextmanager
def filled(database_url: str, recorded: Path, folder: Path) -> Iterator[Filled]:
    """Play and settle for some seconds, then serve what was stored."""
    with Sandbox(tape=excerpt(recorded, folder / "tape"), speed=SPEED, hold=True) as sandbox:
        with mock.patch.object(chain, "FINAL_AFTER", 2):  # blocks: what is computed from final ones is there sooner
            record(sandbox, database_url, folder)
        with database.connect(database_url, autocommit=True, name="presage test") as conn:
            compute(conn, dt.datetime.now(dt.UTC))
            there = known(conn)
        with serving(
            database_url,
            workers=2,
            PRESAGE_METERING_DIR=str(folder),
            PRESAGE_DEBUG_TOKEN=DEBUG_TOKEN,
            PRESAGE_GAMMA_URL=sandbox.gamma_url,
            PRESAGE_DATA_API_URL=sandbox.data_api_url,
            PRESAGE_SOURCE="tape",
            PRESAGE_REGISTRATIONS_A_DAY="1000000",
            PRESAGE_SMTP_URL="smtp://127.0.0.1:1",  # no mail arrives: nobody confirms
            PRESAGE_MAIL_FROM="presage@presage.example",
            PRESAGE_PUBLIC_SITE_URL="https://presage.example",
            PRESAGE_UNAUTHENTICATED_REQUESTS_A_MINUTE="1000000",
        ) as server:
            yield Filled(server, **there)


def excerpt(recorded: Path, folder: Path) -> Path:
    """A part of the recordings, in a folder of its own."""
    for name in TAPE:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).symlink_to(recorded / name)
    return folder


def record(sandbox: Sandbox, database_url: str, folder: Path) -> None:
    """Follow the market channel and the chain from the tape's beginning until there is something of everything."""
    where = {"DATABASE_URL": database_url, "PRESAGE_CHAIN_RPC_URLS": sandbox.rpc_url}
    settling = subprocess.Popen(
        [sys.executable, "-m", "orchestration.settlement"], cwd=ROOT, env={**os.environ, **where}
    )
    world = World(sandbox, database_url, folder)
    try:
        feed = world.feed()
        wait_until(world.leader)
        sandbox.call(sandbox.play)
        wait_until(lambda: column(world.conn, MIN_COMPARED) == [True], 90)
        feed.stop()
    finally:
        terminate(settling)
        world.close()


def compute(conn: Any, now: dt.datetime) -> None:
    """Do what Dagster has done each minute."""
    for work in (
        *(aggregates.compute_stats, aggregates.rank, activity.bring_up_to_date),
        *(positions.bring_up_to_date, leaderboards.write, passes.analyse),
    ):
        work(conn, now)
    keep_alive(conn)
    conn.execute(
        """insert into signals
            (ts, market_key, outcome, signal_id, type, value, threshold, score, direction, window_s, detail)
        select now(), market_key, 0, market_key, 'momentum', 0.1 * n, 0.05, 2 * n, 1, 3900, '{}'
        from (select market_key, row_number() over () as n from live_prices where outcome = 0) as priced"""
    )


def known(conn: Any) -> dict[str, Any]:
    """A key, and what there is to ask for with it."""
    wallets = "select wallet from wallet_fills group by 1 order by count(*) desc limit 10"
    # Of some markets trades alone were recorded: these have a book as well.
    markets = """select m.*
        from markets m
        join (select market_key, count(*) as trades from trades where outcome = 0 group by 1) as t using (market_key)
        join live_books b on b.market_key = m.market_key and b.outcome = 0 and b.verified
        order by trades desc limit 10"""
    # Those first whose lists tell most: they are long, and their rows differ in what they are in order by.
    events = """select event_id
        from markets
        where event_id is not null
        group by 1 having bool_and(end_time is not null)
        order by count(distinct end_time) desc, count(*) desc limit 5"""
    categories = "select category from markets where category is not null group by 1 order by count(created_at) desc"
    return {
        "key": generous(conn, "fuzz@presage.example", credits_month=None),
        "markets": column(conn, f"select unnest(array[market_id, slug, gamma_id]) from ({markets}) as busiest"),
        "events": column(conn, events),
        "categories": column(conn, categories),
        "wallets": column(conn, f"select '0x' || encode(wallet, 'hex') from ({wallets}) as busiest"),
    }


def column(conn: Any, query: str) -> list[Any]:
    return [value for (value,) in conn.execute(query)]
