"""Gamma client: the exchange's catalogue of markets and events, paginated by cursor."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from urllib.parse import quote

import msgspec

from upstream.polymarket.gamma.events import GammaEvent, Tag
from upstream.polymarket.gamma.markets import GammaMarket
from upstream.transport.catalogue import Status
from upstream.transport.errors import FAULTS, Malformed, NotFound, RefusedObject, refused
from upstream.transport.http import Client, Value
from upstream.transport.pages import CursorPage, walk

__all__ = ["Gamma", "GammaEvent", "GammaMarket", "RefusedObject", "Status", "Tag", "nested_markets"]

URL = "https://gamma-api.polymarket.com"
LIMITS = {"": 4000, "/markets": 300, "/events": 500}
"""Requests in ten seconds, as documented."""
MARKETS_PER_PAGE = 100
EVENTS_PER_PAGE = 500
MAX_CONDITIONS_PER_CALL = 50
"""Documented as 100, but 100 ids exceed the 8 kB URL limit of many proxies."""

SOURCE = "gamma"
NUMBER = re.compile("[0-9]+")


class _MarketsPage(msgspec.Struct):
    markets: list[msgspec.Raw]
    next_cursor: str | None = None


class _EventsPage(msgspec.Struct):
    events: list[msgspec.Raw]
    next_cursor: str | None = None


class _TagFound(msgspec.Struct):
    id: str


_markets_page = msgspec.json.Decoder(_MarketsPage)
_events_page = msgspec.json.Decoder(_EventsPage)
_event = msgspec.json.Decoder(GammaEvent)
_raw = msgspec.json.Decoder(msgspec.Raw)
_tag = msgspec.json.Decoder(_TagFound)


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

    def market_pages(self, cursor: str | None = None, **filters: Value) -> Iterator[CursorPage[GammaMarket]]:
        """Iterate over pages from a cursor of an earlier iteration, or from the beginning.

        Skipped are objects without a condition id, as some of 2020 are: valid, but they cannot be stored.
        """
        filters.setdefault("include_tag", True)

        def page(after: str | None) -> CursorPage[GammaMarket]:
            sent = self.client.get(
                f"{self.url}/markets/keyset",
                _markets_page,
                {"limit": MARKETS_PER_PAGE, **filters, "after_cursor": after},
            )
            return _page_of_markets(sent.markets, sent.next_cursor)

        return walk(page, cursor, lambda market: str(market.id))

    def event_pages(self, cursor: str | None = None, **filters: Value) -> Iterator[CursorPage[GammaEvent]]:
        """Iterate over pages from a cursor of an earlier iteration, or from the beginning."""

        def page(after: str | None) -> CursorPage[GammaEvent]:
            sent = self.client.get(
                f"{self.url}/events/keyset", _events_page, {"limit": EVENTS_PER_PAGE, **filters, "after_cursor": after}
            )
            read: CursorPage[GammaEvent] = CursorPage([], [], 0, sent.next_cursor or None)
            for piece in sent.events:
                try:
                    read.items.append(_event.decode(piece))
                except FAULTS as fault:
                    read.refused.append(refused(SOURCE, f"event: {fault}", bytes(piece)))
            return read

        return walk(page, cursor, lambda event: event.event_id)

    def market(self, which: str) -> GammaMarket | None:
        """Fetch one market by its condition id, the exchange's number or its slug; None when not found."""
        if which.startswith("0x"):
            return next(iter(self.markets_by_condition([which])), None)
        try:
            path = f"/markets/{which}" if NUMBER.fullmatch(which) else _by_slug("/markets", which)
            sent = self.client.get(f"{self.url}{path}", _raw, {"include_tag": True})
        except NotFound:
            return None
        page = _page_of_markets([sent], None)
        if page.refused:
            raise Malformed(f"{self.url}{path}: {page.refused[0].reason}")
        return page.items[0] if page.items else None

    def tag_id(self, slug: str) -> str | None:
        """Fetch the exchange's number of a tag; None when not found."""
        try:
            return self.client.get(f"{self.url}{_by_slug('/tags', slug)}", _tag).id
        except NotFound:
            return None

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
) -> CursorPage[GammaMarket]:
    read: CursorPage[GammaMarket] = CursorPage([], [], 0, cursor or None)
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


def _by_slug(path: str, slug: str) -> str:
    """Return the path of what has a slug. NotFound: it would lead elsewhere, as no slug of the exchange does."""
    if not slug.strip("."):  # a segment of dots is resolved, even if they are escaped
        raise NotFound(f"no slug: {slug!r}")
    return f"{path}/slug/{quote(slug, safe='')}"
