"""What a block is made of: matches of orders, and what else moves positions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from upstream.sandbox.exchange.book import Side
    from upstream.sandbox.exchange.catalogue import Market

Form: TypeAlias = Literal["", "mint", "merge"]
"""How a maker met the taker: in the same token, or both buying (mint) or both selling (merge) a pair's two tokens."""


class Fill(NamedTuple):
    """What the taker got from one maker, in the taker's token."""

    maker: str
    form: Form
    price: int
    size: int


class Match:
    """One taker's order against some makers'."""

    __slots__ = ("fills", "market", "outcome", "side", "taker", "tx")

    def __init__(self, tx: bytes, market: Market, outcome: int, side: Side, taker: str) -> None:
        self.tx, self.market, self.outcome, self.side, self.taker = tx, market, outcome, side, taker
        self.fills: list[Fill] = []


Kind: TypeAlias = Literal["split", "merge", "transfer", "convert", "redeem", "resolve", "prepare"]


class Moved:
    """What moved positions besides matches, or said what they are worth.

    `amounts` are shares; of a redemption those of each outcome, of a conversion shares and then the question's index,
    whose `tokens` are those that the wallet got.
    """

    __slots__ = ("amounts", "kind", "market", "outcome", "receiver", "tokens", "tx", "wallet")

    def __init__(
        self,
        tx: bytes,
        kind: Kind,
        market: Market,
        *,
        wallet: str = "",
        receiver: str = "",
        outcome: int = 0,
        amounts: tuple[int, ...] = (),
        tokens: tuple[str, ...] = (),
    ) -> None:
        self.tx, self.kind, self.market = tx, kind, market
        self.wallet, self.receiver, self.outcome = wallet, receiver, outcome
        self.amounts, self.tokens = amounts, tokens


Transaction: TypeAlias = Match | Moved
