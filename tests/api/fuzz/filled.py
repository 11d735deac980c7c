"""A database as the live feed fills it, behind a real API of two workers; the exchange it proxies to stays there."""

from __future__ import annotations

import datetime as dt
import os
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from unittest import mock

from orchestration import activity, aggregates
from orchestration.analytics import passes
from orchestration.wallets import leaderboards, positions
from sql import database
from tests.api.conftest import generous, serving
from tests.orchestration.live.living import ROOT, World, wait_until
from tests.patience import PATIENCE_S
from upstream.sandbox import chain
from upstream.sandbox.server import Sandbox

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.api.conftest import Server

DEBUG_TOKEN = "only-for-the-fuzzer-" + "0" * 32
ENOUGH = """
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
def filled(database_url: str, folder: Path) -> Iterator[Filled]:
    """Trade and settle for some seconds, then serve what was recorded."""
    with Sandbox(simulate=11, rate=300, markets=30) as sandbox:
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
            PRESAGE_SOURCE="simulated",
            PRESAGE_REGISTRATIONS_A_DAY="1000000",
        ) as server:
            yield Filled(server, **there)


def record(sandbox: Sandbox, database_url: str, folder: Path) -> None:
    """Follow the market channel and the chain until there is something of everything."""
    where = {"DATABASE_URL": database_url, "PRESAGE_CHAIN_RPC_URLS": sandbox.rpc_url}
    settling = subprocess.Popen(
        [sys.executable, "-m", "orchestration.settlement"], cwd=ROOT, env={**os.environ, **where}
    )
    world = World(sandbox, database_url, folder)
    try:
        feed = world.feed()
        wait_until(lambda: column(world.conn, ENOUGH) == [True], 90)
        feed.stop()
    finally:
        settling.terminate()
        settling.wait(PATIENCE_S)
        world.close()


def compute(conn: Any, now: dt.datetime) -> None:
    """Do what Dagster has done each minute."""
    for work in (
        *(aggregates.compute_stats, aggregates.rank, activity.bring_up_to_date),
        *(positions.bring_up_to_date, leaderboards.write, passes.analyse),
    ):
        work(conn, now)
    conn.execute(
        """insert into signals
            (ts, market_key, outcome, signal_id, type, value, threshold, score, direction, window_s, detail)
        select now(), market_key, 0, market_key, 'momentum', 0.1, 0.05, 2, 1, 3900, '{}' from markets limit 3"""
    )


def known(conn: Any) -> dict[str, Any]:
    """A key, and what there is to ask for with it."""
    wallets = "select wallet from wallet_fills group by 1 order by count(*) desc limit 10"
    markets = """select m.*
        from markets m
        join (select market_key, count(*) as trades from trades where outcome = 0 group by 1) as t using (market_key)
        order by trades desc limit 10"""
    return {
        "key": generous(conn, "fuzz@presage.example", credits_month=None),
        "markets": column(conn, f"select unnest(array[market_id, slug, gamma_id]) from ({markets}) as busiest"),
        "events": column(conn, "select distinct event_id from markets where event_id is not null limit 5"),
        "categories": column(conn, "select distinct category from markets where category is not null"),
        "wallets": column(conn, f"select '0x' || encode(wallet, 'hex') from ({wallets}) as busiest"),
    }


def column(conn: Any, query: str) -> list[Any]:
    return [value for (value,) in conn.execute(query)]
