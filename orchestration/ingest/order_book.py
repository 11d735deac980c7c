"""The order book of one token: kept from snapshots and level changes, checked against the exchange's best prices."""

from collections.abc import Sequence
from typing import Literal

from upstream.polymarket.book import Book as Snapshot

Level = tuple[int, int]  # price and size, micro
State = Literal["unanchored", "verified", "broken"]

EMPTY_ASK = 1_000_000  # an empty side of asks is told as 1, an empty side of bids as 0
PENDING = 4096  # changes kept for a book that waits for its snapshot


class Book:
    """Both sides of one token's book. Only a `verified` one may be served.

    A book is `unanchored` before its first snapshot and `broken` once it disagreed with the exchange. Meanwhile changes
    are kept aside, and those not older than the next snapshot are applied on top of it: one fetched over REST may be
    behind the socket.
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
        "moved",
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
        self.moved = True  # something had happened when it was last anchored
        self.pending: list[tuple[int, int, int, int, str]] = []
        self._touched: dict[int, int] = {}

    def snapshot(self, bids: Sequence[Level], asks: Sequence[Level], ts_ms: int, hash_: str = "") -> bool:
        """Take the exchange's whole book; say whether it told anything new."""
        if self.state == "verified" and ts_ms < self.ts_ms:
            return False  # overtaken on its way by changes that are already in
        if self.state != "verified" and len(self.pending) >= PENDING and ts_ms < self.pending[0][3]:
            return False  # what lies between this snapshot and the first change still kept is lost
        new_bids = {price: size for price, size in bids if size > 0}
        new_asks = {price: size for price, size in asks if size > 0}
        changed = new_bids != self.bids or new_asks != self.asks
        told = self.state != "verified" or changed
        if self.state != "verified":
            self.moved = changed or not (ts_ms == self.ts_ms or (hash_ and hash_ == self.hash))
        self.bids, self.asks = new_bids, new_asks
        self.best_bid = max(new_bids, default=None)
        self.best_ask = min(new_asks, default=None)
        self.depth = sum(price * size for side in (new_bids, new_asks) for price, size in side.items())
        self.hash, self.ts_ms, self.anchored_ms, self.state = hash_, ts_ms, ts_ms, "verified"
        self._touched = {}
        pending, self.pending = self.pending, []
        for side, price, size, changed_ms, changed_hash in pending:
            if changed_ms >= ts_ms:
                self.change(side, price, size, changed_ms, changed_hash)
        self.verify(None, None)  # a crossed book cannot be right, whoever sent it
        return told

    def change(  # noqa: C901, PLR0912 (one flat run through: this is the busiest code there is)
        self, side: int, price: int, size: int, ts_ms: int, hash_: str = ""
    ) -> bool:
        """Set one level (side 1 bids, -1 asks) to its new total; 0 removes it. False: the level has a newer total."""
        if self.state != "verified":
            if len(self.pending) >= PENDING:
                del self.pending[: PENDING // 2]
            self.pending.append((side, price, size, ts_ms, hash_))
            return True
        level = price * side
        if ts_ms < self.ts_ms:
            if ts_ms < self._touched.get(level, self.anchored_ms):
                return False  # overtaken on its way
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
        """Compare with the best prices that the exchange sent; None: it sent none."""
        ours_bid, ours_ask = self.best_bid, self.best_ask
        if ours_bid is not None and ours_ask is not None and ours_bid >= ours_ask:
            return False
        if best_bid is not None and best_bid != (ours_bid or 0):
            return False
        return best_ask is None or best_ask == ours_ask or (ours_ask is None and best_ask in (0, EMPTY_ASK))

    def verify(self, best_bid: int | None, best_ask: int | None) -> bool:
        """Compare likewise; a verified book that disagrees, or is crossed, is broken."""
        if self.state == "verified" and not self.agrees(best_bid, best_ask):
            self.state = "broken"
        return self.state == "verified"

    def behind(self, told: Snapshot) -> bool:
        """Tell whether the exchange's book, fetched by other means, shows what we have not heard."""
        if told.hash and told.hash == self.hash:
            return False
        return told.ts_ms >= self.ts_ms and (dict(told.bids) != self.bids or dict(told.asks) != self.asks)

    def lose(self) -> None:
        """Forget the anchor: changes may have been missed, so nothing counts until the next snapshot."""
        self.state = "unanchored"
        self.pending = []

    @property
    def bid_size(self) -> int | None:
        """What stands at the best bid."""
        return None if self.best_bid is None else self.bids[self.best_bid]

    @property
    def ask_size(self) -> int | None:
        """What stands at the best ask."""
        return None if self.best_ask is None else self.asks[self.best_ask]

    def arrays(self) -> tuple[list[int], list[int], list[int], list[int]]:
        """Bid prices, bid sizes, ask prices, ask sizes; best first."""
        bid_prices = sorted(self.bids, reverse=True)
        ask_prices = sorted(self.asks)
        return bid_prices, [self.bids[p] for p in bid_prices], ask_prices, [self.asks[p] for p in ask_prices]
