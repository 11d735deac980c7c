"""Truth log: every event of the exchange in order, to compare a database with."""

from __future__ import annotations

from collections import deque
from itertools import islice
from typing import TYPE_CHECKING, BinaryIO

import msgspec

if TYPE_CHECKING:
    from pathlib import Path

    from upstream.sandbox.exchange.wire import Fact

MAX_LINES = 100_000  # lines in memory, about 30 MB; older ones are read from the file


class LineGoneError(LookupError):
    """The requested line is no longer in memory, and there is no file."""


class TruthLog:
    """JSON lines, numbered from 1; the newest stay in memory, all go to the file if there is one."""

    def __init__(self, path: Path | None = None, *, kept: int = MAX_LINES) -> None:
        self.n = 0
        self.counts: dict[str, int] = {}
        self._path = path
        self._recent: deque[bytes] = deque(maxlen=kept)
        self._pending: list[bytes] = []
        self._encode = msgspec.json.Encoder().encode
        self._file: BinaryIO | None = None
        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = path.open("wb")

    def next(self) -> int:
        """The number of the next line."""
        self.n += 1
        return self.n

    def write(self, fact: Fact) -> None:
        """Append a line."""
        line = self._encode(fact) + b"\n"
        self._recent.append(line)
        self.counts[fact.kind] = self.counts.get(fact.kind, 0) + 1
        if self._file is not None:
            self._pending.append(line)

    def flush(self) -> None:
        """Write buffered lines to the file; called ten times a second and at the end."""
        if self._file is not None and self._pending:
            lines, self._pending = self._pending, []
            self._file.write(b"".join(lines))
            self._file.flush()

    def after(self, n: int, limit: int) -> bytes:
        """Return up to `limit` lines after line `n`."""
        first = self.n - len(self._recent) + 1
        if n + 1 >= first:
            start = n + 1 - first
            return b"".join(islice(self._recent, start, start + limit))
        if self._path is None:
            raise LineGoneError(f"line {n + 1} is gone, the first one kept is {first}")
        self.flush()
        with self._path.open("rb") as lines:
            return b"".join(line for at, line in enumerate(lines, 1) if n < at <= n + limit)

    def close(self) -> None:
        """Flush and close the file."""
        self.flush()
        if self._file is not None:
            self._file.close()
            self._file = None
