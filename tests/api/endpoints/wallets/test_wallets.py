"""Wallets over the API: what they did, hold and have earned."""

from __future__ import annotations

import datetime as dt

import msgspec
import pytest

from api.endpoints.table import ENDPOINTS
from orchestration.wallets import positions
from tests.api.endpoints.test_shapes import without_defaults
from tests.api.endpoints.wallets.settled import ANN, BOB, CID, NOW, match, send, watch
from tests.factories import insert
from tests.orchestration.wallets.chain import EXCHANGE, Chain

pytestmark = pytest.mark.usefixtures("present")
READS = {
    "activity": (1, 50, 200),
    "onchain": (5, 50, 200),
    "summary": (5, None, None),
    "markets": (5, 20, 100),
    "positions/open": (5, None, None),
    "pnl": (10, None, None),
}
BY_PATH = {(endpoint.method, endpoint.path): endpoint for endpoint in ENDPOINTS}


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
    assert (first["outcome_name"], second["outcome_name"]) == ("Yes", "No")
    assert (first["trades"], first["bought_usd"], first["sold_usd"]) == (2, 40, 12)
    assert (first["last_trade"] - first["first_trade"], second["outcome"]) == (30_000, 1)


def test_positions_are_open_while_something_is_held(client, chain):
    split = {"kind": "split", "wallet": "ann", "amount": 10, "tokens": [("71", 10), ("72", 10)]}
    chain.block(10, match(), match(token="72", size=10, side=-1), entries=[split])

    found = client.ask(f"/v1/wallets/{ANN}/positions/open").json

    assert (found["source"], found["count"]) == ("settlements", 1)
    [row] = found["data"]
    assert (row["outcome"], row["net_position"], row["mark_price"], row["mark_source"]) == (0, 110, 0.55, "exchange")
    assert row["outcome_name"] == "Yes"
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
    assert (row["outcome_name"], row["realized_pnl"], row["unrealized_pnl"]) == ("Yes", 7.25, 24.75)
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
