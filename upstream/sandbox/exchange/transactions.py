"""Transactions of a block: matches of orders, and other position changes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from upstream.sandbox.common.book import Side
    from upstream.sandbox.exchange.catalogue import SandboxMarket

Form: TypeAlias = Literal["", "mint", "merge"]
"""How a maker settles with the taker: in the same token, or both buying (mint) or selling (merge) a pair's tokens."""


class Fill(NamedTuple):
    """The taker's amount from one maker, in the taker's token."""

    maker: str
    form: Form
    price: int
    size: int


class Match:
    """One taker's order matched against makers' orders."""

    __slots__ = ("fills", "market", "outcome", "side", "taker", "tx")

    def __init__(self, tx: bytes, market: SandboxMarket, outcome: int, side: Side, taker: str) -> None:
        self.tx, self.market, self.outcome, self.side, self.taker = tx, market, outcome, side, taker
        self.fills: list[Fill] = []


Kind: TypeAlias = Literal["split", "merge", "transfer", "convert", "redeem", "resolve", "prepare"]


class PositionChange:
    """A position change other than a match, or an event that sets their value.

    `amounts` are shares; for a redemption one per outcome, for a conversion shares and then the question's index,
    with `tokens` those that the wallet received.
    """

    __slots__ = ("amounts", "kind", "market", "outcome", "receiver", "tokens", "tx", "wallet")

    def __init__(
        self,
        tx: bytes,
        kind: Kind,
        market: SandboxMarket,
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


Transaction: TypeAlias = Match | PositionChange
