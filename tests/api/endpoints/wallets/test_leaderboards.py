"""Who traded or earned most, by the windows that there are."""

from __future__ import annotations

import datetime as dt
import itertools
import json
import random

import msgspec
import pytest

from api.endpoints.table import ENDPOINTS
from orchestration.wallets import leaderboards, positions
from sql.database import micro
from tests.api.endpoints.wallets.settled import ANN, BOB, CID, NOW, match
from tests.factories import add_trades, insert
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
@pytest.mark.parametrize("by", ["volume", "pnl", "window_pnl"])
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


# --- Profit within a window


def worth(conn, market, price, *, outcome=0, ago=None):
    """Have an outcome cost something now, or have cost it so long ago."""
    if ago is None:
        prices = dict.fromkeys(("bid", "ask", "mid"), micro(price))
        insert(conn, "live_prices", {"market_key": market["market_key"], "outcome": outcome, **prices, "ts": NOW})
    else:
        add_trades(conn, market, [{"ts": NOW - ago, "price": price}], outcome=outcome)


def of_window(client, window="7d", by="window_pnl"):
    rows = client.ask("/v1/leaderboard", by=by, window=window).json["data"]
    return {row["address"]: (row["window_pnl_usd"], row["pnl_usd"]) for row in rows}


@pytest.fixture
def long_chain(conn, market):
    """A chain of forty days; gives what writes a block so long ago."""
    chain = Chain(conn, start=NOW - dt.timedelta(days=40))
    chain.head(300_000)

    def write(ago, *matches, entries=()):
        chain.block((dt.timedelta(days=40) - ago) // dt.timedelta(seconds=15), *matches, entries=entries)

    write.chain = chain
    return write


DAYS = dt.timedelta(days=1)


def test_profit_within_a_window_is_what_was_realized_in_it_and_the_change_of_what_is_held(
    client, conn, market, long_chain
):
    long_chain(20 * DAYS, match(price="0.30", size=100))  # ann buys 100 at 0.30
    worth(conn, market, "0.50", ago=9 * DAYS)  # worth 0.50 as the week begins
    long_chain(3 * DAYS, match(price="0.60", size=40, side=-1))  # sells 40 at 0.60
    long_chain(2 * DAYS, match(price="0.80", size=10, maker="cid", taker="ann", side=-1, fee="0.5"))  # buys 10 at 0.80
    worth(conn, market, "0.70")
    positions.bring_up_to_date(conn, NOW)
    leaderboards.write(conn, NOW)

    # 24 came in, 8.5 went out; 70 at 0.70 now, 100 at 0.50 then. Since they were opened: 24 - 30 - 8.5 + 70 x 0.70.
    assert of_window(client)[ANN] == (24 - 8.5 + 49 - 50, pytest.approx(34.5))
    # Opened within 30 days, and in all: the same as since they were opened.
    assert of_window(client, "30d")[ANN] == of_window(client, "all")[ANN] == (34.5, 34.5)
    assert of_window(client, "7d", "pnl")[ANN] == of_window(client)[ANN]


def test_who_only_held_has_a_window_s_profit_and_none_of_what_was_traded(client, conn, market, long_chain):
    long_chain(20 * DAYS, match(price="0.30", size=100))
    worth(conn, market, "0.50", ago=9 * DAYS)
    worth(conn, market, "0.450")
    positions.bring_up_to_date(conn, NOW)
    leaderboards.write(conn, NOW)

    assert of_window(client) == {ANN: (-5, None)}
    assert of_window(client, by="pnl") == {}


def test_a_payout_before_the_window_is_no_profit_of_it(client, conn, add_market, long_chain):
    ended, paid = NOW - 9 * DAYS, NOW - DAYS
    for name, token, at in (("snow", "81", ended), ("hail", "91", paid)):
        market = add_market(
            name, token_ids=[token, token + "0"], status="RESOLVED", outcome_prices=[1_000_000, 0], resolved_at=at
        )
        worth(conn, market, "0.40", ago=10 * DAYS)
    long_chain(20 * DAYS, match(token="81", size=100), match(token="91", size=100, maker="cid", taker="dan"))
    for name, token in (("ann", "81"), ("cid", "91")):
        entry = {"kind": "redeem", "wallet": name, "amount": 100, "tokens": [(token, -100)]}
        long_chain(dt.timedelta(hours=20 if name == "ann" else 19), entries=[entry])
    positions.bring_up_to_date(conn, NOW)
    leaderboards.write(conn, NOW)

    assert of_window(client) == {ANN: (0, None), CID: (60, None)}


def test_where_nothing_tells_what_a_position_was_worth_a_window_s_profit_is_null(client, conn, market, long_chain):
    long_chain(20 * DAYS, match(price="0.30", size=100))
    long_chain(3 * DAYS, match(price="0.60", size=40, side=-1))
    positions.bring_up_to_date(conn, NOW)
    leaderboards.write(conn, NOW)

    assert of_window(client) == {}
    [(within, since_opened)] = of_window(client, by="pnl").values()
    assert (within, since_opened) == (None, pytest.approx(12 + 15))  # 40 x 0.30, and 60 x 0.25

    worth(conn, market, "0.650", outcome=1, ago=9 * DAYS)  # of two outcomes, the other one tells as well
    conn.execute("delete from leaderboards")
    leaderboards.write(conn, NOW)
    [row] = client.ask("/v1/leaderboard", by="window_pnl", limit=50).json["data"]  # an answer of its own, not one kept
    assert row["window_pnl_usd"] == pytest.approx(24 + 60 * 0.55 - 100 * 0.35)


def test_where_older_settlements_are_gone_a_window_begins_with_those_that_are_kept(client, conn, market, long_chain):
    long_chain(20 * DAYS, match(price="0.30", size=100))
    worth(conn, market, "0.50", ago=25 * DAYS)
    long_chain(3 * DAYS, match(price="0.60", size=40, side=-1))
    worth(conn, market, "0.70")
    positions.bring_up_to_date(conn, NOW, kept=10 * DAYS)
    leaderboards.write(conn, NOW)

    board = client.ask("/v1/leaderboard", by="window_pnl", window="30d").json
    [row] = board["data"]

    since = dt.datetime.fromtimestamp(board["window_start"] / 1000, dt.UTC)
    assert NOW - 20 * DAYS <= since <= NOW - 7 * DAYS
    assert row["window_pnl_usd"] == of_window(client)[ANN][0] == 24 + 42 - 50
    assert client.ask("/v1/leaderboard", by="pnl", window="30d").json["window_start"] < board["window_start"]


def test_boards_by_profit_that_took_long_rest_for_twenty_times_as_long(conn, boards):
    later = NOW + dt.timedelta(minutes=6)
    assert leaderboards.write(conn, NOW + dt.timedelta(minutes=1)) == ["volume"]
    conn.execute("""update settings set value = '{"30d": 60}' where name = 'pnl_boards_took_s'""")

    assert leaderboards.write(conn, later) == ["volume", "pnl of 1d", "pnl of 7d", "pnl of all"]
    assert "pnl of 30d" in leaderboards.write(conn, NOW + dt.timedelta(minutes=21))


def test_a_window_s_profit_is_the_profit_of_now_less_the_profit_of_then(client, conn, market, add_market, long_chain):
    """Many random trades: the lifetime profit is asked as the window begins, and again in the end."""
    snow = add_market("snow", token_ids=["81", "82"])
    dice = random.Random(7)
    names, start = ["ann", "bob", "cid", "dan", "eve"], leaderboards.starts(NOW)["7d"]
    for name in names:  # so that nobody sells what was not seen to come in
        split = [{"kind": "split", "wallet": name, "amount": 10_000, "tokens": [(a, 10_000), (b, 10_000)]}
                 for a, b in (("71", "72"), ("81", "82"))]  # fmt: skip
        long_chain((39 - names.index(name) / 10) * DAYS, entries=split)

    def trade(ago):
        matches = []
        for _ in range(12):
            maker, taker = dice.sample(names, 2)
            matches.append(
                match(
                    token=dice.choice(["71", "72", "81", "82"]), price=str(dice.randrange(5, 95) / 100), maker=maker,
                    taker=taker, size=dice.randrange(1, 50), side=dice.choice([1, -1]), fee=str(dice.randrange(3) / 10),
                )
            )  # fmt: skip
        long_chain(ago, *matches)

    def price_all(value):
        for of, outcome in itertools.product((market, snow), (0, 1)):
            conn.execute(
                "insert into live_prices (market_key, outcome, bid, ask, mid, ts) values (%s, %s, %s, %s, %s, %s)"
                " on conflict (market_key, outcome) do update"
                " set bid = excluded.bid, ask = excluded.ask, mid = excluded.mid",
                [of["market_key"], outcome, *[value + 10_000 * of["market_key"] % 70_000 + outcome] * 3, NOW],
            )

    def profit():
        positions.bring_up_to_date(conn, NOW)
        return {name: client.ask(f"/v1/wallets/0x{address(name).hex()}/pnl").json["total_pnl"] for name in names}

    for day in range(30, 8, -3):
        trade(day * DAYS)
    price_all(400_000)
    conn.execute(
        "insert into quotes (ts, market_key, outcome, bid, ask, mid)"
        " select %s, market_key, outcome, bid, ask, mid from live_prices",
        [start - dt.timedelta(hours=1)],
    )
    then = profit()
    for hours in range(150, 0, -11):
        trade(dt.timedelta(hours=hours))
    price_all(600_000)
    now = profit()
    leaderboards.write(conn, NOW)

    found = of_window(client)
    assert {name: found["0x" + address(name).hex()][0] for name in names} == {
        name: pytest.approx(now[name] - then[name], abs=1e-4) for name in names
    }
