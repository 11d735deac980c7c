"""Polymarket's listing, as discovery asks for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from upstream.transport.numbers import instant
from upstream.transport.pages import CursorPage

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime

    from upstream.polymarket.gamma.client import Gamma, GammaMarket


class GammaListings:
    """Markets of Gamma: `upstream.transport.listings.Listings`."""

    exchange = "polymarket"
    lists_by_time = False
    forgets = False

    def __init__(self, gamma: Gamma) -> None:
        self._gamma = gamma
        self.client = gamma.client

    def busiest(self) -> CursorPage[GammaMarket] | None:
        """Return the most traded open markets."""
        return next(self._gamma.market_pages(None, closed=False, order="volume24hr", ascending=False), None)

    def open_pages(self) -> Iterator[CursorPage[GammaMarket]]:
        """Iterate over all open markets."""
        return self._gamma.market_pages(None, closed=False)

    def new_pages(self, since: datetime) -> Iterator[CursorPage[GammaMarket]]:  # noqa: ARG002 (it cannot be asked for)
        """Iterate over all open markets, newest first."""
        return self._gamma.market_pages(None, closed=False, order="createdAt", ascending=False)

    def closed_pages(self, cursor: str | None, since: datetime | None) -> Iterator[CursorPage[GammaMarket]]:
        """Iterate over closed markets: newest first down to an instant, or all, from a cursor."""
        if since is None:
            yield from self._gamma.market_pages(cursor, closed=True)
            return
        for page in self._gamma.market_pages(cursor, closed=True, order="closedTime", ascending=False):
            if any(closed < since for market in page.items if (closed := instant(market.closed_time)) is not None):
                page.next_cursor = None  # by the time that it is ordered by
                yield page
                return
            yield page

    def named(self, market_ids: Sequence[str]) -> CursorPage[GammaMarket]:
        """Return those of some markets that Gamma knows, open or closed; it reports what it cannot read."""
        return CursorPage(self._gamma.markets_by_condition(market_ids), [], 0, None)
