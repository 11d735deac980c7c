"""History before a simulation: deterministic per seed, and consistent across the exchange's APIs."""

from collections import Counter, defaultdict

import httpx
import numpy as np
import pytest

from tests.upstream.sandbox.conftest import walk
from upstream.chain.contracts import POLYGON
from upstream.chain.decode import decode
from upstream.chain.rpc import Rpc
from upstream.sandbox.chain.chain import height_at
from upstream.sandbox.server import Sandbox
from upstream.sandbox.simulation.past import SimulatedPast
from upstream.sandbox.simulation.past_trades import KINDS

ONE = 1_000_000
DAY_MS = 86_400_000
START_MS = 1_795_000_000_000
DAYS = 1


def made(seed: int, start_ms: int = START_MS, **options: int) -> SimulatedPast:
    past = Sandbox(simulate=seed, start_ms=start_ms, markets=20, past_days=DAYS, **options).past
    assert past is not None
    return past


@pytest.fixture(scope="module")
def sandbox():
    with Sandbox(simulate=7, start_ms=START_MS, markets=20, past_days=DAYS, hold=True) as running:
        yield running


@pytest.fixture(scope="module")
def past(sandbox):
    return sandbox.past


@pytest.fixture(scope="module")
def decoded(sandbox, past):
    """The past's logs on the chain, as an indexer decodes them."""
    with Rpc([sandbox.rpc_url]) as rpc:
        addresses = [each.address for each in POLYGON]
        logs = rpc.logs(height_at(past.start_ms), height_at(START_MS), addresses)
    return decode(logs, POLYGON)


def test_the_same_seed_has_the_same_past_and_another_one_another():
    one, again, other = made(3), made(3), made(4)

    assert one.trades.tobytes() == again.trades.tobytes()
    assert one.moves.tobytes() == again.moves.tobytes()
    assert [life.market.gamma for life in one.lives] == [life.market.gamma for life in again.lives]
    assert [one.trade(nth) for nth in (0, -1)] == [again.trade(nth) for nth in (0, -1)]
    assert one.trades.tobytes() != other.trades.tobytes()


def test_the_past_of_a_simulation_that_starts_again_later_stays_where_it_was():
    one, again = made(3), made(3, START_MS + 3_600_000, past_until_ms=START_MS)

    assert again.trades.tobytes() == one.trades.tobytes()
    assert again.state() == one.state()


def test_a_past_changes_nothing_of_what_follows():
    with_past, without = (
        Sandbox(simulate=9, start_ms=START_MS, markets=20, past_days=days, hold=True) for days in (1, 0)
    )

    for sandbox in (with_past, without):
        sandbox.source.advance(START_MS + 5_000, 100_000)

    told = [
        [(each.token, each.price, each.size, each.tx) for each in one.exchange.trades.newest_first()]
        for one in (with_past, without)
    ]
    assert told[0] == told[1]
    assert len(told[0]) > 20


def test_nobody_ever_gives_away_what_he_does_not_hold(past):
    held = defaultdict(int)
    steps = [(int(row["ts_ms"]), 1, nth) for nth, row in enumerate(past.trades)]
    steps += [(int(row["ts_ms"]), 0, nth) for nth, row in enumerate(past.moves)]

    def move(wallet, market, outcome, size):
        held[int(wallet), int(market), int(outcome)] += int(size)
        assert held[int(wallet), int(market), int(outcome)] >= 0

    for _, is_trade, nth in sorted(steps):
        row = (past.trades if is_trade else past.moves)[nth]
        if not is_trade:
            kind, amounts = KINDS[row["kind"]], row["amounts"]
            for outcome in (0, 1) if kind in {"split", "merge", "redeem"} else ():
                amount = {"split": amounts[0], "merge": -amounts[0], "redeem": -amounts[outcome]}[kind]
                move(row["wallet"], row["market"], outcome, amount)
            continue
        assert row["taker"] != row["maker"]
        sign = 1 if row["buys"] else -1
        outcome, size = int(row["outcome"]), int(row["size"])
        paired = row["form"] > 0
        sides = [(row["taker"], outcome, sign)]
        sides.append((row["maker"], 1 - outcome if paired else outcome, sign if paired else -sign))
        for wallet, side, change in sorted(sides, key=lambda one: one[2]):
            move(wallet, row["market"], side, change * size)
    assert sum(held.values()) > 0


def test_markets_opened_traded_and_resolved_in_this_order(past):
    trades, moves = past.trades, past.moves
    for nth, life in enumerate(past.lives):
        of_market = trades["ts_ms"][trades["market"] == nth]
        assert ((of_market >= life.opens_ms) & (of_market <= life.ends_ms)).all()
        if life.winner is None:
            continue
        told = {KINDS[row["kind"]]: int(row["ts_ms"]) for row in moves[moves["market"] == nth]}
        assert life.opens_ms == told["prepare"] == told["split"]
        assert life.ends_ms < told["resolve"] <= told.get("redeem", told["resolve"])
        assert life.market.closed
    assert trades["ts_ms"].max() < START_MS
    assert np.isin(trades["price"] % 1000, 0).all()
    assert ((trades["price"] > 0) & (trades["price"] < ONE)).all()


def test_the_path_of_an_open_market_ends_where_its_simulation_begins(sandbox, past):
    for life, path in zip(past.lives, past.paths, strict=True):
        if life.winner is None:
            bid, ask = life.market.best(0)
            assert abs(path.price[-1] - (bid + ask) / 2 / ONE) < 0.06


def test_the_chain_has_every_trade_as_the_data_api_lists_it(past, decoded):
    fills = decoded.fills
    settled = Counter(
        (bytes(fills.tx_hash[nth]).hex(), bytes(fills.maker[nth]).hex(), int(fills.side[nth]), int(fills.size[nth]))
        for nth in np.flatnonzero(fills.counted)
    )
    traded = [past.trade(nth) for nth in range(len(past.trades))]

    assert decoded.refused == []
    assert len(traded) > 1_000
    assert settled == Counter(
        (each.tx[2:], each.taker[2:], 1 if each.side == "BUY" else -1, each.size) for each in traded
    )


def test_the_chain_pays_as_the_markets_say(past, decoded):
    resolved = [life for life in past.lives if life.winner is not None]

    payouts = {each.condition_id: tuple(each.numerators) for each in decoded.resolutions}

    assert payouts == {
        bytes.fromhex(life.market.condition_id[2:]): (1, 0) if life.winner == 0 else (0, 1) for life in resolved
    }
    assert sum(entry.kind == "redeem" for entry in decoded.ledger) > 50


def test_pages_of_the_data_api_hold_each_trade_once(sandbox, past, http):
    begin, end = (START_MS - DAY_MS) // 1000, (START_MS - DAY_MS // 2) // 1000
    found, cursor = [], {}
    while True:
        query = {"limit": 500, "start": begin, "end": end, "taker_only": "true", **cursor}
        page = http.get(f"{sandbox.data_api_url}/v2/trades", params=query).json()
        found += page["data"]
        if not page["pagination"]["has_more"]:
            break
        cursor = {"cursor": page["pagination"]["next_cursor"]}

    seconds = past.trades["ts_ms"] // 1000
    within = np.flatnonzero((seconds >= begin) & (seconds <= end))
    assert [row["transaction_hash"] for row in found] == [past.trade(int(nth)).tx for nth in within[::-1]]


def test_trades_of_a_market_and_of_a_wallet_go_back_into_the_past(sandbox, past, http):
    last = past.trade(len(past.trades) - 1)

    of_market = http.get(f"{sandbox.data_api_url}/trades", params={"market": last.condition_id, "limit": 1}).json()
    of_wallet = http.get(f"{sandbox.data_api_url}/activity", params={"user": last.maker, "limit": 500}).json()

    assert of_market[0]["transactionHash"] == last.tx
    assert of_market[0]["proxyWallet"] == last.taker
    assert last.tx in {row["transactionHash"] for row in of_wallet}


def test_gamma_lists_what_was_closed_the_newest_first(sandbox, past, http):
    query = {"closed": "true", "order": "closedTime", "ascending": "false", "limit": "50"}
    closed = walk(http, sandbox, **query)

    assert len(closed) == sum(life.winner is not None for life in past.lives)
    assert [each["closedTime"] for each in closed] == sorted((each["closedTime"] for each in closed), reverse=True)
    assert all("Simulated" in each["description"] for each in closed)
    assert all(each["umaResolutionStatus"] == "resolved" for each in closed)


def test_the_order_book_api_tells_prices_of_the_past(sandbox, past, http):
    token = past.lives[0].market.tokens[1]

    query = {"market": token, "interval": "1d", "fidelity": 60}
    history = http.get(f"{sandbox.clob_url}/prices-history", params=query).json()["history"]

    assert 20 <= len(history) <= 30
    assert history[-1]["p"] == pytest.approx(1 - past.paths[0].price[-1], abs=0.02)


def test_receipts_and_headers_of_past_blocks_are_there(sandbox, past):
    tx = past.trade(0).tx

    def ask(method, *params):
        call = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        return httpx.post(sandbox.rpc_url, json=call, trust_env=False).json()["result"]

    receipt = ask("eth_getTransactionReceipt", tx)
    block = ask("eth_getBlockByNumber", receipt["blockNumber"], False)

    assert tx in block["transactions"]
    assert receipt["blockHash"] == block["hash"]
    assert len(receipt["logs"]) >= 5
