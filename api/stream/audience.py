"""Who listens live, found by what they want: frames are built once for all who want the same."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, TypeVar

from api.stream.subscriber import Event, Filter, Subscriber, frames

if TYPE_CHECKING:
    from collections.abc import Iterator

    from api.stream.subscriber import Packed

K = TypeVar("K")
V = TypeVar("V")
Due = tuple[list[tuple[Subscriber, int]], "Packed"]  # who, in which turn, and what is to be sent


class Audience:
    """Subscribers by filter, filters by market, subscribers by wallet and account."""

    def __init__(self) -> None:
        self._groups: dict[Filter, set[Subscriber]] = {}
        self._by_market: dict[str, set[Filter]] = defaultdict(set)
        self._of_all: set[Filter] = set()
        self._by_wallet: dict[bytes, set[Subscriber]] = defaultdict(set)
        self._by_account: dict[int, set[Subscriber]] = defaultdict(set)

    def join(self, subscriber: Subscriber) -> None:
        """Take in whoever is up to date."""
        wants = subscriber.wants
        self._groups.setdefault(wants, set()).add(subscriber)
        if wants.markets is None:
            self._of_all.add(wants)
        for market_id in wants.markets or ():
            self._by_market[market_id].add(wants)
        self._by_account[subscriber.account_id].add(subscriber)
        for wallet in subscriber.wallets:
            self._by_wallet[wallet].add(subscriber)

    def leave(self, subscriber: Subscriber) -> None:
        """Forget a subscriber, before it changes what it wants."""
        wants = subscriber.wants
        _discard(self._by_account, subscriber.account_id, subscriber)
        for wallet in subscriber.wallets:
            _discard(self._by_wallet, wallet, subscriber)
        group = self._groups[wants]
        group.discard(subscriber)
        if not group:
            del self._groups[wants]
            self._of_all.discard(wants)
            for market_id in wants.markets or ():
                _discard(self._by_market, market_id, wants)

    def due(self, events: list[Event]) -> Iterator[Due]:
        """Give what is to be sent to whom; listed whole, so that whoever comes or goes meanwhile changes nothing."""
        own = self._own(events)
        wanted = self._wanted(events)
        for wants, chosen in wanted.items():
            group = [(each, each.turn) for each in self._groups.get(wants, ()) if each not in own]
            if group:
                yield group, frames(chosen)
        for subscriber, extra in own.items():
            chosen = sorted([*wanted.get(subscriber.wants, ()), *extra])
            yield [(subscriber, subscriber.turn)], frames(chosen)

    def _wanted(self, events: list[Event]) -> dict[Filter, list[Event]]:
        """Sort what is told to everyone by the filters that it passes."""
        wanted: dict[Filter, list[Event]] = defaultdict(list)
        for event in events:
            if event.wallet is not None:
                continue
            for group in (self._of_all, self._by_market.get(event.market_id or "", ())):
                for wants in group:
                    if wants.types is None or event.type in wants.types:
                        wanted[wants].append(event)
        return wanted

    def _own(self, events: list[Event]) -> dict[Subscriber, list[Event]]:
        """Sort what concerns a wallet by the subscribers who may and want to know of it."""
        own: dict[Subscriber, list[Event]] = defaultdict(list)
        for event in events:
            if event.wallet is None:
                continue
            for subscriber in {
                *self._by_wallet.get(event.wallet, ()),
                *(each for account_id in event.watchers or () for each in self._by_account.get(account_id, ())),
            }:
                if subscriber.passes(event):
                    own[subscriber].append(event)
        return own


def _discard(places: dict[K, set[V]], key: K, value: V) -> None:
    found = places[key]
    found.discard(value)
    if not found:
        del places[key]
