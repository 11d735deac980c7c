"""Order book of one token, built from snapshots and level changes and checked against the exchange's best prices."""

from collections.abc import Sequence
from operator import mul
from time import monotonic
from typing import Literal

from upstream.polymarket.book import Book as RestBook

PriceSize = tuple[int, int]  # price and size, micro
State = Literal["unanchored", "verified", "broken"]

EMPTY_ASK = 1_000_000  # the exchange reports an empty ask side as 1, an empty bid side as 0
MAX_PENDING_CHANGES = 4096  # buffered while a book waits for its snapshot


class OrderBook:
    """Both sides of one token's book. Only a `verified` book may be served.

    A book is `unanchored` before its first snapshot and `broken` once it disagreed with the exchange. In both states
    changes are buffered, and those not older than the next snapshot are applied on top of it: a snapshot fetched over
    REST may be behind the socket.
    """

    __slots__ = (
        "_touched",
        "anchored_ms",
        "asks",
        "best_ask",
        "best_bid",
        "bids",
        "depth",
        "hash",
        "moved_at",
        "numbered",
        "pending",
        "state",
        "ts_ms",
    )

    def __init__(self) -> None:
        self.bids: dict[int, int] = {}
        self.asks: dict[int, int] = {}
        self.best_bid: int | None = None
        self.best_ask: int | None = None
        self.depth = 0  # the sum of price times size over both sides, in micro-units squared: exact
        self.hash: str = ""
        self.ts_ms = 0
        self.anchored_ms = 0
        self.state: State = "unanchored"
        self.moved_at = 0.0  # monotonic, when it was last anchored and differed from ours
        self.pending: list[tuple[int, int, int, int, str]] = []
        self.numbered = False  # its messages are numbered: none is missing, and a crossing is the exchange's own
        self._touched: dict[int, int] = {}

    def snapshot(self, bids: Sequence[PriceSize], asks: Sequence[PriceSize], ts_ms: int, hash_: str = "") -> bool:
        """Apply a full book; return whether it changed anything."""
        if self.state == "verified" and ts_ms < self.ts_ms:
            return False  # overtaken in transit by changes already applied
        if self.state != "verified" and len(self.pending) >= MAX_PENDING_CHANGES and ts_ms < self.pending[0][3]:
            return False  # changes between this snapshot and the first buffered one are lost
        new_bids, new_asks = _levels(bids), _levels(asks)
        changed = new_bids != self.bids or new_asks != self.asks
        is_new = self.state != "verified" or changed
        if self.state != "verified" and (changed or not (ts_ms == self.ts_ms or (hash_ and hash_ == self.hash))):
            self.moved_at = monotonic()
        if changed:
            self.bids, self.asks = new_bids, new_asks
            self.best_bid = max(new_bids, default=None)
            self.best_ask = min(new_asks, default=None)
            self.depth = sum(map(mul, new_bids, new_bids.values())) + sum(map(mul, new_asks, new_asks.values()))
        self.hash, self.ts_ms, self.anchored_ms, self.state = hash_, ts_ms, ts_ms, "verified"
        self._touched = {}
        pending, self.pending = [] if self.numbered else self.pending, []
        for side, price, size, changed_ms, changed_hash in pending:
            if changed_ms >= ts_ms:
                self.change(side, price, size, changed_ms, changed_hash)
        self.verify(None, None)  # a crossed book cannot be right, whoever sent it
        return is_new

    def change(  # noqa: C901, PLR0912 (kept flat: this is the busiest code in the project)
        self, side: int, price: int, size: int, ts_ms: int, hash_: str = ""
    ) -> bool:
        """Set one level (side 1 bids, -1 asks) to its new total; 0 removes it. Return False if the level is newer."""
        if self.state != "verified":
            if len(self.pending) >= MAX_PENDING_CHANGES:
                del self.pending[: MAX_PENDING_CHANGES // 2]
            self.pending.append((side, price, size, ts_ms, hash_))
            return True
        level = price * side
        if ts_ms < self.ts_ms:
            if ts_ms < self._touched.get(level, self.anchored_ms):
                return False  # overtaken in transit
        else:
            self.ts_ms = ts_ms
            self.hash = hash_
        self._touched[level] = ts_ms
        levels = self.bids if side > 0 else self.asks
        if size:
            before = levels.get(price, 0)
            levels[price] = size
        else:
            before = levels.pop(price, 0)
        self.depth += price * (size - before)
        if side > 0:
            best = self.best_bid
            if not size:
                if price == best:
                    self.best_bid = max(levels, default=None)
            elif best is None or price > best:
                self.best_bid = price
        else:
            best = self.best_ask
            if not size:
                if price == best:
                    self.best_ask = min(levels, default=None)
            elif best is None or price < best:
                self.best_ask = price
        return True

    def agrees(self, best_bid: int | None, best_ask: int | None) -> bool:
        """Return whether the best prices match those the exchange sent (None: it sent none)."""
        ours_bid, ours_ask = self.best_bid, self.best_ask
        if ours_bid is not None and ours_ask is not None:
            if ours_bid >= ours_ask:
                return self.numbered
            if ours_bid == best_bid and ours_ask == best_ask:
                return True
        if best_bid is not None and best_bid != (ours_bid or 0):
            return False
        return best_ask is None or best_ask == ours_ask or (ours_ask is None and best_ask in (0, EMPTY_ASK))

    def verify(self, best_bid: int | None, best_ask: int | None) -> bool:
        """Compare as `agrees` does; a verified book that disagrees or is crossed becomes broken."""
        if self.state != "verified":
            return False
        if self.agrees(best_bid, best_ask):
            return True
        self.state = "broken"
        return False

    def behind(self, snapshot: RestBook) -> bool:
        """Return whether a book fetched over REST shows changes that we have not received."""
        if snapshot.hash and snapshot.hash == self.hash:
            return False
        return snapshot.ts_ms >= self.ts_ms and (dict(snapshot.bids) != self.bids or dict(snapshot.asks) != self.asks)

    def moved_since(self, instant: float) -> bool:
        """Return whether it differed from ours when it was anchored since a monotonic instant, or is not verified."""
        return self.state != "verified" or self.moved_at >= instant

    def invalidate(self) -> None:
        """Return to `unanchored`: changes may have been missed, so the book is unusable until the next snapshot."""
        self.state = "unanchored"
        self.pending = []

    @property
    def bid_size(self) -> int | None:
        """Size at the best bid."""
        return None if self.best_bid is None else self.bids[self.best_bid]

    @property
    def ask_size(self) -> int | None:
        """Size at the best ask."""
        return None if self.best_ask is None else self.asks[self.best_ask]

    def arrays(self) -> tuple[list[int], list[int], list[int], list[int]]:
        """Return bid prices, bid sizes, ask prices and ask sizes, best first."""
        bid_prices = sorted(self.bids, reverse=True)
        ask_prices = sorted(self.asks)
        return bid_prices, [self.bids[p] for p in bid_prices], ask_prices, [self.asks[p] for p in ask_prices]


def _levels(side: Sequence[PriceSize]) -> dict[int, int]:
    """Return a side's levels by price, without empty ones."""
    levels = dict(side)
    return {price: size for price, size in levels.items() if size} if 0 in levels.values() else levels
