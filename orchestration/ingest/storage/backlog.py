"""Uncommitted batches: the leader's queue, and the ring that a standby replays when it takes over."""

from collections import deque
from collections.abc import Callable

import msgspec

from orchestration.ingest.storage.rows import Token, WriteBatch


class Overflow(msgspec.Struct):
    """Span and number of dropped events, in exchange time."""

    from_ms: int
    to_ms: int
    events: int


class Backlog:
    """Batches, oldest first, bounded by the bytes they take in memory."""

    def __init__(self, capacity: int) -> None:
        self.events = 0
        self.bytes = 0
        self.kept_bytes = 0  # of frames that wait to become batches: they count as well
        self.overflow: Overflow | None = None
        self.since_ms = 0  # everything received after this instant of our clock is here, unless the leader wrote it
        self.capacity = capacity
        self._batches: deque[WriteBatch] = deque()
        self._sizes: deque[int] = deque()
        self._removed = 0  # batches removed so far, so that each has a number

    def __len__(self) -> int:
        return len(self._batches)

    def add(self, batch: WriteBatch) -> None:
        """Append a batch; beyond the capacity the oldest are dropped."""
        size = batch.size
        self._batches.append(batch)
        self._sizes.append(size)
        self.events += len(batch)
        self.bytes += size
        self.trim()

    def trim(self) -> None:
        """Drop the oldest beyond the capacity."""
        while self.bytes + self.kept_bytes > self.capacity and len(self._batches) > 1:
            self._record_overflow(self._pop())

    def head(self, max_bytes: int) -> tuple[WriteBatch, int]:
        """Return the oldest batches merged, up to `max_bytes` but at least one, and the number where they end."""
        if not self._batches:
            return WriteBatch(), self._removed
        if len(self._batches) == 1:
            return self._batches[0], self._removed + 1
        merged, taken, left = WriteBatch(), 0, max_bytes
        for batch, size in zip(self._batches, self._sizes, strict=True):
            left -= size
            if taken and left < 0:
                break
            merged.add(batch)
            taken += 1
        return merged, self._removed + taken

    @property
    def begin(self) -> int:
        """The number of the oldest batch."""
        return self._removed

    @property
    def end(self) -> int:
        """The number where the newest batch ends."""
        return self._removed + len(self._batches)

    def mark_committed(self, end: int) -> None:
        """Remove the batches before a number: they are committed."""
        while self._batches and self._removed < end:
            self._pop()

    def prune(self, before_ms: int) -> None:
        """Remove batches received, by our clock, before an instant: another run has committed them."""
        while self._batches and self._batches[0].received_ms < before_ms:
            self._pop()

    def withhold_progress(self) -> None:
        """Tell nothing of progress while these batches are written: later ones have rows from before them."""
        for batch in self._batches:
            batch.withhold_progress()

    def window(self, wanted: Callable[[Token], bool], from_ms: int, to_ms: int) -> WriteBatch:
        """Return the rows of some tokens between two exchange timestamps."""
        picked = WriteBatch()
        for batch in self._batches:
            picked.add(batch.only(wanted, from_ms, to_ms))
        return picked

    def take_overflow(self) -> Overflow | None:
        """Return and clear what was dropped since the last call."""
        overflow, self.overflow = self.overflow, None
        return overflow

    def _pop(self) -> WriteBatch:
        batch = self._batches.popleft()
        self._removed += 1
        self.since_ms = batch.received_ms
        self.events -= len(batch)
        self.bytes -= self._sizes.popleft()
        return batch

    def _record_overflow(self, batch: WriteBatch) -> None:
        instants = [row.ts_ms for rows in (batch.trades, batch.changes) for row in rows] + batch.sent_ms
        if not instants and not batch.exchange_ms:
            return  # refusals alone: nothing of a market
        instants = instants or [batch.exchange_ms]
        dropped = Overflow(min(instants), max(instants), len(batch))
        if self.overflow is None:
            self.overflow = dropped
        else:
            self.overflow.from_ms = min(self.overflow.from_ms, dropped.from_ms)
            self.overflow.to_ms = max(self.overflow.to_ms, dropped.to_ms)
            self.overflow.events += dropped.events
