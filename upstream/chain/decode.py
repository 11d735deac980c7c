"""Raw logs to arrays: pure, the same for the same logs, and nothing raises.

Contracts' events that are known and unneeded are ignored; what is unknown, malformed or impossible is refused with the
raw log. `Decoded.counts` says how often what was met, 0 where it was not:

    logs, removed, duplicates, ignored, refused
    fills, matches, maker_rows_without_match
    zero_amounts, dust (below a hundredth of a share), impossible_prices    such fills are kept
    entries, unattributed                   of the ledger; the latter name no wallet
    inner_steps, trading_transfers          of the exchange or the neg-risk adapter: told by the fills, or its own event
    foreign_collateral                      positions in another token than the exchange's
    fee_refunds                             a fee module gave V1 shares back
"""

from __future__ import annotations

import contextlib
from collections import Counter
from typing import TYPE_CHECKING, TypeVar

from upstream.chain import ledger, moves, words
from upstream.chain.batch import Batch
from upstream.chain.contracts import Kind
from upstream.chain.decoded import Decoded
from upstream.chain.fills import fills
from upstream.chain.topics import BY_TOPIC, Says

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from upstream.chain.contracts import Contract
    from upstream.chain.topics import Event
    from upstream.chain.wire import RawLog

T = TypeVar("T")


def decode(logs: Sequence[RawLog], contracts: Sequence[Contract]) -> Decoded:
    """Decode a batch of whole transactions: all logs that the followed contracts made in them, in any order."""
    batch = Batch(contracts)
    batch.counts["logs"] = len(logs)
    logs = _usable(batch, logs)
    said = _sorted_out(batch, logs)
    made = fills(batch, said.pop(Says.FILL_V1, []), said.pop(Says.FILL_V2, []), said.pop(Says.MATCHED, []))
    batch.counts["ignored"] += len(said.pop(Says.NOTHING, []))
    resolutions = _each(batch, said.pop(Says.RESOLUTION, []), lambda log: moves.resolution(batch, log))
    preparations = _each(batch, said.pop(Says.PREPARATION, []), lambda log: moves.preparation(batch, log))
    moved = _moves(batch, said.pop(Says.TRANSFER, []), Says.TRANSFER)
    moved += _moves(batch, said.pop(Says.TRANSFERS, []), Says.TRANSFERS)
    done = [
        operation
        for says, those in said.items()
        for operation in _each(batch, those, lambda log, says=says: moves.operation(batch, log, says))  # type: ignore[misc]
    ]
    entries = ledger.entries(batch, moved, done)
    hashes, times, block_logs = _blocks(batch, logs)
    return Decoded(
        fills=made,
        tokens=batch.tokens.text(),
        ledger=entries,
        resolutions=sorted(dict.fromkeys(resolutions)),
        preparations=sorted(dict.fromkeys(preparations)),
        refused=batch.refused,
        block_hashes=hashes,
        block_times=times,
        block_logs=block_logs,
        counts=dict(batch.counts),
    )


def _usable(batch: Batch, logs: Sequence[RawLog]) -> Sequence[RawLog]:
    """Leave out what was removed, and refuse what says not where it stands."""
    indices = {log.log_index for log in logs}
    try:
        for text in indices.union([log.block_number for log in logs]):
            batch.numbers[text]
        strange = max((batch.numbers[text] for text in indices), default=0) >= 1 << 31
    except ValueError:
        strange = True
    if not strange and not any([log.removed for log in logs]):  # noqa: C419 (a list is faster, and this is every log)
        return logs
    good = []
    for log in logs:
        if log.removed:
            batch.counts["removed"] += 1
            continue
        try:
            batch.numbers[log.block_number]
            if batch.numbers[log.log_index] >= 1 << 31:
                raise ValueError(f"not a place in a block: {log.log_index}")  # noqa: TRY301
        except ValueError as fault:
            batch.refuse(log, fault)
        else:
            good.append(log)
    return good


def _sorted_out(batch: Batch, logs: Iterable[RawLog]) -> dict[Says, list[RawLog]]:
    """Group logs by what they say; refuse those of unknown contracts, and unknown ones of known contracts."""
    by_topic: dict[str, list[RawLog]] = {}
    for log in logs:
        topics = log.topics
        topic = topics[0] if topics else ""
        try:
            by_topic[topic].append(log)
        except KeyError:
            by_topic[topic] = [log]
    said: dict[Says, list[RawLog]] = {}
    for topic, those in by_topic.items():
        event = BY_TOPIC.get(topic) or BY_TOPIC.get(topic.lower())
        strangers = {
            address: reason
            for address in {log.address for log in those}
            if (reason := _strange(batch, address, event, topic)) is not None
        }
        good = [log for log in those if log.address not in strangers] if strangers else those
        if event is not None and good:
            said.setdefault(event.says, []).extend(good)
        for log in those if strangers else []:
            if log.address in strangers:
                batch.refuse(log, strangers[log.address])
    return said


def _strange(batch: Batch, address: str, event: Event | None, topic: str) -> str | None:
    try:
        contract = batch.contracts[batch.places[address]]
    except KeyError:
        return "not one of the contracts"
    if event is not None and event.kind is contract.kind:
        return None
    layout = "its layout is not known" if contract.kind is Kind.EXCHANGE_V3 else "unknown event"
    return f"{contract.name}: {layout}: {topic:.66}"


def _moves(batch: Batch, logs: Sequence[RawLog], says: Says) -> list[moves.Move]:
    """Read transfers, but for those that are the exchange's trading: most, and so they are told by their text."""
    exchanges, between = (
        {f"0x{address.hex():0>64}" for address in addresses} for addresses in (batch.exchanges, batch.between)
    )
    left = []
    for log in logs:
        topics = log.topics
        if len(topics) == 4 and (
            topics[1] in exchanges
            or (topics[2] in exchanges and topics[3] not in between)
            or (topics[3] in exchanges and topics[2] not in between)
        ):
            continue
        left.append(log)
    batch.counts["trading_transfers"] += len(logs) - len(left)
    return [
        move
        for move in _each(batch, left, lambda log: moves.move(batch, log, says))
        if move.items and move.operator not in batch.exchanges
    ]


def _each(batch: Batch, logs: Iterable[RawLog], read: Callable[[RawLog], T]) -> list[T]:
    """Read one by one, and refuse what cannot be."""
    good = []
    for log in logs:
        try:
            good.append(read(log))
        except ValueError as fault:
            batch.refuse(log, fault)
    return good


def _blocks(batch: Batch, logs: Sequence[RawLog]) -> tuple[dict[int, bytes], dict[int, int], dict[int, int]]:
    """What the logs say of their blocks."""
    counts = Counter([log.block_number for log in logs])
    hashes: dict[int, bytes] = {}
    times: dict[int, int] = {}
    for log in {log.block_number: log for log in logs}.values():
        number = batch.numbers[log.block_number]
        with contextlib.suppress(ValueError):
            hashes[number] = words.sized(log.block_hash, 32)
        with contextlib.suppress(ValueError):
            times[number] = batch.numbers[log.block_timestamp or ""]
    return hashes, times, {batch.numbers[text]: count for text, count in counts.items()}
