"""Batches not known to be committed: the leader's queue, and the ring that a standby replays when it takes over."""

from collections import deque
from collections.abc import Container

import msgspec

from orchestration.ingest.storage.rows import Batch


class Overflow(msgspec.Struct):
    """What had to be let go, in the exchange's time."""

    from_ms: int
    to_ms: int
    events: int


class Backlog:
    """Batches in the order they came, oldest first, bounded by the bytes they take in memory."""

    def __init__(self, capacity: int) -> None:
        self.events = 0
        self.bytes = 0
        self.overflow: Overflow | None = None
        self.since_ms = 0  # what came after this instant of our clock is all here, unless the leader wrote it
        self._capacity = capacity
        self._batches: deque[Batch] = deque()
        self._sizes: deque[int] = deque()
        self._gone = 0  # batches that have left, so that each has a number

    def __len__(self) -> int:
        return len(self._batches)

    def add(self, batch: Batch) -> None:
        """Take a batch in; beyond the capacity the oldest are let go."""
        size = batch.size
        self._batches.append(batch)
        self._sizes.append(size)
        self.events += len(batch)
        self.bytes += size
        while self.bytes > self._capacity and len(self._batches) > 1:
            self._let_go(self._pop())

    def head(self, most: int) -> tuple[Batch, int]:
        """Give the oldest batches as one, up to so many bytes but at least one, and the number where they end."""
        if not self._batches:
            return Batch(), self._gone
        if len(self._batches) == 1:
            return self._batches[0], self._gone + 1
        merged, taken, left = Batch(), 0, most
        for batch, size in zip(self._batches, self._sizes, strict=True):
            left -= size
            if taken and left < 0:
                break
            merged.add(batch)
            taken += 1
        return merged, self._gone + taken

    @property
    def end(self) -> int:
        """The number where the newest batch ends."""
        return self._gone + len(self._batches)

    def done(self, end: int) -> None:
        """Forget the batches before a number: they are committed."""
        while self._batches and self._gone < end:
            self._pop()

    def prune(self, before_ms: int) -> None:
        """Forget what came, by our clock, before an instant: somebody has committed it."""
        while self._batches and self._batches[0].received_ms < before_ms:
            self._pop()

    def window(self, tokens: Container[str] | None, from_ms: int, to_ms: int) -> Batch:
        """Pick what it holds of some tokens (None: of all) between two instants of the exchange."""
        picked = Batch()
        for batch in self._batches:
            picked.add(batch.only(tokens, from_ms, to_ms))
        return picked

    def take_overflow(self) -> Overflow | None:
        """Give what was let go since last asked."""
        overflow, self.overflow = self.overflow, None
        return overflow

    def _pop(self) -> Batch:
        batch = self._batches.popleft()
        self._gone += 1
        self.since_ms = batch.received_ms
        self.events -= len(batch)
        self.bytes -= self._sizes.popleft()
        return batch

    def _let_go(self, batch: Batch) -> None:
        instants = [row.ts_ms for rows in (batch.trades, batch.changes) for row in rows] or [batch.said_ms]
        lost = Overflow(min(instants), max(instants), len(batch))
        if self.overflow is None:
            self.overflow = lost
        else:
            self.overflow.from_ms = min(self.overflow.from_ms, lost.from_ms)
            self.overflow.to_ms = max(self.overflow.to_ms, lost.to_ms)
            self.overflow.events += lost.events
