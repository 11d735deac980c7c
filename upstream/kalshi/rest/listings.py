"""Kalshi's listing, as discovery asks for it: markets with their events and series."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from upstream.kalshi.rest.catalogue import HISTORICAL_MARKETS, LIVE_MARKETS
from upstream.kalshi.rest.markets import read_markets
from upstream.transport.pages import CursorPage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from upstream.kalshi.rest.client import Kalshi
    from upstream.kalshi.rest.events import KalshiEvent, KalshiSeries
    from upstream.kalshi.rest.markets import KalshiMarket
    from upstream.transport.errors import RefusedObject

NOT_ENDED = ("open", "unopened")
"""Words of the filter by status: `paused` is none of events', and a paused market's event is found by its others."""
MAX_MARKETS_PER_PAGE = 1000
MAX_NAMED = 100
"""Tickers in one request: more exceed the 8 kB of URL that many proxies allow."""


class KalshiListing(NamedTuple):
    """A market with its event and series, as far as they were read; what is not known leaves what is stored."""

    market: KalshiMarket
    event: KalshiEvent | None
    series: KalshiSeries | None
    now: datetime

    @property
    def market_id(self) -> str:
        """Return its ticker."""
        return self.market.ticker

    def row(self, source: str = "exchange") -> dict[str, Any]:
        """Return a row keyed like `sql.tables.markets`."""
        return self.market.row(self.now, self.event, self.series, source)

    def event_row(self) -> dict[str, Any] | None:
        """Return a row keyed like `sql.tables.events`, if the event was read."""
        return None if self.event is None else self.event.row(self.series)


class KalshiListings:
    """Markets of Kalshi, without combos: `upstream.transport.listings.Listings`."""

    exchange = "kalshi"
    lists_by_time = True

    def __init__(self, kalshi: Kalshi, now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self._kalshi = kalshi
        self._now = now
        self._series: dict[str, KalshiSeries | None] = {}
        self.client = kalshi.client

    def busiest(self) -> None:
        """Return nothing: Kalshi lists by time alone."""

    def open_pages(self) -> Iterator[CursorPage[KalshiListing]]:
        """Iterate over all markets of events that have an open one, or one that is not open yet."""
        self._series |= {series.ticker: series for series in self._kalshi.all_series()}
        for status in NOT_ENDED:
            for page in self._kalshi.event_pages(None, status=status, with_nested_markets=True):
                items: list[KalshiListing] = []
                refusals: list[RefusedObject] = page.refused
                for event in page.items:
                    markets, refused, _ = read_markets(event.markets or [])
                    event.markets = None
                    items += self._listed(markets, {event.event_ticker: event})
                    refusals += refused
                yield from _pages(items, refusals)

    def new_pages(self, since: datetime) -> Iterator[CursorPage[KalshiListing]]:
        """Iterate over markets listed since an instant, open or not open yet."""
        for status in NOT_ENDED:
            filters: dict[str, Any] = {"status": status, "min_created_ts": _seconds(since)}
            for page in self._kalshi.market_pages(None, **filters):
                events = self._events({market.event_ticker for market in page.items}, page.refused)
                yield from _pages(self._listed(page.items, events), page.refused)

    def ended_pages(self, since: datetime) -> Iterator[CursorPage[KalshiListing]]:
        """Iterate over markets settled since an instant; their events are not read again."""
        return self.closed_pages(None, since)

    def closed_pages(self, cursor: str | None, since: datetime | None) -> Iterator[CursorPage[KalshiListing]]:
        """Iterate over markets settled since an instant, from a cursor; without one over none (docs/kalshi.md)."""
        if since is None:
            yield CursorPage([], [], 0, None)
            return
        for page in self._kalshi.market_pages(cursor, status="settled", min_settled_ts=_seconds(since)):
            yield CursorPage(self._listed(page.items, {}), page.refused, page.skipped, page.next_cursor)

    def named(self, market_ids: Sequence[str]) -> list[KalshiListing]:
        """Return those of some markets that Kalshi knows, live or historical."""
        found: dict[str, KalshiMarket] = {}
        for path in (LIVE_MARKETS, HISTORICAL_MARKETS):
            missing = [ticker for ticker in market_ids if ticker not in found]
            for some in _batches(missing):
                found |= {market.ticker: market for market in self._kalshi.markets(path, tickers=",".join(some))}
        return list(self._listed(found.values(), {}))

    def _listed(self, markets: Iterable[KalshiMarket], events: dict[str, KalshiEvent]) -> list[KalshiListing]:
        now = self._now()
        found = []
        for market in markets:
            event = events.get(market.event_ticker)
            series = self._series.get(event.series_ticker) if event else None
            found.append(KalshiListing(market, event, series, now))
        return found

    def _events(self, tickers: set[str], refusals: list[RefusedObject]) -> dict[str, KalshiEvent]:
        """Read some events, and their series."""
        found: dict[str, KalshiEvent] = {}
        for some in _batches(sorted(tickers)):
            for page in self._kalshi.event_pages(None, tickers=",".join(some)):
                found |= {event.event_ticker: event for event in page.items}
                refusals += page.refused
        for event in found.values():
            if event.series_ticker not in self._series:
                self._series[event.series_ticker] = self._kalshi.series(event.series_ticker)
        return found


def _pages(items: list[KalshiListing], refusals: list[RefusedObject]) -> Iterator[CursorPage[KalshiListing]]:
    """Yield some markets in pages that are stored at once."""
    for start in range(0, max(len(items), 1), MAX_MARKETS_PER_PAGE):
        some = items[start : start + MAX_MARKETS_PER_PAGE]
        yield CursorPage(some, [] if start else refusals, 0, None)


def _batches(tickers: Sequence[str]) -> Iterator[Sequence[str]]:
    for start in range(0, len(tickers), MAX_NAMED):
        yield tickers[start : start + MAX_NAMED]


def _seconds(instant: datetime) -> int:
    return int(instant.timestamp())
