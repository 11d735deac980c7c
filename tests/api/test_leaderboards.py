"""Who traded or earned most, by the windows that there are."""

from __future__ import annotations

import datetime as dt
import json

import msgspec
import pytest

from api.endpoints import ENDPOINTS
from orchestration.wallets import leaderboards, positions
from tests.api.settled import ANN, BOB, CID, NOW, match
from tests.orchestration.wallets.chain import Chain, address

pytestmark = pytest.mark.usefixtures("present")
BOARD = next(endpoint for endpoint in ENDPOINTS if endpoint.path == "/v1/leaderboard")


@pytest.fixture
def boards(conn, chain):
    chain.block(10, match(size=1000), match(token="72", size=10, maker="cid"))
    chain.block(11, match(size=500, side=-1, price="0.6", maker="ann", taker="cid"))
    positions.bring_up_to_date(conn, NOW)
    leaderboards.write(conn, NOW)


def test_the_leaderboard_ranks_by_volume(client, boards):
    found = client.ask("/v1/leaderboard").json

    assert (found["window"], found["by"], found["count"]) == ("7d", "volume", 3)
    assert [(row["rank"], row["address"], row["volume_usd"]) for row in found["data"]] == [
        (1, ANN, 700),
        (2, BOB, 404),
        (3, CID, 304),
    ]
    assert [(row["trades"], row["markets"], row["pnl_usd"]) for row in found["data"]] == [
        (2, 1, None),
        (2, 1, None),
        (2, 1, None),
    ]
    record = msgspec.json.decode(json.dumps(found), type=BOARD.answers)
    assert record.computed_at == int(NOW.timestamp())
    assert record.note.startswith("From what was settled on chain from block 1 (")


def test_the_leaderboard_ranks_by_profit_those_whose_cost_is_known(client, boards):
    found = client.ask("/v1/leaderboard", by="pnl", window="all").json

    # 500 x (0.6 - 0.4) and 500 x (0.55 - 0.4); 500 x (0.55 - 0.6) and 10 x (0.45 - 0.4).
    # Bob sold what he was not seen to buy.
    assert [(row["address"], row["pnl_usd"], row["volume_usd"]) for row in found["data"]] == [
        (ANN, 175, 700),
        (CID, -24.5, 304),
    ]


def test_each_board_has_what_was_traded_in_its_window(client, conn, market):
    chain = Chain(conn, start=NOW - dt.timedelta(days=40))

    def traded(ago, *bought):
        chain.block(
            (dt.timedelta(days=40) - ago) // dt.timedelta(seconds=15),
            *[match(maker=name, size=size, token=token) for name, size, token in bought],
        )

    traded(dt.timedelta(days=40), ("ian", 800, "71"), ("ann", 80, "71"), ("fay", 30, "72"))
    traded(dt.timedelta(days=20), ("hal", 400, "71"), ("ann", 40, "71"))
    traded(dt.timedelta(days=3), ("gil", 200, "71"), ("ann", 20, "71"))
    traded(dt.timedelta(hours=2), ("fay", 100, "71"), ("ann", 10, "71"))
    chain.head(300_000)
    positions.bring_up_to_date(conn, NOW)
    leaderboards.write(conn, NOW)
    names = {"0x" + address(name).hex(): name for name in ("ann", "bob", "fay", "gil", "hal", "ian")}

    def board(by, window):
        rows = client.ask("/v1/leaderboard", by=by, window=window).json["data"]
        return [(names[row["address"]], row["volume_usd"], row["pnl_usd"]) for row in rows]

    # Bob sold all of it, at 0.4 a share.
    assert board("volume", "1d") == [("bob", 44, None), ("fay", 40, None), ("ann", 4, None)]
    assert board("volume", "7d") == [("bob", 132, None), ("gil", 80, None), ("fay", 40, None), ("ann", 12, None)]
    assert board("volume", "30d") == [
        *(("bob", 308, None), ("hal", 160, None), ("gil", 80, None), ("fay", 40, None), ("ann", 28, None)),
    ]
    assert board("volume", "all") == [
        *(("bob", 672, None), ("ian", 320, None), ("hal", 160, None), ("gil", 80, None)),
        *(("ann", 60, None), ("fay", 52, None)),
    ]
    # Each position that traded in the window with all that it has earned: 0.15 a share of the one, 0.05 of the other.
    assert board("pnl", "1d") == [("ann", 4, 22.5), ("fay", 40, 15)]
    assert board("pnl", "7d") == [("gil", 80, 30), ("ann", 12, 22.5), ("fay", 40, 15)]
    assert board("pnl", "30d") == [("hal", 160, 60), ("gil", 80, 30), ("ann", 28, 22.5), ("fay", 40, 15)]
    assert board("pnl", "all") == [
        *(("ian", 320, 120), ("hal", 160, 60), ("gil", 80, 30), ("ann", 60, 22.5), ("fay", 52, 16.5)),
    ]


@pytest.mark.parametrize("window", ["1d", "7d", "30d", "all"])
@pytest.mark.parametrize("by", ["volume", "pnl"])
def test_each_window_is_there(client, boards, window, by):
    found = client.ask("/v1/leaderboard", window=window, by=by, limit=1)

    assert (found.json["window"], found.json["by"], found.json["count"]) == (window, by, 1)
    assert found.headers["X-Request-Cost"] == "2"
    assert (found.json["window_start"] is None) == (window == "all")


@pytest.mark.parametrize(("name", "value"), [("window", "2d"), ("by", "luck"), ("limit", 0), ("limit", 101)])
def test_a_leaderboard_that_there_is_not_is_refused(client, name, value):
    answer = client.ask("/v1/leaderboard", **{name: value})

    assert (answer.status_code, answer.json["errors"][0]["name"]) == (400, name)


def test_before_it_was_computed_the_leaderboard_is_empty(client):
    assert client.ask("/v1/leaderboard").json == {
        "window": "7d",
        "by": "volume",
        "data": [],
        "count": 0,
        "window_start": None,
        "computed_at": None,
        "note": "No settlements have been indexed yet.",
    }
