"""Position changes other than fills, attributed from ERC-1155 transfers.

The token contract logs every transfer of outcome tokens; the events of splits, merges, conversions and redemptions
give its purpose. Within one transaction:

- The exchange's own steps for a match (mints, merges, transfers) are in the fills, and left out here.
- Conditional Tokens' events in the neg-risk adapter's name are its inner steps: its own event covers them.
- An operation in a wallet's own name is attributed to that wallet.
- An operation in a collateral adapter's name is attributed to the wallet that sent the adapter exactly these tokens
  just before, or received exactly these just after. Where no transfer shows that, `wallet` is None.
- A transfer that belongs to no operation is a ledger entry of its own. So the shares of fills and entries add up to
  the token contract's balances, whatever could be attributed.
"""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

from upstream.chain.batch import ZERO
from upstream.chain.decoded import NO_TOKEN, Entry

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from upstream.chain.batch import DecodeBatch
    from upstream.chain.moves import Items, PositionOperation, TokenTransfer


def entries(batch: DecodeBatch, moves: Sequence[TokenTransfer], operations: Sequence[PositionOperation]) -> list[Entry]:
    """Return the ledger entries of a batch of whole transactions."""
    by_tx: dict[tuple[int, bytes], tuple[list[TokenTransfer], list[PositionOperation]]] = {}
    for move in moves:
        by_tx.setdefault((move.log_position.block, move.log_position.tx_hash), ([], []))[0].append(move)
    for operation in operations:
        by_tx.setdefault((operation.log_position.block, operation.log_position.tx_hash), ([], []))[1].append(operation)
    made: list[Entry] = []
    for of_tx, done in by_tx.values():
        of_tx.sort(key=lambda move: move.log_position)
        done.sort(key=lambda operation: operation.log_position)
        made += _operations(batch, of_tx, done)
        made += _transfers(batch, of_tx)
    made.sort(key=lambda entry: entry[:3])
    unique = [next(same) for _, same in groupby(made, key=lambda entry: entry[:3])]
    batch.counts["duplicates"] += len(made) - len(unique)
    batch.counts["entries"] += len(unique)
    return unique


def _operations(batch: DecodeBatch, moves: list[TokenTransfer], operations: list[PositionOperation]) -> Iterator[Entry]:
    done_until: dict[bytes, int] = {}
    for operation in operations:
        holder = operation.holder
        if holder in batch.exchanges or (holder in batch.adapters and not operation.by_adapter):
            batch.counts["inner_steps"] += 1
            continue
        own = list(_own(batch, operation, moves, done_until.get(holder, -1)))
        done_until[holder] = operation.log_position.log_index
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


def _own(
    batch: DecodeBatch, operation: PositionOperation, moves: list[TokenTransfer], after: int
) -> Iterator[TokenTransfer]:
    """Yield the transfers between the operation's holder and the contracts that make up the operation."""
    holder, amount = operation.holder, operation.amount
    window = [m for m in moves if not m.used and after < m.log_position.log_index < operation.log_position.log_index]
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


def _beneficiary(
    holder: bytes, operation: PositionOperation, own: list[TokenTransfer], moves: list[TokenTransfer]
) -> bytes | None:
    """Return whom an adapter acted for: the sender of the exact tokens before, or their receiver after."""
    given = _sum(m for m in own if m.sender == holder)
    got = _sum(m for m in own if m.receiver == holder)
    begun = min((m.log_position.log_index for m in own if m.sender == holder), default=operation.log_position.log_index)
    before = [
        m
        for m in moves
        if not m.used and m.receiver == holder and m.log_position.log_index < begun and given and _sum([m]) == given
    ]
    after = [
        m
        for m in moves
        if not m.used
        and m.sender == holder
        and m.log_position.log_index > operation.log_position.log_index
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


def _entry(operation: PositionOperation, wallet: bytes | None, holder: bytes, own: list[TokenTransfer]) -> Entry:
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
    at = operation.log_position
    return Entry(
        *(at.block, at.log_index, 0, operation.kind, wallet, None, operation.condition_id),
        *(NO_TOKEN, operation.amount, at.tx_hash, at.contract, detail),
    )


def _transfers(batch: DecodeBatch, moves: list[TokenTransfer]) -> Iterator[Entry]:
    for move in moves:
        ends = {move.sender, move.receiver}
        if move.used or len(ends) == 1 or ends & batch.exchanges:
            continue
        if ends & batch.fee_modules:
            batch.counts["fee_refunds"] += 1
            continue
        at = move.log_position
        for number, (token, shares) in enumerate(move.items):
            sides = ((move.receiver, move.sender, shares), (move.sender, move.receiver, -shares))
            for side, (wallet, other, change) in enumerate(sides):
                if wallet not in batch.nobody:
                    yield Entry(
                        *(at.block, at.log_index, 2 * number + side, "transfer", wallet, other, None),
                        *(batch.tokens[token], change, at.tx_hash, at.contract, {}),
                    )


def _all(move: TokenTransfer, amount: int) -> bool:
    return all(each == amount for _, each in move.items)


def _last(moves: Iterable[TokenTransfer]) -> list[TokenTransfer]:
    return list(moves)[-1:]


def _sum(moves: Iterable[TokenTransfer]) -> Items:
    total: dict[bytes, int] = {}
    for move in moves:
        for token, shares in move.items:
            total[token] = total.get(token, 0) + shares
    return tuple(sorted(total.items()))
