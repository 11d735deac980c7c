"""The markets and events the exchange lists, as Gamma describes them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, TypeAlias

from upstream.sandbox.exchange.book import SandboxBook
from upstream.transport.micro import ONE, parse

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

Gamma: TypeAlias = dict[str, Any]


class SandboxMarket:
    """A listed market: its Gamma object, and the books of its outcomes.

    A simulated market has one book for both outcomes. A recorded one has a book per outcome, as a recording does not
    guarantee that the two agree.
    """

    __slots__ = (
        "books",
        "condition_id",
        "custom",
        "gamma",
        "has_book",
        "last_price",
        "min_size",
        "neg_risk",
        "tags",
        "tick",
        "tokens",
    )

    def __init__(self, gamma: Gamma, *, mirrored: bool, tags: Iterable[Gamma] = ()) -> None:
        self.gamma = gamma
        self.condition_id: str = gamma.get("conditionId") or ""
        self.tokens: tuple[str, ...] = tuple(token_ids(gamma))
        first = SandboxBook()
        self.books: tuple[tuple[SandboxBook, int], ...] = tuple(
            (first, outcome) if mirrored else (SandboxBook(), 0) for outcome, _ in enumerate(self.tokens)
        )
        self.has_book = mirrored
        self.tick = parse(gamma.get("orderPriceMinTickSize") or 0.01)
        self.min_size = gamma.get("orderMinSize") or 5
        self.neg_risk = bool(gamma.get("negRisk"))
        self.last_price: list[int | None] = [None] * len(self.tokens)
        self.tags = list(tags)

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


class Catalogue:
    """Markets and events, indexed by each of their names."""

    def __init__(self) -> None:
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
        return self.by_token.get(token)

    def event_with_markets(self, event: Gamma) -> Gamma:
        """Return an event as /events shows it, with its markets inside (and those without their events)."""
        markets = [
            {key: value for key, value in market.gamma.items() if key != "events"}
            for market in self.members[str(event["id"])]
        ]
        return {**event, "markets": markets}

    def tags_of(self, market: SandboxMarket) -> list[Gamma]:
        """Return a market's tags."""
        found = list(market.tags)
        for event in market.gamma.get("events") or ():
            found.extend(self.events.get(str(event["id"]), event).get("tags") or ())
        return found

    def __iter__(self) -> Iterator[SandboxMarket]:
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
