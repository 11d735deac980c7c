"""Ranges of final blocks: filled in where nothing has been indexed, and counted again to find what was left out."""

from __future__ import annotations

import time
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

import msgspec

from orchestration.settlement import reading
from orchestration.settlement.reading import Inconsistent
from orchestration.settlement.writer import Forked, Writer, Written
from sql.queries import settlement as queries
from upstream.transport.errors import UpstreamError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from orchestration.settlement.reading import Batch, Logs, Source
    from upstream.chain.contracts import Contract
    from upstream.chain.wire import Heads

Read = TypeVar("Read")
LOGS_AT_ONCE = 20_000  # what a transaction of a back-fill aims at
MOST_BLOCKS = 5_000
ATTEMPTS, PAUSE_S, PAUSE_MOST_S = 8, 0.5, 30.0


@dataclass
class Pace:
    """How many blocks to take at once: as many as have about so many logs."""

    logs: int = LOGS_AT_ONCE
    blocks: int = 32

    def took(self, blocks: int, logs: int) -> None:
        """Learn from a piece; grow slowly."""
        wanted = round(blocks * self.logs / logs) if logs else self.blocks * 2
        self.blocks = max(1, min(wanted, self.blocks * 2, MOST_BLOCKS))


@dataclass
class Progress:
    """How far a range has come."""

    blocks: int
    """Of the range, that had not been indexed when it began."""
    done: int = 0
    written: Written = field(default_factory=Written)
    retries: int = 0


@dataclass
class Checked:
    """What counting again came to."""

    blocks: int = 0
    logs: int = 0
    missing: int = 0
    """Logs that had been left out, and are there now."""
    withheld: int = 0
    """Logs that are there, and that this time were left out."""
    replaced: int = 0
    """Blocks that had been stored as another."""

    def add(self, other: Checked) -> None:
        """Add what another came to."""
        for name in self.__dataclass_fields__:
            setattr(self, name, getattr(self, name) + getattr(other, name))


@dataclass(frozen=True)
class Ranges:
    """Fills in and checks ranges, all of them final."""

    writer: Writer
    source: Source
    contracts: tuple[Contract, ...]
    should_stop: Callable[[], bool] = lambda: False
    sleep: Callable[[float], None] = time.sleep
    second: Source | None = None
    """Whom to ask when counting again: rather somebody else than who was asked first."""

    def fill(self, from_: int, to: int, pace: Pace | None = None) -> Iterator[Progress]:
        """Index what of a range has not been indexed, the lowest first; say how far it is after each piece.

        While a piece is being written, the next one is read. Whatever is interrupted has what was said, and goes on
        from there when it is asked for again.
        """
        pace = pace or Pace()
        holes = sorted(queries.unindexed(self.writer.conn, from_block=from_, to_block=to))
        progress = Progress(sum(high - low + 1 for low, high in holes))
        pieces = _pieces(holes, pace)
        with ThreadPoolExecutor(1, "settlement reads") as threads:
            ahead: Future[Batch] | None = None
            while not self.should_stop():
                if ahead is None and (ahead := self._begin(threads, pieces, progress)) is None:
                    return
                batch = ahead.result()
                pace.took(batch.to_block - batch.from_block + 1, batch.count)
                ahead = self._begin(threads, pieces, progress)
                progress.written.add(self._write(batch))
                progress.done += batch.to_block - batch.from_block + 1
                yield progress

    def fill_piece(self, from_: int, to: int) -> Written:
        """Index one piece, which is small enough for one transaction."""
        return self._write(reading.below_the_head(self.source, self.contracts, from_, to))

    def check(self, from_: int, to: int, heads: Heads) -> Checked:
        """Count the logs of a piece again; what had been left out is written, and told, now.

        Nobody makes up a log of a block that he knows the hash of: what anybody has seen, is there.
        """
        conn = self.writer.conn
        source = self.second or self.source
        read = reading.logs(source, self.contracts, from_, to)
        stored = {
            number: (bytes(block_hash), count)
            for number, block_hash, count in queries.blocks_between(conn, from_block=from_, to_block=to)
        }
        checked = Checked(to - from_ + 1, sum(read.counts.values()))
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

    def check_all(self, spans: list[tuple[int, int]], heads: Heads, pace: Pace | None = None) -> Iterator[Checked]:
        """Count several spans again, in pieces; say what each came to."""
        pace = pace or Pace()
        for from_, to in _pieces(spans, pace):
            if self.should_stop():
                return
            checked = self._patiently(lambda low=from_, high=to: self.check(low, high, heads))  # type: ignore[misc]
            pace.took(checked.blocks, checked.logs)
            yield checked

    def _begin(
        self, threads: ThreadPoolExecutor, pieces: Iterator[tuple[int, int]], progress: Progress
    ) -> Future[Batch] | None:
        piece = next(pieces, None)
        return None if piece is None else threads.submit(self._read, *piece, progress)

    def _read(self, from_: int, to: int, progress: Progress) -> Batch:
        def again() -> None:
            progress.retries += 1

        return self._patiently(lambda: reading.below_the_head(self.source, self.contracts, from_, to), again)

    def _write(self, batch: Batch) -> Written:
        try:
            return self.writer.write(batch)
        except Forked:
            # It is final and stored as something else: counting again puts that right.
            heads = self.source.heads()
            self.check(batch.from_block, batch.to_block, heads)
            return self.writer.write(batch)

    def _replace(self, read: Logs, number: int, heads: Heads, kind: str, detail: dict[str, int | str]) -> None:
        source = self.second or self.source
        header = source.blocks(number, number)[0]
        if header.hash != read.hashes[number]:
            raise Inconsistent(f"logs of another block {number}")
        logs = reading.Logs(read.of({number}), {number: read.counts[number]}, {number: header.hash})
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

    def _patiently(self, read: Callable[[], Read], again: Callable[[], None] = lambda: None) -> Read:
        """Read, again and again while a chain is moody; the last fault is raised."""
        pause_s = PAUSE_S
        for _ in range(ATTEMPTS - 1):
            try:
                return read()
            except (UpstreamError, Inconsistent):
                if self.should_stop():
                    raise
                again()
                self.sleep(pause_s)
                pause_s = min(pause_s * 2, PAUSE_MOST_S)
        return read()


def _pieces(spans: list[tuple[int, int]], pace: Pace) -> Iterator[tuple[int, int]]:
    """Cut spans into pieces, each as large as the pace has it when it is asked for."""
    for low, high in spans:
        start = low
        while start <= high:
            end = min(start + pace.blocks - 1, high)
            yield start, end
            start = end + 1
