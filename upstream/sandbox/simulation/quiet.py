"""Markets beyond the busiest: each is drawn from the seed when it is needed, and kept only once it has traded.

Events follow each other in a fixed order of kinds, so that a market's number names its event; ids, condition ids and
tokens hold the number, so that nothing has to be indexed. Their activity follows Zipf's law: the market of rank r
trades 1/r times as often as the first.
"""

from __future__ import annotations

import hashlib
import math
import random
from bisect import bisect_right
from functools import lru_cache
from itertools import accumulate
from typing import TYPE_CHECKING

import numpy as np

from upstream.sandbox.common import zipf
from upstream.sandbox.common.book import BUY, SELL
from upstream.sandbox.common.walks import Group
from upstream.sandbox.exchange.catalogue import Gamma, SandboxMarket, listed
from upstream.sandbox.simulation.figures import figures
from upstream.sandbox.simulation.orderflow import FINE_TICK
from upstream.sandbox.simulation.running import Running
from upstream.sandbox.simulation.universe import Universe, brief
from upstream.transport.micro import ONE, parse, text

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy.typing as npt

    from upstream.sandbox.common.book import SandboxBook
    from upstream.sandbox.simulation.universe import EventPlan

    Floats = npt.NDArray[np.float64]

FIRST_EVENT, FIRST_MARKET = 500_001, 8_100_001  # ids below those of the busy markets
MAX_QUIET = 500_000  # markets; ids of more would reach those of the past's events
SIZES = (5, 2, 4, 1, 1)  # markets of the kinds of event, in the order in which `Universe` makes them
GROUPED = (True, False, True, False, False)
POSITIONS = (False, False, False, True, False)  # second protocol: positions in place of the first's tokens
FIRSTS = (0, *accumulate(SIZES))
LEVELS = 4  # per side of a new book
VOLUME, VOLUME_24H = 400_000.0, 20_000.0  # of the first quiet market; the others' decrease with their rank
VOLUMES = {"volume": VOLUME, "volumeNum": VOLUME, "volume24hr": VOLUME_24H}
EVENT_VOLUMES = ("volume", "volume24hr")
SAME_FOR_ALL = {"id", "createdAt", "startDate", "updatedAt", "closedTime"}
KEPT_EVENTS = 512  # shown lately, but not traded
SECRET_BYTES, NUMBER_BYTES = 27, 5  # of a name
CONDITION, TOKENS, POSITION_TOKENS = 0, (1, 2), (3, 4)  # what a name is for
SORTED_FOR_MS = 10_000


class QuietMarket(SandboxMarket):
    """A market that is described anew whenever it is shown; without names and book until it is first needed."""

    __slots__ = ("_describe", "fair", "number")

    def __init__(self, number: int, fair: float, describe: Callable[[QuietMarket], Gamma]) -> None:
        self.number, self.fair = number, fair
        self._describe = describe
        self.has_book = False
        self.traded = 0

    def furnish(self, condition_id: str, tokens: tuple[str, str], dice: random.Random, ms: int) -> None:
        """Give the market its names, and a book around its first fair price."""
        fair = self.fair
        self._set_up(condition_id, tokens, mirrored=True)
        self.tick = ONE // 100 if 0.04 <= fair <= 0.96 else FINE_TICK
        book = self.books[0][0]
        _fill(book, fair, self.tick, dice)
        book.ts_ms = ms
        self.printed(0, round(fair * ONE / self.tick) * self.tick)

    @property
    def id(self) -> str:
        """The Gamma id."""
        return str(FIRST_MARKET + self.number)

    @property
    def gamma(self) -> Gamma:
        """The Gamma object as of now: a new one each time."""
        return self._describe(self)

    @property
    def closed(self) -> bool:
        """Whether the market is closed: quiet markets stay open."""
        return False


class QuietMarkets:
    """The quiet markets by number, from 0: the most active one; `rank` is how many busier markets there are."""

    def __init__(self, seed: int, count: int, *, rank: int, start_ms: int, listed_ms: int) -> None:
        if not 0 <= count <= MAX_QUIET:
            raise ValueError(f"at most {MAX_QUIET} quiet markets")
        self._seed, self._count, self._rank = seed, count, rank
        self._start_ms, self._listed_ms = start_ms, listed_ms
        self.weight = rank * math.log((rank + count) / rank)  # of all, in that of the least active busy market
        self._traded: dict[int, list[Running]] = {}  # by event
        self._lately = lru_cache(KEPT_EVENTS)(self._make)
        self._plan = lru_cache(KEPT_EVENTS)(self._planned)
        self._orders: dict[tuple[str, int], tuple[int, list[int]]] = {}

    def __len__(self) -> int:
        return self._count

    @property
    def kept(self) -> int:
        """The number of markets that have traded, and are kept."""
        return sum(map(len, self._traded.values()))

    # --- Trading ---

    def drawn(self, chance: float) -> Running:
        """Return the market for a number from 0 up to 1, by Zipf's law, and keep it."""
        number = zipf.drawn(chance, self._count, self._rank)
        event, place = _event_of(number)
        found = self._traded.get(event)
        if found is None:
            found = self._traded[event] = self._lately(event)
        self._furnish(found, place)
        return found[place]

    def _make(self, event: int) -> list[Running]:
        """Return an event's markets as they are at the start."""
        dice = random.Random(self._seed << 64 | event << 1)  # noqa: S311 - repeatable dice are what is wanted
        numbers, group = self._numbers(event), None
        if GROUPED[event % len(SIZES)]:
            group = Group()
            shares = [dice.paretovariate(1.2) for _ in numbers]
            chances = [max(share / sum(shares), 0.01) for share in shares]
            fairs = [chance / sum(chances) for chance in chances]
        else:
            fairs = chances = [dice.uniform(0.08, 0.92) for _ in numbers]
        return [
            Running(
                QuietMarket(number, fair, self._described),
                chance,
                group,
                sigma=dice.uniform(0.008, 0.03),
                ms=self._start_ms,
            )
            for number, fair, chance in zip(numbers, fairs, chances, strict=True)
        ]

    def _furnish(self, members: list[Running], place: int) -> None:
        """Give a market its names and first orders, which do not depend on what the event's others have traded."""
        market = members[place].market
        if market.has_book:
            return
        assert isinstance(market, QuietMarket)
        number = market.number
        uses = POSITION_TOKENS if POSITIONS[_event_of(number)[0] % len(SIZES)] else TOKENS
        tokens = self._token(number, uses[0]), self._token(number, uses[1])
        dice = random.Random(self._seed << 64 | number << 1 | 1)  # noqa: S311 - repeatable dice are what is wanted
        market.furnish(f"0x{self._name(number, CONDITION):064x}", tokens, dice, self._start_ms)
        market.neg_risk = members[place].group is not None

    # --- Finding ---

    def market(self, number: int) -> SandboxMarket:
        """Return a market by number; its state is lost unless it has traded."""
        event, place = _event_of(number)
        members = self._traded.get(event) or self._lately(event)
        self._furnish(members, place)
        return members[place].market

    def by_name(self, name: str) -> tuple[SandboxMarket, int] | None:
        """Return the market and outcome of a token, or of a condition id with outcome 0."""
        try:
            number, use = self._read_name(int(name, 16 if name.startswith("0x") else 10))
        except ValueError:
            return None
        if number is None:
            return None
        market = self.market(number)
        if use == CONDITION:
            return (market, 0) if market.condition_id == name else None
        return (market, market.tokens.index(name)) if name in market.tokens else None

    def number_of(self, market_id: str) -> int | None:
        """Return the number of a Gamma id."""
        number = int(market_id) - FIRST_MARKET if market_id.isdecimal() else -1
        return number if 0 <= number < self._count else None

    def event_number_of(self, event_id: str) -> int | None:
        """Return the number of an event's id."""
        number = int(event_id) - FIRST_EVENT if event_id.isdecimal() else -1
        return number if 0 <= number < self.events else None

    @property
    def events(self) -> int:
        """The number of events."""
        return _event_of(self._count - 1)[0] + 1 if self._count else 0

    def event(self, number: int) -> Gamma:
        """Return an event by number."""
        whole = self._plan(number).event
        volumes = dict.fromkeys(EVENT_VOLUMES, 0.0)
        for market in self.members(number):
            assert isinstance(market, QuietMarket)
            for field in EVENT_VOLUMES:
                volumes[field] += VOLUMES[field] * self._share(market.number) + market.traded / ONE
        return whole | {field: round(volume, 6) for field, volume in volumes.items()}

    def members(self, number: int) -> list[SandboxMarket]:
        """Return an event's markets."""
        return [self.market(each) for each in self._numbers(number)]

    def in_order(self, field: str, now_ms: int) -> Sequence[int]:
        """Return all numbers in ascending order of a field, then of the id; sorted now and then for volumes.

        Other fields that differ between markets are sorted once, which describes all of them.
        """
        markets = range(self._count)
        return self._ordered(markets, field, now_ms, lambda number: self.market(number).gamma, self._volumes)

    def events_in_order(self, field: str, now_ms: int) -> Sequence[int]:
        """Return all events' numbers in ascending order of a field, like the markets'."""
        events = range(self.events)

        def volumes(field: str) -> Floats:
            firsts = [self._numbers(event).start for event in events]
            added: Floats = np.add.reduceat(self._volumes(field), firsts)
            return added

        return self._ordered(events, field, now_ms, lambda number: self._plan(number).event, volumes)

    def _ordered(
        self,
        numbers: range,
        field: str,
        now_ms: int,
        described: Callable[[int], Gamma],
        volumes: Callable[[str], Floats],
    ) -> Sequence[int]:
        if field in SAME_FOR_ALL:
            return numbers
        sorted_ms, order = self._orders.get((field, len(numbers)), (0, []))
        if field in VOLUMES and (not order or now_ms - sorted_ms > SORTED_FOR_MS):
            order = np.argsort(volumes(field), kind="stable").tolist()
        elif not order:
            values = [described(number).get(field) for number in numbers]
            order = sorted(numbers, key=lambda number: (values[number] is not None, values[number]))
        self._orders[field, len(numbers)] = now_ms, order
        return order

    def _volumes(self, field: str) -> Floats:
        volumes: Floats = VOLUMES[field] * self._rank / (self._rank + 1 + np.arange(self._count))
        for event, members in self._traded.items():
            for number, running in zip(self._numbers(event), members, strict=True):
                volumes[number] += running.market.traded / ONE
        return volumes

    def _share(self, number: int) -> float:
        """Return how active a market is, compared with the busiest quiet one."""
        return self._rank / (self._rank + 1 + number)

    def _numbers(self, event: int) -> range:
        cycle, kind = divmod(event, len(SIZES))
        first = cycle * FIRSTS[-1] + FIRSTS[kind]
        return range(first, min(first + SIZES[kind], self._count))

    # --- Describing ---

    def _planned(self, event: int) -> EventPlan:
        universe = Universe(
            self._seed,
            name=f"quiet/{event}",
            first_event=FIRST_EVENT + event,
            first_market=FIRST_MARKET + self._numbers(event).start,
            first_kind=event,
            candidates=SIZES[0],
        )
        plan = universe.event(self._listed_ms)
        plan.markets = plan.markets[: len(self._numbers(event))]
        return plan

    def _described(self, market: QuietMarket) -> Gamma:
        event, place = _event_of(market.number)
        plan = self._plan(event)
        positions = POSITIONS[event % len(SIZES)]
        tokens = [self._token(market.number, use) for use in TOKENS] if positions else market.tokens
        share = self._share(market.number)
        gamma = plan.markets[place].gamma | {
            "conditionId": market.condition_id,
            "clobTokenIds": listed(tokens),
            "orderPriceMinTickSize": market.tick / ONE,
            "volume": text(parse(round(VOLUME * share, 6)) + market.traded),
            "volume24hr": round(VOLUME_24H * share + market.traded / ONE, 6),
            "events": [brief(plan.event)],
        }
        if positions:
            gamma["positionIds"] = list(market.tokens)
        gamma["volumeNum"] = float(gamma["volume"])
        return gamma | figures(market)

    # --- Names ---

    def _token(self, number: int, use: int) -> str:
        return str(self._name(number, use))

    def _name(self, number: int, use: int) -> int:
        """Return 256 bits that look random and hold a number and what they name."""
        plain = number << 3 | use
        secret = _digest(f"{self._seed}/{plain}".encode(), SECRET_BYTES)
        hidden = plain ^ int.from_bytes(_digest(secret, NUMBER_BYTES))
        return int.from_bytes(secret) << 8 * NUMBER_BYTES | hidden

    def _read_name(self, name: int) -> tuple[int | None, int]:
        if not 0 <= name < 1 << 8 * (SECRET_BYTES + NUMBER_BYTES):
            return None, 0
        secret, hidden = divmod(name, 1 << 8 * NUMBER_BYTES)
        plain = hidden ^ int.from_bytes(_digest(secret.to_bytes(SECRET_BYTES), NUMBER_BYTES))
        number, use = plain >> 3, plain & 7
        return (number if number < self._count and self._name(number, use) == name else None), use


def _event_of(number: int) -> tuple[int, int]:
    """Return the event of a market, and its place there."""
    cycle, rest = divmod(number, FIRSTS[-1])
    kind = bisect_right(FIRSTS, rest) - 1
    return cycle * len(SIZES) + kind, rest - FIRSTS[kind]


def _fill(book: SandboxBook, fair: float, tick: int, dice: random.Random) -> None:
    """Put a few orders into a new book, one a tick, around the fair price."""
    middle, end = int(fair * ONE / tick), ONE // tick
    for side, first in ((BUY, middle - LEVELS + 1), (SELL, middle + 1)):
        ticks = range(max(first, 1), min(first + LEVELS, end))
        book.fill(side, [(at * tick, int(5 + dice.expovariate(0.01)) * ONE) for at in ticks])


def _digest(value: bytes, size: int) -> bytes:
    return hashlib.blake2b(value, digest_size=size).digest()
