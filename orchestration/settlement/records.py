"""Stream records of fills: the on-chain trade, and its revocation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import msgspec

from orchestration.stream import StreamMessage, message
from sql.database import MICRO

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from orchestration.settlement.reading import BlockBatch


class OnchainTradeEvent(msgspec.Struct, gc=False):
    """The on-chain trade record. `market_id` and `outcome` are null while the catalogue does not know the token."""

    tx_hash: str
    log_index: int
    block_number: int
    block_hash: str
    market_id: str | None
    token_id: str
    outcome: int | None
    maker: str
    taker: str
    side: Literal["BUY", "SELL"]
    price: float | None
    size: float
    value_usd: float
    fee_usd: float
    exchange_contract: str
    is_taker_order: bool
    finalized: bool
    ts: int
    revoked: bool | msgspec.UnsetType = msgspec.UNSET


LogPosition = tuple[int, int]  # block number and log index: identifies a fill
TokenMarkets = dict[str, tuple[str, int]]  # token id → market id and outcome


def from_batch(
    batch: BlockBatch, numbers: set[int], markets: Mapping[str, tuple[str, int]], finalized: int
) -> list[OnchainTradeEvent]:
    """Return the records of a batch, in order; of the blocks with these numbers."""
    fills, tokens = batch.decoded.fills, batch.decoded.tokens
    blocks = {block.number: ("0x" + block.hash.hex(), block.ts_s * 1000) for block in batch.blocks}
    contracts = ["0x" + contract.address.hex() for contract in batch.contracts]
    columns = (
        *(fills.block_number, fills.log_index, fills.tx_hash, fills.contract, fills.token, fills.maker, fills.taker),
        *(fills.side, fills.price, fills.size, fills.value, fills.fee_usd, fills.is_taker_order),
    )
    records = []
    for number, log, tx, contract, token, maker, taker, side, price, size, value, fee, of_taker in zip(
        *(column.tolist() for column in columns), strict=True
    ):
        if number not in numbers:
            continue
        block_hash, ts_ms = blocks[number]
        token_id = tokens[token]
        market_id, outcome = markets.get(token_id, (None, None))
        records.append(
            OnchainTradeEvent(
                tx_hash="0x" + tx.hex(),
                log_index=log,
                block_number=number,
                block_hash=block_hash,
                market_id=market_id,
                token_id=token_id,
                outcome=outcome,
                maker="0x" + maker.hex(),
                taker="0x" + taker.hex(),
                side="BUY" if side > 0 else "SELL",
                price=None if price < 0 else price / MICRO,
                size=size / MICRO,
                value_usd=value / MICRO,
                fee_usd=fee / MICRO,
                exchange_contract=contracts[contract],
                is_taker_order=of_taker,
                finalized=number <= finalized,
                ts=ts_ms,
            )
        )
    return records


def from_rows(rows: Iterable[tuple[Any, ...]], finalized: int) -> list[OnchainTradeEvent]:
    """Return the records of rows as `fills_between` returns them."""
    records = []
    for number, log, tx, block_hash, market_id, token_id, outcome, maker, taker, side, price, *rest in rows:
        size, value, fee, contract, of_taker, ts_s = rest
        records.append(
            OnchainTradeEvent(
                tx_hash="0x" + tx.hex(),
                log_index=log,
                block_number=number,
                block_hash="0x" + block_hash.hex(),
                market_id=market_id,
                token_id=token_id,
                outcome=outcome,
                maker="0x" + maker.hex(),
                taker="0x" + taker.hex(),
                side="BUY" if side > 0 else "SELL",
                price=None if price is None else price / MICRO,
                size=size / MICRO,
                value_usd=value / MICRO,
                fee_usd=fee / MICRO,
                exchange_contract="0x" + contract.hex(),
                is_taker_order=of_taker,
                finalized=number <= finalized,
                ts=ts_s * 1000,
            )
        )
    return records


def messages(records: Iterable[OnchainTradeEvent]) -> list[StreamMessage]:
    """Return the messages that publish fills."""
    return [message("onchain_trade", record.ts, record.market_id, record) for record in records]


def revocations(records: Iterable[OnchainTradeEvent]) -> list[StreamMessage]:
    """Return the messages that revoke fills, newest first."""
    gone = [msgspec.structs.replace(record, revoked=True) for record in records]
    return messages(sorted(gone, key=_place, reverse=True))


def difference(
    before: Iterable[OnchainTradeEvent], after: Iterable[OnchainTradeEvent]
) -> tuple[list[OnchainTradeEvent], list[OnchainTradeEvent]]:
    """Return the records that were published and no longer hold, and those that hold and were not published."""
    old, new = ({_place(record): _bare(record) for record in records} for records in (before, after))
    gone = [record for place, record in old.items() if new.get(place) != record]
    come = [record for place, record in new.items() if old.get(place) != record]
    return gone, come


def _place(record: OnchainTradeEvent) -> LogPosition:
    return record.block_number, record.log_index


def _bare(record: OnchainTradeEvent) -> OnchainTradeEvent:
    return msgspec.structs.replace(record, finalized=False)
