"""Logs as the exchange's contracts write them: all that affect positions, per transaction in the contracts' order.

The real chain has collateral transfers too; a follower of positions does not request them, and none are made.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, TypeAlias

from upstream.sandbox.exchange.transactions import Match
from upstream.transport.micro import ONE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from upstream.sandbox.exchange.catalogue import SandboxMarket
    from upstream.sandbox.exchange.transactions import Fill, PositionChange, Transaction

Log: TypeAlias = tuple[str, tuple[str, ...], str]  # address, topics, data

EXCHANGE = "0xe111180000d2663c0091e4f400237545b87b996b"
NEG_RISK_EXCHANGE = "0xe2222d279d744050d28e00520010520000310f59"
TOKENS = "0x4d97dcd97ec945f40cf65f87097ace5ea0476045"
NEG_RISK_ADAPTER = "0xd91e80cf2e7be2e162c6513ced06f1dd0da35296"
COLLATERAL_ADAPTER = "0xada100874d00e3331d00f2007a9c336a65009718"
NEG_RISK_COLLATERAL_ADAPTER = "0xada200001000ef00d07553cee7006808f895c6f1"
COLLATERAL = "0x2791bca1f2de4661ed88a30c99a7a9449aa84174"
WRAPPED_COLLATERAL = "0x3a3bd7bb9528e159577f7c2e685cc81a765002e2"
ORACLE = "0x157ce2d672854c848c9b79c49a8cc6cc89176a49"
BURNT = "0xa5ef39c3d3e10d0b270233af41cac69796b12966"
NOBODY = "0x" + "0" * 40

ORDER_FILLED = "0xd543adfd945773f1a62f74f0ee55a5e3b9b1a28262980ba90b1a89f2ea84d8ee"
ORDERS_MATCHED = "0x174b3811690657c217184f89418266767c87e4805d09680c39fc9c031c0cab7c"
CONDITION_PREPARATION = "0xab3760c3bd2bb38b5bcf54dc79802ed67338b4cf29f3054ded67ed24661e4177"
CONDITION_RESOLUTION = "0xb44d84d3289691f71497564b85d4233648d9dbae8cbdbb4329f301c3a0185894"
POSITION_SPLIT = "0x2e6bb91f8cbcda0c93623c54d0403a43514fabc40084ec96b6d5379a74786298"
POSITIONS_MERGE = "0x6f13ca62553fcc2bcd2372180a43949c1e4cebba603901ede2f4e14f36b282ca"
PAYOUT_REDEMPTION = "0x2682012a4a4f1973119f1c9b90745d1bd91fa2bab387344f044cb3586864d18d"
ADAPTER_SPLIT = "0xbbed930dbfb7907ae2d60ddf78345610214f26419a0128df39b6cc3d9e5df9b0"
ADAPTER_MERGE = "0xba33ac50d8894676597e6e35dc09cff59854708b642cd069d21eb9c7ca072a04"
ADAPTER_CONVERSION = "0xb03d19dddbc72a87e735ff0ea3b57bef133ebe44e1894284916a84044deb367e"
ADAPTER_REDEMPTION = "0x9140a6a270ef945260c03894b3c6b3b2695e9d5101feef0ff24fec960cfd3224"
OUTCOME_REPORTED = "0x9e9fa7fd355160bd4cd3f22d4333519354beff1f5689bde87f2c5e63d8d484b2"
TRANSFER_SINGLE = "0xc3d58168c5ae7397731d063d5bbf3d657854427343f4c083240f7aacaa2d0f62"
TRANSFER_BATCH = "0x4a39dc06d4c0dbc64b70af90fd698a233a518aa5d07e595d983b8c0526c8f7fb"

WORD = 64  # hex digits
ZERO = "0" * WORD
BOTH = f"{2:064x}{1:064x}{2:064x}"  # the partition of two outcomes: their index sets
FEE_STEP = 10  # the exchange's fees are whole hundred-thousandths of a dollar


def logs_of(transaction: Transaction) -> Iterator[Log]:
    """Yield the logs of one transaction."""
    return _match(transaction) if isinstance(transaction, Match) else _MOVED[transaction.kind](transaction)


def fee(market: SandboxMarket, price: int, size: int) -> int:
    """Return a taker's fee in micro-dollars: size · rate · p · (1 - p) where the market has fees."""
    schedule = market.gamma.get("feeSchedule") if market.gamma.get("feesEnabled") else None
    if not schedule:
        return 0
    rate = round(float(schedule["rate"]) * ONE)
    return size * rate * price * (ONE - price) // (ONE * ONE * ONE) // FEE_STEP * FEE_STEP


# --- Orders ---


def _match(match: Match) -> Iterator[Log]:
    market, buys = match.market, match.side == "BUY"
    exchange = NEG_RISK_EXCHANGE if market.neg_risk else EXCHANGE
    token = int(market.tokens[match.outcome])
    shares = sum(fill.size for fill in match.fills)
    value = sum(fill.price * fill.size // ONE for fill in match.fills)
    if not buys:
        yield _transfer(exchange, match.taker, exchange, token, shares)
    for place, fill in enumerate(match.fills):
        yield from _maker(match, fill, place, exchange)
    if buys:
        yield _transfer(exchange, exchange, match.taker, token, shares)
    given, got = (value, shares) if buys else (shares, value)
    paid = fee(market, value * ONE // shares, shares) if shares else 0
    order = _digest(match.tx, "taker")
    side = 0 if buys else 1
    terms = f"{side:064x}{token:064x}{given:064x}{got:064x}"
    yield exchange, (ORDER_FILLED, order, _topic(match.taker), _topic(exchange)), f"0x{terms}{paid:064x}{ZERO}{ZERO}"
    yield exchange, (ORDERS_MATCHED, order, _topic(match.taker)), f"0x{terms}"


def _maker(match: Match, fill: Fill, place: int, exchange: str) -> Iterator[Log]:
    """Yield the logs of one maker's part of a match, ending in the row of the maker's order."""
    market = match.market
    outcome, buys, value = match.outcome, match.side != "BUY", fill.price * fill.size // ONE
    if fill.form:  # for the other token, on the taker's side
        outcome, buys, value = 1 - outcome, not buys, fill.size - value
    token = int(market.tokens[outcome])
    if not buys:
        yield _transfer(exchange, fill.maker, exchange, token, fill.size)
    if fill.form == "mint":
        yield from _split(market, exchange, fill.size)
    elif fill.form == "merge":
        yield from _merge(market, exchange, fill.size)
    if buys:
        yield _transfer(exchange, exchange, fill.maker, token, fill.size)
    given, got = (value, fill.size) if buys else (fill.size, value)
    side = 0 if buys else 1
    topics = (ORDER_FILLED, _digest(match.tx, f"maker {place}"), _topic(fill.maker), _topic(match.taker))
    yield exchange, topics, f"0x{side:064x}{token:064x}{given:064x}{got:064x}{ZERO}{ZERO}{ZERO}"


# --- Pairs ---


def _split(market: SandboxMarket, owner: str, amount: int) -> Iterator[Log]:
    """Yield the logs of collateral becoming a pair for a wallet: an adapter does it, and passes the tokens on."""
    if market.neg_risk:
        yield _pair(NEG_RISK_ADAPTER, NOBODY, NEG_RISK_ADAPTER, market, amount)
        yield _partition(POSITION_SPLIT, NEG_RISK_ADAPTER, WRAPPED_COLLATERAL, market, amount)
        yield _pair(NEG_RISK_ADAPTER, NEG_RISK_ADAPTER, NEG_RISK_COLLATERAL_ADAPTER, market, amount)
        topics = (ADAPTER_SPLIT, _topic(NEG_RISK_COLLATERAL_ADAPTER), market.condition_id)
        yield NEG_RISK_ADAPTER, topics, f"0x{amount:064x}"
        yield _pair(NEG_RISK_COLLATERAL_ADAPTER, NEG_RISK_COLLATERAL_ADAPTER, owner, market, amount)
    else:
        yield _pair(COLLATERAL_ADAPTER, NOBODY, COLLATERAL_ADAPTER, market, amount)
        yield _partition(POSITION_SPLIT, COLLATERAL_ADAPTER, COLLATERAL, market, amount)
        yield _pair(COLLATERAL_ADAPTER, COLLATERAL_ADAPTER, owner, market, amount)


def _merge(market: SandboxMarket, owner: str, amount: int) -> Iterator[Log]:
    """Yield the logs of a wallet's pair becoming collateral again."""
    if market.neg_risk:
        yield _pair(NEG_RISK_COLLATERAL_ADAPTER, owner, NEG_RISK_COLLATERAL_ADAPTER, market, amount)
        yield _pair(NEG_RISK_ADAPTER, NEG_RISK_COLLATERAL_ADAPTER, NEG_RISK_ADAPTER, market, amount)
        yield _pair(NEG_RISK_ADAPTER, NEG_RISK_ADAPTER, NOBODY, market, amount)
        yield _partition(POSITIONS_MERGE, NEG_RISK_ADAPTER, WRAPPED_COLLATERAL, market, amount)
        topics = (ADAPTER_MERGE, _topic(NEG_RISK_COLLATERAL_ADAPTER), market.condition_id)
        yield NEG_RISK_ADAPTER, topics, f"0x{amount:064x}"
    else:
        yield _pair(COLLATERAL_ADAPTER, owner, COLLATERAL_ADAPTER, market, amount)
        yield _pair(COLLATERAL_ADAPTER, COLLATERAL_ADAPTER, NOBODY, market, amount)
        yield _partition(POSITIONS_MERGE, COLLATERAL_ADAPTER, COLLATERAL, market, amount)


def _moved_pair(moved: PositionChange) -> Iterator[Log]:
    """Yield the logs of a split or merge that a wallet requested; every other one is with the token contract itself."""
    market, (amount,) = moved.market, moved.amounts
    splits = moved.kind == "split"
    if market.neg_risk or moved.tx[0] & 1:
        yield from (_split if splits else _merge)(market, moved.wallet, amount)
    elif splits:
        yield _pair(moved.wallet, NOBODY, moved.wallet, market, amount)
        yield _partition(POSITION_SPLIT, moved.wallet, COLLATERAL, market, amount)
    else:
        yield _pair(moved.wallet, moved.wallet, NOBODY, market, amount)
        yield _partition(POSITIONS_MERGE, moved.wallet, COLLATERAL, market, amount)


def _moved_transfer(moved: PositionChange) -> Iterator[Log]:
    token = int(moved.market.tokens[moved.outcome])
    yield _transfer(moved.wallet, moved.wallet, moved.receiver, token, moved.amounts[0])


def _moved_convert(moved: PositionChange) -> Iterator[Log]:
    """Yield the logs of NO of one question becoming YES of all others."""
    amount, index = moved.amounts
    market = moved.market
    yield _transfer(NEG_RISK_ADAPTER, moved.wallet, BURNT, int(market.tokens[1]), amount)
    yield _batch(NEG_RISK_ADAPTER, NEG_RISK_ADAPTER, moved.wallet, [int(token) for token in moved.tokens], amount)
    topics = (
        ADAPTER_CONVERSION,
        _topic(moved.wallet),
        _word(market.gamma.get("negRiskMarketID")),
        f"0x{1 << index:064x}",
    )
    yield NEG_RISK_ADAPTER, topics, f"0x{amount:064x}"


# --- Conditions ---


def _moved_prepare(moved: PositionChange) -> Iterator[Log]:
    market = moved.market
    topics = (CONDITION_PREPARATION, market.condition_id, _topic(_oracle(market)), _question(market))
    yield TOKENS, topics, f"0x{2:064x}"


def _moved_resolve(moved: PositionChange) -> Iterator[Log]:
    market, winner = moved.market, moved.outcome
    if market.neg_risk:
        reported = (OUTCOME_REPORTED, _word(market.gamma.get("negRiskMarketID")), _question(market))
        yield NEG_RISK_ADAPTER, reported, f"0x{1 - winner:064x}"
    topics = (CONDITION_RESOLUTION, market.condition_id, _topic(_oracle(market)), _question(market))
    payouts = "".join(f"{int(outcome == winner):064x}" for outcome in range(2))
    yield TOKENS, topics, f"0x{2:064x}{64:064x}{2:064x}{payouts}"


def _moved_redeem(moved: PositionChange) -> Iterator[Log]:
    """Yield the logs of a wallet redeeming its tokens of a resolved market."""
    market, wallet, payout = moved.market, moved.wallet, moved.amounts[moved.outcome]
    if not market.neg_risk:
        yield from _burn(wallet, market, moved.amounts)
        yield _redemption(wallet, COLLATERAL, market, payout)
        return
    tokens = [int(token) for token, amount in zip(market.tokens, moved.amounts, strict=True) if amount]
    amounts = [amount for amount in moved.amounts if amount]
    yield _batch(NEG_RISK_ADAPTER, wallet, NEG_RISK_ADAPTER, tokens, *amounts)
    yield from _burn(NEG_RISK_ADAPTER, market, moved.amounts)
    yield _redemption(NEG_RISK_ADAPTER, WRAPPED_COLLATERAL, market, payout)
    held = "".join(f"{amount:064x}" for amount in moved.amounts)
    topics = (ADAPTER_REDEMPTION, _topic(wallet), market.condition_id)
    yield NEG_RISK_ADAPTER, topics, f"0x{64:064x}{payout:064x}{2:064x}{held}"


def _burn(owner: str, market: SandboxMarket, amounts: tuple[int, ...]) -> Iterator[Log]:
    for token, amount in zip(market.tokens, amounts, strict=True):
        if amount:
            yield _transfer(owner, owner, NOBODY, int(token), amount)


def _redemption(redeemer: str, collateral: str, market: SandboxMarket, payout: int) -> Log:
    topics = (PAYOUT_REDEMPTION, _topic(redeemer), _topic(collateral), f"0x{ZERO}")
    return TOKENS, topics, f"0x{market.condition_id[2:]}{96:064x}{payout:064x}{BOTH}"


_MOVED = {
    "split": _moved_pair,
    "merge": _moved_pair,
    "transfer": _moved_transfer,
    "convert": _moved_convert,
    "redeem": _moved_redeem,
    "resolve": _moved_resolve,
    "prepare": _moved_prepare,
}

# --- Parts ---


def _transfer(operator: str, sender: str, receiver: str, token: int, amount: int) -> Log:
    topics = (TRANSFER_SINGLE, _topic(operator), _topic(sender), _topic(receiver))
    return TOKENS, topics, f"0x{token:064x}{amount:064x}"


def _pair(operator: str, sender: str, receiver: str, market: SandboxMarket, amount: int) -> Log:
    return _batch(operator, sender, receiver, [int(token) for token in market.tokens], amount)


def _batch(operator: str, sender: str, receiver: str, tokens: list[int], *amounts: int) -> Log:
    """Return the log of a transfer of several tokens; a single amount applies to each of them."""
    count = len(tokens)
    each = amounts if len(amounts) == count else amounts * count
    ids, values = ("".join(f"{number:064x}" for number in numbers) for numbers in (tokens, each))
    topics = (TRANSFER_BATCH, _topic(operator), _topic(sender), _topic(receiver))
    return TOKENS, topics, f"0x{64:064x}{96 + 32 * count:064x}{count:064x}{ids}{count:064x}{values}"


def _partition(event: str, stakeholder: str, collateral: str, market: SandboxMarket, amount: int) -> Log:
    topics = (event, _topic(stakeholder), f"0x{ZERO}", market.condition_id)
    return TOKENS, topics, f"0x{collateral[2:]:0>64}{96:064x}{amount:064x}{BOTH}"


def _oracle(market: SandboxMarket) -> str:
    return NEG_RISK_ADAPTER if market.neg_risk else ORACLE


def _question(market: SandboxMarket) -> str:
    return _word(market.gamma.get("questionID"))


def _word(text: str | None) -> str:
    """Return a value of a Gamma object, which may be missing, as a word."""
    digits = (text or "").removeprefix("0x")
    return f"0x{digits:0>64}" if len(digits) <= WORD else f"0x{digits[:WORD]}"


def _topic(address: str) -> str:
    return f"0x{address[2:].lower():0>64}"


def _digest(tx: bytes, name: str) -> str:
    return "0x" + hashlib.blake2b(name.encode(), key=tx, digest_size=32).hexdigest()
