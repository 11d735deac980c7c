"""History before a simulation's start: markets that opened, traded and resolved, generated from the seed as arrays.

Everything is computed in advance, nothing is played: a market's fair price is a path that ends where the simulation
begins, or at its result. A trade opens a position of a taker, who buys from the market's dealer or from a maker who
takes the other outcome (a pair is minted). Some positions are closed later, by a sale to another wallet or by both
sides together (the pair is merged). At the opening the dealer mints as many pairs as it sells. So no wallet ever sells
what it does not hold, and no trade depends on another market's.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from upstream.sandbox.chain.chain import ANCHOR, ANCHOR_MS, BLOCK_MS
from upstream.sandbox.exchange.catalogue import SandboxMarket, listed
from upstream.sandbox.exchange.trades import SandboxTrade
from upstream.sandbox.exchange.transactions import Fill, Match, PositionChange
from upstream.sandbox.simulation.universe import COINS, Universe, brief, iso, short
from upstream.transport.micro import ONE, text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    import numpy.typing as npt

    from upstream.sandbox.exchange.catalogue import Catalogue, Gamma
    from upstream.sandbox.exchange.population import Population
    from upstream.sandbox.exchange.transactions import Form, Kind, Transaction
    from upstream.sandbox.simulation.universe import EventPlan

    Floats = npt.NDArray[np.float64]
    Array = npt.NDArray[Any]

HOUR_MS, DAY_MS = 3_600_000, 86_400_000
END_MS = 30_000  # from the last trade of the past to the first of the simulation: its block is final by then
OPENED = 6_000  # positions opened in markets that are open when the simulation begins, over a fortnight
LATELY, LATELY_TIMES = DAY_MS, 3.0  # the last day is this many times busier
EVENTS_A_DAY, EVENT_OPENED = (
    3,
    12,
)  # long-running events that resolve per day; positions opened in each of their markets
HOUR_OPENED = 6  # positions opened in an up/down market of an hour
DEALT = 0.6  # share of positions opened with the dealer
CLOSED = 0.45  # share of positions closed before the market's end
TOGETHER = 0.5  # share of those against another maker that both sides close together (merge)
REDEEMED = 0.85  # share of winners who redeem
BURST_EVERY_DAYS, BURST_MS, BURST_OPENED = 2.5, 2_400_000, 12  # news: the price jumps, and trading spikes
REVERTED = 0.4  # share of news that reverts
DRIFT = 0.07  # of the logit, per hour
SHARES, SPREAD, LARGE, LARGE_TIMES = 7.5, 1.25, 0.01, 8.0  # the logarithm of the size of a position, in shares
FIRST_EVENT, FIRST_MARKET = 700_001, 8_000_001

FORMS: tuple[Form, ...] = ("", "mint", "merge")
KINDS: tuple[Kind, ...] = ("prepare", "split", "merge", "resolve", "redeem")
TRADE = np.dtype(
    [
        *(("ts_ms", "i8"), ("market", "i4"), ("outcome", "i1"), ("buys", "?"), ("price", "i8"), ("size", "i8")),
        *(("taker", "i4"), ("maker", "i4"), ("form", "i1")),
    ]
)
MOVE = np.dtype(
    [("ts_ms", "i8"), ("kind", "i1"), ("market", "i4"), ("outcome", "i1"), ("wallet", "i4"), ("amounts", "i8", 2)]
)


class MarketLife(NamedTuple):
    """A market, its trading period, and its winning outcome; None for one that is still open."""

    market: SandboxMarket
    opens_ms: int
    ends_ms: int
    winner: int | None
    resolved_ms: int
    opened: float


@dataclass
class Path:
    """The fair price of the first outcome over time."""

    ts_ms: Floats
    price: Floats
    bursts: Floats

    def at(self, ts_ms: Array) -> Floats:
        """Return the prices at some instants."""
        return np.interp(ts_ms, self.ts_ms, self.price)


class SimulatedPast:
    """The history before a moment; deterministic per seed and moment.

    `running` are the events of the markets that are open at that moment. Markets resolved before it are added to the
    catalogue.
    """

    def __init__(
        self,
        catalogue: Catalogue,
        population: Population,
        *,
        seed: int,
        end_ms: int,
        days: int,
        running: Iterable[EventPlan],
    ) -> None:
        self._catalogue, self._population = catalogue, population
        self._seed = seed
        self.end_ms, self.start_ms, self.days = end_ms, end_ms - days * DAY_MS, days
        self._dice = np.random.default_rng([seed, 0x70617374])
        self._universe = Universe(seed, name="past", first_event=FIRST_EVENT, first_market=FIRST_MARKET)
        self._skill = np.tanh(np.random.default_rng([seed, 0x736B696C]).normal(size=len(population.wallets)))
        self.lives: list[MarketLife] = []
        self.paths: list[Path] = []
        trades: list[Array] = []
        moves: list[Array] = []
        for lives, paths in (*self._open(running), *self._resolved()):
            for life, path in zip(lives, paths, strict=True):
                self.lives.append(life)
                self.paths.append(path)
                dealer = int(self._wallet(self._dice.random(1))[0])
                some = self._trades(len(self.lives) - 1, life, path, dealer)
                trades.append(some)
                moves.append(self._moves(len(self.lives) - 1, life, some, dealer))
        self.trades: Array = _in_order(trades, TRADE)
        self.moves: Array = _in_order(moves, MOVE)
        self._trade_blocks, self._move_blocks = (
            ANCHOR + (some["ts_ms"] - ANCHOR_MS) // BLOCK_MS + 1 for some in (self.trades, self.moves)
        )
        self._index = {life.market.condition_id: nth for nth, life in enumerate(self.lives)}
        self._figures()

    # --- For the Data API ---

    def newest_first(
        self, condition_ids: Sequence[str] | None, start_s: int, end_s: int, user: str = ""
    ) -> Iterator[SandboxTrade]:
        """Yield trades of some markets (None: of all) between two seconds; their numbers are below 1, descending."""
        seconds = self._seconds
        low, high = np.searchsorted(seconds, start_s), np.searchsorted(seconds, end_s, side="right")
        chosen = np.arange(low, high)
        if condition_ids is not None:
            wanted = [self._index[each] for each in condition_ids if each in self._index]
            chosen = chosen[np.isin(self.trades["market"][low:high], wanted)]
        if user:
            wallet = self._wallets.get(user, -1)
            some = self.trades[chosen]
            chosen = chosen[(some["taker"] == wallet) | (some["maker"] == wallet)]
        return (self.trade(int(nth)) for nth in chosen[::-1])

    def trade(self, nth: int) -> SandboxTrade:
        """Return one trade by its index."""
        row = self.trades[nth]
        market = self.lives[row["market"]].market
        outcome = int(row["outcome"])
        return SandboxTrade(
            nth - len(self.trades) + 1,
            market.condition_id,
            market.tokens[outcome],
            outcome,
            "BUY" if row["buys"] else "SELL",
            int(row["price"]),
            int(row["size"]),
            int(row["ts_ms"]),
            f"0x{self._tx(nth).hex()}",
            taker=self._population.wallets[row["taker"]],
            maker=self._population.wallets[row["maker"]],
            form=FORMS[row["form"]],
        )

    # --- For the order book API ---

    def points(self, token: str, start_s: int, end_s: int) -> Iterator[tuple[int, float]]:
        """Yield prices of a token over time."""
        at = self._catalogue.find(token)
        nth = None if at is None else self._index.get(at[0].condition_id)
        if at is None or nth is None:
            return
        path = self.paths[nth]
        for ts_ms, price in zip(path.ts_ms.tolist(), path.price.tolist(), strict=True):
            if start_s * 1000 <= ts_ms <= end_s * 1000:
                yield int(ts_ms) // 1000, round(price if at[1] == 0 else 1 - price, 6)

    # --- For the chain ---

    def transactions(self, first: int, last: int) -> Iterator[tuple[int, list[Transaction]]]:
        """Yield the transactions of a range of blocks, for blocks that have any, the lowest first."""
        blocks: dict[int, list[tuple[int, Transaction]]] = {}
        low, high = (int(each) for each in np.searchsorted(self._move_blocks, (first, last + 1)))
        for nth in range(low, high):
            moved = int(self.moves["ts_ms"][nth]), self._moved(nth)
            blocks.setdefault(int(self._move_blocks[nth]), []).append(moved)
        low, high = (int(each) for each in np.searchsorted(self._trade_blocks, (first, last + 1)))
        for nth in range(low, high):
            matched = int(self.trades["ts_ms"][nth]), self._match(nth)
            blocks.setdefault(int(self._trade_blocks[nth]), []).append(matched)
        for number in sorted(blocks):
            yield number, [each for _, each in sorted(blocks[number], key=lambda one: one[0])]

    def block_of(self, tx: bytes) -> int | None:
        """Return the block of a transaction."""
        return self._places.get(tx)

    @cached_property
    def _places(self) -> dict[bytes, int]:
        of_trades = {self._tx(nth): int(block) for nth, block in enumerate(self._trade_blocks)}
        return of_trades | {self._tx(nth, "move"): int(block) for nth, block in enumerate(self._move_blocks)}

    @cached_property
    def _seconds(self) -> Array:
        seconds: Array = self.trades["ts_ms"] // 1000
        return seconds

    @cached_property
    def _wallets(self) -> dict[str, int]:
        return {wallet: nth for nth, wallet in enumerate(self._population.wallets)}

    def _match(self, nth: int) -> Match:
        trade = self.trade(nth)
        market = self._catalogue.by_condition[trade.condition_id]
        match = Match(self._tx(nth), market, trade.outcome, trade.side, trade.taker)
        match.fills.append(Fill(trade.maker, trade.form, trade.price, trade.size))
        return match

    def _moved(self, nth: int) -> PositionChange:
        row = self.moves[nth]
        kind = KINDS[row["kind"]]
        amounts = tuple(int(amount) for amount in row["amounts"])
        return PositionChange(
            self._tx(nth, "move"),
            kind,
            self.lives[row["market"]].market,
            wallet=self._population.wallets[row["wallet"]],
            outcome=int(row["outcome"]),
            amounts=amounts if kind == "redeem" else amounts[:1],
        )

    def _tx(self, nth: int, kind: str = "trade") -> bytes:
        return hashlib.blake2b(f"{self._seed}/past/{kind}/{self.end_ms}/{nth}".encode(), digest_size=32).digest()

    # --- Markets ---

    def _open(self, running: Iterable[EventPlan]) -> Iterator[tuple[list[MarketLife], list[Path]]]:
        """Yield the markets open when the past ends: their paths end at the prices that the simulation starts with."""
        plans = [plan for plan in running if not any(one.coin for one in plan.markets)]
        markets = [one for plan in plans for one in plan.markets]
        weights = np.sqrt([one.weight * (1 + self._dice.pareto(1.3)) for one in markets])
        opened = iter(weights / max(weights.sum(), 1e-9) * OPENED * self.days / 14)
        end_ms = self.end_ms - END_MS
        for plan in plans:
            lives = [
                MarketLife(
                    self._catalogue.by_condition[one.gamma["conditionId"]], self.start_ms, end_ms, None, 0, share
                )
                for one, share in zip(plan.markets, opened, strict=False)
            ]
            _backdate(plan, self.start_ms)
            ends = [one.probability for one in plan.markets]
            yield lives, self._paths(ends, self.start_ms, end_ms, together=bool(plan.event["negRisk"]))

    def _resolved(self) -> Iterator[tuple[list[MarketLife], list[Path]]]:
        """Yield the markets resolved before the past ends, and list them."""
        last_ms = self.end_ms - HOUR_MS // 2
        for day in range(self.days):
            for nth in range(EVENTS_A_DAY):
                ends_ms = self.end_ms - day * DAY_MS - int((nth + self._dice.random()) / EVENTS_A_DAY * DAY_MS)
                begins_ms = max(ends_ms - int(self._dice.uniform(0.5, 6) * DAY_MS), self.start_ms)
                if ends_ms - begins_ms > HOUR_MS and ends_ms < last_ms:
                    yield self._ended(self._universe.event(begins_ms), begins_ms, ends_ms, EVENT_OPENED)
        coins = list(COINS)
        hour_ms = -(-self.start_ms // HOUR_MS) * HOUR_MS
        while hour_ms + HOUR_MS < last_ms:
            coin = coins[hour_ms // HOUR_MS % len(coins)]
            plan = self._universe.window(coin, hour_ms, hour_ms - HOUR_MS // 2, seconds=HOUR_MS // 1000)
            yield self._ended(plan, hour_ms - HOUR_MS // 2, hour_ms + HOUR_MS, HOUR_OPENED)
            hour_ms += HOUR_MS

    def _ended(self, plan: EventPlan, begins_ms: int, ends_ms: int, opened: int) -> tuple[list[MarketLife], list[Path]]:
        together = bool(plan.event["negRisk"])
        chances = np.array([one.probability for one in plan.markets])
        if together:
            true = int(self._dice.choice(len(chances), p=chances / chances.sum()))
            winners = [0 if nth == true else 1 for nth in range(len(chances))]
        else:
            winners = [int(each) for each in self._dice.random(len(chances)) >= chances]
        resolved_ms = ends_ms + int(self._dice.uniform(30, 600) * 1000)
        self._catalogue.add_event(plan.event)
        lives = []
        for one, winner in zip(plan.markets, winners, strict=True):
            market = SandboxMarket(one.gamma, mirrored=True)
            self._catalogue.add(market)
            _close(market, winner, ends_ms, resolved_ms)
            lives.append(MarketLife(market, begins_ms, ends_ms, winner, resolved_ms, opened * one.weight))
        plan.event |= {"closed": True, "endDate": iso(ends_ms), "closedTime": iso(resolved_ms)}
        plan.event |= {"updatedAt": iso(resolved_ms)}
        ends = [0.965 if winner == 0 else 0.035 for winner in winners]
        return lives, self._paths(ends, begins_ms, ends_ms, together=together)

    # --- Prices ---

    def _paths(self, ends: Sequence[float], begins_ms: int, ends_ms: int, *, together: bool) -> list[Path]:
        """Return random price paths to given ends; for markets of which exactly one wins, prices sum to 1."""
        steps = int(np.clip((ends_ms - begins_ms) // 600_000, 40, 4_000))
        ts_ms = np.linspace(begins_ms, ends_ms, steps + 1)
        hours = (ends_ms - begins_ms) / HOUR_MS
        many = len(ends)
        short = hours < 3
        scale = (0.9 if short else DRIFT) * math.sqrt(hours / steps)
        bursts = [self._bursts(begins_ms, ends_ms) for _ in range(many)]
        moved = self._dice.normal(scale=scale, size=(many, steps))
        for nth, at_ms in enumerate(bursts):
            self._jump(moved[nth], (at_ms - begins_ms) / (ends_ms - begins_ms) * steps)
        walk = np.concatenate([np.zeros((many, 1)), np.cumsum(moved, axis=1)], axis=1)
        chance = np.clip(np.array(ends), 0.005, 0.995)
        last = np.log(chance) if together else np.log(chance / (1 - chance))
        first = np.zeros(many) if short else last * 0.3 + self._dice.normal(scale=0.4, size=many)
        if together:
            first = last * 0.6 + self._dice.normal(scale=0.3, size=many)
        share = np.linspace(0, 1, steps + 1)
        logit = walk + first[:, None] + (last - first - walk[:, -1])[:, None] * share
        if together:
            weight = np.exp(logit)
            price = weight / weight.sum(axis=0)
        else:
            price = 1 / (1 + np.exp(-logit))
        return [Path(ts_ms, np.clip(price[nth], 0.005, 0.995), bursts[nth]) for nth in range(many)]

    def _bursts(self, begins_ms: int, ends_ms: int) -> Floats:
        many = self._dice.poisson((ends_ms - begins_ms) / DAY_MS / BURST_EVERY_DAYS)
        return np.sort(self._dice.uniform(begins_ms, max(ends_ms - BURST_MS, begins_ms + 1), many))

    def _jump(self, moved: Floats, places: Floats) -> None:
        for place in places:
            size = self._dice.uniform(0.5, 1.4) * self._dice.choice((-1.0, 1.0))
            at = int(place) + 1
            if at + 5 >= len(moved):
                continue
            moved[at] += size
            if self._dice.random() < REVERTED:
                moved[at + 3] -= size * self._dice.uniform(0.7, 1.0)

    # --- Trades ---

    def _trades(self, nth: int, life: MarketLife, path: Path, dealer: int) -> Array:
        opens_ms, ends_ms = float(life.opens_ms), float(life.ends_ms)
        dice = self._dice
        at_ms = dice.uniform(opens_ms, ends_ms, dice.poisson(life.opened))
        if life.winner is None:  # the last day is busier
            lately = dice.poisson(life.opened * LATELY_TIMES * LATELY / (ends_ms - opens_ms))
            at_ms = np.concatenate([at_ms, dice.uniform(max(ends_ms - LATELY, opens_ms), ends_ms, lately)])
        busy = [burst_ms + dice.exponential(BURST_MS / 2.5, dice.poisson(BURST_OPENED)) for burst_ms in path.bursts]
        at_ms = np.concatenate([at_ms, *busy])
        at_ms = np.sort(at_ms[at_ms < ends_ms])
        many = len(at_ms)
        taker, maker, buyer = (self._wallet(dice.random(many)) for _ in range(3))
        taker = np.where(taker == dealer, taker + 1, taker) % len(self._population.wallets)
        dealt = dice.random(many) < DEALT
        maker = np.where(dealt, dealer, np.where(maker == taker, maker + 1, maker)) % len(self._population.wallets)
        gains = path.price[-1] > path.at(at_ms) if life.winner is None else np.full(many, life.winner == 0)
        knows = dice.random(many) < 0.5 + 0.2 * self._skill[taker]
        outcome = np.where(gains == knows, 0, 1)
        size = self._sizes(many)
        opened = self._rows(nth, path, at_ms, outcome, buys=True)
        opened["size"], opened["taker"], opened["maker"], opened["form"] = size, taker, maker, np.where(dealt, 0, 1)
        closes_ms = at_ms + dice.exponential((ends_ms - opens_ms) / 8 + 600_000, many)
        closing = (dice.random(many) < CLOSED) & (closes_ms < ends_ms)
        closed = self._rows(nth, path, closes_ms[closing], outcome[closing], buys=False)
        closed["size"], closed["taker"] = size[closing], taker[closing]
        pairs = (dice.random(len(closed)) < TOGETHER) & ~dealt[closing]
        buyer = np.where(buyer == taker, maker, buyer)
        closed["maker"] = np.where(pairs, maker[closing], buyer[closing])
        closed["form"] = np.where(pairs, 2, 0)
        return np.concatenate([opened, closed])

    def _rows(self, nth: int, path: Path, at_ms: Floats, outcome: Array, *, buys: bool) -> Array:
        rows = np.zeros(len(at_ms), dtype=TRADE)
        fair = path.at(at_ms)
        fair = np.where(outcome == 0, fair, 1 - fair)
        tick = np.where((fair < 0.04) | (fair > 0.96), 0.001, 0.01)
        paid = fair / tick + (0.5 if buys else -0.5) + self._dice.normal(scale=0.4, size=len(at_ms))
        rows["ts_ms"], rows["market"], rows["outcome"], rows["buys"] = at_ms, nth, outcome, buys
        rows["price"] = np.rint(np.clip(np.rint(paid) * tick, tick, 1 - tick) * ONE)
        return rows

    def _sizes(self, many: int) -> Array:
        shares = np.exp(self._dice.normal(SHARES, SPREAD, many))
        shares *= np.where(self._dice.random(many) < LARGE, LARGE_TIMES, 1.0)
        return np.maximum((shares * 100).astype(np.int64) * (ONE // 100), 5 * ONE)

    def _wallet(self, chances: Floats) -> Array:
        return self._population.places(chances)

    # --- Other position changes ---

    def _moves(self, nth: int, life: MarketLife, trades: Array, dealer: int) -> Array:
        dice = self._dice
        dealt = trades[trades["buys"] & (trades["form"] == 0)]
        needed = int(max(np.bincount(dealt["outcome"], dealt["size"], 2))) if len(dealt) else 0
        spare = int(dice.integers(200, 3_000)) * ONE
        made = -(-needed // ONE) * ONE + spare
        moves = [
            (life.opens_ms, "prepare", 0, 0, (0, 0)),
            (life.opens_ms, "split", 0, dealer, (made, 0)),
        ]
        left = made
        if dice.random() < 0.5:
            left -= spare
            moves.append(((life.opens_ms + life.ends_ms) // 2, "merge", 0, dealer, (spare, 0)))
        if life.winner is not None:
            moves.append((life.resolved_ms, "resolve", life.winner, 0, (0, 0)))
            held = self._held(trades)
            held[dealer] += left
            for winner in np.flatnonzero(held[:, life.winner] > 0).tolist():
                at_ms = life.resolved_ms + 3_000 + int(dice.exponential(1_800_000))
                if dice.random() < REDEEMED and at_ms < self.end_ms - END_MS:
                    amounts = (int(held[winner, 0]), int(held[winner, 1]))
                    moves.append((at_ms, "redeem", life.winner, winner, amounts))
        rows = np.zeros(len(moves), dtype=MOVE)
        for place, (at_ms, kind, outcome, who, amounts) in enumerate(moves):
            rows[place] = (at_ms, KINDS.index(kind), nth, outcome, who, amounts)
        return rows

    def _held(self, trades: Array) -> Array:
        """Return what each wallet holds of each outcome after some trades of one market."""
        held = np.zeros((len(self._population.wallets), 2), dtype=np.int64)
        size, outcome = trades["size"], trades["outcome"]
        np.add.at(held, (trades["taker"], outcome), np.where(trades["buys"], size, -size))
        # In a minted or merged pair the maker got, or gave, the other outcome; else it sold or bought this one.
        pairs = trades["form"] > 0
        given = (trades["form"] == 2) | (~pairs & trades["buys"])
        np.add.at(held, (trades["maker"], np.where(pairs, 1 - outcome, outcome)), np.where(given, -size, size))
        return held

    # --- Figures of the Gamma objects ---

    def _figures(self) -> None:
        value = self.trades["price"] * self.trades["size"] // ONE
        lately = self.trades["ts_ms"] >= self.end_ms - DAY_MS
        many = len(self.lives)
        volume = np.bincount(self.trades["market"], value, many)
        of_day = np.bincount(self.trades["market"][lately], value[lately], many)
        events: set[str] = set()
        for nth, life in enumerate(self.lives):
            gamma = life.market.gamma
            gamma |= {"volume": text(int(volume[nth])), "volumeNum": int(volume[nth]) / ONE}
            gamma["volume24hr"] = int(of_day[nth]) / ONE
            events.add(str(gamma["events"][0]["id"]))
        for event_id in events:
            event, members = self._catalogue.events[event_id], self._catalogue.members[event_id]
            event["volume"] = round(sum(market.gamma["volumeNum"] for market in members), 6)
            event["volume24hr"] = round(sum(market.gamma["volume24hr"] for market in members), 6)
            shown = brief(event)
            for market in members:
                market.gamma["events"] = [shown]

    def state(self) -> dict[str, Any]:
        """Return the size of the past as JSON."""
        return {
            "days": self.days,
            "from_ms": self.start_ms,
            "to_ms": self.end_ms,
            "markets": len(self.lives),
            "trades": len(self.trades),
            "moves": len(self.moves),
        }


def _in_order(parts: list[Array], dtype: np.dtype[Any]) -> Array:
    whole = np.concatenate(parts) if parts else np.zeros(0, dtype=dtype)
    return whole[np.argsort(whole["ts_ms"], kind="stable")]


def _backdate(plan: EventPlan, opens_ms: int) -> None:
    """Set an open event's listing time to when its trading began."""
    at = iso(opens_ms)
    plan.event |= {"startDate": at, "creationDate": at, "createdAt": at}
    for one in plan.markets:
        one.gamma |= {
            "startDate": at,
            "createdAt": at,
            "startDateIso": at[:10],
            "acceptingOrdersTimestamp": at[:19] + "Z",
        }


def _close(market: SandboxMarket, winner: int, ends_ms: int, resolved_ms: int) -> None:
    gamma: Gamma = market.gamma
    last = "1" if winner == 0 else "0"
    gamma |= {
        "closed": True,
        "acceptingOrders": False,
        "closedTime": short(resolved_ms),
        "endDate": iso(ends_ms),
        "endDateIso": iso(ends_ms)[:10],
        "updatedAt": iso(resolved_ms),
        "umaResolutionStatus": "resolved",
        "outcomePrices": listed(("1", "0") if winner == 0 else ("0", "1")),
        "lastTradePrice": float(last),
    }
    market.printed(0, int(last) * ONE)
