"""Decoder of raw logs to arrays: pure, deterministic, and nothing raises.

Known but unneeded events are ignored; unknown, malformed or impossible ones are refused with the raw log.
`Decoded.counts` counts each case, 0 included:

    logs, removed, duplicates, ignored, refused
    fills, matches, maker_rows_without_match
    zero_amounts, dust (below a hundredth of a share), impossible_prices    such fills are kept
    entries, unattributed                   of the ledger; unattributed ones name no wallet
    inner_steps, trading_transfers          of the exchange or the neg-risk adapter: covered by fills or its own event
    foreign_collateral                      positions in a token other than the exchange's
    fee_refunds                             a fee module refunded V1 shares
"""

from __future__ import annotations

import contextlib
from collections import Counter
from typing import TYPE_CHECKING, TypeVar

from upstream.chain import abi_words, ledger, moves
from upstream.chain.batch import DecodeBatch
from upstream.chain.contracts import Kind
from upstream.chain.decoded import Decoded
from upstream.chain.fills import fills
from upstream.chain.topics import BY_TOPIC, EventType

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from upstream.chain.contracts import Contract
    from upstream.chain.topics import EventSignature
    from upstream.chain.wire import RawLog

T = TypeVar("T")


def decode(logs: Sequence[RawLog], contracts: Sequence[Contract]) -> Decoded:
    """Decode a batch of whole transactions: all logs of the followed contracts in them, in any order."""
    batch = DecodeBatch(contracts)
    batch.counts["logs"] = len(logs)
    logs = _usable(batch, logs)
    by_type = _sorted_out(batch, logs)
    made = fills(
        batch,
        by_type.pop(EventType.FILL_V1, []),
        by_type.pop(EventType.FILL_V2, []),
        by_type.pop(EventType.MATCHED, []),
    )
    batch.counts["ignored"] += len(by_type.pop(EventType.NOTHING, []))
    resolutions = _each(batch, by_type.pop(EventType.RESOLUTION, []), lambda log: moves.resolution(batch, log))
    preparations = _each(batch, by_type.pop(EventType.PREPARATION, []), lambda log: moves.preparation(batch, log))
    moved = _moves(batch, by_type.pop(EventType.TRANSFER, []), EventType.TRANSFER)
    moved += _moves(batch, by_type.pop(EventType.TRANSFERS, []), EventType.TRANSFERS)
    done = [
        operation
        for event_type, those in by_type.items()
        for operation in _each(batch, those, lambda log, event_type=event_type: moves.operation(batch, log, event_type))  # type: ignore[misc]
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


def _usable(batch: DecodeBatch, logs: Sequence[RawLog]) -> Sequence[RawLog]:
    """Return the logs without removed ones; refuse those without a valid position."""
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


def _sorted_out(batch: DecodeBatch, logs: Iterable[RawLog]) -> dict[EventType, list[RawLog]]:
    """Group logs by event; refuse those of unknown contracts, and unknown events of known contracts."""
    by_topic: dict[str, list[RawLog]] = {}
    for log in logs:
        topics = log.topics
        topic = topics[0] if topics else ""
        try:
            by_topic[topic].append(log)
        except KeyError:
            by_topic[topic] = [log]
    by_type: dict[EventType, list[RawLog]] = {}
    for topic, those in by_topic.items():
        event = BY_TOPIC.get(topic) or BY_TOPIC.get(topic.lower())
        refusals = {
            address: reason
            for address in {log.address for log in those}
            if (reason := _strange(batch, address, event, topic)) is not None
        }
        good = [log for log in those if log.address not in refusals] if refusals else those
        if event is not None and good:
            by_type.setdefault(event.event_type, []).extend(good)
        for log in those if refusals else []:
            if log.address in refusals:
                batch.refuse(log, refusals[log.address])
    return by_type


def _strange(batch: DecodeBatch, address: str, event: EventSignature | None, topic: str) -> str | None:
    try:
        contract = batch.contracts[batch.places[address]]
    except KeyError:
        return "not one of the contracts"
    if event is not None and event.kind is contract.kind:
        return None
    layout = "its layout is not known" if contract.kind is Kind.EXCHANGE_V3 else "unknown event"
    return f"{contract.name}: {layout}: {topic:.66}"


def _moves(batch: DecodeBatch, logs: Sequence[RawLog], event_type: EventType) -> list[moves.TokenTransfer]:
    """Read transfers, except the exchange's own trading ones: those are most, so they are recognised by their text."""
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
        for move in _each(batch, left, lambda log: moves.move(batch, log, event_type))
        if move.items and move.operator not in batch.exchanges
    ]


def _each(batch: DecodeBatch, logs: Iterable[RawLog], read: Callable[[RawLog], T]) -> list[T]:
    """Read logs one by one; refuse those that cannot be read."""
    good = []
    for log in logs:
        try:
            good.append(read(log))
        except ValueError as fault:
            batch.refuse(log, fault)
    return good


def _blocks(batch: DecodeBatch, logs: Sequence[RawLog]) -> tuple[dict[int, bytes], dict[int, int], dict[int, int]]:
    """Return block hashes, times and log counts, as the logs state them."""
    counts = Counter([log.block_number for log in logs])
    hashes: dict[int, bytes] = {}
    times: dict[int, int] = {}
    for log in {log.block_number: log for log in logs}.values():
        number = batch.numbers[log.block_number]
        with contextlib.suppress(ValueError):
            hashes[number] = abi_words.from_hex_sized(log.block_hash, 32)
        with contextlib.suppress(ValueError):
            times[number] = batch.numbers[log.block_timestamp or ""]
    return hashes, times, {batch.numbers[text]: count for text, count in counts.items()}
