"""Catalogue API: markets and events, by keyset, by offset, by id and by slug."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from upstream.sandbox.common.answers import RefusedError, route
from upstream.sandbox.routes import filters
from upstream.sandbox.routes.filters import Shown
from upstream.sandbox.routes.paging import Sought, flag, invalid, whole

if TYPE_CHECKING:
    from collections.abc import Iterator

    from starlette.requests import Request
    from starlette.routing import Route

    from upstream.sandbox.exchange.catalogue import Gamma, Quiet, SandboxMarket
    from upstream.sandbox.exchange.exchange import SandboxExchange

MARKETS_PER_PAGE, EVENTS_PER_PAGE, TAGS_PER_PAGE, SERIES_PER_PAGE = 100, 500, 100, 50
MARKETS_BY_OFFSET = 500
MAX_SEARCHED = 2_000  # quiet events


class GammaApi:
    """Endpoints of the Gamma API, from the exchange's catalogue."""

    def __init__(self, exchange: SandboxExchange) -> None:
        self._exchange = exchange
        self._catalogue = exchange.catalogue

    def routes(self) -> list[Route]:
        """Return the routes."""
        return [
            route("/markets/keyset", self.markets_by_keyset),
            route("/markets", self.markets_by_offset),
            route("/markets/slug/{slug}", self.market_by_slug),
            route("/markets/{id}", self.market),
            route(
                "/markets/{id}/tags", lambda request: self._catalogue.tags_of(self._market(request.path_params["id"]))
            ),
            route("/events/keyset", self.events_by_keyset),
            route("/events", self.events_by_offset),
            route("/events/slug/{slug}", self.event_by_slug),
            route("/events/{id}", self.event),
            route("/events/{id}/tags", lambda request: self._event(request.path_params["id"]).get("tags") or []),
            route("/tags", lambda request: _by_offset(request, list(self._catalogue.tags.values()), TAGS_PER_PAGE)),
            route("/tags/slug/{slug}", self.tag_by_slug),
            route("/tags/{id}", lambda request: _known(self._catalogue.tags.get(request.path_params["id"]), "id")),
            route(
                "/series", lambda request: _by_offset(request, list(self._catalogue.series.values()), SERIES_PER_PAGE)
            ),
            route("/series/{id}", lambda request: _known(self._catalogue.series.get(request.path_params["id"]), "id")),
            route("/sports", lambda _request: []),
            route("/public-search", self.search),
        ]

    # --- Markets ---

    def markets_by_keyset(self, request: Request) -> dict[str, Any]:
        """Return a page of markets by cursor."""
        limit = whole(request.query_params, "limit", 20, MARKETS_PER_PAGE)
        page, cursor = self._sought_markets(request).page(_cursor(request), limit)
        return _page("markets", [self._tagged(shown, request) for shown in page], cursor)

    def markets_by_offset(self, request: Request) -> list[Gamma]:
        """Return a page of markets by offset."""
        limit = whole(request.query_params, "limit", 20, MARKETS_BY_OFFSET)
        page = self._sought_markets(request).part(_offset(request), limit)
        return [self._tagged(shown, request) for shown in page]

    def market(self, request: Request) -> Gamma:
        """Return one market by id."""
        return self._tagged(_shown(self._market(request.path_params["id"])), request)

    def market_by_slug(self, request: Request) -> Gamma:
        """Return one market by slug."""
        self._exchange.refresh()
        market = self._catalogue.market_of_slug(request.path_params["slug"])
        if market is None:
            raise _missing("slug")
        return self._tagged(_shown(market), request)

    # --- Events ---

    def events_by_keyset(self, request: Request) -> dict[str, Any]:
        """Return a page of events by cursor."""
        page, cursor = self._sought_events(request).page(_cursor(request), self._events_per_page(request))
        return _page("events", [self._catalogue.event_with_markets(event) for event in page], cursor)

    def events_by_offset(self, request: Request) -> list[Gamma]:
        """Return a page of events by offset."""
        page = self._sought_events(request).part(_offset(request), self._events_per_page(request))
        return [self._catalogue.event_with_markets(event) for event in page]

    def event(self, request: Request) -> Gamma:
        """Return one event by id."""
        return self._catalogue.event_with_markets(self._event(request.path_params["id"]))

    def event_by_slug(self, request: Request) -> Gamma:
        """Return one event by slug."""
        self._exchange.refresh()
        return self._catalogue.event_with_markets(
            _known(self._catalogue.event_of_slug(request.path_params["slug"]), "slug")
        )

    def tag_by_slug(self, request: Request) -> Gamma:
        """Return one tag by slug."""
        slug = request.path_params["slug"]
        return _known(next((tag for tag in self._catalogue.tags.values() if tag.get("slug") == slug), None), "slug")

    def search(self, request: Request) -> dict[str, Any]:
        """Search events by words in their titles; empty sections are left out."""
        words = request.query_params.get("q", "").lower().split()
        if not words:
            raise invalid("q is required")
        self._exchange.refresh()
        limit = whole(request.query_params, "limit_per_type", 10)
        start = limit * (max(whole(request.query_params, "page", 1), 1) - 1)
        hits = [event for event in self._searched() if _speaks_of(event, words)]
        shown = [self._catalogue.event_with_markets(event) for event in hits[start : start + limit]]
        answer: dict[str, Any] = {"events": shown} if shown else {}
        return answer | {"pagination": {"hasMore": len(hits) > start + limit, "totalResults": len(hits)}}

    # --- Parts ---

    def _sought_markets(self, request: Request) -> Sought[Shown]:
        self._exchange.refresh()
        catalogue, query = self._catalogue, request.query_params
        wanted = filters.market_test(catalogue, query)
        key, descending = filters.order_of(query)
        return Sought(
            filter(wanted, map(_shown, catalogue)),
            lambda shown: key(shown.gamma),
            descending=descending,
            quiet=filters.quiet_markets(catalogue, query, self._exchange.now_ms),
            make=lambda number: _shown(self._quiet.market(number)),
            wanted=wanted,
        )

    def _sought_events(self, request: Request) -> Sought[Gamma]:
        self._exchange.refresh()
        catalogue, query = self._catalogue, request.query_params
        wanted = filters.event_test(query)
        key, descending = filters.order_of(query)
        return Sought(
            filter(wanted, catalogue.events.values()),
            key,
            descending=descending,
            quiet=filters.quiet_events(catalogue, query, self._exchange.now_ms),
            make=lambda number: self._quiet.event(number),  # noqa: PLW0108 - there may be none
            wanted=wanted,
        )

    @property
    def _quiet(self) -> Quiet:
        assert self._catalogue.quiet is not None
        return self._catalogue.quiet

    def _events_per_page(self, request: Request) -> int:
        return whole(request.query_params, "limit", 20, EVENTS_PER_PAGE)

    def _searched(self) -> Iterator[Gamma]:
        """Yield the events that a search looks at: of the quiet ones, the most active."""
        yield from self._catalogue.events.values()
        quiet = self._catalogue.quiet
        for number in range(min(MAX_SEARCHED, 0 if quiet is None else quiet.events)):
            yield self._quiet.event(number)

    def _market(self, market_id: str) -> SandboxMarket:
        if not market_id.isdecimal():
            raise invalid("id is invalid")
        self._exchange.refresh()
        market = self._catalogue.market(market_id)
        if market is None:
            raise _missing("id")
        return market

    def _event(self, event_id: str) -> Gamma:
        if not event_id.isdecimal():
            raise invalid("id is invalid")
        self._exchange.refresh()
        return _known(self._catalogue.event(event_id), "id")

    def _tagged(self, shown: Shown, request: Request) -> Gamma:
        gamma, market = shown
        if flag(request.query_params, "include_tag"):
            return {**gamma, "tags": self._catalogue.tags_of(market, gamma)}
        return gamma


def _shown(market: SandboxMarket) -> Shown:
    return Shown(market.gamma, market)


def _cursor(request: Request) -> str | None:
    """Return the cursor; the name is `after_cursor`, and any other one is ignored, as the exchange does."""
    if "offset" in request.query_params:
        raise invalid("offset is not supported by keyset pagination")
    if getattr(request.state, "repeat", False):
        return None
    return request.query_params.get("after_cursor")


def _offset(request: Request) -> int:
    return 0 if getattr(request.state, "repeat", False) else whole(request.query_params, "offset", 0)


def _page(name: str, items: list[Gamma], cursor: str | None) -> dict[str, Any]:
    return {name: items} | ({"next_cursor": cursor} if cursor else {})


def _by_offset(request: Request, items: list[Gamma], most: int) -> list[Gamma]:
    start = _offset(request)
    return items[start : start + whole(request.query_params, "limit", most, most)]


def _speaks_of(event: Gamma, words: list[str]) -> bool:
    text = f"{event.get('title', '')} {event.get('slug', '')}".lower()
    return all(word in text for word in words)


def _known(item: Gamma | None, name: str) -> Gamma:
    if item is None:
        raise _missing(name)
    return item


def _missing(name: str) -> RefusedError:
    return RefusedError(404, {"type": "not found error", "error": f"{name} not found"})
