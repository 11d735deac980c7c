"""Reconciliation of stored trades with the exchange's list: missing trades are written, unlisted ones counted."""

from __future__ import annotations

from array import array
from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Any

import numpy as np

from orchestration.ingest.gaps.naming import TokenResolver
from orchestration.ingest.storage.rows import WriteBatch
from orchestration.ingest.storage.writer import Writer
from sql.queries import coverage as queries
from sql.queries import feed as feed_queries
from upstream.transport.errors import Incomplete

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence

    import psycopg

    from orchestration.ingest.exchanges.base import ExchangeClient, Listed
    from orchestration.ingest.storage.rows import TradeRow

WINDOW_MS = 600_000  # listed and compared in one piece, so that memory and the span of a commit stay small
MAX_WINDOW_MS, FEW_TRADES = 14_400_000, 2_000  # max piece, used while fewer trades than FEW_TRADES are listed
MAX_TIME_DIFFERENCE = timedelta(minutes=10)  # sources differ in a trade's timestamp by no more than this
EDGE_MS = 60_000  # listed beyond each end of a day: the exchange may date a trade of ours just outside
AT_ONCE = 5_000
MAX_MARKETS_BY_NAME = 200  # listed by name; with more, all trades are listed
SECOND_MS = 1_000
HOUR, DAY = timedelta(hours=1), timedelta(days=1)


class Stopped(Exception):  # noqa: N818 (it is no fault)
    """The time limit was reached."""


@dataclass
class MarketCounts:
    """Counts of one market's trades."""

    listed: int = 0
    added: int = 0
    hashless: int = 0
    """Stored from a print without a transaction hash, and so under another ID than the list's."""
    unlisted: int = 0


@dataclass
class Reconciliation:
    """Result of comparing with the list."""

    markets: dict[int, MarketCounts] = field(default_factory=dict)
    names: array[int] = field(default_factory=lambda: array("q"))
    unknown: Counter[str] = field(default_factory=Counter)
    """Trades of tokens that no catalogue knows, by token."""
    unknown_markets: Counter[str] = field(default_factory=Counter)
    """The same by market."""
    refused: int = 0
    """Implausible trades; they are in quarantine."""

    def of(self, market_key: int) -> MarketCounts:
        """Return the counts of a market."""
        return self.markets.setdefault(market_key, MarketCounts())

    def total(self, name: str) -> int:
        """Return a count summed over all markets."""
        return sum(getattr(market, name) for market in self.markets.values())


class TradeReconciler:
    """Compares and fills in trades, over a connection of its own."""

    def __init__(
        self,
        conn: psycopg.Connection[Any],
        exchange: ExchangeClient,
        *,
        should_stop: Callable[[], bool] = lambda: False,
        note: Callable[[list[TradeRow]], None] = lambda _: None,
    ) -> None:
        """Call `note` with the trades that were missing, within the transaction that writes them."""
        self._conn = conn
        self._writer = Writer(conn, has_trade_ids=exchange.exchange.has_trade_ids)
        self._exchange = exchange
        self.exchange = exchange.exchange
        self._naming = TokenResolver(exchange)
        self._should_stop = should_stop
        self._note = note

    def fill(
        self,
        from_ms: int,
        to_ms: int,
        markets: Collection[str] = (),
        *,
        gap_ids: Sequence[int] = (),
        found: Reconciliation,
    ) -> Iterator[int]:
        """Write the trades that the exchange lists for a time range and we lack; for some markets, or all.

        Yields, piece by piece, the time (ms) up to which the range is done.
        """
        for start, end in _windows(from_ms, to_ms):
            self._compare(found, start, end, markets if len(markets) <= MAX_MARKETS_BY_NAME else (), gap_ids=gap_ids)
            yield end

    def reconcile(self, day: date, found: Reconciliation) -> None:
        """Do so for a whole day (UTC), and count the trades that we hold and the exchange does not list."""
        began = datetime(day.year, day.month, day.day, tzinfo=UTC)
        start, end = _ms(began), _ms(began + DAY)
        self._compare(found, start - EDGE_MS, start, (), counted=False)
        self.compare(start, end, found)
        self._compare(found, end, end + EDGE_MS, (), counted=False)
        listed = np.unique(np.frombuffer(found.names, dtype=np.int64))
        for hour in range(24):
            self._count_unlisted(found, listed, began + hour * HOUR)

    def compare(self, start_ms: int, end_ms: int, found: Reconciliation) -> None:
        """Count the trades that the exchange lists for a time range, and write those that are missing.

        Where little was traded, longer pieces are requested at once.
        """
        width = WINDOW_MS
        while start_ms < end_ms:
            last_ms = min(start_ms + width, end_ms)
            listed = self._compare(found, start_ms, last_ms, ())
            width = min(width * 2, max(MAX_WINDOW_MS, WINDOW_MS)) if listed < FEW_TRADES else max(width // 2, WINDOW_MS)
            start_ms = last_ms

    def _compare(
        self,
        found: Reconciliation,
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
        around = {"since": _instant(from_ms) - MAX_TIME_DIFFERENCE, "until": _instant(to_ms) + MAX_TIME_DIFFERENCE}
        held = {trade_id for _, trade_id, _ in queries.trades_held(self._conn, exchange=self.exchange.name, **around)}
        missing = [row for row in rows.values() if row.trade_id not in held]
        for first in range(0, len(missing), AT_ONCE):
            self._add(missing[first : first + AT_ONCE], around, gap_ids, found if counted else Reconciliation())
        if refusals := self._exchange.take_refusals():
            self._writer.write(WriteBatch(refusals=refusals), fill=True)
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
        """List trades from one second up to, but excluding, another, newest first; split in halves if too many."""
        try:
            return [*self._exchange.listed(markets, from_ms, to_ms - SECOND_MS)]
        except Incomplete:
            middle = (from_ms + to_ms) // 2 // SECOND_MS * SECOND_MS
            if middle in (from_ms, to_ms):
                raise
            return self._listed(markets, middle, to_ms) + self._listed(markets, from_ms, middle)

    def _add(
        self, missing: list[TradeRow], around: dict[str, datetime], gap_ids: Sequence[int], found: Reconciliation
    ) -> None:
        """Write trades, and count the new ones; a trade recorded from a print without a hash is not new."""
        with self._conn.transaction():
            written = self._writer.write(WriteBatch(trades=missing), fill=True, publish=False)
            if gap_ids and written.trades:
                feed_queries.count_added(self._conn, gap_ids=list(gap_ids), trades=written.trades)
            stored = set(
                queries.trades_named(
                    self._conn,
                    market_keys=[row.token.market_key for row in missing],
                    trade_ids=[row.trade_id for row in missing],
                    **around,
                )
            )
            self._note([row for row in missing if (row.token.market_key, row.trade_id) in stored])
        for row in missing:  # counted right away: whatever interrupts the count from here on, these are stored
            market = found.of(row.token.market_key)
            if (row.token.market_key, row.trade_id) in stored:
                market.added += 1
            else:
                market.hashless += 1

    def _count_unlisted(
        self, found: Reconciliation, listed: np.ndarray[Any, np.dtype[np.int64]], hour: datetime
    ) -> None:
        rows = list(queries.trades_held(self._conn, exchange=self.exchange.name, since=hour, until=hour + HOUR))
        names = np.fromiter((trade_id for _, trade_id, _ in rows), dtype=np.int64, count=len(rows))
        for at in np.flatnonzero(~np.isin(names, listed)):
            market_key, _, hashless = rows[at]
            market = found.of(market_key)
            if hashless and market.hashless > 0:
                market.hashless -= 1
            else:
                market.unlisted += 1


def _windows(from_ms: int, to_ms: int) -> Iterator[tuple[int, int]]:
    """Extend a time range to whole seconds and split it into windows.

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
