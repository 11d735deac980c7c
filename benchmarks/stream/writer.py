"""Writer of stream events at a rate; records each batch's commit time: `python -m benchmarks.stream.writer …`."""

from __future__ import annotations

import array
import sys
import time
from pathlib import Path

from sql.database import connect

MESSAGE = 300  # bytes of each
TICK_S = 0.01
MARKETS = [f"0x{number:064x}" for number in range(200)]


def message(seq: int) -> str:
    """Return a trade's message of constant length."""
    head = (
        f'{{"type":"trade","seq":{seq},"ts":{int(time.time() * 1000)},"market_id":"{MARKETS[seq % len(MARKETS)]}",'
        '"data":{"price":0.52,"size":12.5,"side":"BUY","padding":"'
    )
    return head + "x" * (MESSAGE - len(head) - 3) + '"}}'


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


def write(conn: object, count: int) -> int:
    """Write a batch as the feed does, and return its last number."""
    from sql.queries import feed as queries

    with conn.transaction():  # type: ignore[attr-defined]
        last: int = queries.advance_stream(conn, events=count)
        rows = ((seq, "trade", MARKETS[seq % len(MARKETS)], message(seq)) for seq in range(last - count + 1, last + 1))
        with (
            conn.cursor() as cursor,  # type: ignore[attr-defined]
            cursor.copy("copy stream_events (seq, type, market_id, message) from stdin") as copy,
        ):
            for row in rows:
                copy.write_row(row)
    return last


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), Path(sys.argv[4]))
