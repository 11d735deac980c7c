"""The leader's connection: it holds the feed's lock and writes. If it is lost, so is the right to write."""

import struct
from collections.abc import Sequence
from contextlib import suppress

import psycopg

from orchestration.feeds.lease import LeaseRow, connect_for_leadership, read_leases
from orchestration.ingest.storage.rows import LiveBook, Refusal, Token, WriteBatch
from orchestration.ingest.storage.writer import Writer, WriteResult
from sql.queries import feed as queries

REFUSED = (psycopg.DataError, psycopg.errors.CheckViolation, struct.error)  # rejected by the database, or not encodable


class LeaderConnection:
    """Holds or requests the lead of a feed. Every call blocks."""

    def __init__(self, url: str, feed: str) -> None:
        self.feed = feed
        self._url = url
        self._writer: Writer | None = None

    @property
    def broken(self) -> bool:
        """Whether there is no connection, and so no lead."""
        return self._writer is None or self._writer.conn.closed

    def try_lead(self) -> bool:
        """Try to take the lead; return whether this run has it."""
        if self._writer is None or self._writer.conn.closed:
            self._writer = Writer(connect_for_leadership(self._url, self.feed, statement_timeout=60_000))
        return bool(queries.try_lead(self._writer.conn, feed=self.feed))

    def leases(self) -> list[LeaseRow]:
        """Return all current leases of the feed."""
        assert self._writer is not None
        return read_leases(self._writer.conn, self.feed)

    def clock_ms(self) -> int:
        """Return the database's clock."""
        assert self._writer is not None
        return int(queries.clock(self._writer.conn))

    def progress_ms(self) -> int:
        """Return the exchange time up to which any run, even one long ended, has committed; 0 if none ever led."""
        assert self._writer is not None
        return int(queries.progress_ms(self._writer.conn, feed=self.feed))

    def unverified(self) -> set[tuple[int, int]]:
        """Return the outcomes whose live book is not verified."""
        assert self._writer is not None
        return set(queries.unverified_books(self._writer.conn))

    def mark_all_unverified(self) -> None:
        """Mark every live book unverified until it is written again."""
        assert self._writer is not None
        queries.disavow_all_books(self._writer.conn)

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
        row = Refusal("market_socket", reason, payload.replace("\0", ""))
        return self._writer.write(WriteBatch(refusals=[row])), 1

    def resign(self) -> None:
        """Release the lead, if held, and close the connection."""
        if self._writer is not None:
            with suppress(psycopg.Error):
                queries.resign(self._writer.conn, feed=self.feed)  # explicitly: a session takes a moment to end
            self._writer.conn.close()
            self._writer = None
