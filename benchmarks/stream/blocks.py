"""What the stream's storage costs: bytes and CPU for a message of the feed, beside gzip and Parquet."""

from __future__ import annotations

import gzip
import random
import time
from datetime import UTC, datetime
from io import BytesIO
from typing import TYPE_CHECKING, Any

from benchmarks.figures import Target, figure
from orchestration.ingest.storage import messages
from orchestration.ingest.storage.rows import Change, LivePrice, Token, TradeRow, value_usd
from sql import stream_blocks
from sql.stream_reader import StoredBlock, StreamReader

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from benchmarks.figures import Figure
    from sql.stream_blocks import StreamMessage
    from sql.stream_reader import StreamEvent

MESSAGES = 2_000
TOKENS = 2_000
REPETITIONS = 20
CENT = 10_000
START = 1_790_000_000_000


def run() -> Iterator[Figure]:
    """Measure a block of the feed's messages."""
    tokens = outcomes()
    told = feed_messages(tokens)
    packing, data = fastest(lambda: stream_blocks.pack(told))
    block = StoredBlock(1, len(told), datetime.now(UTC), data)
    reader = reader_of(tokens)
    unpacking, page = fastest(lambda: reader.unpack(None, [block], 0, len(told)))
    lines = gzip.compress(b"\n".join(event.message for event in page.events), 6)
    own = len(data) / len(told)
    limit = Target("value", "<=", 60)
    name = "stream block bytes per message"
    yield figure(name, own, "bytes", rival=("the same JSON, gzip", len(lines) / len(told)), target=limit)
    rival = ("the same rows in Parquet with zstd", parquet(page.events) / len(told))
    yield figure(name, own, "bytes", rival=rival, target=limit)
    for what, seconds, most in (("packing", packing, 1.5), ("unpacking", unpacking, 2.0)):
        name = f"{what} a message of the stream"
        yield figure(name, seconds / len(told) * 1e6, "µs of CPU", target=Target("value", "<=", most))


def outcomes() -> list[Token]:
    """Return tokens of distinct markets."""
    dice = random.Random(1)  # noqa: S311 - test data
    return [
        Token(str(dice.getrandbits(255)), f"0x{dice.getrandbits(256):064x}", 7 * number, number % 2)
        for number in range(1, TOKENS + 1)
    ]


def feed_messages(tokens: Sequence[Token]) -> list[StreamMessage]:
    """Return messages as the feed publishes them within a quarter of a second: changed books, prices, some trades."""
    dice = random.Random(2)  # noqa: S311 - test data
    made: list[StreamMessage] = []
    while len(made) < MESSAGES:
        token, ts_ms = dice.choice(tokens), START + len(made) // 8
        bid = dice.randrange(1, 98) * CENT
        ask, size = bid + dice.choice((1, 1, 2, 5)) * CENT, dice.randrange(1, 10**6) * CENT
        side, seq = dice.choice((1, -1)), ts_ms << 20 | len(made)
        price = bid if side > 0 else ask
        depth, digest = dice.randrange(10**11) * 10**6, dice.randbytes(20).hex()
        change = Change(token, ts_ms, 0, seq, side, price, size, digest, True, bid, ask, depth, CENT)
        made += messages.deltas([change])
        if dice.random() < 0.1:
            paid, tx = value_usd(price, size), dice.randbytes(32)
            made.append(messages.trade(TradeRow(token, ts_ms, dice.getrandbits(63), seq, side, price, size, paid, tx)))
        if dice.random() < 0.6:
            volume, before = dice.randrange(10**12), ts_ms - dice.randrange(10**6)
            other = dice.randrange(1, 10**6) * CENT
            row = LivePrice(token, bid, ask, size, other, price, before, ts_ms, volume)
            made.append(messages.price(row, ts_ms + 90))
    return made[:MESSAGES]


def reader_of(tokens: Sequence[Token]) -> StreamReader:
    """Return a reader with a catalogue of these tokens."""
    ids = [(each.market_key, each.outcome, each.market_id, each.token_id) for each in tokens]
    return StreamReader(lambda *_: ids)


def fastest(work: Callable[[], Any]) -> tuple[float, Any]:
    """Return the least CPU time of several runs, and the result."""
    took = []
    for _ in range(REPETITIONS):
        began = time.process_time()
        result = work()
        took.append(time.process_time() - began)
    return min(took), result


def parquet(events: Sequence[StreamEvent]) -> int:
    """Return the size of the same rows in a Parquet file."""
    import pyarrow as pa
    from pyarrow import parquet as files

    columns = {
        "seq": [event.seq for event in events],
        "type": [event.type for event in events],
        "market_id": [event.market_id for event in events],
        "message": [event.message for event in events],
    }
    file = BytesIO()
    files.write_table(pa.table(columns), file, compression="zstd")
    return file.tell()
