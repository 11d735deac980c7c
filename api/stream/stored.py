"""Stored events for replays: read a thousand at once, and kept a while, as those who come back mostly come together."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from api.stream.subscriber import Event, Filter, Subscriber, frames
from sql.queries import stream as queries

if TYPE_CHECKING:
    from api.pool import Pool
    from api.stream.subscriber import Packed

WIDTH = 1000  # events of a page: those from n * WIDTH + 1 on
MOST_BYTES = 32 << 20  # of messages kept; their frames may take as much again
MOST_PACKED = 16  # filters whose frames are kept with a page


@dataclass
class Page:
    """Some events in order, without a hole unless `whole` says otherwise."""

    events: list[Event]
    last: int  # what a reader is past when it has had them
    whole: bool
    size: int = 0
    packed: dict[Filter, Packed] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Note whether anything in it is not for everyone."""
        self.personal = any(event.wallet is not None for event in self.events)

    def frames(self, subscriber: Subscriber) -> Packed:
        """Give what a subscriber is to get of it."""
        wants = subscriber.wants
        if self.personal:
            return frames(filter(subscriber.passes, self.events))
        if (packed := self.packed.get(wants)) is None:
            packed = frames(self.events if wants.everything else filter(wants.passes, self.events))
            if len(self.packed) < MOST_PACKED:
                self.packed[wants] = packed
        return packed


class Stored:
    """The events in the database, a page at a time."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._pages: OrderedDict[int, Page] = OrderedDict()
        self._size = 0

    def after(self, position: int, upto: int) -> Page:
        """Give events after a position: a page's at most, and none beyond `upto`."""
        number = position // WIDTH
        end = (number + 1) * WIDTH
        if end > upto:
            return self._read(position, upto)
        if (page := self._pages.get(number)) is None:
            page = self._keep(number, self._read(number * WIDTH, end))
        self._pages.move_to_end(number)
        if position == number * WIDTH:
            return page
        rest = page.events[-(end - position) :] if page.whole else [e for e in page.events if e.seq > position]
        return Page(rest, end, len(rest) == end - position)

    def forget(self) -> None:
        """Drop all pages: another database took this one's place."""
        self._pages.clear()
        self._size = 0

    def _read(self, after: int, upto: int) -> Page:
        upto = min(upto, after + WIDTH)
        rows = self._pool.read(lambda conn: list(queries.between(conn, after=after, upto=upto, limit=WIDTH)))
        return Page([Event(*row) for row in rows], upto, len(rows) == upto - after)

    def _keep(self, number: int, page: Page) -> Page:
        page.size = sum(len(event.message) for event in page.events)
        if number not in self._pages:  # read by another meanwhile
            self._pages[number] = page
            self._size += page.size
        while self._size > MOST_BYTES and len(self._pages) > 1:
            self._size -= self._pages.popitem(last=False)[1].size
        return self._pages.get(number, page)
