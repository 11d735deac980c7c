"""The leader's connection: it holds the feed's lock and writes. If it dies, so does the right to write."""

import struct
from collections.abc import Sequence
from contextlib import suppress

import psycopg

from orchestration.feeds.lease import Held, connect_to_lead
from orchestration.ingest.storage.rows import Batch, LiveBook, Refusal, Token
from orchestration.ingest.storage.writer import Writer, Written
from sql.queries import feed as queries

REFUSED = (psycopg.DataError, psycopg.errors.CheckViolation, struct.error)  # by the database, or by its formats


class LeaderConnection:
    """Holds, or tries for, the lead of a feed. Every call blocks."""

    def __init__(self, url: str, feed: str) -> None:
        self.feed = feed
        self._url = url
        self._writer: Writer | None = None

    @property
    def broken(self) -> bool:
        """Whether there is no connection, and so no lead."""
        return self._writer is None or self._writer.conn.closed

    def try_lead(self) -> bool:
        """Ask for the lead."""
        if self._writer is None or self._writer.conn.closed:
            self._writer = Writer(connect_to_lead(self._url, self.feed, statement_timeout=60_000))
        return bool(queries.try_lead(self._writer.conn, feed=self.feed))

    def leases(self) -> list[Held]:
        """Give all leases of the feed, as they stand."""
        assert self._writer is not None
        return [Held(*row) for row in queries.leases(self._writer.conn, feed=self.feed)]

    def clock_ms(self) -> int:
        """Give the database's clock."""
        assert self._writer is not None
        return int(queries.clock(self._writer.conn))

    def progress_ms(self) -> int:
        """Tell up to when what any run heard is committed, however long ago it ended; 0 when none ever led."""
        assert self._writer is not None
        return int(queries.progress_ms(self._writer.conn, feed=self.feed))

    def unverified(self) -> set[tuple[int, int]]:
        """Give the tokens whose live book is not shown."""
        assert self._writer is not None
        return set(queries.unverified_books(self._writer.conn))

    def disavow_all(self) -> None:
        """Have no live book shown until it is written again."""
        assert self._writer is not None
        queries.disavow_all_books(self._writer.conn)

    def write(
        self, batch: Batch, books: Sequence[LiveBook], disavowed: Sequence[Token], *, replay: bool
    ) -> tuple[Written, int]:
        """Write a batch; what the database cannot hold goes to quarantine. Give what it came to, and rows refused."""
        assert self._writer is not None
        try:
            return self._writer.write(batch, books, disavowed, replay=replay), 0
        except REFUSED as fault:
            if len(batch) <= 1:
                return self._refuse(batch, fault)
        written, refused = self.write(Batch(prices=batch.prices), books, disavowed, replay=replay)
        for half in batch.halves():
            more, less = self.write(half, (), (), replay=replay)
            written.add(more)
            refused += less
        return written, refused

    def _refuse(self, batch: Batch, fault: Exception) -> tuple[Written, int]:
        assert self._writer is not None
        payload = repr([batch.trades, batch.changes, batch.snapshots, list(batch.quotes.values())])[:65536]
        reason = f"the database refuses it: {fault}".replace("\0", "")
        row = Refusal("market_socket", reason, payload.replace("\0", ""))
        return self._writer.write(Batch(refusals=[row])), 1

    def resign(self) -> None:
        """Give the lead up, if it is ours, and the connection."""
        if self._writer is not None:
            with suppress(psycopg.Error):
                queries.resign(self._writer.conn, feed=self.feed)  # at once: a session takes a moment to end
            self._writer.conn.close()
            self._writer = None
