"""A database as the live feed fills it, behind a real API of two workers; the exchange it proxies to stays there."""

from __future__ import annotations

import datetime as dt
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

from orchestration import activity
from sql import database
from tests.api.conftest import generous, serving
from tests.orchestration.live.living import World, wait_until
from upstream.sandbox.server import Sandbox

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.api.conftest import Server

DEBUG_TOKEN = "only-for-the-fuzzer-" + "0" * 32
TRADES = 300


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
    """Trade for some seconds, then serve what was recorded."""
    with Sandbox(simulate=11, rate=300, markets=30) as sandbox:
        world = World(sandbox, database_url, folder)
        try:
            feed = world.feed()
            wait_until(lambda: column(world.conn, "select count(*) from trades")[0] >= TRADES, 60)
            feed.stop()
        finally:
            world.close()
        with database.connect(database_url, autocommit=True, name="presage test") as conn:
            activity.bring_up_to_date(conn, dt.datetime.now(dt.UTC))
            there = known(conn, sandbox)
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


def known(conn: Any, sandbox: Sandbox) -> dict[str, Any]:
    """A key, and what there is to ask for with it."""
    markets = "select * from markets order by volume_24h_usd desc nulls last limit 10"
    newest = sandbox.call(lambda: list(islice(sandbox.exchange.trades.newest_first(), 50)))
    return {
        "key": generous(conn, "fuzz@presage.example", credits_month=None),
        "markets": column(conn, f"select unnest(array[market_id, slug, gamma_id]) from ({markets}) as busiest"),
        "events": column(conn, "select distinct event_id from markets where event_id is not null limit 5"),
        "categories": column(conn, "select distinct category from markets where category is not null"),
        "wallets": sorted({trade.taker for trade in newest} | {trade.maker for trade in newest if trade.maker})[:10],
    }


def column(conn: Any, query: str) -> list[Any]:
    return [value for (value,) in conn.execute(query)]
