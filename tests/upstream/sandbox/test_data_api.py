"""The sandbox's Data API."""

import json
from collections import defaultdict
from collections.abc import Iterator

import pytest

from tests.upstream.sandbox.conftest import token_ids, walk
from upstream.sandbox.server import Sandbox


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    """A simulation in which markets have just been resolved."""
    with Sandbox(simulate=11, rate=1500, start_ms=1_795_000_199_000) as exchange:
        exchange.call(lambda: exchange.source.advance(1_795_000_204_000))
        assert exchange.exchange.messages["market_resolved"] >= 4
        yield exchange


def recorded_row(recorded, name: str) -> dict:
    return json.loads((recorded / "data_api" / name).read_bytes())[0]


def busiest(sandbox) -> tuple[str, str]:
    """A wallet, and a market it traded in."""
    trade = sandbox.call(lambda: next(sandbox.exchange.trades.newest_first()))
    return trade.taker, trade.condition_id


@pytest.mark.parametrize(
    ("path", "sample"),
    [
        ("trades", "trades.json"),
        ("positions", "positions.json"),
        ("closed-positions", "pscanner_closed_positions.json"),
        ("activity", "activity_all.json"),
    ],
)
def test_rows_have_the_fields_and_types_of_recorded_ones(sandbox, http, recorded, path, sample):
    real = recorded_row(recorded, sample)
    rows: list[dict] = []
    for wallet in sandbox.source.wallets:
        rows += http.get(f"{sandbox.data_api_url}/{path}", params={"user": wallet, "sizeThreshold": 0}).json()
        if rows:
            break

    assert rows
    assert rows[0].keys() == real.keys()
    numbers = {name for name, value in real.items() if isinstance(value, int | float) and not isinstance(value, bool)}
    assert all(isinstance(rows[0][name], int | float) for name in numbers)
    assert all(isinstance(rows[0][name], type(real[name])) for name in real.keys() - numbers)


def test_trades_are_newest_first_and_of_the_markets_asked_for(sandbox, http):
    _, condition_id = busiest(sandbox)

    rows = http.get(f"{sandbox.data_api_url}/trades", params={"market": condition_id, "limit": 50}).json()

    assert {row["conditionId"] for row in rows} == {condition_id}
    assert [row["timestamp"] for row in rows] == sorted((row["timestamp"] for row in rows), reverse=True)


def test_takers_alone_are_shown_unless_makers_are_asked_for(sandbox, http):
    _, condition_id = busiest(sandbox)
    ask = {"market": condition_id, "limit": 1000}

    alone = http.get(f"{sandbox.data_api_url}/trades", params={**ask, "limit": 1}).json()
    both = http.get(f"{sandbox.data_api_url}/trades", params={**ask, "takerOnly": "false"}).json()

    taker = alone[0]
    of_match = [row for row in both if row["transactionHash"] == taker["transactionHash"]]
    makers = [row for row in of_match if row["proxyWallet"] != taker["proxyWallet"]]
    assert taker in of_match
    assert len(makers) == len(of_match) / 2
    for maker in makers:  # the same token on the other side, or the other token on the same side
        assert (maker["side"] == taker["side"]) == (maker["asset"] != taker["asset"])
    prices = [row["price"] if row["asset"] == taker["asset"] else round(1 - row["price"], 6) for row in makers]
    assert taker["price"] in prices


def test_cursor_pages_meet_every_trade_once_while_new_ones_arrive(sandbox, http):
    conditions = ",".join(market["conditionId"] for market in walk(http, sandbox)[:20])
    seen: list[tuple] = []
    cursor: dict[str, str] = {}
    while True:
        page = http.get(
            f"{sandbox.data_api_url}/v2/trades", params={"condition_id": conditions, "limit": 10, **cursor}
        ).json()
        seen += [
            tuple(row[name] for name in ("transaction_hash", "token_id", "side", "price", "size"))
            for row in page["data"]
        ]
        assert page["pagination"]["has_more"] is (page["pagination"]["next_cursor"] is not None)
        if not page["pagination"]["has_more"]:
            break
        cursor = {"cursor": page["pagination"]["next_cursor"]}

    assert len(seen) == len(set(seen)) > 10


def test_a_time_window_is_kept(sandbox, http):
    _, condition_id = busiest(sandbox)
    newest = http.get(f"{sandbox.data_api_url}/v2/trades", params={"condition_id": condition_id}).json()["data"][0]
    moment = newest["timestamp"]

    rows = http.get(
        f"{sandbox.data_api_url}/v2/trades", params={"condition_id": condition_id, "start": moment, "end": moment}
    ).json()["data"]

    assert rows
    assert {row["timestamp"] for row in rows} == {moment}


def test_too_many_conditions_and_too_far_offsets_are_refused(sandbox, http):
    many = http.get(f"{sandbox.data_api_url}/v2/trades", params={"condition_id": ",".join(["0x0"] * 21)})
    far = http.get(f"{sandbox.data_api_url}/trades", params={"offset": 10_001})
    nobody = http.get(f"{sandbox.data_api_url}/positions")

    assert [answer.status_code for answer in (many, far, nobody)] == [400, 400, 400]


def test_shares_held_are_shares_bought_less_shares_sold(sandbox, http):
    """A pair is minted out of nothing, so what all wallets hold of the two outcomes is the same."""
    held: dict[str, float] = defaultdict(float)

    def sum_up() -> None:
        for wallet in sandbox.source.wallets:
            for position in sandbox.data_api.portfolios.of(wallet):
                held[position.token] += position.size

    sandbox.call(sum_up)

    for market in walk(http, sandbox):
        first, second = token_ids(market)
        assert held[first] == held[second]


def test_what_won_is_redeemed_and_what_lost_is_kept(sandbox, http):
    kept, redeemed = [], []
    for wallet in sandbox.source.wallets[:200]:
        ask = {"user": wallet, "sizeThreshold": 0, "redeemable": "true"}
        kept += http.get(f"{sandbox.data_api_url}/positions", params=ask).json()
        redeemed += http.get(f"{sandbox.data_api_url}/closed-positions", params=ask).json()

    assert kept
    assert {row["curPrice"] for row in kept} == {0}
    assert any(row["curPrice"] == 1 and row["realizedPnl"] > 0 for row in redeemed)


def test_the_largest_holders_of_each_outcome_are_told(still, sandbox, http):
    _, condition_id = busiest(sandbox)

    rows = http.get(f"{sandbox.data_api_url}/holders", params={"market": condition_id}).json()

    assert [holder["outcomeIndex"] for row in rows for holder in row["holders"][:1]] == [0, 1]
    for row in rows:
        amounts = [holder["amount"] for holder in row["holders"]]
        assert amounts == sorted(amounts, reverse=True)
        first = row["holders"][0]
        query = {"user": first["proxyWallet"], "market": condition_id}
        positions = http.get(f"{sandbox.data_api_url}/positions", params=query).json()
        assert first["amount"] in [each["size"] for each in positions if each["asset"] == row["token"]]
    assert http.get(f"{sandbox.data_api_url}/holders").status_code == 400
