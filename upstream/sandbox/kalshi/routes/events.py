"""Events and series."""

from __future__ import annotations

from typing import TYPE_CHECKING

from upstream.sandbox.common.answers import route
from upstream.sandbox.kalshi.formats import contracts
from upstream.sandbox.kalshi.routes.markets import STATUSES, nested
from upstream.sandbox.kalshi.routes.query import Json, flag, invalid, limit_of, not_found, page, several, whole

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.routing import Route

    from upstream.sandbox.kalshi.exchange.exchange import KalshiExchange
    from upstream.sandbox.kalshi.exchange.listings import KalshiEvent, KalshiMarket, KalshiSeries
    from upstream.sandbox.kalshi.routes.markets import MarketRoutes

MAX_EVENTS = 200


class EventRoutes:
    """Endpoints of events and series."""

    def __init__(self, exchange: KalshiExchange, markets: MarketRoutes) -> None:
        self._exchange = exchange
        self._markets = markets

    def routes(self) -> list[Route]:
        """Return the routes."""
        return [
            route("/events", lambda request: self._page(request, combos=False)),
            route("/events/multivariate", lambda request: self._page(request, combos=True)),
            route("/events/fee_changes", lambda _request: {"event_fee_changes": [], "cursor": ""}),
            route("/events/{ticker}", self.event),
            route("/events/{ticker}/metadata", self.metadata),
            route("/series", self.all_series),
            route("/series/fee_changes", lambda _request: {"series_fee_change_arr": []}),
            route("/series/{ticker}", self.series),
            route("/search/tags_by_categories", self.tags),
            route("/search/filters_by_sport", lambda _request: {"filters_by_sports": {}, "sport_ordering": []}),
        ]

    # --- Events ---

    def _page(self, request: Request, *, combos: bool) -> Json:
        query = request.query_params
        status, series = query.get("status", ""), query.get("series_ticker", "")
        if status and (status not in STATUSES or status == "paused"):
            raise invalid("invalid status filter")
        min_close, min_updated = whole(query, "min_close_ts"), whole(query, "min_updated_ts")
        tickers = set(several(query, "tickers"))

        def wanted(event: KalshiEvent) -> bool:
            return (
                event.combo == combos
                and (not tickers or event.ticker in tickers)
                and (not series or event.series.ticker == series)
                and (not status or any(market.status in STATUSES[status] for market in event.markets))
                and (min_close is None or any(market.close_ms >= min_close * 1000 for market in event.markets))
                and (min_updated is None or (event.updated_ms or event.created_ms) >= min_updated * 1000)
            )

        events = reversed(self._exchange.events.values())
        found, cursor = page(request, events, limit_of(query, MAX_EVENTS, MAX_EVENTS), wanted)
        shown = [event.json() for event in found]
        if nested(query):
            for event, of_event in zip(found, shown, strict=True):
                of_event["markets"] = [market.json() for market in self._live(event)]
        return {"events": shown, "milestones": [], "cursor": cursor}

    def _live(self, event: KalshiEvent) -> list[KalshiMarket]:
        """Return an event's markets that REST knows on this side of the cutoff."""
        return [market for market in event.markets if self._markets.is_shown(market)]

    def _find(self, request: Request) -> KalshiEvent:
        event = self._exchange.events.get(request.path_params["ticker"])
        if event is None:
            raise not_found()
        return event

    def event(self, request: Request) -> Json:
        """Return an event with its markets: inside it if they are wanted so, beside it otherwise."""
        event = self._find(request)
        markets = [market.json() for market in self._live(event)]
        if nested(request.query_params):
            return {"event": event.json() | {"markets": markets}}
        return {"event": event.json(), "markets": markets}

    def metadata(self, request: Request) -> Json:
        """Return an event's pictures."""
        event = self._find(request)
        image = f"/images/{event.series.ticker}.png"
        details = [
            {"market_ticker": market.ticker, "image_url": image, "color_code": "#00D298"} for market in event.markets
        ]
        return {"image_url": image, "market_details": details, "settlement_sources": [], "competition": None}

    # --- Series ---

    def all_series(self, request: Request) -> Json:
        """Return all series of a category and with one of some tags, without pages."""
        query = request.query_params
        category, tags = query.get("category", ""), set(several(query, "tags"))
        min_updated = whole(query, "min_updated_ts")
        found = [
            series
            for series in self._exchange.series.values()
            if (not category or series.category == category)
            and (not tags or tags.intersection(series.tags))
            and (min_updated is None or series.updated_ms >= min_updated * 1000)
        ]
        volumes = self._volumes() if flag(query, "include_volume") else None
        return {"series": [self._shown(series, volumes) for series in found]}

    def series(self, request: Request) -> Json:
        """Return a series."""
        series = self._exchange.series.get(request.path_params["ticker"])
        if series is None:
            raise not_found()
        volumes = self._volumes() if flag(request.query_params, "include_volume") else None
        return {"series": self._shown(series, volumes)}

    def _volumes(self) -> dict[str, int]:
        volumes: dict[str, int] = {}
        for market in self._exchange.markets.values():
            ticker = market.event.series.ticker
            volumes[ticker] = volumes.get(ticker, 0) + market.volume
        return volumes

    def _shown(self, series: KalshiSeries, volumes: dict[str, int] | None) -> Json:
        if volumes is None:
            return series.json()
        return series.json() | {"volume_fp": contracts(volumes.get(series.ticker, 0))}

    def tags(self, _request: Request) -> Json:
        """Return the tags of each category; null for one without."""
        found: dict[str, list[str] | None] = {}
        for series in self._exchange.series.values():
            known = found.setdefault(series.category, None) or []
            found[series.category] = [*known, *(tag for tag in series.tags if tag not in known)] or None
        return {"tags_by_categories": found}
