"""Gamma, the exchange's catalogue: markets and events, walked page by page."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Generic, TypeVar
from urllib.parse import quote

import msgspec

from upstream.polymarket.gamma.events import Event, Tag
from upstream.polymarket.gamma.markets import Market, Status
from upstream.transport.errors import FAULTS, Incomplete, Malformed, NotFound, Refused, refused
from upstream.transport.http import Client, Value

__all__ = ["Event", "Gamma", "Market", "Page", "Refused", "Status", "Tag", "nested"]

URL = "https://gamma-api.polymarket.com"
LIMITS = {"": 4000, "/markets": 300, "/events": 500}
"""Requests in ten seconds, as documented."""
MARKETS_A_PAGE = 100
EVENTS_A_PAGE = 500
CONDITIONS_A_CALL = 50
"""Documented as 100, but 100 ids make a URL of more than the 8 kB that many a proxy takes."""
MOST_PAGES = 100_000
MOST_EMPTY_PAGES = 3

SOURCE = "gamma"

T = TypeVar("T", Market, Event)


class Page(msgspec.Struct, Generic[T]):
    """One page of a walk: what could be read, what could not, and where the next one begins."""

    items: list[T]
    refused: list[Refused]
    skipped: int
    """Objects without a condition id, as some of 2020 are: nothing is wrong with them, but they cannot be stored."""
    next_cursor: str | None
    """None after the last page; opaque, and good for going on later."""


class _MarketsPage(msgspec.Struct):
    markets: list[msgspec.Raw]
    next_cursor: str | None = None


class _EventsPage(msgspec.Struct):
    events: list[msgspec.Raw]
    next_cursor: str | None = None


_markets_page = msgspec.json.Decoder(_MarketsPage)
_events_page = msgspec.json.Decoder(_EventsPage)
_event = msgspec.json.Decoder(Event)
_raw = msgspec.json.Decoder(msgspec.Raw)


class Gamma:
    """The catalogue. Filters are the exchange's own: `closed=False`, `order="volume24hr"`, `id=["1", "2"]`."""

    def __init__(self, client: Client, url: str = URL, *, on_refused: Callable[[Refused], None] | None = None) -> None:
        self.client = client
        self.url = url.rstrip("/")
        self._on_refused = on_refused
        client.limits.declare(self.url, LIMITS)

    def markets(self, **filters: Value) -> Iterator[Market]:
        """Walk all markets that pass the filters; what cannot be read goes to `on_refused`."""
        for page in self.market_pages(None, **filters):
            self._report(page.refused)
            yield from page.items

    def events(self, **filters: Value) -> Iterator[Event]:
        """Walk all events that pass the filters, each with its markets as sent (`nested` reads them)."""
        for page in self.event_pages(None, **filters):
            self._report(page.refused)
            yield from page.items

    def _report(self, refusals: Iterable[Refused]) -> None:
        for refusal in refusals:
            if self._on_refused is not None:
                self._on_refused(refusal)

    def market_pages(self, cursor: str | None = None, **filters: Value) -> Iterator[Page[Market]]:
        """Walk from a cursor of an earlier walk, or from the beginning."""
        filters.setdefault("include_tag", True)

        def page(after: str | None) -> Page[Market]:
            sent = self.client.get(
                f"{self.url}/markets/keyset", _markets_page, {"limit": MARKETS_A_PAGE, **filters, "after_cursor": after}
            )
            return _page_of_markets(sent.markets, sent.next_cursor)

        return _walk(page, cursor, lambda market: str(market.id))

    def event_pages(self, cursor: str | None = None, **filters: Value) -> Iterator[Page[Event]]:
        """Walk from a cursor of an earlier walk, or from the beginning."""

        def page(after: str | None) -> Page[Event]:
            sent = self.client.get(
                f"{self.url}/events/keyset", _events_page, {"limit": EVENTS_A_PAGE, **filters, "after_cursor": after}
            )
            read: Page[Event] = Page([], [], 0, sent.next_cursor or None)
            for piece in sent.events:
                try:
                    read.items.append(_event.decode(piece))
                except FAULTS as fault:
                    read.refused.append(refused(SOURCE, f"event: {fault}", bytes(piece)))
            return read

        return _walk(page, cursor, lambda event: event.event_id)

    def market(self, which: str) -> Market | None:
        """One market by its condition id, the exchange's number or its slug; None when there is none."""
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

    def markets_by_condition(self, condition_ids: Iterable[str]) -> list[Market]:
        """Those of these markets that the exchange knows, open or closed; order is not kept."""
        wanted = list(dict.fromkeys(condition_id.lower() for condition_id in condition_ids))
        found: dict[str, Market] = {}
        for start in range(0, len(wanted), CONDITIONS_A_CALL):
            some = wanted[start : start + CONDITIONS_A_CALL]
            # Without `closed` the exchange may list open markets alone: those missing are asked for again, as closed.
            for closed in (None, True):
                if missing := [condition_id for condition_id in some if condition_id not in found]:
                    for market in self.markets(condition_ids=missing, closed=closed):
                        found[market.market_id] = market
        return [found[condition_id] for condition_id in wanted if condition_id in found]


def nested(event: Event) -> tuple[list[Market], list[Refused]]:
    """Read the markets that came inside an event; each knows its event, and what cannot be read is refused."""
    parent = msgspec.structs.replace(event, markets=None)
    page = _page_of_markets(event.markets or [], None, parent)
    return page.items, page.refused


def _page_of_markets(pieces: Sequence[msgspec.Raw], cursor: str | None, event: Event | None = None) -> Page[Market]:
    read: Page[Market] = Page([], [], 0, cursor or None)
    for piece in pieces:
        try:
            market = Market.read(bytes(piece), event)
        except FAULTS as fault:
            read.refused.append(refused(SOURCE, f"market: {fault}", bytes(piece)))
            continue
        if market.market_id:
            read.items.append(market)
        else:
            read.skipped += 1
    return read


def _walk(
    page_after: Callable[[str | None], Page[T]], cursor: str | None, identity: Callable[[T], str]
) -> Iterator[Page[T]]:
    """Follow cursors to the end; Incomplete as soon as the walk goes in circles."""
    seen = {cursor}
    seen_pages: set[tuple[str, ...]] = set()
    empty = 0
    for _ in range(MOST_PAGES):
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
        if empty >= MOST_EMPTY_PAGES:
            raise Incomplete(f"{empty} empty pages, and still a further cursor")
        seen.add(page.next_cursor)
        seen_pages.add(ids)
        cursor = page.next_cursor
    raise Incomplete(f"more than {MOST_PAGES} pages")
