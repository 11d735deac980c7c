"""Writer of chain data: a range in one short transaction, its stream messages last.

A block in `chain_blocks` has all of its rows. So writing is idempotent for any number of writers: only blocks that
could be inserted bring their rows along, and those are copied straight into the tables.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, fields
from time import time
from typing import TYPE_CHECKING, Any, LiteralString

import msgspec
import numpy as np
import psycopg

from orchestration import stream
from orchestration.settlement import packing, records
from orchestration.settlement.packing import Column
from orchestration.wallets import capture
from sql.queries import feed as feed_queries
from sql.queries import settlement as queries
from upstream.chain.decode import decode
from upstream.chain.decoded import NO_MATCH, NO_PRICE, NO_TOKEN, Entry

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    import numpy.typing as npt

    from orchestration.settlement.reading import BlockBatch
    from orchestration.settlement.records import OnchainTradeEvent, TokenMarkets
    from orchestration.stream import StreamMessage
    from upstream.chain.contracts import Contract
    from upstream.chain.wire import Heads

Connection = psycopg.Connection[tuple[Any, ...]]
FEED = "settlement"
PUBLISH_WITHIN_S = 3600.0  # rows this much older than the newest block followed are history: not published
MAX_REFUSED_PER_REASON = 10  # refused logs stored per minute; all are counted
MAX_CACHED_TOKENS = 1_000_000
UNPUBLISHED = "unpublished"  # counter of fills that are history, though their blocks are newer than the feed's first
# The decoder's counters that deserve attention; `upstream.chain.decode` documents each.
ANOMALIES = (
    *("refused", "zero_amounts", "dust", "impossible_prices", "maker_rows_without_match"),
    *("unattributed", "foreign_collateral", "fee_refunds"),
)

SETTLEMENTS = (
    "copy settlements (ts, block_number, log_index, match_index, tx_hash, contract_key, token_key, maker, taker, side, "
    "price, size, value_usd, fee_usd, is_taker_order, counted) from stdin (format binary)"
)
WALLET_FILLS = (
    "copy wallet_fills (ts, block_number, log_index, wallet, is_taker, token_key, side, price, size, value_usd, "
    "fee_usd) from stdin (format binary)"
)
LEDGER = (
    "copy ledger_entries (ts, block_number, log_index, entry, kind, wallet, counterparty, condition_id, token_key, "
    "amount, tx_hash, contract_key, detail) from stdin (format binary)"
)
NOBODY = bytes(20)


class BlockConflict(Exception):  # noqa: N818 (a chain does that)
    """A block is stored already with another hash: the data read belongs to another branch."""

    def __init__(self, numbers: Sequence[int]) -> None:
        super().__init__(f"another block {numbers[0]} is stored")
        self.numbers = numbers


@dataclass
class WriteResult:
    """Result of writing one or more batches."""

    blocks: int = 0
    logs: int = 0
    settlements: int = 0
    ledger_entries: int = 0
    published: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    """The decoder's counters, for blocks written for the first time."""

    def add(self, other: WriteResult) -> None:
        """Add another result."""
        for each in fields(self):
            setattr(self, each.name, getattr(self, each.name) + getattr(other, each.name))

    def figures(self) -> dict[str, int]:
        """Return the counts, with the decoder's anomalies."""
        plain = {
            each.name: getattr(self, each.name) for each in fields(self) if each.name not in {"published", "counts"}
        }
        return plain | {"told": self.published} | {name: self.counts[name] for name in ANOMALIES}


class Writer:
    """Writes over a connection of its own."""

    def __init__(
        self,
        conn: Connection,
        contracts: tuple[Contract, ...],
        *,
        clock: Callable[[], float] = time,
        publish_within_s: float = PUBLISH_WITHIN_S,
    ) -> None:
        self.conn = conn
        self._clock = clock
        self._publish_within_s = publish_within_s
        self._tokens: dict[str, int] = {}
        self._kept: Counter[str] = Counter()
        self._kept_minute = 0.0
        self._ours = {contract.address for contract in contracts} | {NOBODY}
        queries.add_contracts(
            conn, addresses=[each.address for each in contracts], names=[each.name for each in contracts]
        )
        self._contracts = {bytes(address): key for address, key in queries.contract_keys(conn)}

    def write(
        self, batch: BlockBatch, *, heads: Heads | None = None, detail: Mapping[str, Any] | None = None
    ) -> WriteResult:
        """Write a range; all of it or, if this raises, nothing.

        `heads`: the range was read at the head, and the feed's position moves to its end. Raises BlockConflict if a
        block of it is stored already with another hash.
        """
        self._add_tokens(batch)
        with self.conn.transaction():
            new = self._blocks(batch)
            return self._write(batch, new, heads=heads, detail=detail)

    def rewrite(self, batch: BlockBatch, heads: Heads) -> WriteResult:
        """Rewrite a range that was stored wrongly; the difference is published."""
        self._add_tokens(batch)
        with self.conn.transaction():
            gone = self._delete(batch.from_block, batch.to_block, heads.finalized)
            written = self._write(batch, self._blocks(batch), gone=gone)
            if logs := sum(count for _, count in gone.blocks):
                queries.add_logs(self.conn, block=batch.from_block, logs=-logs)
            queries.count_trades(self.conn, feed=FEED, trades=-gone.trades)
        return written

    def roll_back(self, ancestor: int, heads: Heads) -> int:
        """Delete and revoke every block above this one; return the number of fills. The feed continues from here."""
        with self.conn.transaction():
            gone = self._delete(ancestor + 1, 2**62, heads.finalized)
            queries.lock_ranges(self.conn)
            numbers, logs = ([each[part] for each in gone.blocks] for part in (0, 1))
            queries.cut_ranges(self.conn, from_block=ancestor + 1, numbers=numbers, logs=logs)
            queries.cut_checks(self.conn, from_block=ancestor + 1)
            queries.count_trades(self.conn, feed=FEED, trades=-gone.trades)
            self._place(heads, ancestor, {})
            self._publish([*records.revocations(gone.fills), *gone.messages])
        return len(gone.fills)

    # --- Parts of a transaction ---

    def _add_tokens(self, batch: BlockBatch) -> None:
        """Get the keys of tokens, in a transaction of its own, as names stay even if their blocks do not."""
        unknown = [token_id for token_id in batch.decoded.tokens if token_id not in self._tokens]
        if not unknown:
            return
        if len(self._tokens) > MAX_CACHED_TOKENS:
            self._tokens.clear()
            unknown = list(batch.decoded.tokens)
        found = dict(queries.token_keys(self.conn, token_ids=unknown))
        if missing := [token_id for token_id in unknown if token_id not in found]:
            queries.add_tokens(self.conn, token_ids=missing)
            found |= dict(queries.token_keys(self.conn, token_ids=missing))
        self._tokens |= found

    def _blocks(self, batch: BlockBatch) -> set[int]:
        """Insert blocks; return those that were not stored."""
        if not batch.blocks:
            return set()
        numbers, hashes = [block.number for block in batch.blocks], [block.hash for block in batch.blocks]
        new = {
            number
            for (number,) in queries.add_blocks(
                self.conn,
                numbers=numbers,
                hashes=hashes,
                parents=[block.parent or None for block in batch.blocks],
                times=[block.ts_s for block in batch.blocks],
                logs=[batch.logs.get(number, 0) for number in numbers],
            )
        }
        if len(new) < len(numbers) and (
            others := [number for (number,) in queries.other_blocks(self.conn, numbers=numbers, hashes=hashes)]
        ):
            raise BlockConflict(others)
        return new

    def _write(
        self,
        batch: BlockBatch,
        new: set[int],
        *,
        heads: Heads | None = None,
        detail: Mapping[str, Any] | None = None,
        gone: _Gone | None = None,
    ) -> WriteResult:
        (fills, trades), entries = self._settlements(batch, new), self._ledger(batch, new)
        messages = [] if gone is None else list(gone.messages)
        late, followed_from = self._history(batch, heads)
        if fills or entries:
            for numbers, live in ((new & late, False), (new - late, True)):
                messages += capture.written(self.conn, sorted(numbers & batch.logs.keys()), live=live)
        self._refuse(batch, new)
        # A rewritten block has been counted already.
        counts = _counts(batch, new if gone is None else new - {number for number, _ in gone.blocks})
        logs = sum(count for number, count in batch.logs.items() if number in new)
        queries.lock_ranges(self.conn)
        queries.add_range(self.conn, from_block=batch.from_block, to_block=batch.to_block, logs=logs)
        odd = {name: counts[name] for name in ANOMALIES if counts[name]}
        unpublished = [number for number in late & new if gone is None and number >= followed_from]
        if count := int(np.isin(batch.decoded.fills.block_number, unpublished).sum()):
            odd[UNPUBLISHED] = count
        if odd:
            queries.count_odd(self.conn, feed=FEED, names=list(odd), counts=list(odd.values()))
        if heads is not None:
            self._place(heads, batch.to_block, detail or {})
        if trades:
            queries.count_trades(self.conn, feed=FEED, trades=trades)
        finalized = heads.finalized if heads is not None else 2**62
        if gone is not None:
            went, came = records.difference(gone.fills, records.from_batch(batch, new, self._markets(batch), finalized))
            messages[:0] = [*records.revocations(went), *records.messages(came)]
        elif fills and new - late:
            messages[:0] = records.messages(records.from_batch(batch, new - late, self._markets(batch), finalized))
        self._publish(messages)
        return WriteResult(len(new), logs, fills, entries, len(messages), counts)

    def _history(self, batch: BlockBatch, heads: Heads | None) -> tuple[set[int], int]:
        """Return the blocks that are too old to be published, and the first block that the feed followed.

        Their age is measured against the newest block followed, by the chain's clock; only where no head is followed,
        by the host's.
        """
        start, newest = queries.followed(self.conn, feed=FEED, block=batch.from_block) or (2**62, None)
        if heads is not None:
            newest = batch.blocks[-1].ts_s
        since = (self._clock() if newest is None else newest) - self._publish_within_s
        return {block.number for block in batch.blocks if block.ts_s <= since}, start

    def _settlements(self, batch: BlockBatch, new: set[int]) -> tuple[int, int]:
        """Insert fills and histories; return the number of fills, and how many of them count as trades."""
        fills = batch.decoded.fills
        if not len(fills) or not new:
            return 0, 0
        chosen: npt.NDArray[np.intp] = np.flatnonzero(np.isin(fills.block_number, np.fromiter(new, np.int64, len(new))))
        if not len(chosen):
            return 0, 0
        numbers = fills.block_number[chosen]
        ts = packing.times(_times(batch, numbers))
        tokens = np.array([self._tokens[each] for each in batch.decoded.tokens], dtype=np.int64)[fills.token[chosen]]
        contracts = np.array([self._contracts[each.address] for each in batch.contracts], dtype=np.int64)
        price = Column("int8", fills.price[chosen], fills.price[chosen] == NO_PRICE)
        match = Column("int4", fills.match_index[chosen], fills.match_index[chosen] == NO_MATCH)
        place = (Column("int8", numbers), Column("int4", fills.log_index[chosen]))
        amounts = (Column("int8", fills.size[chosen]), Column("int8", fills.value[chosen]))
        fee, side = Column("int8", fills.fee_usd[chosen]), Column("int2", fills.side[chosen])
        token, of_taker = Column("int4", tokens), Column("bool", fills.is_taker_order[chosen])
        maker, taker = Column("address", fills.maker[chosen]), Column("address", fills.taker[chosen])
        self._copy(
            SETTLEMENTS,
            packing.rows(
                [
                    *(ts, *place, match, Column("hash", fills.tx_hash[chosen])),
                    *(Column("int2", contracts[fills.contract[chosen]]), token, maker, taker, side),
                    *(price, *amounts, fee, of_taker, Column("bool", fills.counted[chosen])),
                ]
            ),
        )
        histories = [ts, *place, maker, of_taker, token, side, price, *amounts, fee]
        self._copy(WALLET_FILLS, packing.rows(histories))
        # A fill without a match has no taker's row: this one belongs to both.
        other = np.flatnonzero((fills.match_index[chosen] == NO_MATCH) & ~fills.is_taker_order[chosen])
        other = other[[bytes(each) not in self._ours for each in taker.values[other].tolist()]] if len(other) else other
        if len(other):
            histories[3:5] = taker, Column("bool", np.ones(len(chosen), dtype=np.bool_))
            histories[6], histories[10] = Column("int2", -side.values), Column("int8", np.zeros_like(fee.values))
            self._copy(WALLET_FILLS, packing.rows([_picked(column, other) for column in histories]))
        return len(chosen), int(fills.counted[chosen].sum())

    def _ledger(self, batch: BlockBatch, new: set[int]) -> int:
        decoded = batch.decoded
        times = {block.number: block.ts_s for block in batch.blocks}
        keys = [self._contracts[each.address] for each in batch.contracts]
        rows = [
            packing.LedgerRow(
                times[entry.block_number],
                entry.kind,
                entry,
                None if entry.token == NO_TOKEN else self._tokens[decoded.tokens[entry.token]],
                keys[entry.contract],
            )
            for entry in decoded.ledger
            if entry.block_number in new
        ]
        rows += [
            packing.LedgerRow(times[entry.block_number], "resolution", entry, None, keys[entry.contract])
            for entry in _resolutions(batch)
            if entry.block_number in new
        ]
        if rows:
            self._copy(LEDGER, packing.ledger(rows))
        return len(rows)

    def _refuse(self, batch: BlockBatch, new: set[int]) -> None:
        """Store some of the logs that could not be decoded."""
        refused = [each for each in batch.decoded.refused if int(each.log.block_number, 16) in new]
        if not refused:
            return
        if (minute := self._clock() // 60) != self._kept_minute:
            self._kept_minute, self._kept = minute, Counter()
        kept = []
        for each in refused:
            self._kept[each.reason] += 1
            if self._kept[each.reason] <= MAX_REFUSED_PER_REASON:
                kept.append(each)
        if kept:
            feed_queries.refuse(
                self.conn,
                sources=["chain"] * len(kept),
                reasons=[each.reason for each in kept],
                payloads=[msgspec.json.encode(each.log).decode()[:65536] for each in kept],
            )

    @dataclass
    class _Gone:
        fills: list[OnchainTradeEvent]
        trades: int
        blocks: list[tuple[int, int]]
        messages: list[StreamMessage]

    def _delete(self, from_block: int, to_block: int, finalized: int) -> _Gone:
        """Delete blocks and their rows; return what was published of them."""
        span = {"from_block": from_block, "to_block": to_block}
        since, until, _ = queries.span_between(self.conn, **span)
        if since is None:
            return Writer._Gone([], 0, [], [])
        blocks = [(number, logs) for number, _, logs in queries.blocks_between(self.conn, **span)]
        times = {**span, "since": since, "until": until}
        fills = records.from_rows(queries.fills_between(self.conn, **times), finalized)
        trades = queries.counted_between(self.conn, **times)
        messages = capture.withdrawn(self.conn, [number for number, logs in blocks if logs])
        queries.delete_settlements(self.conn, **times)
        queries.delete_wallet_fills(self.conn, **times)
        queries.delete_ledger_entries(self.conn, **times)
        queries.delete_blocks(self.conn, **span)
        return Writer._Gone(fills, trades, blocks, messages)

    def _place(self, heads: Heads, indexed: int, detail: Mapping[str, Any]) -> None:
        queries.set_heads(
            self.conn,
            feed=FEED,
            head=heads.head,
            finalized=heads.finalized,
            indexed=indexed,
            detail=msgspec.json.encode(detail).decode(),
        )

    def _markets(self, batch: BlockBatch) -> TokenMarkets:
        rows = queries.markets_of(self.conn, token_ids=list(batch.decoded.tokens))
        return {token_id: (market_id, outcome) for token_id, market_id, outcome in rows}

    def _publish(self, messages: Sequence[StreamMessage]) -> None:
        stream.publish(self.conn, messages, int(self._clock() * 1000))

    def _copy(self, statement: LiteralString, pieces: Iterable[bytes]) -> None:
        with self.conn.cursor() as cursor, cursor.copy(statement) as copy:
            for piece in pieces:
                copy.write(piece)


def _counts(batch: BlockBatch, numbers: set[int]) -> Counter[str]:
    """Return the decoder's counters for some of the batch's blocks, nearly always all of those with logs."""
    if batch.logs.keys() <= numbers:
        return Counter(batch.decoded.counts)
    logs = [log for log in batch.raw if int(log.block_number, 16) in numbers]
    return Counter(decode(logs, batch.contracts).counts) if logs else Counter()


def _times(batch: BlockBatch, numbers: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    of_blocks = np.array([block.number for block in batch.blocks], dtype=np.int64)
    seconds = np.array([block.ts_s for block in batch.blocks], dtype=np.int64)
    return seconds[np.searchsorted(of_blocks, numbers)]


def _picked(column: Column, chosen: npt.NDArray[np.intp]) -> Column:
    return Column(column.type, column.values[chosen], None if column.null is None else column.null[chosen])


def _resolutions(batch: BlockBatch) -> Iterator[Entry]:
    for each in batch.decoded.resolutions:
        detail = {
            "numerators": list(each.numerators),
            "oracle": "0x" + each.oracle.hex(),
            "question_id": "0x" + each.question_id.hex(),
        }
        place = (each.block_number, each.log_index, 0)
        yield Entry(*place, "transfer", None, None, each.condition_id, NO_TOKEN, 0, each.tx_hash, each.contract, detail)
