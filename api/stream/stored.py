"""A cache of stored events in pages of a thousand, since clients that reconnect mostly do so together."""

from __future__ import annotations

from bisect import bisect_right
from collections import OrderedDict
from dataclasses import dataclass, field
from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple

from api.stream.subscriber import Subscriber, SubscriptionFilter, frames

if TYPE_CHECKING:
    from collections.abc import Callable

    from api.stream.subscriber import Packed
    from sql.stream_reader import StreamEvent

WIDTH = 1000  # events per page: those from n * WIDTH + 1 on
MAX_CACHED_BYTES = 48 << 20  # cached events and the frames encoded from them
EVENT = 350  # bytes of an event's Python objects besides its message
MAX_FILTERS = 16  # filters whose frames are cached per page


SEQ = attrgetter("seq")


class PagePart(NamedTuple):
    """The frames of a page to send, the seq they reach, and whether no event in between is missing."""

    packed: Packed
    last: int
    whole: bool


@dataclass
class EventPage:
    """Events in order, up to `last`; the newest page grows."""

    last: int
    events: list[StreamEvent] = field(default_factory=list)
    personal: list[StreamEvent] = field(default_factory=list)  # the events that are not public
    size: int = 0  # in bytes, frames included
    packed: dict[SubscriptionFilter, Packed] = field(default_factory=dict)

    def grow(self, events: list[StreamEvent], last: int) -> None:
        """Append later events."""
        self.events += events
        self.personal += [event for event in events if event.wallet is not None]
        self.last = last
        self.size += sum(EVENT + len(event.message) for event in events) - sum(map(_size, self.packed.values()))
        self.packed.clear()

    def part(self, subscriber: Subscriber, after: int) -> PagePart:
        """Return the frames for a subscriber after a seq; frames that are common to a filter are encoded once."""
        begin = bisect_right(self.events, after, key=SEQ)
        whole = len(self.events) - begin == self.last - after
        wants, events = subscriber.wants, self.events[begin:] if begin else self.events
        if any(subscriber.passes(event) for event in self.personal if event.seq > after):
            return PagePart(frames(filter(subscriber.passes, events)), self.last, whole)
        public = (event for event in events if event.wallet is None and wants.passes(event))
        if begin:
            return PagePart(frames(public), self.last, whole)
        if (packed := self.packed.get(wants)) is None:
            packed = frames(public)
            if len(self.packed) < MAX_FILTERS:
                self.packed[wants] = packed
                self.size += _size(packed)
        return PagePart(packed, self.last, whole)


def _size(packed: Packed) -> int:
    return sum(len(data) for data, _ in packed)


class EventStore:
    """Cached pages of stored events.

    `read` returns those after one seq and up to another: all or only the first ones, but at least one if there is any.
    """

    def __init__(self, read: Callable[[int, int], list[StreamEvent]]) -> None:
        self._read = read
        self._pages: OrderedDict[int, EventPage] = OrderedDict()

    def page(self, after: int, upto: int) -> EventPage:
        """Return the page that follows a seq, read up to its end or to `upto`."""
        number = after // WIDTH
        upto = min(upto, (number + 1) * WIDTH)
        page = self._pages.setdefault(number, EventPage(number * WIDTH))
        self._pages.move_to_end(number)
        while page.last < upto:
            begin = page.last
            events = self._read(begin, upto)
            if page.last == begin:  # otherwise another greenlet has read it meanwhile
                page.grow(events, events[-1].seq if events else upto)
        self._bound()
        return page

    def forget(self) -> None:
        """Drop all pages, when the database was replaced."""
        self._pages.clear()

    def _bound(self) -> None:
        size = sum(page.size for page in self._pages.values())
        while size > MAX_CACHED_BYTES and len(self._pages) > 1:
            size -= self._pages.popitem(last=False)[1].size
