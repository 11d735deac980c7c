"""Writer of stream events at a rate; records each batch's commit time: `python -m benchmarks.stream.writer …`."""

from __future__ import annotations

import array
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sql.database import connect

if TYPE_CHECKING:
    import psycopg

MESSAGE = 300  # bytes of each
TICK_S = 0.01
MARKETS = [f"0x{number:064x}" for number in range(200)]


def message(seq: int) -> str:
    """Return a trade's message of constant length."""
    return f'{{"type":"trade","seq":{seq},{rest(seq)}'


def rest(seq: int) -> str:
    """Return a message without type and number."""
    head = (
        f'"ts":{int(time.time() * 1000)},"market_id":"{MARKETS[seq % len(MARKETS)]}",'
        '"data":{"price":0.52,"size":12.5,"side":"BUY","padding":"'
    )
    return head + "x" * (MESSAGE - len(f'{{"type":"trade","seq":{seq},') - len(head) - 3) + '"}}'


def main(url: str, rate: int, seconds: float, file: Path) -> None:
    """Write until the time is over; the file gets pairs of the last number and a commit's monotonic nanosecond."""
    noted = array.array("q")
    with connect(url, autocommit=True) as conn:
        began = time.monotonic()
        written = 0
        while (now := time.monotonic() - began) < seconds:
            due = int(rate * now) - written
            if due > 0:
                noted.extend((write(conn, due), time.monotonic_ns()))
                written += due
            time.sleep(max(0.0, TICK_S - (time.monotonic() - began - now)))
    file.write_bytes(noted.tobytes())


def write(conn: psycopg.Connection[Any], count: int) -> int:
    """Write a batch as the feed does, and return its last number."""
    from orchestration import stream
    from sql.queries import stream as queries

    first = queries.head(conn) + 1  # nobody else writes
    messages = [
        stream.StreamMessage("trade", 0, MARKETS[seq % len(MARKETS)], rest(seq).encode())
        for seq in range(first, first + count)
    ]
    with conn.transaction():
        return stream.publish(conn, messages, int(time.time() * 1000))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), Path(sys.argv[4]))
