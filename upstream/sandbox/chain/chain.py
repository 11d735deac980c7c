"""Simulated chain on which the sandbox's trades settle.

A block is mined every 1.5 s of the exchange's clock, so that heights continue where another run of the same seed
ended, with the same hashes. The newest blocks are kept; older ones have headers but no logs, except those of a
simulation's past.
"""

from __future__ import annotations

import hashlib
import random
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from upstream.sandbox.chain.logs import logs_of
from upstream.sandbox.chain.settlement import Settlement
from upstream.sandbox.exchange.population import Population
from upstream.sandbox.exchange.portfolio import Portfolios
from upstream.sandbox.exchange.transactions import Match

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from upstream.sandbox.exchange.catalogue import SandboxMarket
    from upstream.sandbox.exchange.exchange import SandboxExchange
    from upstream.sandbox.exchange.trades import SandboxTrade
    from upstream.sandbox.exchange.transactions import Transaction

CHAIN_ID = 137
BLOCK_MS = 1_500
ANCHOR, ANCHOR_MS = 91_660_624, 1_786_147_200_000  # about Polygon's height on 2026-08-08
FINAL_AFTER = 16  # blocks that a reorganisation may replace
MAX_KEPT_BLOCKS = 20_000
MAX_KEPT_FILLS = 200_000
MAX_ENCODED_BLOCKS = 32  # blocks whose logs are cached as JSON
DELAYED_SHARE = 0.3  # share of the transactions in a reorganisation that move one block later


class PastBlocks(Protocol):
    """Blocks from before the simulation began."""

    def transactions(self, first: int, last: int) -> Iterator[tuple[int, list[Transaction]]]:
        """Yield the transactions of a range of blocks, by block number."""

    def block_of(self, tx: bytes) -> int | None:
        """Return the block that holds a transaction."""


class EncodedLog(msgspec.Struct, gc=False):
    """One log as JSON, with its search keys."""

    address: str
    topics: tuple[str, ...]
    json: bytes
    tx: bytes


@dataclass(slots=True)
class SandboxBlock:
    """One block; `fork` is the number of the reorganisation that made it."""

    number: int
    hash: bytes
    parent: bytes
    ts_s: int
    transactions: list[Transaction] = field(default_factory=list)
    fork: int = 0
    fills: int = 0


class Chain:
    """Blocks of settled trades, up to the exchange's clock."""

    def __init__(
        self, exchange: SandboxExchange, seed: int, start_ms: int, clock: Callable[[], float] | None = None
    ) -> None:
        self._clock = clock or (lambda: exchange.now_ms)
        self._seed = seed
        self.population = Population(seed)
        self.portfolios = Portfolios(exchange.catalogue)
        self._places: dict[bytes, int] = {}
        self._settlement = Settlement(exchange, self.portfolios, self.population, seed, self._places)
        first = height_at(start_ms)
        self.blocks: deque[SandboxBlock] = deque([self._older(first)])
        self._first = first
        self._kept_fills = 0
        self._written: dict[bytes, list[EncodedLog]] = {}
        self._forks = 0
        self.transactions = self.reorganised = 0
        self.past: PastBlocks | None = None
        exchange.on_trade.append(self._trade)
        exchange.on_listing.append(self._list)
        exchange.on_resolution.append(self._resolve)

    # --- Growing ---

    @property
    def head(self) -> int:
        """The newest block's number."""
        return self.blocks[-1].number

    @property
    def finalized(self) -> int:
        """The newest final block's number."""
        return self.head - FINAL_AFTER

    @property
    def waiting(self) -> int:
        """The number of transactions waiting for the next block."""
        return len(self._settlement.pending)

    def mine(self) -> None:
        """Mine the blocks that are due by the clock."""
        due = height_at(int(self._clock()))
        while self.head < due:
            self._add(self._settlement.take(self.head + 1))

    def reorganise(self, depth: int) -> int:
        """Replace the newest blocks, never final ones; their transactions come again in other blocks, some later.

        Return how many were replaced.
        """
        depth = max(min(depth, FINAL_AFTER, len(self.blocks) - 1), 0)
        if not depth:
            return 0
        self._forks += 1
        self.reorganised += 1
        dice = random.Random(f"{self._seed}/fork/{self._forks}")  # noqa: S311 - repeatable dice are what is wanted
        waiting = []
        for block in reversed([self.blocks.pop() for _ in range(depth)]):
            self._kept_fills -= block.fills
            for transaction in block.transactions:
                self._places.pop(transaction.tx, None)
            waiting.append(block.transactions)
        late: list[Transaction] = []
        for transactions in waiting:
            come = late + transactions
            cut = len(come) - sum(dice.random() < DELAYED_SHARE for _ in come)
            self._add(come[:cut], self._forks)
            late = come[cut:]
        self._settlement.pending[:0] = late
        return depth

    def _add(self, transactions: list[Transaction], fork: int = 0) -> None:
        last = self.blocks[-1]
        number = last.number + 1
        block = SandboxBlock(number, self._hash(number, fork), last.hash, mined_s(number), transactions, fork)
        for transaction in transactions:
            self._places[transaction.tx] = number
            block.fills += len(transaction.fills) if isinstance(transaction, Match) else 1
        self.transactions += len(transactions)
        self._kept_fills += block.fills
        self.blocks.append(block)
        while len(self.blocks) > MAX_KEPT_BLOCKS or (
            self._kept_fills > MAX_KEPT_FILLS and len(self.blocks) > 2 * FINAL_AFTER
        ):
            oldest = self.blocks.popleft()
            self._kept_fills -= oldest.fills
            for transaction in oldest.transactions:
                self._places.pop(transaction.tx, None)

    def _trade(self, trade: SandboxTrade) -> None:
        self.mine()
        self._settlement.trade(trade)

    def _list(self, market: SandboxMarket) -> None:
        self.mine()
        self._settlement.listing(market)

    def _resolve(self, market: SandboxMarket, winner: int) -> None:
        self.mine()
        self._settlement.resolution(market, winner)

    # --- Reading ---

    def block(self, number: int) -> SandboxBlock | None:
        """Return a block up to the head; one too old to be kept is empty."""
        if not 0 <= number <= self.head:
            return None
        at = number - self.blocks[0].number
        if at >= 0:
            return self.blocks[at]
        return next(self._before(number, number), None) or self._older(number)

    def busy(self, first: int, last: int) -> Iterator[SandboxBlock]:
        """Return the blocks of a range that have transactions, the lowest first."""
        yield from self._before(first, min(last, self._first))
        kept = self.blocks[0].number
        for number in range(max(first, kept), min(last, self.head) + 1):
            if self.blocks[number - kept].transactions:
                yield self.blocks[number - kept]

    def _before(self, first: int, last: int) -> Iterator[SandboxBlock]:
        """Yield the blocks before the simulation began."""
        for number, transactions in self.past.transactions(first, last) if self.past is not None else ():
            block = self._older(number)
            block.transactions = transactions
            yield block

    def by_hash(self, digest: bytes) -> SandboxBlock | None:
        """Return a kept block; None for one that a reorganisation removed."""
        return next((block for block in reversed(self.blocks) if block.hash == digest), None)

    def of_transaction(self, tx: bytes) -> SandboxBlock | None:
        """Return the kept block that holds a transaction."""
        number = self._places.get(tx)
        if number is None and self.past is not None:
            number = self.past.block_of(tx)
        return None if number is None else self.block(number)

    def pruned(self, first: int, last: int | None = None) -> bool:
        """Return whether a block, or one of a range, had logs that are no longer kept."""
        last = first if last is None else last
        return max(first, self._first + 1) <= min(last, self.blocks[0].number - 1)

    def logs(self, block: SandboxBlock) -> list[EncodedLog]:
        """Return the logs of a block, as JSON."""
        found = self._written.get(block.hash)
        if found is None:
            found = self._written[block.hash] = _write(block) if block.transactions else []
            while len(self._written) > MAX_ENCODED_BLOCKS:
                del self._written[next(iter(self._written))]
        return found

    def state(self) -> dict[str, Any]:
        """Return the chain's state as JSON."""
        return {
            "source": "simulated",
            "head": self.head,
            "waiting": self.waiting,
            "finalized": self.finalized,
            "kept_from": self.blocks[0].number,
            "transactions": self.transactions,
            "reorganisations": self.reorganised,
            "wallets": len(self.population.wallets),
        }

    def _older(self, number: int) -> SandboxBlock:
        return SandboxBlock(number, self._hash(number, 0), self._hash(number - 1, 0), mined_s(number))

    def _hash(self, number: int, fork: int) -> bytes:
        return hashlib.blake2b(f"{self._seed}/{number}/{fork}".encode(), digest_size=32).digest()


def height_at(ms: int) -> int:
    """Return the number of the newest block at a time."""
    return max(ANCHOR + (ms - ANCHOR_MS) // BLOCK_MS, 1)


def mined_s(number: int) -> int:
    """Return when a block was mined, in whole seconds as blocks store it."""
    return (ANCHOR_MS + (number - ANCHOR) * BLOCK_MS) // 1000


def _write(block: SandboxBlock) -> list[EncodedLog]:
    written: list[EncodedLog] = []
    tail = (
        f'"blockHash":"0x{block.hash.hex()}","blockNumber":"{block.number:#x}","blockTimestamp":"{block.ts_s:#x}",'
        '"removed":false}'
    )
    for place, transaction in enumerate(block.transactions):
        middle = f'"transactionHash":"0x{transaction.tx.hex()}","transactionIndex":"{place:#x}",{tail}'
        for address, topics, data in logs_of(transaction):
            listed = '","'.join(topics)
            head = f'{{"address":"{address}","topics":["{listed}"],"data":"{data}","logIndex":"{len(written):#x}"'
            written.append(EncodedLog(address, topics, f"{head},{middle}".encode(), transaction.tx))
    return written
