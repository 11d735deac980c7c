"""Parser of single logs: transfers of outcome tokens, operations on positions, conditions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from upstream.chain import abi_words
from upstream.chain.decoded import Preparation, Resolution
from upstream.chain.topics import EventType

if TYPE_CHECKING:
    from collections.abc import Callable

    from upstream.chain.batch import DecodeBatch
    from upstream.chain.decoded import Kind
    from upstream.chain.wire import RawLog

Items = tuple[tuple[bytes, int], ...]
"""Tokens, as words, and shares of each."""


class LogPosition(NamedTuple):
    """Position of a log in the chain."""

    block: int
    log_index: int
    tx_hash: bytes
    contract: int


class TokenTransfer:
    """One ERC-1155 transfer, of one token or several."""

    __slots__ = ("items", "log_position", "operator", "receiver", "sender", "used")

    def __init__(
        self, log_position: LogPosition, operator: bytes, sender: bytes, receiver: bytes, items: Items
    ) -> None:
        self.log_position = log_position
        self.operator = operator
        self.sender = sender
        self.receiver = receiver
        self.items = items
        self.used = False
        """Part of an operation, so not a ledger entry of its own."""


class PositionOperation(NamedTuple):
    """A split, merge, conversion or redemption, from its event."""

    log_position: LogPosition
    kind: Kind
    holder: bytes
    condition_id: bytes
    amount: int
    by_adapter: bool
    """Logged by the neg-risk adapter; otherwise by Conditional Tokens itself."""
    collateral: bytes | None
    detail: dict[str, Any]


def log_position(batch: DecodeBatch, log: RawLog) -> LogPosition:
    """Return the position of a log."""
    return LogPosition(
        batch.numbers[log.block_number],
        batch.numbers[log.log_index],
        abi_words.from_hex_sized(log.transaction_hash, 32),
        batch.places[log.address],
    )


def move(batch: DecodeBatch, log: RawLog, event_type: EventType) -> TokenTransfer:
    """Parse TransferSingle or TransferBatch: operator, from, to | id(s), value(s). Items of 0 shares are left out."""
    operator, sender, receiver = (abi_words.address(topic) for topic in _topics(log, 3))
    data = abi_words.from_hex(log.data)
    if event_type is EventType.TRANSFER:
        _whole(data, 2)
        pairs = [(abi_words.word(data, 0), abi_words.word(data, 1))]
    else:
        ids, values = abi_words.array(data, 0), abi_words.array(data, 1)
        if len(ids) != len(values):
            raise ValueError("as many values as ids are needed")
        pairs = list(zip(ids, values, strict=True))
    items = tuple((token, amount) for token, value in pairs if (amount := abi_words.amount(value)))
    return TokenTransfer(log_position(batch, log), operator, sender, receiver, items)


def operation(batch: DecodeBatch, log: RawLog, event_type: EventType) -> PositionOperation:
    """Parse any of the events that change positions."""
    return _OPERATIONS[event_type](log_position(batch, log), log)


def preparation(batch: DecodeBatch, log: RawLog) -> Preparation:
    """Parse ConditionPreparation: conditionId, oracle, questionId | outcomeSlotCount."""
    condition_id, oracle, question_id = _topics(log, 3)
    data = abi_words.from_hex(log.data)
    _whole(data, 1)
    return Preparation(
        *log_position(batch, log),
        condition_id,
        abi_words.address(oracle),
        question_id,
        abi_words.amount(abi_words.word(data, 0)),
    )


def resolution(batch: DecodeBatch, log: RawLog) -> Resolution:
    """Parse ConditionResolution: conditionId, oracle, questionId | outcomeSlotCount, payoutNumerators."""
    condition_id, oracle, question_id = _topics(log, 3)
    data = abi_words.from_hex(log.data)
    outcomes = abi_words.amount(abi_words.word(data, 0))
    numerators = tuple(abi_words.amount(each) for each in abi_words.array(data, 1))
    if len(numerators) != outcomes or not any(numerators):
        raise ValueError(f"payouts {numerators} of {outcomes} outcomes")
    return Resolution(*log_position(batch, log), condition_id, abi_words.address(oracle), question_id, numerators)


def _split(kind: Kind) -> Callable[[LogPosition, RawLog], PositionOperation]:
    def read(at: LogPosition, log: RawLog) -> PositionOperation:
        """Parse stakeholder, parentCollectionId, conditionId | collateralToken, partition, amount."""
        holder, parent, condition_id = _topics(log, 3)
        data = abi_words.from_hex(log.data)
        collateral, amount = abi_words.address(abi_words.word(data, 0)), abi_words.amount(abi_words.word(data, 2))
        partition = sorted(int.from_bytes(each) for each in abi_words.array(data, 1))
        if any(parent):
            raise ValueError("of a position that is itself conditional")
        if len(partition) < 2 or partition != [1 << slot for slot in range(len(partition))]:
            raise ValueError(f"a partition that is not one of single outcomes: {partition}")
        return PositionOperation(
            at,
            kind,
            abi_words.address(holder),
            condition_id,
            amount,
            by_adapter=False,
            collateral=collateral,
            detail={},
        )

    return read


def _redemption(at: LogPosition, log: RawLog) -> PositionOperation:
    """Parse redeemer, collateralToken, parentCollectionId | conditionId, indexSets, payout."""
    holder, collateral, parent = _topics(log, 3)
    data = abi_words.from_hex(log.data)
    index_sets = [str(int.from_bytes(each)) for each in abi_words.array(data, 1)]
    if any(parent):
        raise ValueError("of a position that is itself conditional")
    return PositionOperation(
        at,
        "redeem",
        abi_words.address(holder),
        abi_words.word(data, 0),
        abi_words.amount(abi_words.word(data, 2)),
        by_adapter=False,
        collateral=abi_words.address(collateral),
        detail={"index_sets": index_sets},
    )


def _adapter_split(kind: Kind) -> Callable[[LogPosition, RawLog], PositionOperation]:
    def read(at: LogPosition, log: RawLog) -> PositionOperation:
        """Parse stakeholder, conditionId | amount."""
        holder, condition_id = _topics(log, 2)
        data = abi_words.from_hex(log.data)
        _whole(data, 1)
        amount = abi_words.amount(abi_words.word(data, 0))
        return PositionOperation(
            at, kind, abi_words.address(holder), condition_id, amount, by_adapter=True, collateral=None, detail={}
        )

    return read


def _conversion(at: LogPosition, log: RawLog) -> PositionOperation:
    """Parse stakeholder, marketId, indexSet | amount."""
    holder, market_id, index_set = _topics(log, 3)
    data = abi_words.from_hex(log.data)
    _whole(data, 1)
    return PositionOperation(
        at,
        "convert",
        abi_words.address(holder),
        market_id,
        abi_words.amount(abi_words.word(data, 0)),
        by_adapter=True,
        collateral=None,
        detail={"index_set": str(int.from_bytes(index_set))},
    )


def _adapter_redemption(at: LogPosition, log: RawLog) -> PositionOperation:
    """Parse redeemer, conditionId | amounts, payout."""
    holder, condition_id = _topics(log, 2)
    data = abi_words.from_hex(log.data)
    amounts = [abi_words.amount(each) for each in abi_words.array(data, 0)]
    return PositionOperation(
        at,
        "redeem",
        abi_words.address(holder),
        condition_id,
        abi_words.amount(abi_words.word(data, 1)),
        by_adapter=True,
        collateral=None,
        detail={"amounts": amounts},
    )


_OPERATIONS: dict[EventType, Callable[[LogPosition, RawLog], PositionOperation]] = {
    EventType.SPLIT: _split("split"),
    EventType.MERGE: _split("merge"),
    EventType.REDEMPTION: _redemption,
    EventType.ADAPTER_SPLIT: _adapter_split("split"),
    EventType.ADAPTER_MERGE: _adapter_split("merge"),
    EventType.ADAPTER_REDEMPTION: _adapter_redemption,
    EventType.CONVERSION: _conversion,
}


def _topics(log: RawLog, count: int) -> list[bytes]:
    if len(log.topics) != count + 1:
        raise ValueError(f"{len(log.topics)} topics instead of {count + 1}")
    return [abi_words.from_hex_sized(topic, abi_words.WORD) for topic in log.topics[1:]]


def _whole(data: bytes, count: int) -> None:
    if len(data) != count * abi_words.WORD:
        raise ValueError(f"{len(data)} bytes of data instead of {count * abi_words.WORD}")
