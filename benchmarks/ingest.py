"""Ingest benchmark: the writer's rows per second beside psql's COPY of the same rows, 10,000 per batch.

The writer publishes new rows to the stream in the same transaction. So psql copies both, the rows the writer wrote
into the table and the messages that it packed into blocks, as rows of a table of their own, one transaction per batch;
and both fire the same triggers.
"""

from __future__ import annotations

import random
import subprocess
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from benchmarks.database import fresh
from benchmarks.figures import Target, figure
from benchmarks.harness import interleaved
from orchestration.ingest.storage.rows import Change, Token, TradeRow, WriteBatch, value_usd
from orchestration.ingest.storage.writer import Writer
from sql.database import connect
from sql.stream_reader import StoredBlock, StreamReader

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from benchmarks.database import Bench
    from benchmarks.figures import Figure
    from benchmarks.harness import Options

BATCH, BATCHES, MARKETS = 10_000, 10, 500
TARGET = Target("ratio", ">=", 0.6)
COLUMNS = {
    "trades": "ts, market_key, outcome, trade_id, seq, side, price, size, value_usd, tx_hash",
    "book_events": "ts, market_key, outcome, event_id, seq, side, price, size, hash",
}
MESSAGES = """
    create table messages (
        seq bigint not null, ts timestamptz not null, type text not null, market_id text, message text not null
    );
    select create_hypertable('messages', by_range('seq', 1000000::bigint), create_default_indexes => false);
    create unique index messages_seq_idx on messages (seq);
"""
EMPTY = "truncate trades, book_events, quotes, stream_blocks, messages, live_prices"  # and with trades their candles


def run(options: Options, report: Callable[[str], None]) -> Iterator[Figure]:
    """Measure trades and book changes."""
    dice = random.Random(1)  # noqa: S311 - test data
    tokens = [
        Token(str(dice.getrandbits(255)), f"0x{market:064x}", market, outcome)
        for market in range(1, MARKETS + 1)
        for outcome in (0, 1)
    ]
    with fresh(report) as bench:
        with connect(bench.url, autocommit=True) as conn:
            conn.execute(MESSAGES)
        for table, make in (("trades", trades), ("book_events", changes)):
            ours = Ours(bench, list(make(dice, tokens)))
            ours.all_a_second()  # warm-up, and to get the stream's rows for psql to copy
            both = Theirs(bench, table, ours.batches, stream_of=tokens)
            alone = Theirs(bench, table, ours.batches)
            medians = interleaved(
                {
                    f"writer, {table} and stream": ours.all_a_second,
                    f"psql COPY, {table} and stream": both.rows_a_second,
                    f"psql COPY, {table}": alone.rows_a_second,
                },
                options.repetitions,
                report,
            )
            us, them, bare = medians.values()
            rival = "psql COPY of the same rows"
            yield figure(f"{table} and the stream's rows", us, "rows/s", rival=(rival, them), target=TARGET)
            share = BATCH * len(ours.batches) / both.rows
            rival = f"psql COPY into {table}, no stream"
            yield figure(f"{table}, messages published meanwhile", us * share, "rows/s", rival=(rival, bare))


class Ours:
    """The live feed's writer."""

    def __init__(self, bench: Bench, batches: Sequence[WriteBatch]) -> None:
        self.bench = bench
        self.batches = batches

    def all_a_second(self) -> float:
        """Write all batches into empty tables; return rows per second."""
        empty(self.bench)
        with connect(self.bench.url, autocommit=True) as conn:
            writer = Writer(conn)
            began = time.perf_counter()
            written = [writer.write(batch) for batch in self.batches]
            took = time.perf_counter() - began
        return sum(each.rows + each.published for each in written) / took


class Theirs:
    """Psql, one transaction per batch."""

    def __init__(
        self, bench: Bench, table: str, batches: Sequence[WriteBatch], *, stream_of: Sequence[Token] = ()
    ) -> None:
        self.bench = bench
        self.rows = 0
        script = [r"\set ON_ERROR_STOP on"]
        published = messages(bench, stream_of) if stream_of else []
        for nth, batch in enumerate(batches):
            file = bench.folder / f"{table}-{nth}.tsv"
            file.write_text("".join(lines(batch)))
            script += ["begin;", rf"\copy {table} ({COLUMNS[table]}) from '{file}'"]
            self.rows += len(batch)
            if published:
                share = published[len(published) * nth // len(batches) : len(published) * (nth + 1) // len(batches)]
                file = bench.folder / f"{table}-{nth}-stream.tsv"
                file.write_text("".join(share))
                script.append(rf"\copy messages from '{file}'")
                self.rows += len(share)
            script.append("commit;")
        self.script = "\n".join([*script, ""])

    def rows_a_second(self) -> float:
        """Copy all files into empty tables, excluding psql's own start; return rows per second."""
        empty(self.bench)
        start = self._took(r"\set ON_ERROR_STOP on" "\n")
        return self.rows / (self._took(self.script) - start)

    def _took(self, script: str) -> float:
        began = time.perf_counter()
        subprocess.run([self.bench.psql, "-qX", self.bench.url], input=script, text=True, check=True, timeout=600)
        return time.perf_counter() - began


def messages(bench: Bench, tokens: Sequence[Token]) -> list[str]:
    """Return what the writer has published, as COPY text."""
    ids = [(each.market_key, each.outcome, each.market_id, each.token_id) for each in tokens]
    reader = StreamReader(lambda *_: ids)
    found = []
    with connect(bench.url, autocommit=True) as conn:
        for row in conn.execute("select seq_from, seq_to, ts, data from stream_blocks order by seq_from"):
            block = StoredBlock(*row)
            found += [
                f"{event.seq}\t{block.ts.isoformat()}\t{event.type}\t{event.market_id}\t{event.message.decode()}\n"
                for event in reader.unpack(conn, [block], block.seq_from - 1, block.seq_to).events
            ]
    return found


def empty(bench: Bench) -> None:
    """Reset to the same state for every turn: empty tables, and nothing left to write back."""
    with connect(bench.url, autocommit=True) as conn:
        conn.execute(EMPTY)
        conn.execute("checkpoint")


def instants(dice: random.Random) -> Iterator[list[int]]:
    """Yield the milliseconds of each batch, ascending: two seconds of a busy exchange."""
    start = int(time.time() * 1000) - BATCHES * 2000
    for nth in range(BATCHES):
        yield sorted(start + nth * 2000 + dice.randrange(2000) for _ in range(BATCH))


def trades(dice: random.Random, tokens: Sequence[Token]) -> Iterator[WriteBatch]:
    """Yield batches of trades."""
    for batch in instants(dice):
        rows = []
        for nth, ts_ms in enumerate(batch):
            price, size = dice.randrange(1, 100) * 10_000, dice.randrange(1, 10**9)
            token, tx = dice.choice(tokens), dice.randbytes(32)
            side, identity = dice.choice((1, -1)), dice.getrandbits(63)
            rows.append(
                TradeRow(token, ts_ms, identity, ts_ms << 20 | nth, side, price, size, value_usd(price, size), tx)
            )
        yield WriteBatch(trades=rows)


def changes(dice: random.Random, tokens: Sequence[Token]) -> Iterator[WriteBatch]:
    """Yield batches of level changes, of books that are subscribed to and streamed."""
    for batch in instants(dice):
        rows = []
        for nth, ts_ms in enumerate(batch):
            price, size = dice.randrange(1, 100) * 10_000, dice.randrange(0, 10**9)
            token, digest = dice.choice(tokens), dice.randbytes(20).hex()
            side, identity = dice.choice((1, -1)), dice.getrandbits(63)
            seq = ts_ms << 20 | nth
            rows.append(
                Change(token, ts_ms, identity, seq, side, price, size, digest, True, 490_000, 510_000, 10**9, None)
            )
        yield WriteBatch(changes=rows)


def lines(batch: WriteBatch) -> Iterator[str]:
    """Yield the rows of a batch as COPY text."""
    for trade in batch.trades:
        token, tx = trade.token, (trade.tx_hash or b"").hex()
        yield (
            f"{_instant(trade.ts_ms)}\t{token.market_key}\t{token.outcome}\t{trade.trade_id}\t{trade.seq}\t{trade.side}"
            f"\t{trade.price}\t{trade.size}\t{trade.value_usd}\t\\\\x{tx}\n"
        )
    for change in batch.changes:
        token = change.token
        yield (
            f"{_instant(change.ts_ms)}\t{token.market_key}\t{token.outcome}\t{change.event_id}\t{change.seq}\t{change.side}"
            f"\t{change.price}\t{change.size}\t\\\\x{change.hash}\n"
        )


def _instant(ts_ms: int) -> str:
    return datetime.fromtimestamp(ts_ms / 1000, UTC).isoformat()
