"""What moved positions besides fills, and whose it was.

The token contract logs every movement of outcome tokens; the events of splits, merges, conversions and redemptions say
what a movement was for. Within one transaction:

- What the exchange does for a match (its own mints and merges, its transfers) is in the fills, and left out here.
- Conditional Tokens' events in the name of the neg-risk adapter are its inner steps: its own event tells them.
- An operation in a wallet's own name is that wallet's.
- An operation in the name of a collateral adapter is that of the wallet which handed the adapter exactly these tokens
  just before, or was handed exactly these just after. Where no transfer shows that, it is nobody's (`wallet` None).
- A movement that belongs to no operation is a transfer. So the shares of fills and entries add up to the balance that
  the token contract keeps, whatever could be attributed.
"""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

from upstream.chain.batch import ZERO
from upstream.chain.decoded import NO_TOKEN, Entry

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from upstream.chain.batch import Batch
    from upstream.chain.moves import Items, Move, Operation


def entries(batch: Batch, moves: Sequence[Move], operations: Sequence[Operation]) -> list[Entry]:
    """Work out the ledger of a batch of whole transactions."""
    by_tx: dict[tuple[int, bytes], tuple[list[Move], list[Operation]]] = {}
    for move in moves:
        by_tx.setdefault((move.place.block, move.place.tx_hash), ([], []))[0].append(move)
    for operation in operations:
        by_tx.setdefault((operation.place.block, operation.place.tx_hash), ([], []))[1].append(operation)
    made: list[Entry] = []
    for of_tx, done in by_tx.values():
        of_tx.sort(key=lambda move: move.place)
        done.sort(key=lambda operation: operation.place)
        made += _operations(batch, of_tx, done)
        made += _transfers(batch, of_tx)
    made.sort(key=lambda entry: entry[:3])
    unique = [next(same) for _, same in groupby(made, key=lambda entry: entry[:3])]
    batch.counts["duplicates"] += len(made) - len(unique)
    batch.counts["entries"] += len(unique)
    return unique


def _operations(batch: Batch, moves: list[Move], operations: list[Operation]) -> Iterator[Entry]:
    done_until: dict[bytes, int] = {}
    for operation in operations:
        holder = operation.holder
        if holder in batch.exchanges or (holder in batch.adapters and not operation.by_adapter):
            batch.counts["inner_steps"] += 1
            continue
        own = list(_own(batch, operation, moves, done_until.get(holder, -1)))
        done_until[holder] = operation.place.log_index
        for move in own:
            move.used = True
        if operation.collateral is not None and batch.collaterals and operation.collateral not in batch.collaterals:
            batch.counts["foreign_collateral"] += 1
            continue
        wallet: bytes | None = holder
        if holder in batch.between:
            wallet = _beneficiary(holder, operation, own, moves)
            if wallet in batch.exchanges:
                batch.counts["inner_steps"] += 1
                continue
            if wallet is None or wallet in batch.nobody:
                batch.counts["unattributed"] += 1
                wallet = None
        yield _entry(operation, wallet, holder, own)


def _own(batch: Batch, operation: Operation, moves: list[Move], after: int) -> Iterator[Move]:
    """Find the movements between the operation's holder and the contracts below, that the operation consists of."""
    holder, amount = operation.holder, operation.amount
    window = [m for m in moves if not m.used and after < m.place.log_index < operation.place.log_index]
    below = batch.adapters if operation.by_adapter else frozenset({ZERO})
    given = [m for m in window if m.sender == holder]
    got = [m for m in window if m.receiver == holder and m.sender in below]
    if operation.kind == "split":
        yield from _last(m for m in got if len(m.items) > 1 and _all(m, amount))
    elif operation.kind == "merge":
        yield from _last(m for m in given if m.receiver in below and len(m.items) > 1 and _all(m, amount))
    elif operation.kind == "redeem" and operation.by_adapter:
        amounts = [each for each in operation.detail["amounts"] if each]
        yield from _last(m for m in given if m.receiver in below and [each for _, each in m.items] == amounts)
    elif operation.kind == "redeem":
        yield from (m for m in given if m.receiver == ZERO)
    else:
        outcomes = int(operation.detail["index_set"]).bit_count()
        burnt = (m for m in given if m.receiver in batch.burns and len(m.items) == outcomes and _all(m, amount))
        yield from _last(burnt)
        yield from _last(m for m in got if m.items and m.items[0][1] <= amount and _all(m, m.items[0][1]))


def _beneficiary(holder: bytes, operation: Operation, own: list[Move], moves: list[Move]) -> bytes | None:
    """Tell for whom an adapter acted: who gave it the very tokens before, or got the very tokens after."""
    given = _sum(m for m in own if m.sender == holder)
    got = _sum(m for m in own if m.receiver == holder)
    begun = min((m.place.log_index for m in own if m.sender == holder), default=operation.place.log_index)
    before = [
        m
        for m in moves
        if not m.used and m.receiver == holder and m.place.log_index < begun and given and _sum([m]) == given
    ]
    after = [
        m
        for m in moves
        if not m.used
        and m.sender == holder
        and m.place.log_index > operation.place.log_index
        and got
        and _sum([m]) == got
    ]
    for paid in before[-1:] if given else [None]:
        for taken in after[:1] if got else [None]:
            parties = {m.sender for m in (paid,) if m} | {m.receiver for m in (taken,) if m}
            if len(parties) == 1:
                for m in (paid, taken):
                    if m:
                        m.used = True
                return parties.pop()
    return None


def _entry(operation: Operation, wallet: bytes | None, holder: bytes, own: list[Move]) -> Entry:
    detail = dict(operation.detail)
    tokens = [
        [str(int.from_bytes(token)), shares if move.receiver == holder else -shares]
        for move in own
        for token, shares in move.items
    ]
    if tokens:
        detail["tokens"] = tokens
    if wallet != holder:
        detail["through"] = f"0x{holder.hex()}"
    at = operation.place
    return Entry(
        *(at.block, at.log_index, 0, operation.kind, wallet, None, operation.condition_id),
        *(NO_TOKEN, operation.amount, at.tx_hash, at.contract, detail),
    )


def _transfers(batch: Batch, moves: list[Move]) -> Iterator[Entry]:
    for move in moves:
        ends = {move.sender, move.receiver}
        if move.used or len(ends) == 1 or ends & batch.exchanges:
            continue
        if ends & batch.fee_modules:
            batch.counts["fee_refunds"] += 1
            continue
        at = move.place
        for number, (token, shares) in enumerate(move.items):
            sides = ((move.receiver, move.sender, shares), (move.sender, move.receiver, -shares))
            for side, (wallet, other, change) in enumerate(sides):
                if wallet not in batch.nobody:
                    yield Entry(
                        *(at.block, at.log_index, 2 * number + side, "transfer", wallet, other, None),
                        *(batch.tokens[token], change, at.tx_hash, at.contract, {}),
                    )


def _all(move: Move, amount: int) -> bool:
    return all(each == amount for _, each in move.items)


def _last(moves: Iterable[Move]) -> list[Move]:
    return list(moves)[-1:]


def _sum(moves: Iterable[Move]) -> Items:
    total: dict[bytes, int] = {}
    for move in moves:
        for token, shares in move.items:
            total[token] = total.get(token, 0) + shares
    return tuple(sorted(total.items()))
