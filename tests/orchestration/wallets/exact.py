"""Average cost over a history, in exact fractions: written independently of the SQL, and compared with it."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction


@dataclass
class Exact:
    """One token of one wallet. Shares and dollars, not millionths."""

    held: Fraction = Fraction(0)
    covered: Fraction = Fraction(0)
    cost: Fraction = Fraction(0)
    realized: Fraction = Fraction(0)
    left_out: int = 0
    buys: int = 0
    bought: Fraction = Fraction(0)
    sells: int = 0
    sold: Fraction = Fraction(0)

    def come(self, shares, cost):
        self.held += shares
        if cost is None:
            self.left_out += 1
        else:
            self.covered += shares
            self.cost += cost

    def go(self, shares, proceeds):
        self.held -= shares
        part = min(shares, self.covered)
        if proceeds is None or part < shares:
            self.left_out += 1
        if part == 0:
            return
        spent = self.cost * part / self.covered
        self.cost -= spent
        self.covered -= part
        if proceeds is not None:
            self.realized += proceeds * part / shares - spent

    def fill(self, side, size, value, fee, *, priced):
        if side > 0:
            self.buys += 1
            self.bought += size
        else:
            self.sells += 1
            self.sold += size
        if size == 0:
            return
        if side > 0:
            self.come(size, value + fee if priced else None)
        else:
            self.go(size, value - fee if priced else None)

    def pnl(self, mark):
        return self.realized + self.covered * mark - self.cost


@dataclass
class Book:
    """All positions, from a list of events in the order of the chain."""

    positions: dict = field(default_factory=dict)

    def of(self, wallet, token):
        return self.positions.setdefault((wallet, token), Exact())

    def match(self, match):
        size = Fraction(str(match["size"]))
        priced = match["price"] is not None
        value = Fraction(round(Fraction(match["price"]) * size * 10**6), 10**6) if priced else Fraction(0)
        fee = Fraction(str(match.get("fee", 0)))
        side = match.get("side", 1)
        self.of(match["maker"], match["token"]).fill(side, size, value, Fraction(0), priced=priced)
        self.of(match["taker"], match["token"]).fill(-side, size, value, fee, priced=priced)

    def split(self, wallet, amount, tokens):
        for token in tokens:
            self.of(wallet, token).come(amount, Fraction(amount, len(tokens)))

    def merge(self, wallet, amount, tokens):
        for token in tokens:
            self.of(wallet, token).go(amount, Fraction(amount, len(tokens)))

    def convert(self, wallet, amount, given, got):
        each = Fraction(amount, len(given) + len(got))
        for token in given:
            self.of(wallet, token).go(amount, amount - each)
        for token in got:
            self.of(wallet, token).come(amount, each)

    def redeem(self, wallet, shares, payouts):
        for token, count in shares.items():
            if count:
                self.of(wallet, token).go(count, count * payouts[token])

    def transfer(self, sender, receiver, token, amount):
        self.of(sender, token).go(amount, None)
        self.of(receiver, token).come(amount, None)
