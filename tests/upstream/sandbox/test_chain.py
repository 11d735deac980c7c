"""Settlement of the sandbox's trades on its simulated chain."""

from __future__ import annotations

from collections import Counter, defaultdict
from itertools import pairwise

import msgspec
import pytest

from upstream.chain.contracts import POLYGON
from upstream.chain.decode import decode
from upstream.chain.wire import RawLog
from upstream.sandbox.chain import chain as chains
from upstream.sandbox.chain import logs as chain_logs
from upstream.sandbox.exchange.catalogue import SandboxMarket
from upstream.sandbox.exchange.population import Population
from upstream.sandbox.server import Sandbox

START_MS = 1_795_000_200_000 // 300_000 * 300_000 + 230_000  # windows of five minutes end 70 s later


def played(seconds: float, *, step_s: float | None = None, seed: int = 3, start_ms: int = START_MS) -> Sandbox:
    """Return a simulation that has run, without its server."""
    sandbox = Sandbox(simulate=seed, rate=300, markets=40, start_ms=start_ms)
    step_ms = (step_s or seconds) * 1000
    for turn in range(round(seconds * 1000 / step_ms)):
        sandbox.source.advance(start_ms + (turn + 1) * step_ms)
        sandbox.chain.mine()
    return sandbox


@pytest.fixture(scope="module")
def quiet() -> Sandbox:
    """A simulation of one minute."""
    return played(60)


@pytest.fixture(scope="module")
def ended() -> Sandbox:
    """A simulation in which markets were resolved, and winners paid."""
    return played(160)


def logs(sandbox: Sandbox) -> list[RawLog]:
    lines = [log.json for block in sandbox.chain.blocks for log in sandbox.chain.logs(block)]
    return msgspec.json.decode(b"[" + b",".join(lines) + b"]", type=list[RawLog])


def words(log: RawLog) -> list[int]:
    digits = log.data[2:]
    return [int(digits[at : at + 64], 16) for at in range(0, len(digits), 64)]


def settled(sandbox: Sandbox) -> list:
    """Return the trades of mined blocks."""
    mined = {transaction.tx for block in sandbox.chain.blocks for transaction in block.transactions}
    return [trade for trade in sandbox.exchange.trades.newest_first() if bytes.fromhex(trade.tx[2:]) in mined]


def test_a_block_is_mined_each_second_and_a_half_and_names_the_one_before(quiet):
    blocks = list(quiet.chain.blocks)

    assert len(blocks) == 41
    assert [block.number for block in blocks] == list(range(blocks[0].number, blocks[0].number + 41))
    assert [block.parent for block in blocks[1:]] == [block.hash for block in blocks[:-1]]
    assert {after.ts_s - before.ts_s for before, after in pairwise(blocks)} == {1, 2}
    assert 0 <= START_MS + 60_000 - blocks[-1].ts_s * 1000 <= chains.BLOCK_MS + 1_000


def test_every_trade_is_settled_once_by_the_hash_that_its_print_told(quiet):
    matched = Counter(log.transaction_hash for log in logs(quiet) if log.topics[0] == chain_logs.ORDERS_MATCHED)

    late = [trade for trade in quiet.exchange.trades.newest_first() if trade.tx not in matched]

    assert set(matched.values()) == {1}
    assert {trade.tx for trade in settled(quiet)} == set(matched)
    assert all(quiet.exchange.now_ms - trade.ts_ms <= chains.BLOCK_MS for trade in late)


def test_no_block_is_older_than_the_trades_it_holds(quiet):
    mined_s = {log.transaction_hash: int(log.block_timestamp, 16) for log in logs(quiet)}

    assert settled(quiet)
    assert all(mined_s[trade.tx] >= trade.ts_ms // 1000 for trade in settled(quiet))


def test_a_match_is_told_by_maker_rows_the_takers_own_and_a_summary(quiet):
    trades = defaultdict(list)
    for trade in reversed(settled(quiet)):
        trades[trade.tx].append(trade)
    exchanges = (chain_logs.EXCHANGE, chain_logs.NEG_RISK_EXCHANGE)
    rows = defaultdict(list)
    for log in logs(quiet):
        if log.address in exchanges:
            rows[log.transaction_hash].append(log)

    for tx, of_match in trades.items():
        *makers, own, matched = rows[tx]
        shares = sum(trade.size for trade in of_match)
        value = sum(trade.price * trade.size // 1_000_000 for trade in of_match)
        first = of_match[0]
        amounts = [value, shares] if first.side == "BUY" else [shares, value]
        assert [log.topics[2][-40:] for log in makers] == [trade.maker[2:] for trade in of_match]
        assert {log.topics[3][-40:] for log in makers} == {first.taker[2:]}
        assert (own.topics[2][-40:], own.topics[3][-40:]) == (first.taker[2:], own.address[2:])
        assert words(own)[:4] == [0 if first.side == "BUY" else 1, int(first.token), *amounts]
        assert (matched.topics[0], matched.topics[1]) == (chain_logs.ORDERS_MATCHED, own.topics[1])
        assert words(matched) == words(own)[:4]


def test_makers_met_in_the_same_token_or_by_a_pair_made_or_merged(quiet):
    trades, rows = settled(quiet)[::-1], maker_rows(quiet)
    market_of = quiet.exchange.catalogue.by_token

    assert len(trades) == len(rows)
    assert {trade.form for trade in trades} == {"", "mint", "merge"}
    for trade, row in zip(trades, rows, strict=True):
        market, outcome = market_of[trade.token]
        value = trade.price * trade.size // 1_000_000
        token, buys = trade.token, trade.side == "SELL"
        if trade.form:
            token, buys, value = market.tokens[1 - outcome], trade.form == "mint", trade.size - value
        amounts = [value, trade.size] if buys else [trade.size, value]
        assert row.topics[2][-40:] == trade.maker[2:]
        assert words(row)[:5] == [0 if buys else 1, int(token), *amounts, 0]
        assert buys == ((trade.side == "BUY") == bool(trade.form))


def maker_rows(sandbox: Sandbox) -> list[RawLog]:
    filled = [log for log in logs(sandbox) if log.topics[0] == chain_logs.ORDER_FILLED]
    return [log for log in filled if log.topics[3][-40:] != log.address[2:]]


def test_token_transfers_add_up_to_what_the_data_api_says_wallets_hold(quiet):
    held: Counter[tuple[str, str]] = Counter()
    for log in logs(quiet):
        said = words(log)
        if log.topics[0] == chain_logs.TRANSFER_SINGLE:
            moves = [(said[0], said[1])]
        elif log.topics[0] == chain_logs.TRANSFER_BATCH:
            count = said[2]
            moves = list(zip(said[3 : 3 + count], said[4 + count :], strict=True))
        else:
            continue
        for token, amount in moves:
            held[f"0x{log.topics[2][-40:]}", str(token)] -= amount
            held[f"0x{log.topics[3][-40:]}", str(token)] += amount

    over = {token for market in quiet.exchange.catalogue if market.closed for token in market.tokens}  # paid out
    fresh = {trade.tx for trade in quiet.exchange.trades.newest_first()} - {trade.tx for trade in settled(quiet)}
    waiting = {
        wallet
        for trade in quiet.exchange.trades.newest_first()
        if trade.tx in fresh
        for wallet in (trade.taker, trade.maker)
    }
    wallets = [wallet for wallet in quiet.source.wallets if wallet not in waiting]
    by_chain = {
        place: amount for place, amount in held.items() if amount and place[0] in set(wallets) and place[1] not in over
    }
    by_api = {
        (wallet, position.token): position.size
        for wallet in wallets
        for position in quiet.data_api.portfolios.of(wallet)
        if position.size and position.token not in over
    }
    assert len(by_api) > 500
    assert by_chain == by_api
    others = {wallet for wallet, _ in held} - set(quiet.source.wallets) - {chain_logs.NOBODY, chain_logs.BURNT}
    exchanges = {chain_logs.EXCHANGE, chain_logs.NEG_RISK_EXCHANGE, chain_logs.COLLATERAL_ADAPTER}
    assert not [place for place, amount in held.items() if place[0] in exchanges & others and amount]


def test_the_decoder_refuses_nothing_and_counts_each_trade_once(ended):
    decoded = decode(logs(ended), POLYGON)

    trades = settled(ended)
    assert not decoded.refused
    assert len(decoded.fills) == len(trades) + len({trade.tx for trade in trades})
    assert decoded.fills.size[decoded.fills.counted].sum() == sum(trade.size for trade in trades)
    assert {entry.kind for entry in decoded.ledger} == {"split", "merge", "convert", "redeem", "transfer"}
    assert all(entry.wallet is not None for entry in decoded.ledger)


def test_markets_that_end_are_resolved_and_their_winners_paid(ended):
    resolved = {market.condition_id: market for market in ended.exchange.catalogue if market.closed}

    decoded = decode(logs(ended), POLYGON)

    told = {f"0x{one.condition_id.hex()}": one.numerators for one in decoded.resolutions}
    assert resolved
    assert told == {name: tuple(map(int, prices(market))) for name, market in resolved.items()}
    paid = [entry for entry in decoded.ledger if entry.kind == "redeem"]
    assert paid
    for entry in paid:
        market = resolved[f"0x{entry.condition_id.hex()}"]
        winner = prices(market).index("1")
        held = ended.data_api.portfolios.held(f"0x{entry.wallet.hex()}", market.tokens[winner])
        assert entry.amount == held


def prices(market: SandboxMarket) -> list[str]:
    return msgspec.json.decode(market.gamma["outcomePrices"])


@pytest.mark.parametrize(("price", "size", "paid"), [(480_000, 6_000_000, 104_830), (920_000, 2_560_000, 13_180)])
def test_a_fee_is_what_the_exchange_was_seen_to_take(price, size, paid):
    schedule = {"feesEnabled": True, "feeSchedule": {"rate": 0.07}}

    assert chain_logs.fee(SandboxMarket({"id": "1", **schedule}, mirrored=False), price, size) == paid
    assert chain_logs.fee(SandboxMarket({"id": "1"}, mirrored=False), price, size) == 0


def test_takers_pay_in_markets_with_fees_alone(quiet):
    with_fees = {
        int(token) for market in quiet.exchange.catalogue if market.gamma.get("feesEnabled") for token in market.tokens
    }
    own = [
        words(log)
        for log in logs(quiet)
        if log.topics[0] == chain_logs.ORDER_FILLED and log.topics[3][-40:] == log.address[2:]
    ]

    assert {said[1] in with_fees for said in own} == {True, False}
    assert all((said[4] > 0) == (said[1] in with_fees) for said in own)


def test_the_same_seed_makes_the_same_chain_however_it_is_played(quiet):
    assert logs(played(60, step_s=0.5)) == logs(quiet)
    assert logs(played(60, seed=4)) != logs(quiet)


def test_another_run_goes_on_where_the_heights_of_one_ended(quiet):
    later = played(3, start_ms=START_MS + 60_000)

    assert later.chain.blocks[0].hash == quiet.chain.blocks[-1].hash
    before = later.chain.block(quiet.chain.blocks[5].number)
    assert (before.hash, before.parent, before.ts_s) == (
        quiet.chain.blocks[5].hash,
        quiet.chain.blocks[5].parent,
        quiet.chain.blocks[5].ts_s,
    )
    assert not before.transactions


def test_a_reorganisation_brings_the_same_transactions_in_other_blocks():
    sandbox = played(40)
    before, told = list(sandbox.chain.blocks), logs(sandbox)

    assert sandbox.chain.reorganise(5) == 5

    after = list(sandbox.chain.blocks)
    assert after[:-5] == before[:-5]
    assert {block.hash for block in after[-5:]}.isdisjoint(block.hash for block in before)
    assert [block.parent for block in after[1:]] == [block.hash for block in after[:-1]]
    sandbox.source.advance(START_MS + 41_500)
    sandbox.chain.mine()
    once = Counter(transaction.tx for block in sandbox.chain.blocks for transaction in block.transactions)
    assert set(once.values()) == {1}
    assert {log.transaction_hash for log in told} <= {f"0x{tx.hex()}" for tx in once}
    moved = {log.transaction_hash: log.block_number for log in logs(sandbox)}
    assert any(moved[log.transaction_hash] != log.block_number for log in told)


def test_final_blocks_are_never_replaced():
    sandbox = played(40)
    final = sandbox.chain.block(sandbox.chain.finalized)

    assert sandbox.chain.reorganise(1_000) == chains.FINAL_AFTER
    assert sandbox.chain.block(final.number) is final
    assert sandbox.chain.head == final.number + chains.FINAL_AFTER


def test_only_the_newest_blocks_are_kept(monkeypatch):
    monkeypatch.setattr(chains, "MAX_KEPT_BLOCKS", 35)
    sandbox = played(60)
    chain = sandbox.chain

    assert len(chain.blocks) == 35
    assert chain.pruned(chain.blocks[0].number - 1)
    assert not chain.pruned(chains.height_at(START_MS) - 1)
    assert chain.block(chain.blocks[0].number - 1).hash == chain.blocks[0].parent
    monkeypatch.setattr(chains, "MAX_KEPT_FILLS", 100)
    sandbox.source.advance(START_MS + 62_000)
    chain.mine()
    assert len(chain.blocks) == 2 * chains.FINAL_AFTER


def test_few_wallets_make_most_of_the_trades_and_nobody_trades_with_himself(quiet):
    trades = Counter(wallet for trade in settled(quiet) for wallet in (trade.taker, trade.maker))
    total = sum(trades.values())

    assert 0.15 < sum(count for _, count in trades.most_common(20)) / total < 0.5
    assert len(trades) > 300
    assert all(trade.taker != trade.maker for trade in settled(quiet))


def test_wallets_are_the_same_for_the_same_seed_or_name():
    assert Population(5).wallets == Population(5).wallets
    assert Population(5).of("a print") == Population(5).of("a print")
    assert Population(5).wallets != Population(6).wallets
    assert Population(5).at(0.0) == Population(5).wallets[0]
    assert Population(5).at(0.999999999) == Population(5).wallets[-1]
    assert {Population(5, 3).other(wallet, 0.1) != wallet for wallet in Population(5, 3).wallets} == {True}


def test_now_and_then_somebody_takes_all_there_is():
    sandbox = played(150, seed=1)

    values: Counter[str] = Counter()
    for trade in sandbox.exchange.trades.newest_first():
        values[trade.tx] += trade.price * trade.size // 1_000_000
    dollars = sorted(value / 1e6 for value in values.values())

    assert dollars[len(dollars) // 2] < 60
    assert dollars[-1] > 2_000
