"""Gamma client: the exchange's catalogue of markets and events, paginated by cursor."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Generic, TypeVar
from urllib.parse import quote

import msgspec

from upstream.polymarket.gamma.events import GammaEvent, Tag
from upstream.polymarket.gamma.markets import GammaMarket, Status
from upstream.transport.errors import FAULTS, Incomplete, Malformed, NotFound, RefusedObject, refused
from upstream.transport.http import Client, Value

__all__ = ["Gamma", "GammaEvent", "GammaMarket", "GammaPage", "RefusedObject", "Status", "Tag", "nested_markets"]

URL = "https://gamma-api.polymarket.com"
LIMITS = {"": 4000, "/markets": 300, "/events": 500}
"""Requests in ten seconds, as documented."""
MARKETS_PER_PAGE = 100
EVENTS_PER_PAGE = 500
MAX_CONDITIONS_PER_CALL = 50
"""Documented as 100, but 100 ids exceed the 8 kB URL limit of many proxies."""
MAX_PAGES = 100_000
MAX_EMPTY_PAGES = 3

SOURCE = "gamma"

T = TypeVar("T", GammaMarket, GammaEvent)


class GammaPage(msgspec.Struct, Generic[T]):
    """One page: readable items, refused ones, and the cursor of the next page."""

    items: list[T]
    refused: list[RefusedObject]
    skipped: int
    """Objects without a condition id, as some of 2020 are: valid, but they cannot be stored."""
    next_cursor: str | None
    """None after the last page; opaque, and valid for resuming later."""


class _MarketsPage(msgspec.Struct):
    markets: list[msgspec.Raw]
    next_cursor: str | None = None


class _EventsPage(msgspec.Struct):
    events: list[msgspec.Raw]
    next_cursor: str | None = None


_markets_page = msgspec.json.Decoder(_MarketsPage)
_events_page = msgspec.json.Decoder(_EventsPage)
_event = msgspec.json.Decoder(GammaEvent)
_raw = msgspec.json.Decoder(msgspec.Raw)


class Gamma:
    """Catalogue client. Filters are the exchange's own: `closed=False`, `order="volume24hr"`, `id=["1", "2"]`."""

    def __init__(
        self, client: Client, url: str = URL, *, on_refused: Callable[[RefusedObject], None] | None = None
    ) -> None:
        self.client = client
        self.url = url.rstrip("/")
        self._on_refused = on_refused
        client.limits.declare(self.url, LIMITS)

    def markets(self, **filters: Value) -> Iterator[GammaMarket]:
        """Iterate over all markets that match the filters; unreadable ones go to `on_refused`."""
        for page in self.market_pages(None, **filters):
            self._report(page.refused)
            yield from page.items

    def events(self, **filters: Value) -> Iterator[GammaEvent]:
        """Iterate over all matching events, each with its markets as sent (`nested_markets` parses them)."""
        for page in self.event_pages(None, **filters):
            self._report(page.refused)
            yield from page.items

    def _report(self, refusals: Iterable[RefusedObject]) -> None:
        for refusal in refusals:
            if self._on_refused is not None:
                self._on_refused(refusal)

    def market_pages(self, cursor: str | None = None, **filters: Value) -> Iterator[GammaPage[GammaMarket]]:
        """Iterate over pages from a cursor of an earlier iteration, or from the beginning."""
        filters.setdefault("include_tag", True)

        def page(after: str | None) -> GammaPage[GammaMarket]:
            sent = self.client.get(
                f"{self.url}/markets/keyset",
                _markets_page,
                {"limit": MARKETS_PER_PAGE, **filters, "after_cursor": after},
            )
            return _page_of_markets(sent.markets, sent.next_cursor)

        return _walk(page, cursor, lambda market: str(market.id))

    def event_pages(self, cursor: str | None = None, **filters: Value) -> Iterator[GammaPage[GammaEvent]]:
        """Iterate over pages from a cursor of an earlier iteration, or from the beginning."""

        def page(after: str | None) -> GammaPage[GammaEvent]:
            sent = self.client.get(
                f"{self.url}/events/keyset", _events_page, {"limit": EVENTS_PER_PAGE, **filters, "after_cursor": after}
            )
            read: GammaPage[GammaEvent] = GammaPage([], [], 0, sent.next_cursor or None)
            for piece in sent.events:
                try:
                    read.items.append(_event.decode(piece))
                except FAULTS as fault:
                    read.refused.append(refused(SOURCE, f"event: {fault}", bytes(piece)))
            return read

        return _walk(page, cursor, lambda event: event.event_id)

    def market(self, which: str) -> GammaMarket | None:
        """Fetch one market by its condition id, the exchange's number or its slug; None when not found."""
        if which.startswith("0x"):
            return next(iter(self.markets_by_condition([which])), None)
        path = f"/markets/{which}" if which.isdecimal() else f"/markets/slug/{quote(which, safe='')}"
        try:
            sent = self.client.get(f"{self.url}{path}", _raw, {"include_tag": True})
        except NotFound:
            return None
        page = _page_of_markets([sent], None)
        if page.refused:
            raise Malformed(f"{self.url}{path}: {page.refused[0].reason}")
        return page.items[0] if page.items else None

    def markets_by_condition(self, condition_ids: Iterable[str]) -> list[GammaMarket]:
        """Return those of these markets that the exchange knows, open or closed; order is not kept."""
        wanted = list(dict.fromkeys(condition_id.lower() for condition_id in condition_ids))
        found: dict[str, GammaMarket] = {}
        for start in range(0, len(wanted), MAX_CONDITIONS_PER_CALL):
            some = wanted[start : start + MAX_CONDITIONS_PER_CALL]
            # Without `closed` the exchange may list open markets only: missing ones are requested again, as closed.
            for closed in (None, True):
                if missing := [condition_id for condition_id in some if condition_id not in found]:
                    for market in self.markets(condition_ids=missing, closed=closed):
                        found[market.market_id] = market
        return [found[condition_id] for condition_id in wanted if condition_id in found]


def nested_markets(event: GammaEvent) -> tuple[list[GammaMarket], list[RefusedObject]]:
    """Parse the markets inside an event; each knows its event, and unreadable ones are refused."""
    parent = msgspec.structs.replace(event, markets=None)
    page = _page_of_markets(event.markets or [], None, parent)
    return page.items, page.refused


def _page_of_markets(
    pieces: Sequence[msgspec.Raw], cursor: str | None, event: GammaEvent | None = None
) -> GammaPage[GammaMarket]:
    read: GammaPage[GammaMarket] = GammaPage([], [], 0, cursor or None)
    for piece in pieces:
        try:
            market = GammaMarket.read(bytes(piece), event)
        except FAULTS as fault:
            read.refused.append(refused(SOURCE, f"market: {fault}", bytes(piece)))
            continue
        if market.market_id:
            read.items.append(market)
        else:
            read.skipped += 1
    return read


def _walk(
    page_after: Callable[[str | None], GammaPage[T]], cursor: str | None, identity: Callable[[T], str]
) -> Iterator[GammaPage[T]]:
    """Follow cursors to the end; raise Incomplete as soon as pages repeat."""
    seen = {cursor}
    seen_pages: set[tuple[str, ...]] = set()
    empty = 0
    for _ in range(MAX_PAGES):
        page = page_after(cursor)
        ids = tuple(identity(item) for item in page.items)
        if ids and ids in seen_pages:
            raise Incomplete(f"the page after cursor {cursor!r:.80} came before")
        yield page
        if page.next_cursor is None:
            return
        if page.next_cursor in seen:
            raise Incomplete(f"cursor {page.next_cursor!r:.80} came again")
        empty = 0 if page.items or page.refused or page.skipped else empty + 1
        if empty >= MAX_EMPTY_PAGES:
            raise Incomplete(f"{empty} empty pages, and still a further cursor")
        seen.add(page.next_cursor)
        seen_pages.add(ids)
        cursor = page.next_cursor
    raise Incomplete(f"more than {MAX_PAGES} pages")
