"""The markets and events the exchange lists, as Gamma describes them."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from upstream.sandbox.common.book import SandboxBook
from upstream.transport.micro import ONE, parse

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

Gamma: TypeAlias = dict[str, Any]


class SandboxMarket:
    """A listed market: its Gamma object, and the books of its outcomes.

    A simulated market has one book for both outcomes. A recorded one has a book per outcome, as a recording does not
    guarantee that the two agree.
    """

    __slots__ = (
        "_gamma",
        "books",
        "condition_id",
        "has_book",
        "last_price",
        "min_size",
        "neg_risk",
        "tags",
        "tick",
        "tokens",
        "traded",
    )

    def __init__(self, gamma: Gamma, *, mirrored: bool, tags: Iterable[Gamma] = ()) -> None:
        self._gamma = gamma
        self._set_up(gamma.get("conditionId") or "", tuple(token_ids(gamma)), mirrored=mirrored)
        self.tick = parse(gamma.get("orderPriceMinTickSize") or 0.01)
        self.min_size = gamma.get("orderMinSize") or 5
        self.neg_risk = bool(gamma.get("negRisk"))
        self.tags = list(tags)

    def _set_up(self, condition_id: str, tokens: tuple[str, ...], *, mirrored: bool) -> None:
        self.condition_id, self.tokens = condition_id, tokens
        first = SandboxBook()
        self.books: tuple[tuple[SandboxBook, int], ...] = tuple(
            (first, outcome) if mirrored else (SandboxBook(), 0) for outcome, _ in enumerate(self.tokens)
        )
        self.has_book = mirrored
        self.tick, self.min_size, self.neg_risk = ONE // 100, 5, False
        self.last_price: list[int | None] = [None] * len(tokens)
        self.tags = []
        self.traded = 0  # micro-dollars

    @property
    def gamma(self) -> Gamma:
        """The Gamma object; changes to it stay."""
        return self._gamma

    @property
    def id(self) -> str:
        """The Gamma id."""
        return str(self.gamma["id"])

    @property
    def outcomes(self) -> list[str]:
        """The names of the outcomes."""
        return words(self.gamma.get("outcomes"))

    @property
    def closed(self) -> bool:
        """Whether the market is closed."""
        return bool(self.gamma.get("closed"))

    def best(self, outcome: int) -> tuple[int, int]:
        """Return best bid and best ask of an outcome."""
        book, seen_from = self.books[outcome]
        return book.best(seen_from)

    def printed(self, outcome: int, price: int) -> None:
        """Record the price of a trade, for both outcomes."""
        self.last_price[outcome] = price
        if len(self.last_price) == 2:
            self.last_price[1 - outcome] = ONE - price


class Quiet(Protocol):
    """Markets that are listed, but drawn only when they are needed; they and their events have numbers from 0."""

    def __len__(self) -> int: ...

    @property
    def events(self) -> int:
        """The number of events."""

    def market(self, number: int) -> SandboxMarket:
        """Return a market."""

    def event(self, number: int) -> Gamma:
        """Return an event."""

    def members(self, number: int) -> list[SandboxMarket]:
        """Return an event's markets."""

    def by_name(self, name: str) -> tuple[SandboxMarket, int] | None:
        """Return the market and outcome of a token, or the market of a condition id."""

    def number_of(self, market_id: str) -> int | None:
        """Return the number of a market's id."""

    def event_number_of(self, event_id: str) -> int | None:
        """Return the number of an event's id."""

    def in_order(self, field: str, now_ms: int) -> Sequence[int]:
        """Return the markets' numbers in ascending order of a field."""

    def events_in_order(self, field: str, now_ms: int) -> Sequence[int]:
        """Return the events' numbers in ascending order of a field."""


class Catalogue:
    """Markets and events, indexed by each of their names; `quiet` are those that are not kept here."""

    def __init__(self) -> None:
        self.quiet: Quiet | None = None
        self.markets: dict[str, SandboxMarket] = {}
        self.by_condition: dict[str, SandboxMarket] = {}
        self.by_token: dict[str, tuple[SandboxMarket, int]] = {}
        self.by_slug: dict[str, SandboxMarket] = {}
        self.events: dict[str, Gamma] = {}
        self.event_by_slug: dict[str, Gamma] = {}
        self.members: dict[str, list[SandboxMarket]] = {}
        self.tags: dict[str, Gamma] = {}
        self.series: dict[str, Gamma] = {}

    def add_event(self, event: Gamma) -> None:
        """List an event, with its tags and series."""
        event_id = str(event["id"])
        self.events[event_id] = event
        self.event_by_slug[event.get("slug", "")] = event
        self.members.setdefault(event_id, [])
        for tag in event.get("tags") or ():
            self.tags.setdefault(str(tag["id"]), tag)
        for series in event.get("series") or ():
            self.series.setdefault(str(series["id"]), series)

    def add(self, market: SandboxMarket) -> None:
        """List a market."""
        self.markets[market.id] = market
        self.by_slug.setdefault(market.gamma.get("slug") or "", market)
        if market.condition_id:
            self.by_condition[market.condition_id] = market
        for outcome, token in enumerate(market.tokens):
            self.by_token[token] = (market, outcome)
        for event in market.gamma.get("events") or ():
            self.members.setdefault(str(event["id"]), []).append(market)

    def find(self, token: str) -> tuple[SandboxMarket, int] | None:
        """Return a token's market and outcome, if listed."""
        found = self.by_token.get(token)
        return found if found is not None or self.quiet is None else self.quiet.by_name(token)

    def condition(self, condition_id: str) -> SandboxMarket | None:
        """Return the market of a condition, if listed."""
        found = self.by_condition.get(condition_id)
        if found is None and self.quiet is not None and (named := self.quiet.by_name(condition_id)) is not None:
            return named[0]
        return found

    def market(self, market_id: str) -> SandboxMarket | None:
        """Return a market by its id."""
        found = self.markets.get(market_id)
        if found is None and self.quiet is not None and (number := self.quiet.number_of(market_id)) is not None:
            return self.quiet.market(number)
        return found

    def event(self, event_id: str) -> Gamma | None:
        """Return an event by its id."""
        found = self.events.get(event_id)
        if found is None and self.quiet is not None and (number := self.quiet.event_number_of(event_id)) is not None:
            return self.quiet.event(number)
        return found

    def members_of(self, event_id: str) -> list[SandboxMarket]:
        """Return an event's markets."""
        if self.quiet is not None and (number := self.quiet.event_number_of(event_id)) is not None:
            return self.quiet.members(number)
        return self.members.get(event_id, [])

    def market_of_slug(self, slug: str) -> SandboxMarket | None:
        """Return a market by its slug."""
        events = (self.members_of(each) for each in self._quiet_events_in(slug))
        quiet = (market for members in events for market in members if market.gamma["slug"] == slug)
        return self.by_slug.get(slug) or next(quiet, None)

    def event_of_slug(self, slug: str) -> Gamma | None:
        """Return an event by its slug."""
        quiet = (event for each in self._quiet_events_in(slug) if (event := self.event(each)) and event["slug"] == slug)
        return self.event_by_slug.get(slug) or next(quiet, None)

    def _quiet_events_in(self, slug: str) -> Iterator[str]:
        """Yield the ids of quiet events that a slug may belong to: it holds the event's id, or the market's."""
        for number in re.findall(r"\d+", slug) if self.quiet is not None else ():
            market = self.market(number)
            if market is not None:
                yield str(market.gamma["events"][0]["id"])
            elif self.event(number) is not None:
                yield number

    @property
    def counts(self) -> dict[str, int]:
        """The numbers of markets, open ones, events and tokens."""
        quiet = 0 if self.quiet is None else len(self.quiet)
        return {
            "markets": len(self.markets) + quiet,
            "open_markets": sum(not market.closed for market in self) + quiet,
            "events": len(self.events) + (0 if self.quiet is None else self.quiet.events),
            "tokens": len(self.by_token) + 2 * quiet,
        }

    def event_with_markets(self, event: Gamma) -> Gamma:
        """Return an event as /events shows it, with its markets inside (and those without their events)."""
        markets = [
            {key: value for key, value in market.gamma.items() if key != "events"}
            for market in self.members_of(str(event["id"]))
        ]
        return {**event, "markets": markets}

    def tags_of(self, market: SandboxMarket, gamma: Gamma | None = None) -> list[Gamma]:
        """Return a market's tags; its object may be given if it is at hand."""
        found = list(market.tags)
        for event in (gamma or market.gamma).get("events") or ():
            found.extend((self.event(str(event["id"])) or event).get("tags") or ())
        return found

    def __iter__(self) -> Iterator[SandboxMarket]:
        """Iterate over all but the quiet markets."""
        return iter(self.markets.values())


def token_ids(gamma: Gamma) -> list[str]:
    """Return the ids traded on the book: `positionIds` of a v2 market, `clobTokenIds` (JSON in text) of the others."""
    if gamma.get("version") == "v2" and gamma.get("positionIds"):
        return [str(token) for token in gamma["positionIds"]]
    return words(gamma.get("clobTokenIds"))


def words(text: str | None) -> list[str]:
    """Parse a list that the exchange wrote as JSON in a string."""
    return [str(word) for word in json.loads(text)] if text else []


def listed(items: Iterable[str]) -> str:
    """Format a list as the exchange does, as JSON in a string."""
    return json.dumps(list(items))
