"""What discovery asks of every exchange: its markets, in pages, as rows of the catalogue."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime

    from upstream.transport.http import Client
    from upstream.transport.pages import CursorPage


class Listing(Protocol):
    """A market with all that the catalogue stores of it."""

    @property
    def market_id(self) -> str:
        """Return its id."""
        ...

    def row(self, source: str = "exchange") -> dict[str, Any]:
        """Return a row keyed like `sql.tables.markets`."""
        ...

    def event_row(self) -> dict[str, Any] | None:
        """Return a row keyed like `sql.tables.events`; None: its event is not known here."""
        ...


class Listings(Protocol):
    """An exchange's listing of its markets. A page has at most a thousand of them."""

    exchange: str
    client: Client
    lists_by_time: bool
    """Whether it lists what is new since an instant; else pages of new markets go back for ever."""
    forgets: bool
    """Whether it deletes markets: one that it does not know by its id any more is over."""

    def busiest(self) -> CursorPage[Any] | None:
        """Return the most traded open markets, to be served first; None: the exchange cannot be asked for them."""
        ...

    def open_pages(self) -> Iterator[CursorPage[Any]]:
        """Iterate over all open markets, and those that are not open yet."""
        ...

    def new_pages(self, since: datetime) -> Iterator[CursorPage[Any]]:
        """Iterate over markets listed since an instant, newest first."""
        ...

    def closed_pages(self, cursor: str | None, since: datetime | None) -> Iterator[CursorPage[Any]]:
        """Iterate over markets closed since an instant, or (None) over all that the exchange keeps, from a cursor."""
        ...

    def named(self, market_ids: Sequence[str]) -> CursorPage[Any]:
        """Return those of some markets that the exchange knows, open or not."""
        ...
