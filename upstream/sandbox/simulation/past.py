"""History before a simulation's start: markets that opened, traded and resolved, generated from the seed as arrays.

Everything is computed in advance, nothing is played: a market's fair price is a path that ends where the simulation
begins, or at its result. A trade opens a position of a taker, who buys from the market's dealer or from a maker who
takes the other outcome (a pair is minted). Some positions are closed later, by a sale to another wallet or by both
sides together (the pair is merged). At the opening the dealer mints as many pairs as it sells. So no wallet ever sells
what it does not hold, and no trade depends on another market's.
"""

from __future__ import annotations

import hashlib
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from upstream.sandbox.chain.chain import ANCHOR, ANCHOR_MS, BLOCK_MS
from upstream.sandbox.exchange.trades import SandboxTrade
from upstream.sandbox.exchange.transactions import Fill, Match, PositionChange
from upstream.sandbox.simulation.past_markets import PastMarkets
from upstream.sandbox.simulation.past_prices import DAY_MS, PricePaths
from upstream.sandbox.simulation.past_trades import FORMS, KINDS, MOVE, TRADE, PastTrades, in_order

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    import numpy.typing as npt

    from upstream.sandbox.exchange.catalogue import Catalogue
    from upstream.sandbox.exchange.population import Population
    from upstream.sandbox.exchange.transactions import Transaction
    from upstream.sandbox.simulation.past_markets import MarketLife
    from upstream.sandbox.simulation.past_prices import Path
    from upstream.sandbox.simulation.universe import EventPlan

    Array = npt.NDArray[Any]


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
        dice = np.random.default_rng([seed, 0x70617374])
        markets = PastMarkets(catalogue, dice, PricePaths(dice), seed=seed, end_ms=end_ms, days=days)
        made = PastTrades(dice, population, seed, end_ms)
        self.lives: list[MarketLife] = []
        self.paths: list[Path] = []
        trades: list[Array] = []
        moves: list[Array] = []
        for lives, paths in (*markets.open(running), *markets.resolved()):
            for life, path in zip(lives, paths, strict=True):
                self.lives.append(life)
                self.paths.append(path)
                dealer = made.dealer()
                some = made.trades(len(self.lives) - 1, life, path, dealer)
                trades.append(some)
                moves.append(made.moves(len(self.lives) - 1, life, some, dealer))
        self.trades: Array = in_order(trades, TRADE)
        self.moves: Array = in_order(moves, MOVE)
        self._trade_blocks, self._move_blocks = (
            ANCHOR + (some["ts_ms"] - ANCHOR_MS) // BLOCK_MS + 1 for some in (self.trades, self.moves)
        )
        self._index = {life.market.condition_id: nth for nth, life in enumerate(self.lives)}
        markets.show_volumes(self.lives, self.trades)

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
