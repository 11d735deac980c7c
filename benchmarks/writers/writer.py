"""Writer of small batches at a rate, from a process of its own: `python -m benchmarks.writers.writer …`."""

from __future__ import annotations

import array
import random
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from orchestration.ingest.storage.rows import Change, Token, WriteBatch
from orchestration.ingest.storage.writer import Writer
from sql.database import connect

if TYPE_CHECKING:
    from collections.abc import Sequence

ROWS = 10  # level changes a commit: few, so that what a commit itself costs is what counts
MARKETS = 100  # of each writer: no other writes rows of them, as with shards


class Schedule(msgspec.Struct):
    """When a writer commits, and whether it publishes its rows to the stream."""

    number: int  # of the writer, from 0
    rate: float  # commits a second
    seconds: float
    start: float  # a monotonic instant
    publishes: bool


def main(url: str, schedule: Schedule, file: Path) -> None:
    """Commit on schedule; the file gets each commit's delay in nanoseconds.

    A commit's delay counts from the moment at which it was due, so that commits which wait for the one before count.
    """
    number, rate, start = schedule.number, schedule.rate, schedule.start
    dice = random.Random(number)  # noqa: S311 (test data)
    keys = range(number * MARKETS + 1, (number + 1) * MARKETS + 1)
    tokens = [Token(str(key), f"0x{key:064x}", key, 0) for key in keys]
    delays = array.array("q")
    with connect(url, autocommit=True, name=f"presage bench writer {number}") as conn:
        writer = Writer(conn)
        writer.write(batch(dice, tokens), publish=schedule.publishes)  # prepares the statements
        for nth in range(int(rate * schedule.seconds)):
            due = start + (nth + number / 100) / rate
            rows = batch(dice, tokens)
            time.sleep(max(0.0, due - time.monotonic()))
            if time.monotonic() - start > 2 * schedule.seconds:  # it can't keep up
                break
            writer.write(rows, publish=schedule.publishes)
            delays.append(int((time.monotonic() - due) * 1e9))
    file.write_bytes(delays.tobytes())


def batch(dice: random.Random, tokens: Sequence[Token]) -> WriteBatch:
    """Return level changes of now, each of another token."""
    ts_ms = time.time_ns() // 1_000_000
    rows = []
    for nth, token in enumerate(dice.sample(tokens, ROWS)):
        identity, digest = dice.getrandbits(63), dice.randbytes(20).hex()
        price, size = dice.randrange(1, 100) * 10_000, dice.randrange(10**9)
        seq = ts_ms << 20 | nth
        rows.append(Change(token, ts_ms, identity, seq, 1, price, size, digest, True, 490_000, 510_000, 10**9, None))
    return WriteBatch(changes=rows)


if __name__ == "__main__":
    main(sys.argv[1], msgspec.json.decode(sys.argv[2], type=Schedule), Path(sys.argv[3]))
