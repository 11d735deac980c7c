"""Events of the contracts: an `Event` is a contract, the event's name, and its arguments in Solidity's order.

The functions below fill in defaults. Amounts are micro-units, as on the chain; a hash or a wallet
made from a small number (`word(7)`, `wallet(7)`) represents any other.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

from tests.chain import abi, contracts
from tests.chain.solidity import compiled

BUY, SELL = 0, 1
ZERO = bytes(32)
_orders = itertools.count(1)


@dataclass(frozen=True)
class Event:
    """One log of one contract."""

    contract: str
    name: str
    args: tuple[Any, ...]

    def call(self) -> bytes:
        """Return the call that makes the emitter log it."""
        function = self.name[0].lower() + self.name[1:]
        selectors = compiled()[contracts.emitter(self.contract)]["selectors"]
        signature = next(s for s in selectors if s.startswith(f"{function}("))
        types = signature[len(function) + 1 : -1].split(",")
        return bytes.fromhex(selectors[signature]) + abi.encode(types, list(self.args))


def word(number: int) -> bytes:
    """Return 32 bytes: an order's hash, a condition, a question."""
    return number.to_bytes(32)


def wallet(number: int) -> bytes:
    """Return the address of a wallet."""
    return (0xA11CE << 140 | number).to_bytes(20)


def order() -> bytes:
    """Return a new order hash."""
    return (0x0DE5 << 240 | next(_orders)).to_bytes(32)


def raw(contract: str, topics: list[bytes], data: bytes = b"") -> Event:
    """Return a log of undeclared shape: an unknown event, or a truncated known one."""
    return Event(contract, "raw", (topics, data))


def fill_v2(
    *,
    maker: bytes | None = None,
    taker: bytes | None = None,
    side: int = BUY,
    token: int = 1001,
    shares: int = 10_000_000,
    usd: int = 5_200_000,
    fee: int = 0,
    order_hash: bytes | None = None,
    contract: str = "exchange_v2",
) -> Event:
    """A V2 OrderFilled: `maker`, who owns the order, bought or sold `shares` of `token` for `usd`."""
    given, got = (usd, shares) if side == BUY else (shares, usd)
    owner, other = maker or wallet(1), taker or wallet(2)
    args = (order_hash or order(), owner, other, side, token, given, got, fee, ZERO, ZERO)
    return Event(contract, "OrderFilled", args)


def matched_v2(fill: Event) -> Event:
    """The OrdersMatched that follows the taker's own OrderFilled."""
    order_hash, owner, _, side, token, given, got, *_ = fill.args
    return Event(fill.contract, "OrdersMatched", (order_hash, owner, side, token, given, got))


def match_v2(makers: list[Event], *, fee: int = 0, order_hash: bytes | None = None) -> list[Event]:
    """A match as the exchange logs it: each maker's row, the taker's own (against the exchange), OrdersMatched.

    The taker's order is what the makers' add up to. It takes the other side of the first maker's token; a maker of
    another token has the complement, and the same side as the taker: both pay for a set that is minted, or share
    what a merged one brings.
    """
    contract = makers[0].contract
    token, side = makers[0].args[4], 1 - makers[0].args[3]
    shares = usd = 0
    for maker in makers:
        given, got = maker.args[5:7]
        size, value = (got, given) if maker.args[3] == BUY else (given, got)
        shares += size
        usd += value if maker.args[4] == token else size - value
    wallets = {"maker": makers[0].args[2], "taker": contracts.address(contract)}
    terms = {"side": side, "token": token, "shares": shares, "usd": usd, "fee": fee}
    own = fill_v2(**wallets, **terms, order_hash=order_hash, contract=contract)
    return [*makers, own, matched_v2(own)]


def fill_v1(
    *,
    maker: bytes | None = None,
    taker: bytes | None = None,
    side: int = BUY,
    token: int = 1001,
    shares: int = 10_000_000,
    usd: int = 5_200_000,
    fee: int = 0,
    order_hash: bytes | None = None,
    contract: str = "exchange_v1",
) -> Event:
    """A V1 OrderFilled of the same trade: asset 0 is the collateral."""
    assets = (0, token) if side == BUY else (token, 0)
    amounts = (usd, shares) if side == BUY else (shares, usd)
    args = (order_hash or order(), maker or wallet(1), taker or wallet(2), *assets, *amounts, fee)
    return Event(contract, "OrderFilled", args)


def matched_v1(fill: Event) -> Event:
    """The OrdersMatched of V1, after the taker's own OrderFilled."""
    order_hash, owner, _, *rest = fill.args
    return Event(fill.contract, "OrdersMatched", (order_hash, owner, *rest[:4]))


def split(stakeholder: bytes, condition: bytes, amount: int, *, outcomes: int = 2) -> Event:
    """Conditional Tokens: collateral became one share of each outcome."""
    return Event("conditional_tokens", "PositionSplit", _partitioned(stakeholder, condition, amount, outcomes))


def merge(stakeholder: bytes, condition: bytes, amount: int, *, outcomes: int = 2) -> Event:
    """Conditional Tokens: one share of each outcome became collateral again."""
    return Event("conditional_tokens", "PositionsMerge", _partitioned(stakeholder, condition, amount, outcomes))


def redemption(redeemer: bytes, condition: bytes, payout: int, *, index_sets: tuple[int, ...] = (1, 2)) -> Event:
    """Conditional Tokens: a resolved position was paid out."""
    args = (redeemer, contracts.address("usdc_e"), ZERO, condition, list(index_sets), payout)
    return Event("conditional_tokens", "PayoutRedemption", args)


def resolution(condition: bytes, payouts: tuple[int, ...], *, oracle: bytes | None = None) -> Event:
    """Conditional Tokens: the oracle reported the outcomes' numerators."""
    args = (condition, oracle or wallet(9), condition[::-1], len(payouts), list(payouts))
    return Event("conditional_tokens", "ConditionResolution", args)


def preparation(condition: bytes, *, outcomes: int = 2) -> Event:
    """Conditional Tokens: a condition came into being."""
    return Event("conditional_tokens", "ConditionPreparation", (condition, wallet(9), condition[::-1], outcomes))


def transfer(sender: bytes, receiver: bytes, token: int, amount: int, *, operator: bytes | None = None) -> Event:
    """Conditional Tokens: ERC-1155 TransferSingle."""
    return Event("conditional_tokens", "TransferSingle", (operator or sender, sender, receiver, token, amount))


def transfers(sender: bytes, receiver: bytes, amounts: dict[int, int], *, operator: bytes | None = None) -> Event:
    """Conditional Tokens: ERC-1155 TransferBatch."""
    args = (operator or sender, sender, receiver, list(amounts), list(amounts.values()))
    return Event("conditional_tokens", "TransferBatch", args)


def adapter_split(stakeholder: bytes, condition: bytes, amount: int) -> Event:
    """Neg Risk Adapter: PositionSplit."""
    return Event("neg_risk_adapter", "PositionSplit", (stakeholder, condition, amount))


def adapter_merge(stakeholder: bytes, condition: bytes, amount: int) -> Event:
    """Neg Risk Adapter: PositionsMerge."""
    return Event("neg_risk_adapter", "PositionsMerge", (stakeholder, condition, amount))


def conversion(stakeholder: bytes, market: bytes, index_set: int, amount: int) -> Event:
    """Neg Risk Adapter: NO shares of the questions in `index_set` became YES shares of the others."""
    return Event("neg_risk_adapter", "PositionsConverted", (stakeholder, market, index_set, amount))


def adapter_redemption(redeemer: bytes, condition: bytes, amounts: tuple[int, ...], payout: int) -> Event:
    """Neg Risk Adapter: PayoutRedemption."""
    return Event("neg_risk_adapter", "PayoutRedemption", (redeemer, condition, list(amounts), payout))


def collateral(sender: bytes, receiver: bytes, amount: int, *, contract: str = "pusd") -> Event:
    """ERC-20 Transfer of the collateral."""
    return Event(contract, "Transfer", (sender, receiver, amount))


def _partitioned(stakeholder: bytes, condition: bytes, amount: int, outcomes: int) -> tuple[Any, ...]:
    partition = [1 << slot for slot in range(outcomes)]
    return stakeholder, contracts.address("usdc_e"), ZERO, condition, partition, amount
