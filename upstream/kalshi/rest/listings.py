"""Kalshi's listing, as discovery asks for it: markets with their events and series."""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from upstream.kalshi.rest.catalogue import HISTORICAL_MARKETS, LIVE_MARKETS
from upstream.kalshi.rest.markets import read_markets
from upstream.kalshi.rest.requests import SOURCE
from upstream.transport.errors import Malformed, RefusedObject, TooLarge, refused
from upstream.transport.pages import CursorPage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from upstream.kalshi.rest.client import Kalshi
    from upstream.kalshi.rest.events import KalshiEvent, KalshiSeries
    from upstream.kalshi.rest.markets import KalshiMarket

NOT_ENDED = ("open", "unopened")
NOT_TRADING = ("paused", "closed")
"""Words of the filter by status. Events are found by markets that trade or will; others are listed by themselves."""
EVENTS_PER_PAGE = 50
"""A market takes some 3 kB, an event may have a hundred of them, and an answer at most 32 MiB."""
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
    forgets = True

    def __init__(self, kalshi: Kalshi, now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self._kalshi = kalshi
        self._now = now
        self._series: dict[str, KalshiSeries | None] = {}
        self._events: dict[str, KalshiEvent] = {}
        self.client = kalshi.client

    def busiest(self) -> None:
        """Return nothing: Kalshi lists by time alone."""

    def open_pages(self) -> Iterator[CursorPage[KalshiListing]]:
        """Iterate over all markets that are not settled, and those that share an event with one that trades."""
        with suppress(TooLarge):  # then they are read one by one
            self._series |= {series.ticker: series for series in self._kalshi.all_series()}
        for status in NOT_ENDED:
            nested: dict[str, Any] = {"status": status, "with_nested_markets": True, "limit": EVENTS_PER_PAGE}
            for page in self._kalshi.event_pages(None, **nested):
                markets: list[KalshiMarket] = []
                for event in page.items:
                    found, refused, _ = read_markets(event.markets or [])
                    markets += found
                    page.refused += refused
                    self._keep(event)
                yield from self._pages(markets, page.refused)
        for status in NOT_TRADING:
            for listed in self._kalshi.market_pages(None, status=status):
                yield from self._pages(listed.items, listed.refused)

    def new_pages(self, since: datetime) -> Iterator[CursorPage[KalshiListing]]:
        """Iterate over markets listed since an instant, open or not open yet."""
        for status in NOT_ENDED:
            filters: dict[str, Any] = {"status": status, "min_created_ts": _seconds(since)}
            for page in self._kalshi.market_pages(None, **filters):
                yield from self._pages(page.items, page.refused)

    def closed_pages(self, cursor: str | None, since: datetime | None) -> Iterator[CursorPage[KalshiListing]]:
        """Iterate over markets settled since an instant, from a cursor; without one over none (docs/kalshi.md)."""
        if since is None:
            yield CursorPage([], [], 0, None)
            return
        for page in self._kalshi.market_pages(cursor, status="settled", min_settled_ts=_seconds(since)):
            listed = self._listed(page.items, page.refused)
            yield CursorPage(listed, page.refused, page.skipped, page.next_cursor)

    def named(self, market_ids: Sequence[str]) -> CursorPage[KalshiListing]:
        """Return those of some markets that Kalshi knows, live or historical."""
        found: dict[str, KalshiMarket] = {}
        refusals: list[RefusedObject] = []
        for path in (LIVE_MARKETS, HISTORICAL_MARKETS):
            missing = [ticker for ticker in market_ids if ticker not in found]
            for some in _batches(missing):
                for page in self._kalshi.market_pages(None, path=path, tickers=",".join(some)):
                    found |= {market.ticker: market for market in page.items}
                    refusals += page.refused
        return CursorPage(self._listed(found.values(), refusals), refusals, 0, None)

    def _pages(
        self, markets: Sequence[KalshiMarket], refusals: list[RefusedObject]
    ) -> Iterator[CursorPage[KalshiListing]]:
        """Yield markets in pages that are stored at once, the first one with what was refused."""
        items = self._listed(markets, refusals)
        for start in range(0, max(len(items), 1), MAX_MARKETS_PER_PAGE):
            some = items[start : start + MAX_MARKETS_PER_PAGE]
            yield CursorPage(some, [] if start else refusals, 0, None)

    def _listed(self, markets: Iterable[KalshiMarket], refusals: list[RefusedObject]) -> list[KalshiListing]:
        """Join markets with their events and series, which are read unless this run has read them."""
        now, markets = self._now(), list(markets)
        unknown = {market.event_ticker for market in markets}.difference(self._events)
        for some in _batches(sorted(unknown)):
            for page in self._kalshi.event_pages(None, tickers=",".join(some)):
                for event in page.items:
                    self._keep(event)
                refusals += page.refused
        found = []
        for market in markets:
            known = self._events.get(market.event_ticker)
            if known is None and not market.title:  # a row without a question would be left out
                refusals.append(refused(SOURCE, "market: neither a title nor an event", market.raw.encode()))
                continue
            found.append(KalshiListing(market, known, self._series[known.series_ticker] if known else None, now))
        return found

    def _keep(self, event: KalshiEvent) -> None:
        """Keep an event without its markets, and read its series."""
        event.markets = None
        if event.series_ticker not in self._series:
            try:
                self._series[event.series_ticker] = self._kalshi.series(event.series_ticker)
            except Malformed:  # it is reported; its markets come without it
                self._series[event.series_ticker] = None
        self._events[event.event_ticker] = event  # last: another thread may look for both


def _batches(tickers: Sequence[str]) -> Iterator[Sequence[str]]:
    for start in range(0, len(tickers), MAX_NAMED):
        yield tickers[start : start + MAX_NAMED]


def _seconds(instant: datetime) -> int:
    return int(instant.timestamp())
