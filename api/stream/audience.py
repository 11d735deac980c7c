"""An index of live subscribers by filter, so that frames are built once per filter."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, TypeVar

from api.stream.subscriber import Subscriber, SubscriptionFilter, frames
from config.exchanges import EXCHANGES, exchange_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from api.stream.subscriber import Packed
    from sql.stream_reader import StreamEvent

K = TypeVar("K")
V = TypeVar("V")
Due = tuple[list[tuple[Subscriber, int]], "Packed"]  # subscribers with their turn, and the frames to send


class Audience:
    """Indexes subscribers by filter, wallet and account, and filters by market."""

    def __init__(self) -> None:
        self._groups: dict[SubscriptionFilter, set[Subscriber]] = {}
        self._by_market: dict[str, set[SubscriptionFilter]] = defaultdict(set)
        self._of_all: dict[str, set[SubscriptionFilter]] = {exchange: set() for exchange in EXCHANGES}
        self._by_wallet: dict[bytes, set[Subscriber]] = defaultdict(set)
        self._by_account: dict[int, set[Subscriber]] = defaultdict(set)

    def join(self, subscriber: Subscriber) -> None:
        """Add a subscriber that is up to date."""
        wants = subscriber.wants
        self._groups.setdefault(wants, set()).add(subscriber)
        if wants.markets is None:
            self._of_all[wants.exchange].add(wants)
        for market_id in wants.markets or ():
            self._by_market[market_id].add(wants)
        self._by_account[subscriber.account_id].add(subscriber)
        for wallet in subscriber.wallets:
            self._by_wallet[wallet].add(subscriber)

    def leave(self, subscriber: Subscriber) -> None:
        """Remove a subscriber, before its filter changes."""
        wants = subscriber.wants
        _discard(self._by_account, subscriber.account_id, subscriber)
        for wallet in subscriber.wallets:
            _discard(self._by_wallet, wallet, subscriber)
        group = self._groups[wants]
        group.discard(subscriber)
        if not group:
            del self._groups[wants]
            self._of_all[wants.exchange].discard(wants)
            for market_id in wants.markets or ():
                _discard(self._by_market, market_id, wants)

    def due(self, events: list[StreamEvent]) -> Iterator[Due]:
        """Yield the frames to send and their subscribers, encoded when it is their turn.

        Groups are copied at the first turn, so later joins and leaves do not affect them.
        """
        own = self._own(events)
        wanted = self._wanted(events)
        groups: list[tuple[list[tuple[Subscriber, int]], list[StreamEvent]]] = []
        for wants, chosen in wanted.items():
            group = [(each, each.turn) for each in self._groups.get(wants, ()) if each not in own]
            if group:
                groups.append((group, chosen))
        for subscriber, extra in own.items():
            groups.append(([(subscriber, subscriber.turn)], sorted([*wanted.get(subscriber.wants, ()), *extra])))
        for group, chosen in groups:
            yield group, frames(chosen)

    def _wanted(self, events: list[StreamEvent]) -> dict[SubscriptionFilter, list[StreamEvent]]:
        """Group public events by the filters that match them."""
        wanted: dict[SubscriptionFilter, list[StreamEvent]] = defaultdict(list)
        for event in events:
            if event.wallet is not None:
                continue
            market_id = event.market_id
            if market_id is None:
                groups = [*self._of_all.values()]
            else:
                groups = [self._of_all[exchange_of(market_id)], self._by_market.get(market_id, set())]
            for group in groups:
                for wants in group:
                    if wants.types is None or event.type in wants.types:
                        wanted[wants].append(event)
        return wanted

    def _own(self, events: list[StreamEvent]) -> dict[Subscriber, list[StreamEvent]]:
        """Group wallet events by the subscribers that may and want to receive them."""
        own: dict[Subscriber, list[StreamEvent]] = defaultdict(list)
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
