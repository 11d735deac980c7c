"""Settlement of trades on the chain, and other activity: splits and merges, transfers, redemptions."""

from __future__ import annotations

import hashlib
import random
from collections import deque
from typing import TYPE_CHECKING

from upstream.sandbox.exchange.transactions import Fill, Match, PositionChange
from upstream.transport.micro import ONE

if TYPE_CHECKING:
    from collections.abc import Container

    from upstream.sandbox.exchange.catalogue import Catalogue, SandboxMarket
    from upstream.sandbox.exchange.exchange import SandboxExchange
    from upstream.sandbox.exchange.population import Population
    from upstream.sandbox.exchange.portfolio import Portfolios
    from upstream.sandbox.exchange.trades import SandboxTrade
    from upstream.sandbox.exchange.transactions import Kind, Transaction

PAID_A_BLOCK = 6  # winners who redeem in one block, more when many wait
PAID_WITHIN = 40  # blocks
RESOLVED_KEPT = 100  # markets whose positions are kept after resolution
MAX_ACTIVE_TAKERS = 8  # takers of a block who may act further
HALF = ONE // 2
TX_DIGITS = 64


class Settlement:
    """Builder of the next block's transactions, from what happens on the exchange."""

    def __init__(
        self,
        exchange: SandboxExchange,
        portfolios: Portfolios,
        population: Population,
        seed: int,
        mined: Container[bytes],
    ) -> None:
        self._exchange = exchange
        self._catalogue: Catalogue = exchange.catalogue
        self._portfolios = portfolios
        self._population = population
        self._seed = seed
        self._mined = mined
        self.pending: list[Transaction] = []
        self._matches: dict[bytes, Match] = {}
        self._winners: deque[tuple[SandboxMarket, int, str]] = deque()
        self._resolved: deque[SandboxMarket] = deque()

    def trade(self, trade: SandboxTrade) -> None:
        """Settle a trade; prints of one transaction are one match, and prints that a tape repeats are skipped."""
        trade.form, missing = self._portfolios.settle(trade)
        tx = transaction_hash(trade.tx)
        match = self._matches.get(tx)
        if match is None:
            market = self._catalogue.condition(trade.condition_id)
            if market is None or len(market.tokens) != 2 or not trade.taker or not trade.maker or tx in self._mined:
                return
            match = self._matches[tx] = Match(tx, market, trade.outcome, trade.side, trade.taker)
            self.pending.append(match)
        match.fills.append(Fill(trade.maker, trade.form, trade.price, trade.size))
        if missing:
            split = PositionChange(_hash(tx, f"split {len(match.fills)}"), "split", match.market, wallet=match.taker)
            split.amounts = (missing,)
            self.pending.insert(self.pending.index(match), split)

    def listing(self, market: SandboxMarket) -> None:
        """Prepare the condition of a market."""
        self._move("prepare", market)

    def resolution(self, market: SandboxMarket, winner: int) -> None:
        """Report the winner, and let holders of its token redeem in the following blocks."""
        if len(market.tokens) != 2:
            return
        self._move("resolve", market, outcome=winner)
        self._winners += [(market, winner, wallet) for wallet, _ in self._portfolios.holders(market.tokens[winner])]
        self._resolved.append(market)
        if len(self._resolved) > RESOLVED_KEPT:
            self._portfolios.forget(self._resolved.popleft().tokens)

    def take(self, number: int) -> list[Transaction]:
        """Return a block's transactions: all waiting ones, and spontaneous ones of some wallets."""
        dice = random.Random(f"{self._seed}/block/{number}")  # noqa: S311 - repeatable dice are what is wanted
        waiting = len(self._winners)
        for _ in range(min(max(PAID_A_BLOCK, waiting // PAID_WITHIN), waiting)):
            self._pay(*self._winners.popleft())
        takers = [one for one in self.pending if isinstance(one, Match) and not one.market.closed][:MAX_ACTIVE_TAKERS]
        if takers:
            self._act_spontaneously(dice, takers)
        taken, self.pending = self.pending, []
        self._matches.clear()
        return taken

    # --- Spontaneous activity of wallets ---

    def _pay(self, market: SandboxMarket, winner: int, wallet: str) -> None:
        """Pay a winner; the exchange's own figures count winnings as paid from the start."""
        amounts = tuple(self._portfolios.held(wallet, token) for token in market.tokens)
        if amounts[winner]:
            self._move("redeem", market, wallet=wallet, outcome=winner, amounts=amounts)

    def _act_spontaneously(self, dice: random.Random, takers: list[Match]) -> None:
        chosen = dice.choice(takers)
        market, wallet = chosen.market, chosen.taker
        token = market.tokens[chosen.outcome]
        chance = dice.random()
        if chance < 0.25:
            self._split(market, self._population.at(dice.random()), dice.randint(10, 500) * ONE)
        elif chance < 0.45:
            for one in takers:
                if amount := min(self._portfolios.held(one.taker, each) for each in one.market.tokens):
                    self._merge(one.market, one.taker, amount)
                    break
        elif chance < 0.6:
            receiver = self._population.other(wallet, dice.random())
            if amount := self._portfolios.held(wallet, token) // 2:
                self._send(market, chosen.outcome, wallet, receiver, amount)
        elif chance < 0.7:
            for one in takers:
                if one.market.neg_risk and (amount := self._portfolios.held(one.taker, one.market.tokens[1]) // 2):
                    self._convert(one.market, one.taker, amount)
                    break

    def _split(self, market: SandboxMarket, wallet: str, amount: int) -> None:
        for token in market.tokens:
            self._portfolios.buy(wallet, token, amount, HALF, self._exchange.now_ms)
        self._move("split", market, wallet=wallet, amounts=(amount,))

    def _merge(self, market: SandboxMarket, wallet: str, amount: int) -> None:
        for token in market.tokens:
            self._portfolios.sell(wallet, token, amount, HALF, self._exchange.now_ms)
        self._move("merge", market, wallet=wallet, amounts=(amount,))

    def _send(self, market: SandboxMarket, outcome: int, wallet: str, receiver: str, amount: int) -> None:
        token, price = market.tokens[outcome], market.last_price[outcome] or HALF
        self._portfolios.sell(wallet, token, amount, price, self._exchange.now_ms)
        self._portfolios.buy(receiver, token, amount, price, self._exchange.now_ms)
        self._move("transfer", market, wallet=wallet, receiver=receiver, outcome=outcome, amounts=(amount,))

    def _convert(self, market: SandboxMarket, wallet: str, amount: int) -> None:
        """Turn NO of one question into YES of all the others of its event."""
        event = next(iter(market.gamma.get("events") or ()), None)
        questions = self._catalogue.members_of(str(event["id"])) if event else []
        if len(questions) < 2 or any(one.closed or not one.neg_risk for one in questions):
            return
        others = tuple(one.tokens[0] for one in questions if one is not market)
        price = ONE - (market.last_price[0] or HALF)
        self._portfolios.sell(wallet, market.tokens[1], amount, price, self._exchange.now_ms)
        for token in others:
            self._portfolios.buy(wallet, token, amount, price // len(others), self._exchange.now_ms)
        self._move("convert", market, wallet=wallet, amounts=(amount, questions.index(market)), tokens=others)

    def _move(
        self,
        kind: Kind,
        market: SandboxMarket,
        *,
        wallet: str = "",
        receiver: str = "",
        outcome: int = 0,
        amounts: tuple[int, ...] = (),
        tokens: tuple[str, ...] = (),
    ) -> None:
        name = f"{kind} {market.condition_id} {wallet} {amounts} {self._exchange.now_ms}"
        self.pending.append(
            PositionChange(
                _hash(str(self._seed).encode(), name),
                kind,
                market,
                wallet=wallet,
                receiver=receiver,
                outcome=outcome,
                amounts=amounts,
                tokens=tokens,
            )
        )


def transaction_hash(tx_text: str) -> bytes:
    """Return the hash that the market socket sent; for other formats one derived from it."""
    digits = tx_text.removeprefix("0x")
    if len(digits) == TX_DIGITS:
        try:
            return bytes.fromhex(digits)
        except ValueError:
            pass
    return _hash(b"", tx_text)


def _hash(key: bytes, name: str) -> bytes:
    return hashlib.blake2b(name.encode(), key=key[:64], digest_size=32).digest()
