"""The leader's connection: it holds the feed's lock and writes. If it is lost, so is the right to write."""

import struct
from collections.abc import Sequence
from contextlib import suppress

import psycopg

from config.exchanges import POLYMARKET, Exchange
from orchestration.feeds.lease import LeaseRow, connect_for_leadership, read_leases
from orchestration.feeds.shards import WHOLE, Shard
from orchestration.ingest.progress import Progress
from orchestration.ingest.storage.rows import LiveBook, Refusal, Token, WriteBatch
from orchestration.ingest.storage.writer import Writer, WriteResult
from sql.queries import feed as queries

# Rejected by the database, or not encodable.
REFUSED = psycopg.DataError, psycopg.errors.CheckViolation, struct.error, OverflowError


class LeaderConnection:
    """Holds or requests the lead of a shard of a feed. Every call blocks."""

    def __init__(self, url: str, family: str, shard: Shard = WHOLE, exchange: Exchange = POLYMARKET) -> None:
        self.feed = shard.feed(family)
        self._family, self._shard = family, shard
        self._url = url
        self._exchange = exchange
        self._writer: Writer | None = None
        self.pid: int | None = None
        """The last connection's server process: it holds the lead, if this run has it."""

        self._forsaken = False

    def forsake(self) -> None:
        """Have the next request for the lead use another connection.

        This one's session has ended, or its server is no primary any more; it is not asked, as it may not answer.
        """
        self._forsaken = True

    @property
    def broken(self) -> bool:
        """Whether there is no connection, and so no lead."""
        return self._writer is None or self._writer.conn.closed

    def try_lead(self) -> bool:
        """Try to take the lead; return whether this run has it.

        It may not while a run leads a shard of another number of shards. Of two such runs that try at once, each first
        takes its own lock and then looks: both may fail, and never both succeed.
        """
        if self._writer is not None and self._forsaken:
            self._writer.conn.close()
        if self._writer is None or self._writer.conn.closed:
            self._writer = Writer(connect_for_leadership(self._url, self.feed, statement_timeout=60_000))
            self._forsaken = False
            self.pid = queries.server_process(self._writer.conn)
        conn = self._writer.conn
        if not queries.try_lead(conn, feed=self.feed):
            return False
        if not queries.others_lead(conn, family=self._family, shards=self._shard.of):
            return True
        queries.resign(conn, feed=self.feed)
        return False

    def leases(self) -> list[LeaseRow]:
        """Return all current leases of the feed."""
        assert self._writer is not None
        return read_leases(self._writer.conn, self.feed)

    def clock_ms(self) -> int:
        """Return the database's clock."""
        assert self._writer is not None
        return int(queries.clock(self._writer.conn))

    def progress(self, run_id: str) -> Progress:
        """Return how far all other runs, even ones long ended, have committed."""
        assert self._writer is not None
        return Progress(
            queries.progress(
                self._writer.conn, family=self._family, run_id=run_id, stage=self._exchange.own("ingestion")
            )
        )

    def newest_start(self) -> int | None:
        """Return the key of the newest market whose start a leader of the shard has seen to; None: of none."""
        assert self._writer is not None
        newest: int | None = queries.starts_seen(
            self._writer.conn,
            name=self._exchange.own("followed"),
            discovery=self._exchange.own("discovery"),
            **self._shard.columns(),
        )[0]
        return newest

    def unverified(self) -> set[tuple[int, int]]:
        """Return the outcomes whose live book is not verified."""
        assert self._writer is not None
        return set(queries.unverified_books(self._writer.conn, exchange=self._exchange.name))

    def mark_all_unverified(self) -> None:
        """Mark every live book of the shard unverified until it is written again."""
        assert self._writer is not None
        queries.disavow_all_books(self._writer.conn, exchange=self._exchange.name, **self._shard.columns())

    def write(
        self, batch: WriteBatch, books: Sequence[LiveBook], unverified: Sequence[Token], *, replay: bool
    ) -> tuple[WriteResult, int]:
        """Write a batch; rows that the database rejects go to quarantine. Return the result and the rows refused."""
        assert self._writer is not None
        try:
            return self._writer.write(batch, books, unverified, replay=replay), 0
        except REFUSED as fault:
            if len(batch) <= 1:
                return self._refuse(batch, fault)
        written, refused = self.write(WriteBatch(prices=batch.prices), books, unverified, replay=replay)
        for half in batch.halves():
            more, less = self.write(half, (), (), replay=replay)
            written.add(more)
            refused += less
        return written, refused

    def _refuse(self, batch: WriteBatch, fault: Exception) -> tuple[WriteResult, int]:
        assert self._writer is not None
        payload = repr([batch.trades, batch.changes, batch.snapshots, list(batch.quotes.values())])[:65536]
        reason = f"the database refuses it: {fault}".replace("\0", "")
        row = Refusal(self._exchange.socket_source, reason, payload.replace("\0", ""))
        return self._writer.write(WriteBatch(refusals=[row])), 1

    def resign(self) -> None:
        """Release the lead, if held, and close the connection."""
        if self._writer is not None:
            with suppress(psycopg.Error):
                if not self._forsaken:
                    queries.resign(self._writer.conn, feed=self.feed)  # explicitly: a session takes a moment to end
            self._writer.conn.close()
            self._writer = None
