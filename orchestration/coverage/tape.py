"""Our tape, held against the exchange's list of trades: what we miss is written, what it does not list is counted."""

from __future__ import annotations

from array import array
from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Any

import numpy as np

from orchestration.ingest.gaps.naming import Naming
from orchestration.ingest.storage.rows import Batch
from orchestration.ingest.storage.writer import Writer
from sql.queries import coverage as queries
from sql.queries import feed as feed_queries
from upstream.transport.errors import Incomplete

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence

    import psycopg

    from orchestration.ingest.exchange import Exchange
    from orchestration.ingest.storage.rows import Trade
    from upstream.polymarket.data_api.client import Trade as Listed

WINDOW_MS = 600_000  # listed and compared at once: what is held in memory, and what one commit spans, stays small
LONGEST_MS, FEW = 14_400_000, 2_000  # longer at once while fewer trades than that are listed
APART = timedelta(minutes=10)  # sources differ in the instant they give a trade, never by more
EDGE_MS = 60_000  # so far beyond a day is listed: what we have within it, the exchange may have put just outside
AT_ONCE = 5_000
MANY_MARKETS = 200  # listed by name; beyond it all trades are
SECOND_MS = 1_000
HOUR, DAY = timedelta(hours=1), timedelta(days=1)


class Stopped(Exception):  # noqa: N818 (it is no fault)
    """There is no time left."""


@dataclass
class OfMarket:
    """A market's trades, counted."""

    listed: int = 0
    added: int = 0
    nameless: int = 0
    """Held from a print that named no transaction, and so under another name than the list gives it."""
    unlisted: int = 0


@dataclass
class Found:
    """What the list came to."""

    markets: dict[int, OfMarket] = field(default_factory=dict)
    names: array[int] = field(default_factory=lambda: array("q"))
    added: list[tuple[int, int]] = field(default_factory=list)
    """Market and instant (ms) of each trade that had been missing."""
    unknown: Counter[str] = field(default_factory=Counter)
    """Trades of tokens that no catalogue knows, by token."""
    unknown_markets: Counter[str] = field(default_factory=Counter)
    """The same by market."""
    refused: int = 0
    """Trades that cannot be true; they are in quarantine."""

    def of(self, market_key: int) -> OfMarket:
        """Give the counts of a market."""
        return self.markets.setdefault(market_key, OfMarket())

    def total(self, name: str) -> int:
        """Add up a count over all markets."""
        return sum(getattr(market, name) for market in self.markets.values())


class Tape:
    """Compares and fills in, over a connection that nobody else uses."""

    def __init__(
        self, conn: psycopg.Connection[Any], exchange: Exchange, *, should_stop: Callable[[], bool] = lambda: False
    ) -> None:
        self._conn = conn
        self._writer = Writer(conn)
        self._exchange = exchange
        self._naming = Naming(exchange)
        self._should_stop = should_stop

    def fill(
        self, from_ms: int, to_ms: int, markets: Collection[str] = (), *, gap_ids: Sequence[int] = (), found: Found
    ) -> Iterator[int]:
        """Write what the exchange lists of a stretch of time and we do not have; of some markets, or of all.

        Yields up to when (ms) that is done, piece by piece.
        """
        for start, end in _windows(from_ms, to_ms):
            self._compare(found, start, end, markets if len(markets) <= MANY_MARKETS else (), gap_ids=gap_ids)
            yield end

    def reconcile(self, day: date, found: Found) -> None:
        """Do so for a whole day (UTC), and count what we hold and the exchange does not list."""
        began = datetime(day.year, day.month, day.day, tzinfo=UTC)
        start, end = _ms(began), _ms(began + DAY)
        self._compare(found, start - EDGE_MS, start, (), counted=False)
        self.compare(start, end, found)
        self._compare(found, end, end + EDGE_MS, (), counted=False)
        listed = np.unique(np.frombuffer(found.names, dtype=np.int64))
        for hour in range(24):
            self._count_unlisted(found, listed, began + hour * HOUR)

    def compare(self, start_ms: int, end_ms: int, found: Found) -> None:
        """Count what the exchange lists of a stretch of time, and write what is missing.

        Where little was traded, much of it is asked for at once.
        """
        width = WINDOW_MS
        while start_ms < end_ms:
            last_ms = min(start_ms + width, end_ms)
            listed = self._compare(found, start_ms, last_ms, ())
            width = min(width * 2, max(LONGEST_MS, WINDOW_MS)) if listed < FEW else max(width // 2, WINDOW_MS)
            start_ms = last_ms

    def _compare(
        self,
        found: Found,
        from_ms: int,
        to_ms: int,
        markets: Collection[str],
        *,
        counted: bool = True,
        gap_ids: Sequence[int] = (),
    ) -> int:
        if self._should_stop():
            raise Stopped
        listed = self._listed(markets, from_ms, to_ms)
        tokens = self._naming.tokens(self._conn, listed)
        rows = {row.trade_id: row for row in self._exchange.rows(tokens, listed)}
        found.names.extend(rows)
        around = {"since": _instant(from_ms) - APART, "until": _instant(to_ms) + APART}
        held = {trade_id for _, trade_id, _ in queries.trades_held(self._conn, **around)}
        missing = [row for row in rows.values() if row.trade_id not in held]
        for first in range(0, len(missing), AT_ONCE):
            self._add(missing[first : first + AT_ONCE], around, gap_ids, found if counted else Found(added=found.added))
        if refusals := self._exchange.take_refusals():
            self._writer.write(Batch(refusals=refusals), fill=True)
        if not counted:
            return len(listed)
        unknown = [trade for trade in listed if trade.token_id not in tokens]
        found.unknown.update(trade.token_id for trade in unknown)
        found.unknown_markets.update(trade.market for trade in unknown)
        found.refused += len(refusals)
        for row in rows.values():
            found.of(row.token.market_key).listed += 1
        return len(listed)

    def _listed(self, markets: Collection[str], from_ms: int, to_ms: int) -> list[Listed]:
        """List the trades from one second on and before another, newest first; in halves where it is too much."""
        try:
            return self._exchange.listed(markets, from_ms, to_ms - SECOND_MS)
        except Incomplete:
            middle = (from_ms + to_ms) // 2 // SECOND_MS * SECOND_MS
            if middle in (from_ms, to_ms):
                raise
            return self._listed(markets, middle, to_ms) + self._listed(markets, from_ms, middle)

    def _add(self, missing: list[Trade], around: dict[str, datetime], gap_ids: Sequence[int], found: Found) -> None:
        """Write trades, and count those that are new; one that a print without a hash told of is there already."""
        with self._conn.transaction():
            written = self._writer.write(Batch(trades=missing), fill=True, tell=False)
            if gap_ids and written.trades:
                feed_queries.count_added(self._conn, gap_ids=list(gap_ids), trades=written.trades)
            added = set(
                queries.trades_named(
                    self._conn,
                    market_keys=[row.token.market_key for row in missing],
                    trade_ids=[row.trade_id for row in missing],
                    **around,
                )
            )
        for row in missing:  # at once: whatever ends the count from here on, these are held
            market = found.of(row.token.market_key)
            if (row.token.market_key, row.trade_id) in added:
                market.added += 1
                found.added.append((row.token.market_key, row.ts_ms))
            else:
                market.nameless += 1

    def _count_unlisted(self, found: Found, listed: np.ndarray[Any, np.dtype[np.int64]], hour: datetime) -> None:
        rows = list(queries.trades_held(self._conn, since=hour, until=hour + HOUR))
        names = np.fromiter((trade_id for _, trade_id, _ in rows), dtype=np.int64, count=len(rows))
        for at in np.flatnonzero(~np.isin(names, listed)):
            market_key, _, nameless = rows[at]
            market = found.of(market_key)
            if nameless and market.nameless > 0:
                market.nameless -= 1
            else:
                market.unlisted += 1


def _windows(from_ms: int, to_ms: int) -> Iterator[tuple[int, int]]:
    """Cut a stretch of time at whole seconds, the last one up to the end of the second that it ends in.

    >>> list(_windows(1_500, 600_900))
    [(1000, 601000)]
    """
    start, end = from_ms // SECOND_MS * SECOND_MS, -(-to_ms // SECOND_MS) * SECOND_MS
    while start < end:
        yield start, min(start + WINDOW_MS, end)
        start += WINDOW_MS


def _ms(instant: datetime) -> int:
    return round(instant.timestamp() * 1000)


def _instant(ms: int) -> datetime:
    return datetime.fromtimestamp(ms / 1000, UTC)
