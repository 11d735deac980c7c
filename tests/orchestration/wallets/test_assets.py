"""The job that updates positions and leaderboards."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import dagster as dg
import pytest

from orchestration.assets import wallets
from orchestration.feeds.keeper import Run
from orchestration.resources import Database
from sql.roles.rights import PIPELINE
from tests.orchestration.wallets.chain import Chain, address
from tests.roles import login_url

NOW = datetime.now(UTC)


@pytest.fixture
def materialised(database_url):
    def run():
        done = dg.materialize(
            [wallets.positions_and_boards], resources={"database": Database(url=login_url(database_url, PIPELINE))}
        )
        return {
            event.asset_key.to_user_string(): event
            for event in done.asset_materializations_for_node("positions_and_boards")
        }

    return run


def test_a_pass_makes_positions_and_boards(conn, materialised):
    chain = Chain(conn, start=NOW - timedelta(hours=1))
    chain.block(1, {"token": "71", "price": "0.4", "size": 100, "maker": "ann", "taker": "bob"})
    chain.head(1)

    made = materialised()

    assert made["wallet_positions"].metadata["through_block"].value == 1
    assert made["wallet_positions"].metadata["written"].value == 2
    assert made["leaderboards"].metadata["written"].value == ("volume, pnl of 1d, pnl of 7d, pnl of 30d, pnl of all")
    rows = conn.execute("select span, by, rank, wallet, volume_usd, trades, markets from leaderboards").fetchall()
    assert ("7d", "volume", 1, min(address("ann"), address("bob")), 40_000_000, 1, 1) in rows
    assert {(span, by) for span, by, *_ in rows} >= {(span, "volume") for span in ("1d", "7d", "30d", "all")}
    assert materialised()["leaderboards"].metadata["written"].value == "volume"  # those by profit are due later


def test_without_a_chain_nothing_is_made(conn, materialised):
    assert materialised() == {}


@pytest.mark.parametrize(
    ("last", "followed", "runs", "said"),
    [
        (None, False, [], "no chain is followed"),
        (None, True, [], None),
        (NOW - timedelta(seconds=30), True, [], "the last pass ended 30 s ago"),
        (NOW - timedelta(seconds=60), True, [], None),
        (NOW - timedelta(seconds=60), True, [10.0], "a pass is started"),
        (NOW - timedelta(seconds=600), True, [500.0], "a pass is started"),
    ],
)
def test_a_pass_is_due_each_minute(last, followed, runs, said):
    under_way = [Run(run_id="1", status="STARTED", since=NOW.timestamp() - age) for age in runs]

    assert wallets.reason_to_wait(last, NOW, followed=followed, runs=under_way) == said
