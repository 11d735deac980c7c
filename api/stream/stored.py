"""Stored events for replays: read a thousand at once, and kept a while, as those who come back mostly come together."""

from __future__ import annotations

from bisect import bisect_right
from collections import OrderedDict
from dataclasses import dataclass, field
from itertools import starmap
from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple

from api.data import statements
from api.stream.subscriber import Event, Filter, Subscriber, frames
from sql.queries import stream as queries

if TYPE_CHECKING:
    from collections.abc import Callable

    from api.data.pool import Connection
    from api.stream.subscriber import Packed

WIDTH = 1000  # events of a page: those from n * WIDTH + 1 on
MOST_BYTES = 48 << 20  # of what is kept: events, and frames that they were packed into
EVENT = 350  # bytes that an event takes beside its message, in objects of Python's
MOST_PACKED = 16  # filters whose frames are kept with a page


SEQ = attrgetter("seq")


class Part(NamedTuple):
    """A step of a replay: what is to be sent, up to which event that goes, and whether all of those are kept."""

    packed: Packed
    last: int
    whole: bool


@dataclass
class Page:
    """Events in order, up to `last`; the newest page grows."""

    last: int
    events: list[Event] = field(default_factory=list)
    personal: list[Event] = field(default_factory=list)  # those of them that are not for everyone
    size: int = 0  # bytes that all of it takes
    packed: dict[Filter, Packed] = field(default_factory=dict)

    def grow(self, events: list[Event], last: int) -> None:
        """Add what comes after."""
        self.events += events
        self.personal += [event for event in events if event.wallet is not None]
        self.last = last
        self.size += sum(EVENT + len(event.message) for event in events) - sum(map(_size, self.packed.values()))
        self.packed.clear()

    def part(self, subscriber: Subscriber, after: int) -> Part:
        """Give what a subscriber is to get of it; what is the same for many is packed once."""
        begin = bisect_right(self.events, after, key=SEQ)
        whole = len(self.events) - begin == self.last - after
        wants, events = subscriber.wants, self.events[begin:] if begin else self.events
        if any(subscriber.passes(event) for event in self.personal if event.seq > after):
            return Part(frames(filter(subscriber.passes, events)), self.last, whole)
        told = (event for event in events if event.wallet is None and wants.passes(event))
        if begin:
            return Part(frames(told), self.last, whole)
        if (packed := self.packed.get(wants)) is None:
            packed = frames(told)
            if len(self.packed) < MOST_PACKED:
                self.packed[wants] = packed
                self.size += _size(packed)
        return Part(packed, self.last, whole)


def _size(packed: Packed) -> int:
    return sum(len(data) for data, _ in packed)


def between(conn: Connection, after: int, upto: int, limit: int = WIDTH) -> list[Event]:
    """Read events in order."""
    rows = statements.run(conn, queries.between, {"after": after, "upto": upto, "limit": limit})
    return list(starmap(Event, rows))


class Stored:
    """The events in the database, a page at a time; `read` gives those after one and up to another."""

    def __init__(self, read: Callable[[int, int], list[Event]]) -> None:
        self._read = read
        self._pages: OrderedDict[int, Page] = OrderedDict()

    def page(self, after: int, upto: int) -> Page:
        """Give the page with what comes after an event, read up to its end or to `upto`."""
        number = after // WIDTH
        upto = min(upto, (number + 1) * WIDTH)
        page = self._pages.setdefault(number, Page(number * WIDTH))
        self._pages.move_to_end(number)
        while page.last < upto:
            begin = page.last
            events = self._read(begin, upto)
            if page.last == begin:  # otherwise someone else has read it meanwhile
                page.grow(events, upto)
        self._bound()
        return page

    def forget(self) -> None:
        """Drop all pages: another database took this one's place."""
        self._pages.clear()

    def _bound(self) -> None:
        size = sum(page.size for page in self._pages.values())
        while size > MOST_BYTES and len(self._pages) > 1:
            size -= self._pages.popitem(last=False)[1].size
