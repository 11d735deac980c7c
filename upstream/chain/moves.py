"""Single logs to what they say: movements of outcome tokens, operations on positions, conditions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from upstream.chain import words
from upstream.chain.decoded import Preparation, Resolution
from upstream.chain.topics import Says

if TYPE_CHECKING:
    from collections.abc import Callable

    from upstream.chain.batch import Batch
    from upstream.chain.decoded import Kind
    from upstream.chain.wire import RawLog

Items = tuple[tuple[bytes, int], ...]
"""Tokens, as words, and how many shares of each."""


class Place(NamedTuple):
    """Where a log stands."""

    block: int
    log_index: int
    tx_hash: bytes
    contract: int


class Move:
    """One ERC-1155 transfer, of one token or of several."""

    __slots__ = ("items", "operator", "place", "receiver", "sender", "used")

    def __init__(self, place: Place, operator: bytes, sender: bytes, receiver: bytes, items: Items) -> None:
        self.place = place
        self.operator = operator
        self.sender = sender
        self.receiver = receiver
        self.items = items
        self.used = False
        """Part of an operation, and so no transfer of its own."""


class Operation(NamedTuple):
    """A split, merge, conversion or redemption, as its event tells it."""

    place: Place
    kind: Kind
    holder: bytes
    condition_id: bytes
    amount: int
    by_adapter: bool
    """Told by the neg-risk adapter; otherwise by Conditional Tokens itself."""
    collateral: bytes | None
    detail: dict[str, Any]


def place(batch: Batch, log: RawLog) -> Place:
    """Say where a log stands."""
    return Place(
        batch.numbers[log.block_number],
        batch.numbers[log.log_index],
        words.sized(log.transaction_hash, 32),
        batch.places[log.address],
    )


def move(batch: Batch, log: RawLog, says: Says) -> Move:
    """Read TransferSingle or TransferBatch: operator, from, to | id(s), value(s). Items of no shares are left out."""
    operator, sender, receiver = (words.address(topic) for topic in _topics(log, 3))
    data = words.unhexed(log.data)
    if says is Says.TRANSFER:
        _whole(data, 2)
        pairs = [(words.word(data, 0), words.word(data, 1))]
    else:
        ids, values = words.array(data, 0), words.array(data, 1)
        if len(ids) != len(values):
            raise ValueError("as many values as ids are needed")
        pairs = list(zip(ids, values, strict=True))
    items = tuple((token, amount) for token, value in pairs if (amount := words.amount(value)))
    return Move(place(batch, log), operator, sender, receiver, items)


def operation(batch: Batch, log: RawLog, says: Says) -> Operation:
    """Read any of the events that change positions."""
    return _OPERATIONS[says](place(batch, log), log)


def preparation(batch: Batch, log: RawLog) -> Preparation:
    """Read ConditionPreparation: conditionId, oracle, questionId | outcomeSlotCount."""
    condition_id, oracle, question_id = _topics(log, 3)
    data = words.unhexed(log.data)
    _whole(data, 1)
    return Preparation(
        *place(batch, log), condition_id, words.address(oracle), question_id, words.amount(words.word(data, 0))
    )


def resolution(batch: Batch, log: RawLog) -> Resolution:
    """Read ConditionResolution: conditionId, oracle, questionId | outcomeSlotCount, payoutNumerators."""
    condition_id, oracle, question_id = _topics(log, 3)
    data = words.unhexed(log.data)
    outcomes = words.amount(words.word(data, 0))
    numerators = tuple(words.amount(each) for each in words.array(data, 1))
    if len(numerators) != outcomes or not any(numerators):
        raise ValueError(f"payouts {numerators} of {outcomes} outcomes")
    return Resolution(*place(batch, log), condition_id, words.address(oracle), question_id, numerators)


def _split(kind: Kind) -> Callable[[Place, RawLog], Operation]:
    def read(at: Place, log: RawLog) -> Operation:
        """Read stakeholder, parentCollectionId, conditionId | collateralToken, partition, amount."""
        holder, parent, condition_id = _topics(log, 3)
        data = words.unhexed(log.data)
        collateral, amount = words.address(words.word(data, 0)), words.amount(words.word(data, 2))
        partition = sorted(int.from_bytes(each) for each in words.array(data, 1))
        if any(parent):
            raise ValueError("of a position that is itself conditional")
        if len(partition) < 2 or partition != [1 << slot for slot in range(len(partition))]:
            raise ValueError(f"a partition that is not one of single outcomes: {partition}")
        return Operation(
            at, kind, words.address(holder), condition_id, amount, by_adapter=False, collateral=collateral, detail={}
        )

    return read


def _redemption(at: Place, log: RawLog) -> Operation:
    """Read redeemer, collateralToken, parentCollectionId | conditionId, indexSets, payout."""
    holder, collateral, parent = _topics(log, 3)
    data = words.unhexed(log.data)
    index_sets = [str(int.from_bytes(each)) for each in words.array(data, 1)]
    if any(parent):
        raise ValueError("of a position that is itself conditional")
    return Operation(
        at,
        "redeem",
        words.address(holder),
        words.word(data, 0),
        words.amount(words.word(data, 2)),
        by_adapter=False,
        collateral=words.address(collateral),
        detail={"index_sets": index_sets},
    )


def _adapter_split(kind: Kind) -> Callable[[Place, RawLog], Operation]:
    def read(at: Place, log: RawLog) -> Operation:
        """Read stakeholder, conditionId | amount."""
        holder, condition_id = _topics(log, 2)
        data = words.unhexed(log.data)
        _whole(data, 1)
        amount = words.amount(words.word(data, 0))
        return Operation(
            at, kind, words.address(holder), condition_id, amount, by_adapter=True, collateral=None, detail={}
        )

    return read


def _conversion(at: Place, log: RawLog) -> Operation:
    """Read stakeholder, marketId, indexSet | amount."""
    holder, market_id, index_set = _topics(log, 3)
    data = words.unhexed(log.data)
    _whole(data, 1)
    return Operation(
        at,
        "convert",
        words.address(holder),
        market_id,
        words.amount(words.word(data, 0)),
        by_adapter=True,
        collateral=None,
        detail={"index_set": str(int.from_bytes(index_set))},
    )


def _adapter_redemption(at: Place, log: RawLog) -> Operation:
    """Read redeemer, conditionId | amounts, payout."""
    holder, condition_id = _topics(log, 2)
    data = words.unhexed(log.data)
    amounts = [words.amount(each) for each in words.array(data, 0)]
    return Operation(
        at,
        "redeem",
        words.address(holder),
        condition_id,
        words.amount(words.word(data, 1)),
        by_adapter=True,
        collateral=None,
        detail={"amounts": amounts},
    )


_OPERATIONS: dict[Says, Callable[[Place, RawLog], Operation]] = {
    Says.SPLIT: _split("split"),
    Says.MERGE: _split("merge"),
    Says.REDEMPTION: _redemption,
    Says.ADAPTER_SPLIT: _adapter_split("split"),
    Says.ADAPTER_MERGE: _adapter_split("merge"),
    Says.ADAPTER_REDEMPTION: _adapter_redemption,
    Says.CONVERSION: _conversion,
}


def _topics(log: RawLog, count: int) -> list[bytes]:
    if len(log.topics) != count + 1:
        raise ValueError(f"{len(log.topics)} topics instead of {count + 1}")
    return [words.sized(topic, words.WORD) for topic in log.topics[1:]]


def _whole(data: bytes, count: int) -> None:
    if len(data) != count * words.WORD:
        raise ValueError(f"{len(data)} bytes of data instead of {count * words.WORD}")
