"""The catalogue: markets, events and series."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from upstream.kalshi.rest.events import KalshiEvent, KalshiSeries
from upstream.kalshi.rest.markets import KalshiMarket, read_markets
from upstream.kalshi.rest.requests import SOURCE, Requests, asked, same
from upstream.transport.errors import FAULTS, Malformed, NotFound, RefusedObject, refused
from upstream.transport.pages import CursorPage, walk

if TYPE_CHECKING:
    from collections.abc import Iterator

    from upstream.transport.http import Value

LIVE_MARKETS = "/markets"
HISTORICAL_MARKETS = "/historical/markets"
"""Markets that settled before the cutoff: the live listing has them no more."""
MARKETS_PER_PAGE = 1000
EVENTS_PER_PAGE = 200


class _MarketsPage(msgspec.Struct):
    markets: list[msgspec.Raw]
    cursor: str | None = None


class _OneMarket(msgspec.Struct):
    market: msgspec.Raw


class _EventsPage(msgspec.Struct):
    """Markets that were asked for are inside their events, or beside them, as one reader saw."""

    events: list[msgspec.Raw]
    markets: list[msgspec.Raw] | None = None
    cursor: str | None = None


class _OneEvent(msgspec.Struct):
    event: msgspec.Raw
    markets: list[msgspec.Raw] | None = None


class _OfEvent(msgspec.Struct):
    event_ticker: str


class _AllSeries(msgspec.Struct):
    series: list[msgspec.Raw] | None = None


class _OneSeries(msgspec.Struct):
    series: msgspec.Raw


_markets_page = msgspec.json.Decoder(_MarketsPage)
_one_market = msgspec.json.Decoder(_OneMarket)
_events_page = msgspec.json.Decoder(_EventsPage)
_one_event = msgspec.json.Decoder(_OneEvent)
_of_event = msgspec.json.Decoder(_OfEvent)
_all_series = msgspec.json.Decoder(_AllSeries)
_one_series = msgspec.json.Decoder(_OneSeries)


class CatalogueClient(Requests):
    """Reads markets, events and series. Combos, markets that are made on request of others, are left out."""

    def markets(self, path: str = LIVE_MARKETS, **filters: Value) -> Iterator[KalshiMarket]:
        """Iterate over all markets that match the filters, live ones or `HISTORICAL_MARKETS`."""
        for page in self.market_pages(None, path=path, **filters):
            self._report(page.refused)
            yield from page.items

    def market_pages(
        self, cursor: str | None = None, *, path: str = LIVE_MARKETS, **filters: Value
    ) -> Iterator[CursorPage[KalshiMarket]]:
        """Iterate over pages from a cursor of an earlier iteration, or from the beginning; combos are skipped.

        A trade or settlement may take half a minute to show. Historical markets take one filter only.
        """
        if path == LIVE_MARKETS or not filters:
            filters.setdefault("mve_filter", "exclude")

        def page(after: str | None) -> CursorPage[KalshiMarket]:
            sent = self._get(path, _markets_page, {"limit": MARKETS_PER_PAGE, **filters, "cursor": after})
            markets, refusals, combos = read_markets(sent.markets)
            return CursorPage(markets, refusals, combos, sent.cursor or None)

        return walk(page, cursor, lambda market: market.ticker)

    def market(self, ticker: str) -> KalshiMarket | None:
        """Fetch one market, live or historical; None when not found, as for some seconds after it was created."""
        for path in (LIVE_MARKETS, HISTORICAL_MARKETS):
            try:
                sent = self._get(f"{path}/{asked(ticker)}", _one_market)
            except NotFound:
                continue
            try:
                market = KalshiMarket.read(bytes(sent.market))
                same(market.ticker, ticker)
            except FAULTS as fault:
                self._refuse(f"market: {fault}", sent.market)
                raise Malformed(f"{path}/{ticker}: {fault}") from fault
            return market
        return None

    def events(self, **filters: Value) -> Iterator[KalshiEvent]:
        """Iterate over all matching events; with `with_nested_markets=True` each has its markets as sent."""
        for page in self.event_pages(None, **filters):
            self._report(page.refused)
            yield from page.items

    def event_pages(self, cursor: str | None = None, **filters: Value) -> Iterator[CursorPage[KalshiEvent]]:
        """Iterate over pages from a cursor of an earlier iteration, or from the beginning; combos are skipped."""

        def page(after: str | None) -> CursorPage[KalshiEvent]:
            sent = self._get("/events", _events_page, {"limit": EVENTS_PER_PAGE, **filters, "cursor": after})
            read: CursorPage[KalshiEvent] = CursorPage([], [], 0, sent.cursor or None)
            beside = _by_event(sent.markets or [], read.refused)
            for piece in sent.events:
                try:
                    event = KalshiEvent.read(piece)
                except FAULTS as fault:
                    read.refused.append(refused(SOURCE, f"event: {fault}", bytes(piece)))
                    continue
                if event.is_combo:
                    read.skipped += 1
                    continue
                if not event.markets:
                    event.markets = beside.get(event.event_ticker)
                read.items.append(event)
            return read

        return walk(page, cursor, lambda event: event.event_ticker)

    def event(self, event_ticker: str) -> KalshiEvent | None:
        """Fetch one event with its markets as sent; None when not found."""
        path = f"/events/{asked(event_ticker)}"
        try:
            sent = self._get(path, _one_event, {"with_nested_markets": True})
        except NotFound:
            return None
        try:
            event = KalshiEvent.read(sent.event)
            same(event.event_ticker, event_ticker)
        except FAULTS as fault:
            self._refuse(f"event: {fault}", sent.event)
            raise Malformed(f"{path}: {fault}") from fault
        if not event.markets:
            event.markets = sent.markets
        return event

    def nested_markets(self, event: KalshiEvent) -> list[KalshiMarket]:
        """Parse the markets of an event."""
        markets, refusals, _ = read_markets(event.markets or [])
        self._report(refusals)
        return markets

    def all_series(self, **filters: Value) -> list[KalshiSeries]:
        """Fetch all series in one answer, of some 18 MB without a filter (`category="Sports"`)."""
        found: list[KalshiSeries] = []
        for piece in self._get("/series", _all_series, filters).series or []:
            try:
                found.append(KalshiSeries.read(piece))
            except FAULTS as fault:
                self._refuse(f"series: {fault}", piece)
        return found

    def series(self, series_ticker: str) -> KalshiSeries | None:
        """Fetch one series; None when not found."""
        path = f"/series/{asked(series_ticker)}"
        try:
            sent = self._get(path, _one_series)
        except NotFound:
            return None
        try:
            series = KalshiSeries.read(sent.series)
            same(series.ticker, series_ticker)
        except FAULTS as fault:
            self._refuse(f"series: {fault}", sent.series)
            raise Malformed(f"{path}: {fault}") from fault
        return series


def _by_event(markets: list[msgspec.Raw], refusals: list[RefusedObject]) -> dict[str, list[msgspec.Raw]]:
    found: dict[str, list[msgspec.Raw]] = {}
    for piece in markets:
        try:
            found.setdefault(_of_event.decode(piece).event_ticker, []).append(piece)
        except FAULTS as fault:
            refusals.append(refused(SOURCE, f"market: {fault}", bytes(piece)))
    return found
