"""Entries of the sandbox's truth log; an entry becomes one line or more."""

from __future__ import annotations

from typing import Any, ClassVar

import msgspec

from upstream.polymarket.market_channel import outgoing
from upstream.sandbox.common.book import Side, hash_of, opposite
from upstream.transport.micro import ONE, text


class Fact(msgspec.Struct, omit_defaults=True):
    """One line of the truth log: an event of the exchange, and how many sockets received it."""

    n: int
    kind: str
    token: str = ""
    condition_id: str = ""
    ts_ms: int = 0
    side: str = ""
    price: str = ""
    size: str = ""
    tx: str = ""
    hash: str = ""
    best_bid: str = ""
    best_ask: str = ""
    sent: int = 0
    detail: dict[str, Any] | None = None

    @property
    def lines(self) -> int:
        """The number of lines."""
        return 1

    def facts(self) -> list[Fact]:
        """Return the lines."""
        return [self]


class LevelFacts(msgspec.Struct, gc=False):
    """Changed levels of a market with one book: two lines a change, which are made when they are read or written."""

    kind: ClassVar[str] = "level"

    n: int
    tokens: tuple[str, ...]
    condition_id: str
    ts_ms: int
    changes: tuple[tuple[Side, int, int], ...]
    best_bid: int
    best_ask: int
    digest: int
    sent: int = 0

    @property
    def lines(self) -> int:
        """The number of lines."""
        return 2 * len(self.changes)

    def message(self) -> outgoing.PriceChange:
        """Return the message: an entry per change and outcome."""
        first, second = self.tokens
        hashes = hash_of(first, self.ts_ms, self.digest), hash_of(second, self.ts_ms, self.digest)
        bid, ask = text(self.best_bid), text(self.best_ask)
        other_bid, other_ask = text(ONE - self.best_ask), text(ONE - self.best_bid)
        entries = []
        for side, price, size in self.changes:
            size_text, other = text(size), text(ONE - price)
            entries.append(outgoing.LevelChange(first, text(price), size_text, side, hashes[0], bid, ask))
            entries.append(
                outgoing.LevelChange(second, other, size_text, opposite(side), hashes[1], other_bid, other_ask)
            )
        return outgoing.PriceChange(self.condition_id, entries, str(self.ts_ms))

    def facts(self) -> list[Fact]:
        """Return the lines: one per entry of the message."""
        return [
            Fact(
                self.n + nth,
                self.kind,
                entry.asset_id,
                self.condition_id,
                self.ts_ms,
                entry.side,
                entry.price,
                entry.size,
                "",
                entry.hash,
                entry.best_bid,
                entry.best_ask,
                self.sent,
            )
            for nth, entry in enumerate(self.message().price_changes)
        ]
