"""Truth log: every event of the exchange in order, to compare a database with."""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from itertools import islice
from typing import TYPE_CHECKING, Any, BinaryIO, Protocol

import msgspec

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

MAX_ENTRIES = 50_000  # in memory, most of two lines, about 20 MB; older ones are read from the file


class LogEntry(Protocol):
    """What becomes one line of the log or more; lines have their number in `n`."""

    n: int

    @property
    def kind(self) -> str:
        """Return the kind of event."""

    @property
    def lines(self) -> int:
        """Return the number of lines."""

    def facts(self) -> Sequence[Any]:
        """Return the lines."""


class LineGoneError(LookupError):
    """The requested line is no longer in memory, and there is no file."""


class TruthLog:
    """Lines of JSON, numbered from 1; the newest entries stay in memory, all go to the file if there is one."""

    def __init__(self, path: Path | None = None, *, kept: int = MAX_ENTRIES) -> None:
        self.n = 0
        self.counts: dict[str, int] = {}
        self._path = path
        self._recent: deque[LogEntry] = deque(maxlen=kept)
        self._pending: list[LogEntry] = []
        self._encode = msgspec.json.Encoder().encode_lines
        self._file: BinaryIO | None = None
        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = path.open("wb")

    def write(self, entry: LogEntry) -> None:
        """Append an entry, and number its lines."""
        kind, lines = entry.kind, entry.lines
        entry.n = self.n + 1
        self.n += lines
        self._recent.append(entry)
        self.counts[kind] = self.counts.get(kind, 0) + lines
        if self._file is not None:
            self._pending.append(entry)

    def flush(self) -> None:
        """Write buffered lines to the file; called ten times a second and at the end."""
        if self._file is not None and self._pending:
            entries, self._pending = self._pending, []
            self._file.write(self._encode(fact for entry in entries for fact in entry.facts()))
            self._file.flush()

    def after(self, n: int, limit: int) -> bytes:
        """Return up to `limit` lines after line `n`."""
        first = self._recent[0].n if self._recent else 1
        if n + 1 >= first:
            start = max(bisect_right(self._recent, n + 1, key=lambda entry: entry.n) - 1, 0)
            facts = (fact for entry in islice(self._recent, start, None) for fact in entry.facts() if fact.n > n)
            return self._encode(islice(facts, limit))
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
