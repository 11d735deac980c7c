"""Random histories by seed: events on the chain and faults of the endpoints, step by step.

    for step in scenario.random_steps(seed):
        scenario.play(step, chain, faulty_rpcs)
        follow()                      # the code under test polls once, or several times
    scenario.clear_faults(faulty_rpcs)
    follow_until_done()
    assert rows() == rows_of_an_independent_reading(chain.logs())

The same seed generates the same steps, so that a failing one can be rerun by its number. The chain holds every kind
of event, odd ones too: only dust, prices above one, unknown logs, truncated known ones.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tests.chain import contracts, events, refusals

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.chain.driver import Chain, Transaction
    from tests.chain.events import Event
    from tests.chain.faulty_rpc import FaultyRpc

WALLETS = 12
TOKENS = 8
FINALITY = (None, 64, 32, 8, 3)  # None: the node's own, which is 64
# The node may not revert below a block it reported as final.
DEEPEST = 64


@dataclass(frozen=True)
class Step:
    """One step: `emit`, `mine`, `reorg`, `swap`, `fail`, `set`, `freeze` or `clear`."""

    kind: str
    blocks: tuple[tuple[Any, ...], ...] = ()
    depth: int = 0
    endpoint: int = 0
    fault: dict[str, Any] = field(default_factory=dict)


def random_steps(seed: int, *, endpoints: int = 2, steps: int = 14) -> list[Step]:
    """Return the steps of a scenario; the first one makes a chain of 1 to 80 blocks."""
    rng = random.Random(seed)
    finality = rng.choice(FINALITY)
    told = [Step("set", endpoint=n, fault={"finality": finality}) for n in range(endpoints)]
    head = rng.choice([1, 3, 10, 30, 80])
    told.append(Step("emit", blocks=_blocks(rng, head)))
    final = 0  # a shorter branch does not lower it
    for _ in range(steps):
        final = max(final, head - min(finality or DEEPEST, DEEPEST))
        step = _step(rng, head, head - final, endpoints)
        head += len(step.blocks) - (step.depth if step.kind == "reorg" else 0)
        told.append(step)
    return told


def play(step: Step, chain: Chain, faulty_rpcs: Sequence[FaultyRpc] = ()) -> None:
    """Run a step."""
    match step.kind:
        case "emit" | "mine":
            chain.extend(step.blocks)
        case "reorg":
            chain.reorg(step.depth, step.blocks)
        case "swap":
            chain.swap(step.depth)
        case _ if step.endpoint < len(faulty_rpcs):
            _set_fault(step, faulty_rpcs[step.endpoint])


def clear_faults(faulty_rpcs: Sequence[FaultyRpc]) -> None:
    """Clear all faults, keeping each endpoint's finality."""
    for faulty_rpc in faulty_rpcs:
        finality = faulty_rpc.finality
        faulty_rpc.clear()
        faulty_rpc.finality = finality


def transaction(rng: random.Random) -> list[Event]:
    """Return one transaction: mostly matches, now and then anything else."""
    return [event for _ in range(rng.choice([1, 1, 1, 2])) for event in rng.choices(KINDS, WEIGHTS)[0](rng)]


def _step(rng: random.Random, head: int, deepest: int, endpoints: int) -> Step:
    endpoint = rng.randrange(endpoints)
    match rng.choices(["emit", "mine", "reorg", "swap", "fail", "set", "freeze", "clear"], [8, 3, 6, 1, 6, 5, 1, 3])[0]:
        case "mine":
            return Step("mine", blocks=((),) * rng.randint(1, 5))
        case "reorg" if head > 1 and deepest:
            depth = min(rng.choice([1, 1, 2, 3, 5, 13, 64]), deepest, head)
            length = max(depth + rng.choice([-1, 0, 0, 1, 2]), 1)
            return Step("reorg", depth=depth, blocks=_blocks(rng, length))
        case "swap" if head > 1 and deepest:
            return Step("swap", depth=min(rng.choice([1, 2, 5]), deepest, head))
        case "fail":
            methods = rng.choice([None, ("eth_getLogs",), ("eth_getLogs",), ("eth_getBlockByNumber",)])
            fault = {"kind": rng.choice(KINDS_OF_FAILURE), "methods": methods, "times": rng.choice([1, 1, 2, 4])}
            return Step("fail", endpoint=endpoint, fault=fault)
        case "set":
            return Step("set", endpoint=endpoint, fault=rng.choice(SETTINGS))
        case "freeze":
            return Step("freeze", endpoint=endpoint)
        case "clear":
            return Step("clear", endpoint=endpoint)
    return Step("emit", blocks=_blocks(rng, rng.choice([1, 1, 2, 5])))


def _set_fault(step: Step, faulty_rpc: FaultyRpc) -> None:
    match step.kind:
        case "fail":
            faulty_rpc.fail(**step.fault)
        case "set":
            for name, value in step.fault.items():
                setattr(faulty_rpc, name, value)
        case "freeze":
            faulty_rpc.freeze()
        case "clear":
            clear_faults([faulty_rpc])


# Silence and a quarter of a gigabyte cost seconds each: separate tests cover them.
KINDS_OF_FAILURE = tuple(kind for kind in refusals.ALL if kind not in {"silence", "oversized"})
SETTINGS = (
    {"lag": 1},
    {"lag": 4},
    {"lag": 12},
    {"lag": 3, "beyond_head": "refuse"},
    {"max_blocks": 5, "limit_by": "range_limited"},
    {"max_blocks": 2, "limit_by": "range_too_large"},
    {"max_logs": 12, "limit_by": "too_many_results"},
    {"max_logs": 30, "limit_by": "response_size"},
    {"missing": 0.1},
    {"timestamps": False},
)


def _blocks(rng: random.Random, count: int) -> tuple[tuple[Transaction, ...], ...]:
    return tuple(tuple(transaction(rng) for _ in range(rng.choice([0, 0, 1, 1, 2, 3]))) for _ in range(count))


def _wallet(rng: random.Random) -> bytes:
    return events.wallet(min(int(rng.paretovariate(1)), WALLETS))


def _token(rng: random.Random) -> int:
    return 1000 + rng.randrange(TOKENS)


def _condition(token: int) -> bytes:
    return events.word(token // 2)


def _amounts(rng: random.Random) -> dict[str, int]:
    """Return shares and their value: mostly a fair trade, sometimes an odd one."""
    shares = rng.choice([1, 999_999, 5_000_000, 10_000_000, 123_456_789, 10**12])
    odd = rng.random()
    if odd < 0.9:
        return {"shares": shares, "usd": shares * rng.randint(1, 999) // 1000}
    if odd < 0.96:
        return {"shares": shares, "usd": shares * 2}
    return rng.choice([{"shares": 0, "usd": 5}, {"shares": 5, "usd": 0}, {"shares": 0, "usd": 0}])


def _fee(rng: random.Random) -> int:
    return rng.choice([0, 0, 1, 104_830])


def _v2_match(rng: random.Random) -> list[Event]:
    contract = rng.choice(["exchange_v2", "exchange_v2", "neg_risk_exchange_v2"])
    taker, token, side = _wallet(rng), _token(rng), rng.choice([events.BUY, events.SELL])
    makers = []
    for _ in range(rng.choice([1, 1, 2, 4])):
        complement = bool(makers) and rng.random() < 0.3  # a mint or a merge: the other token, the same side
        terms = {"token": token ^ 1, "side": 1 - side} if complement else {"token": token, "side": side}
        order = {"maker": _wallet(rng), "taker": taker, "fee": _fee(rng), "contract": contract}
        makers.append(events.fill_v2(order_hash=_order(rng), **order, **terms, **_fair(rng)))
    return events.match_v2(makers, order_hash=_order(rng), fee=_fee(rng))


def _fair(rng: random.Random) -> dict[str, int]:
    amounts = _amounts(rng)
    return {"shares": amounts["shares"], "usd": min(amounts.values())}


def _order(rng: random.Random) -> bytes:
    return rng.randbytes(32)


def _v2_plain(rng: random.Random) -> list[Event]:
    side = rng.choice([events.BUY, events.SELL])
    parties = {"maker": _wallet(rng), "taker": _wallet(rng)}
    return [events.fill_v2(**parties, side=side, token=_token(rng), order_hash=_order(rng), **_amounts(rng))]


def _v1_match(rng: random.Random) -> list[Event]:
    contract = rng.choice(["exchange_v1", "neg_risk_exchange_v1"])
    taker, token, side = _wallet(rng), _token(rng), rng.choice([events.BUY, events.SELL])
    terms = {"token": token, "contract": contract, **_fair(rng)}
    maker = events.fill_v1(maker=_wallet(rng), taker=taker, side=side, order_hash=_order(rng), **terms)
    owner = {"maker": taker, "taker": contracts.address(contract), "side": 1 - side}
    own = events.fill_v1(**owner, order_hash=_order(rng), fee=_fee(rng), **terms)
    return [maker, own, events.matched_v1(own)]


def _ledger(rng: random.Random) -> list[Event]:
    owner, token, amount = _wallet(rng), _token(rng), rng.choice([1, 2_000_000, 77_000_001])
    condition = _condition(token)
    both = {token & ~1: amount, token | 1: amount}
    zero = bytes(20)
    match rng.randrange(9):
        case 0:
            return [events.transfers(zero, owner, both), events.split(owner, condition, amount)]
        case 1:
            return [events.transfers(owner, zero, both), events.merge(owner, condition, amount)]
        case 2:
            return [events.redemption(owner, condition, amount)]
        case 3:
            return [events.adapter_split(owner, condition, amount)]
        case 4:
            return [events.adapter_merge(owner, condition, amount)]
        case 5:
            return [events.conversion(owner, condition, rng.randint(1, 7), amount)]
        case 6:
            return [events.adapter_redemption(owner, condition, (amount, 0), amount)]
        case 7:
            return [events.resolution(condition, rng.choice([(1, 0), (0, 1), (1, 1)]))]
    return [events.transfer(owner, _wallet(rng), token, amount)]


def _odd(rng: random.Random) -> list[Event]:
    filled = bytes.fromhex("d543adfd945773f1a62f74f0ee55a5e3b9b1a28262980ba90b1a89f2ea84d8ee")
    match rng.randrange(5):
        case 0:
            return [events.raw("exchange_v3", [rng.randbytes(32)], rng.randbytes(64))]
        case 1:
            return [events.raw("exchange_v2", [filled, events.word(1)], rng.randbytes(40))]
        case 2:
            return [events.raw("conditional_tokens", [], b"")]
        case 3:
            return [events.fill_v2(contract="unknown", order_hash=_order(rng))]
    return [events.collateral(_wallet(rng), _wallet(rng), 5), events.preparation(events.word(rng.randrange(9)))]


KINDS = (_v2_match, _v2_plain, _v1_match, _ledger, _odd)
WEIGHTS = (10, 2, 2, 5, 1)
