"""Ranges of final blocks: backfilled where not indexed, and recounted to find logs that were left out.

Ranges that an RPC endpoint refuses are halved below, in `upstream/chain/endpoint.py`.
"""

from __future__ import annotations

import time
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

import msgspec

from orchestration.settlement import reading
from orchestration.settlement.reading import Inconsistent
from orchestration.settlement.writer import BlockConflict, Writer, WriteResult
from sql.queries import settlement as queries
from upstream.transport.errors import UpstreamError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from orchestration.settlement.reading import BlockBatch, BlockLogs, ChainSource
    from upstream.chain.contracts import Contract
    from upstream.chain.wire import Heads

Read = TypeVar("Read")
TARGET_LOGS = 20_000  # target size of a backfill transaction
MAX_BLOCKS = 5_000
ATTEMPTS, PAUSE_S, MAX_PAUSE_S = 8, 0.5, 30.0


@dataclass
class BatchSizer:
    """Number of blocks to read at once: as many as contain about the target number of logs."""

    logs: int = TARGET_LOGS
    blocks: int = 32

    def took(self, blocks: int, logs: int) -> None:
        """Adjust to a piece's log count; grow slowly."""
        wanted = round(blocks * self.logs / logs) if logs else self.blocks * 2
        self.blocks = max(1, min(wanted, self.blocks * 2, MAX_BLOCKS))


@dataclass
class Progress:
    """Progress in a range."""

    blocks: int
    """Blocks of the range that were not indexed when the run began."""
    done: int = 0
    written: WriteResult = field(default_factory=WriteResult)
    retries: int = 0


@dataclass
class RecountResult:
    """Result of a recount."""

    blocks: int = 0
    logs: int = 0
    missing: int = 0
    """BlockLogs that had been left out, and are stored now."""
    withheld: int = 0
    """BlockLogs that are stored, and were left out this time."""
    replaced: int = 0
    """Blocks that had been stored with another hash."""

    def add(self, other: RecountResult) -> None:
        """Add another result."""
        for name in self.__dataclass_fields__:
            setattr(self, name, getattr(self, name) + getattr(other, name))


@dataclass(frozen=True)
class Ranges:
    """Backfills and checks ranges, all of them final."""

    writer: Writer
    source: ChainSource
    contracts: tuple[Contract, ...]
    should_stop: Callable[[], bool] = lambda: False
    sleep: Callable[[float], None] = time.sleep
    second: ChainSource | None = None
    """The source to recount with: preferably another one than was read first."""

    def fill(self, from_: int, to: int, pace: BatchSizer | None = None) -> Iterator[Progress]:
        """Index the blocks of a range that are not indexed, lowest first; yield progress after each piece.

        While a piece is being written, the next one is read. An interrupted range has what was yielded, and a later
        call continues from there.
        """
        pace = pace or BatchSizer()
        holes = sorted(queries.unindexed(self.writer.conn, from_block=from_, to_block=to))
        progress = Progress(sum(high - low + 1 for low, high in holes))
        pieces = _pieces(holes, pace)
        with ThreadPoolExecutor(1, "settlement reads") as threads:
            ahead: Future[BlockBatch] | None = None
            while not self.should_stop():
                if ahead is None and (ahead := self._begin(threads, pieces, progress)) is None:
                    return
                batch = ahead.result()
                pace.took(batch.to_block - batch.from_block + 1, batch.count)
                ahead = self._begin(threads, pieces, progress)
                progress.written.add(self._write(batch))
                progress.done += batch.to_block - batch.from_block + 1
                yield progress

    def fill_piece(self, from_: int, to: int) -> WriteResult:
        """Index one piece, which is small enough for one transaction."""
        return self._write(reading.below_the_head(self.source, self.contracts, from_, to))

    def check(self, from_: int, to: int, heads: Heads) -> RecountResult:
        """Recount the logs of a piece; logs that were left out are written and published now.

        Nobody can make up a log of a block whose hash is known: a log that any source returned exists.
        """
        conn = self.writer.conn
        source = self.second or self.source
        read = reading.logs(source, self.contracts, from_, to)
        stored = {
            number: (bytes(block_hash), count)
            for number, block_hash, count in queries.blocks_between(conn, from_block=from_, to_block=to)
        }
        checked = RecountResult(to - from_ + 1, sum(read.counts.values()))
        for number in sorted(read.counts.keys() | stored.keys()):
            known_hash, known = stored.get(number, (None, 0))
            count = read.counts.get(number, 0)
            if known_hash is not None and read.hashes.get(number, known_hash) != known_hash:
                self._replace(read, number, heads, "finalized_mismatch", {"was": "0x" + known_hash.hex()})
                checked.replaced += 1
            elif count > known:
                self._replace(read, number, heads, "logs_missing", {"found": count, "had": known})
                checked.missing += count - known
            elif count < known:
                self._note("logs_withheld", number, {"told": count, "have": known})
                checked.withheld += known - count
        with conn.transaction():
            queries.lock_ranges(conn)
            queries.add_check(conn, from_block=from_, to_block=to)
        return checked

    def check_all(
        self, spans: list[tuple[int, int]], heads: Heads, pace: BatchSizer | None = None
    ) -> Iterator[RecountResult]:
        """Recount several spans, in pieces; yield the result of each."""
        pace = pace or BatchSizer()
        for from_, to in _pieces(spans, pace):
            if self.should_stop():
                return
            checked = self._with_retries(lambda low=from_, high=to: self.check(low, high, heads))  # type: ignore[misc]
            pace.took(checked.blocks, checked.logs)
            yield checked

    def _begin(
        self, threads: ThreadPoolExecutor, pieces: Iterator[tuple[int, int]], progress: Progress
    ) -> Future[BlockBatch] | None:
        piece = next(pieces, None)
        return None if piece is None else threads.submit(self._read, *piece, progress)

    def _read(self, from_: int, to: int, progress: Progress) -> BlockBatch:
        def again() -> None:
            progress.retries += 1

        return self._with_retries(lambda: reading.below_the_head(self.source, self.contracts, from_, to), again)

    def _write(self, batch: BlockBatch) -> WriteResult:
        try:
            return self.writer.write(batch)
        except BlockConflict:
            # It is final and stored with another hash: a recount corrects that.
            heads = self.source.heads()
            self.check(batch.from_block, batch.to_block, heads)
            return self.writer.write(batch)

    def _replace(self, read: BlockLogs, number: int, heads: Heads, kind: str, detail: dict[str, int | str]) -> None:
        source = self.second or self.source
        header = source.blocks(number, number)[0]
        if header.hash != read.hashes[number]:
            raise Inconsistent(f"logs of another block {number}")
        logs = reading.BlockLogs(read.of({number}), {number: read.counts[number]}, {number: header.hash})
        batch = reading.described(source, self.contracts, logs, number, number)
        self.writer.rewrite(batch, heads)
        self._note(kind, number, detail)

    def _note(self, kind: str, number: int, detail: dict[str, int | str]) -> None:
        queries.note_incident(
            self.writer.conn,
            kind=kind,
            subject=f"block {number}",
            mended=True,
            detail=msgspec.json.encode(detail).decode(),
        )

    def _with_retries(self, read: Callable[[], Read], again: Callable[[], None] = lambda: None) -> Read:
        """Read with retries while the chain's endpoints fail; the last fault is raised."""
        pause_s = PAUSE_S
        for _ in range(ATTEMPTS - 1):
            try:
                return read()
            except (UpstreamError, Inconsistent):
                if self.should_stop():
                    raise
                again()
                self.sleep(pause_s)
                pause_s = min(pause_s * 2, MAX_PAUSE_S)
        return read()


def _pieces(spans: list[tuple[int, int]], pace: BatchSizer) -> Iterator[tuple[int, int]]:
    """Split spans into pieces, each as large as the pace allows when it is requested."""
    for low, high in spans:
        start = low
        while start <= high:
            end = min(start + pace.blocks - 1, high)
            yield start, end
            start = end + 1
