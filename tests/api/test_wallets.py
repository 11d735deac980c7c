"""Wallets over the API: watching, what they did, hold and have earned, and who is first."""

from __future__ import annotations

import datetime as dt
import json
import threading

import msgspec
import psycopg
import pytest

from api.endpoints import ENDPOINTS
from orchestration.wallets import leaderboards, positions
from sql.queries import capture
from tests.api.conftest import generous
from tests.api.test_shapes import without_defaults
from tests.factories import insert
from tests.orchestration.wallets.chain import EXCHANGE, Chain, address
from tests.patience import until

NOW = dt.datetime.now(dt.UTC)
pytestmark = pytest.mark.usefixtures("present")
ANN, BOB, CID = ("0x" + address(name).hex() for name in ("ann", "bob", "cid"))
READS = {
    "activity": (1, 50, 200),
    "onchain": (5, 50, 200),
    "summary": (5, None, None),
    "markets": (5, 20, 100),
    "positions/open": (5, None, None),
    "pnl": (10, None, None),
}
BY_PATH = {(endpoint.method, endpoint.path): endpoint for endpoint in ENDPOINTS}


@pytest.fixture
def market(add_market):
    return add_market("rain", token_ids=["71", "72"], outcome_prices=[550_000, 450_000])


@pytest.fixture
def chain(conn, market):
    chain = Chain(conn, start=NOW - dt.timedelta(hours=1))
    conn.execute("insert into chain_ranges (from_block, to_block, logs) values (1, 200, 0)")
    chain.head(100)
    return chain


def match(**columns):
    return {"token": "71", "price": "0.4", "size": 100, "maker": "ann", "taker": "bob", **columns}


def send(client, method, path, **options):
    headers = {"X-API-Key": options.pop("key", client.key)}
    return client.simulate_request(method, path, headers=headers, **options)


def watch(client, wallet, **options):
    return send(client, "POST", "/v1/wallets/watch", json={"address": wallet}, **options)


# --- Watching


def test_wallets_are_watched_listed_and_let_go(client, conn):
    upper = "0x" + BOB[2:].upper()

    assert watch(client, ANN).json == {"address": ANN, "watching": True}
    assert watch(client, upper).json == {"address": BOB, "watching": True}
    assert watch(client, ANN).status_code == 200  # again
    assert client.ask("/v1/wallets/watched").json == {"wallets": [ANN, BOB], "count": 2}

    for _ in range(2):
        gone = send(client, "DELETE", f"/v1/wallets/{upper}/watch")
        assert (gone.status_code, gone.json) == (200, {"address": BOB, "watching": False})
    assert client.ask("/v1/wallets/watched").json == {"wallets": [ANN], "count": 1}
    assert watch(client, BOB).headers["X-Request-Cost"] == "1"
    assert client.ask("/v1/wallets/watched").json["count"] == 2


def test_each_account_watches_its_own(client, conn):
    other = generous(conn, "other@example.com")
    watch(client, ANN)
    watch(client, BOB, key=other)

    assert client.ask("/v1/wallets/watched").json["wallets"] == [ANN]
    assert client.ask("/v1/wallets/watched", key=other).json["wallets"] == [BOB]
    send(client, "DELETE", f"/v1/wallets/{BOB}/watch")
    assert client.ask("/v1/wallets/watched", key=other).json["wallets"] == [BOB]


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("{}", "missing_parameter"),
        ("", "invalid_body"),
        ("{", "invalid_body"),
        ('{"address": null}', "invalid_parameter"),
        ('{"address": 7}', "invalid_parameter"),
        ('{"address": ""}', "invalid_parameter"),
        ('{"address": "0x12"}', "invalid_parameter"),
        (json.dumps({"address": ANN + "00"}), "invalid_parameter"),
        (json.dumps({"address": ANN[:-1] + "g"}), "invalid_parameter"),
        (json.dumps({"address": ANN + "\n"}), "invalid_parameter"),
    ],
)
def test_what_cannot_be_watched_is_refused_by_name(client, conn, text, code):
    answer = send(client, "POST", "/v1/wallets/watch", body=text)

    assert (answer.status_code, answer.json["code"]) == (400, code)
    if code != "invalid_body":
        assert [error["name"] for error in answer.json["errors"]] == ["address"]
    assert answer.headers["X-Request-Cost"] == "0"
    assert conn.execute("select count(*) from wallets_watched").fetchone() == (0,)


def test_there_is_an_end_to_how_many_are_watched(client, conn):
    watch(client, ANN)
    conn.execute(
        "insert into wallets_watched (account_id, wallet, blocks)"
        " select account_id, decode(lpad(to_hex(n), 40, '0'), 'hex'), '{[0,)}'"
        " from wallets_watched, generate_series(1, 999) as n"
    )

    refused = watch(client, BOB)

    assert (refused.status_code, refused.json["code"]) == (400, "invalid_parameter")
    assert watch(client, ANN).status_code == 200
    send(client, "DELETE", f"/v1/wallets/{ANN}/watch")
    assert watch(client, BOB).status_code == 200


def test_capture_begins_with_the_block_after_the_head(client, conn, chain):
    watch(client, ANN)
    chain.block(100, match())
    chain.block(101, match(), match(side=-1))

    found = client.ask(f"/v1/wallets/{ANN}/activity").json

    assert (found["watching"], found["count"]) == (True, 2)
    assert [(row["block_number"], row["side"], row["role"]) for row in found["data"]] == [
        (101, "SELL", "maker"),
        (101, "BUY", "maker"),
    ]
    chain.head(101)
    send(client, "DELETE", f"/v1/wallets/{ANN}/watch")
    chain.block(102, match())
    kept = client.ask(f"/v1/wallets/{ANN}/activity").json
    assert (kept["watching"], kept["count"]) == (False, 2)


def test_watching_begins_behind_the_blocks_that_are_being_written(client, conn, chain, database_url):
    answers = []
    watching = threading.Thread(target=lambda: answers.append(watch(client, ANN)))
    with psycopg.connect(database_url) as writer:
        capture.share_watching(writer)
        writer.execute("update chain_heads set head = 105")
        watching.start()
        waiting = "select count(*) from pg_locks where locktype = 'advisory' and not granted"
        until(lambda: writer.execute(waiting).fetchone() == (1,))
    watching.join()

    assert [answer.status_code for answer in answers] == [200]
    assert conn.execute("select lower(blocks) from wallets_watched").fetchone() == (106,)


def test_what_was_captured_for_others_does_not_show(client, conn, chain):
    other = generous(conn, "other@example.com")
    watch(client, ANN)
    watch(client, ANN, key=other)
    chain.block(101, match())
    chain.head(101)
    send(client, "DELETE", f"/v1/wallets/{ANN}/watch")
    chain.block(102, match())
    chain.head(102)
    watch(client, ANN)
    watch(client, ANN)  # again
    chain.block(103, match())

    def blocks(**whose):
        return [row["block_number"] for row in client.ask(f"/v1/wallets/{ANN}/activity", **whose).json["data"]]

    assert blocks() == [103, 101]
    assert blocks(key=other) == [103, 102, 101]


def test_an_account_that_never_watched_sees_no_activity(client, conn, chain):
    watch(client, ANN)
    chain.block(101, match())

    other = client.ask(f"/v1/wallets/{ANN}/activity", key=generous(conn, "other@example.com")).json

    assert other == {"address": ANN, "watching": False, "data": [], "count": 0}


# --- What is the same for all


@pytest.mark.parametrize("path", READS)
def test_an_answer_is_the_promised_record_and_nothing_else(client, chain, path):
    watch(client, ANN)
    chain.block(101, match(), {**match(), "token": "99"}, match(maker="cid"))

    answer = client.ask(f"/v1/wallets/{ANN}/{path}")

    assert answer.status_code == 200
    endpoint = BY_PATH["GET", f"/v1/wallets/{{address}}/{path}"]
    record = msgspec.json.decode(answer.content, type=endpoint.answers)
    assert without_defaults(msgspec.to_builtins(record)) == without_defaults(answer.json)
    assert int(answer.headers["X-Request-Cost"]) == READS[path][0]
    assert answer.json["address"] == ANN


@pytest.mark.parametrize("path", READS)
def test_a_wallet_that_nobody_has_heard_of_has_nothing(client, path):
    answer = client.ask(f"/v1/wallets/{CID}/{path}")

    assert answer.status_code == 200
    assert answer.json.get("count", answer.json.get("trades")) == 0


@pytest.mark.parametrize("wallet", ["0x12", "ann", "1" * 42, "0x" + "g" * 40, ANN + "0"])
@pytest.mark.parametrize("path", [*READS, "watch"])
def test_an_address_that_is_none_is_refused_by_name(client, path, wallet):
    method = "DELETE" if path == "watch" else "GET"
    answer = send(client, method, f"/v1/wallets/{wallet}/{path}")

    assert (answer.status_code, answer.json["code"]) == (400, "invalid_parameter")
    assert [error["name"] for error in answer.json["errors"]] == ["address"]


@pytest.mark.parametrize("path", [path for path, (_, usual, _) in READS.items() if usual])
def test_lists_have_their_default_and_maximum(client, chain, path):
    _, usual, most = READS[path]
    watch(client, ANN)
    chain.block(101, *[match(token=str(100 + n)) for n in range(most + 1)])

    assert client.ask(f"/v1/wallets/{ANN}/{path}").json["count"] == usual
    assert client.ask(f"/v1/wallets/{ANN}/{path}", limit=most).json["count"] == most
    assert client.ask(f"/v1/wallets/{ANN}/{path}", limit=3).json["count"] == 3
    for wrong in (0, most + 1, "many"):
        refused = client.ask(f"/v1/wallets/{ANN}/{path}", limit=wrong)
        assert (refused.status_code, refused.json["errors"][0]["name"]) == (400, "limit")


@pytest.mark.parametrize("path", ["summary", "positions/open", "pnl"])
def test_what_has_no_parameters_takes_none(client, path):
    assert client.ask(f"/v1/wallets/{ANN}/{path}", limit=5).json["code"] == "unknown_parameter"


@pytest.mark.parametrize("path", [f"/v1/wallets/{ANN}/pnl", "/v1/wallets/watched", "/v1/leaderboard"])
def test_a_key_is_needed(client, path):
    assert client.ask(path, key=None).status_code == 401


# --- What wallets did


def test_onchain_shows_both_sides_newest_first(client, chain, market):
    chain.block(10, match())
    chain.block(11, match(maker="bob", taker="ann", side=-1, fee="0.5"))

    second, first = client.ask(f"/v1/wallets/{ANN}/onchain").json["data"]

    assert (first["role"], first["maker"], first["taker"], first["side"]) == ("maker", ANN, BOB, "BUY")
    assert (second["role"], second["maker"], second["taker"], second["side"]) == ("taker", BOB, ANN, "BUY")
    assert (second["is_taker_order"], second["fee_usd"], second["value_usd"]) == (True, 0.5, 40)
    assert (second["market_id"], second["outcome"]) == (market["market_id"], 0)
    assert second["exchange_contract"] == "0x" + EXCHANGE.hex()
    assert second["finalized"] is True
    assert second["ts"] == int(chain.ts(11).timestamp() * 1000)


def test_onchain_ends_after_fourteen_days(client, conn, market):
    chain = Chain(conn, start=NOW - dt.timedelta(days=14, minutes=5))
    chain.block(1, match())
    chain.block(60, match())

    assert [row["block_number"] for row in client.ask(f"/v1/wallets/{ANN}/onchain").json["data"]] == [60]


def test_a_summary_counts_buys_and_sells(client, chain):
    chain.block(10, match(), match(side=-1, size=50), match(token="72", size=10))
    watch(client, ANN)

    found = client.ask(f"/v1/wallets/{ANN}/summary").json

    assert found["note"].startswith("From what was settled on chain from block 1 (")
    assert {name: found[name] for name in ("watching", "trades", "volume_usd", "buys", "sells", "markets")} == {
        "watching": True,
        "trades": 3,
        "volume_usd": 64,
        "buys": {"count": 2, "volume_usd": 44},
        "sells": {"count": 1, "volume_usd": 20},
        "markets": 1,
    }
    assert found["first_seen"] == found["last_seen"] == int(chain.ts(10).timestamp() * 1000)
    assert client.ask(f"/v1/wallets/{BOB}/summary").json["watching"] is False


def test_markets_come_last_traded_first(client, chain):
    chain.block(10, match())
    chain.block(11, match(token="72", size=10))
    chain.block(12, match(size=30, side=-1))

    found = client.ask(f"/v1/wallets/{ANN}/markets").json

    assert found["note"].startswith("From what was settled on chain from block 1 (")
    first, second = found["data"]
    assert (first["outcome"], first["bought"], first["sold"], first["net_position"]) == (0, 100, 30, 70)
    assert (first["trades"], first["bought_usd"], first["sold_usd"]) == (2, 40, 12)
    assert (first["last_trade"] - first["first_trade"], second["outcome"]) == (30_000, 1)


def test_positions_are_open_while_something_is_held(client, chain):
    split = {"kind": "split", "wallet": "ann", "amount": 10, "tokens": [("71", 10), ("72", 10)]}
    chain.block(10, match(), match(token="72", size=10, side=-1), entries=[split])

    found = client.ask(f"/v1/wallets/{ANN}/positions/open").json

    assert (found["source"], found["count"]) == ("settlements", 1)
    [row] = found["data"]
    assert (row["outcome"], row["net_position"], row["mark_price"], row["mark_source"]) == (0, 110, 0.55, "exchange")
    assert row["avg_cost"] == pytest.approx(45 / 110, abs=1e-6)
    assert row["value_usd"] == 60.5


# --- What they earned


def test_the_example_of_the_documentation(client, conn, chain, market):
    """docs/api.md, Profit and loss: keep both alike."""
    chain.block(10, match(size=100, price="0.40"))
    chain.block(11, match(size=100, price="0.50", maker="bob", taker="ann", side=-1, fee="1"))
    chain.block(12, match(size=50, price="0.60", side=-1))
    insert(
        conn,
        "live_prices",
        {"market_key": market["market_key"], "outcome": 0, "bid": 610_000, "ask": 630_000, "mid": 620_000, "ts": NOW},
    )

    found = client.ask(f"/v1/wallets/{ANN}/pnl").json

    [row] = found["data"]
    assert (row["bought"], row["sold"], row["net_position"], row["avg_cost"]) == (200, 50, 150, 0.455)
    assert (row["realized_pnl"], row["unrealized_pnl"]) == (7.25, 24.75)
    assert (row["mark_price"], row["mark_source"], row["settled"]) == (0.62, "market", False)
    assert (found["total_realized_pnl"], found["total_unrealized_pnl"], found["total_pnl"]) == (7.25, 24.75, 32)

    conn.execute("update markets set status = 'RESOLVED', outcome_prices = '{1000000, 0}'")
    found = client.ask(f"/v1/wallets/{ANN}/pnl").json
    [row] = found["data"]
    assert (row["settled"], row["mark_price"], row["mark_source"]) == (True, 1, "resolution")
    assert (row["realized_pnl"], row["unrealized_pnl"], found["total_pnl"]) == (89, 0, 89)


def test_what_has_no_known_cost_is_flagged_and_not_in_the_totals(client, chain):
    chain.block(10, match(), match(token="72", price=None, size=5))
    chain.block(11, match(token="99", side=-1))
    chain.block(12, match(side=-1, price="0.5"))

    found = client.ask(f"/v1/wallets/{ANN}/pnl").json

    known = {row["token_id"]: row["has_cost_basis"] for row in found["data"]}
    assert known == {"71": True, "72": False, "99": False}
    assert found["total_pnl"] == found["total_realized_pnl"] == 10
    assert found["markets_missing_cost_basis"] == 2


def test_late_rows_are_announced_until_they_are_counted(client, conn, chain):
    chain.block(20, match())
    conn.execute("update positions_head set claimed = 20, done = 20")
    chain.block(10, match(size=7), live=False)

    assert client.ask(f"/v1/wallets/{ANN}/pnl").json["note"].endswith("are counted within minutes.")


def test_analysts_see_the_same_worth_and_the_same_profit(client, conn, chain, market, add_market):
    over = add_market("over", token_ids=["81", "82"], status="RESOLVED", outcome_prices=[1_000_000, 0])
    price = {"market_key": market["market_key"], "outcome": 0, "bid": 610_000, "ask": 630_000, "mid": 620_000}
    insert(conn, "live_prices", {**price, "ts": NOW})
    insert(conn, "live_prices", {**price, "market_key": over["market_key"], "ts": NOW})
    chain.block(10, *[match(token=token) for token in ("71", "72", "81", "82", "99")])
    chain.block(11, *[match(token=token, side=-1, size=30, price="0.5") for token in ("71", "72", "81", "82", "99")])
    positions.bring_up_to_date(conn, NOW)

    told = {
        (row["market_id"], row["outcome"]): (row["mark_price"], row["realized_pnl"], row["unrealized_pnl"])
        for row in client.ask(f"/v1/wallets/{ANN}/pnl").json["data"]
    }
    seen = conn.execute(
        "select market_id, outcome, mark_price::float, (realized_usd + unrealized_usd)::float"
        " from analytics.wallet_positions where wallet = %s",
        [ANN],
    ).fetchall()

    marks = {(market["market_id"], 0): 0.62, (market["market_id"], 1): 0.45, (None, None): None}
    marks |= {(over["market_id"], 0): 1, (over["market_id"], 1): 0}
    assert {(market_id, outcome): mark for market_id, outcome, mark, _ in seen} == marks
    assert {(market_id, outcome): (mark, profit) for market_id, outcome, mark, profit in seen} == {
        which: (mark, None if unrealized is None else pytest.approx(realized + unrealized, abs=1e-6))
        for which, (mark, realized, unrealized) in told.items()
    }


# --- Who is first


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
    record = msgspec.json.decode(json.dumps(found), type=BY_PATH["GET", "/v1/leaderboard"].answers)
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
