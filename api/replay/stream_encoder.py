"""A replay in the words of our own stream."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from api.replay.history import Tick, Trade
from api.replay.past_books import mid, number, spread

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from api.replay.history import Happening, Place, Standing
    from sql.packs import Event

MICRO = 1_000_000
TYPES = ("trade", "orderbook", "price")  # what the store keeps for ever

_encode = msgspec.json.Encoder().encode


class Words:
    """Says what happens as the stream does; `seq` counts what was said, whatever of it a client leaves out."""

    def __init__(self) -> None:
        self.types = frozenset(TYPES)
        self.seq = 0
        self.after = 0  # what was said up to here is not said again

    def greet(self, standing: Sequence[Standing]) -> Iterator[bytes]:
        """Say how outcomes stand that were just subscribed to."""
        for now in standing:
            if now.whole:
                now.told = now.sides.best
                yield from self._say("orderbook", now, now.ms, _book(now, "snapshot", *now.sides.levels()))
                yield from self._say("price", now, now.ms, _price(now, now.ms))

    def tell(self, happenings: Iterable[Happening], standing: Mapping[Place, Standing]) -> Iterator[bytes]:
        """Say what happened in one instant: trades, then what became of each book, then prices that moved."""
        changed: dict[Place, dict[int, int] | None] = {}  # totals by level, bids above 0; None: the whole book
        moved: dict[Place, Standing] = {}
        ms = 0
        for happening in happenings:
            place, what, ms = happening.place, happening.what, happening.us // 1000
            now = standing[place]
            if isinstance(what, Trade):
                now.last, now.last_ms = what.price, ms
                moved[place] = now
                yield from self._say("trade", now, ms, _trade(place, what, ms))
            elif isinstance(what, Tick):
                now.tick_size = what.tick_size
            else:
                _hear(now, what, changed)
        for place, totals in changed.items():
            now = standing[place]
            if not now.whole:
                continue
            if totals is None:
                yield from self._say("orderbook", now, ms, _book(now, "snapshot", *now.sides.levels()))
            else:
                yield from self._say("orderbook", now, ms, _delta(now, totals))
            if now.sides.best != now.told:
                now.told = now.sides.best
                moved[place] = now
        for now in moved.values():
            yield from self._say("price", now, ms, _price(now, ms))

    def _say(self, kind: str, now: Standing, ms: int, data: dict[str, Any]) -> Iterator[bytes]:
        if kind in self.types:
            self.seq += 1
            if self.seq > self.after:
                market_id = now.place.market_id
                yield _encode({"type": kind, "seq": self.seq, "ts": ms, "market_id": market_id, "data": data})


def _hear(now: Standing, event: Event, changed: dict[Place, dict[int, int] | None]) -> None:
    if event.side is None:
        before = (now.sides.bids, now.sides.asks, now.whole)
        now.hear(event)
        if before != (now.sides.bids, now.sides.asks, True):
            changed[now.place] = None
        return
    now.hear(event)
    totals = changed.setdefault(now.place, {})
    if totals is not None:
        totals[event.side * (event.price or 0)] = event.size or 0


def _delta(now: Standing, totals: dict[int, int]) -> dict[str, Any]:
    bids = [{"price": at / MICRO, "size": totals[at] / MICRO} for at in sorted(totals, reverse=True) if at > 0]
    asks = [{"price": -at / MICRO, "size": totals[at] / MICRO} for at in sorted(totals, reverse=True) if at < 0]
    return _book(now, "delta", bids, asks)


def _book(now: Standing, kind: str, bids: Sequence[Any], asks: Sequence[Any]) -> dict[str, Any]:
    bid, ask = now.sides.best
    return {
        "market_id": now.place.market_id,
        "outcome": now.place.outcome,
        "token_id": now.place.token_id,
        "kind": kind,
        "bids": bids,
        "asks": asks,
        "best_bid": number(bid),
        "best_ask": number(ask),
        "mid": mid(bid, ask),
        "spread": spread(bid, ask),
        "depth_usd": now.sides.worth // MICRO / MICRO,
        "tick_size": number(now.tick_size),
        "hash": now.hash,
        "seq": str(now.seq),
        "ts": now.ms,
    }


def _price(now: Standing, ms: int) -> dict[str, Any]:
    (bid, ask), sides = now.sides.best, now.sides
    return {
        "market_id": now.place.market_id,
        "outcome": now.place.outcome,
        "token_id": now.place.token_id,
        "mid": mid(bid, ask),
        "bid": number(bid),
        "ask": number(ask),
        "spread": spread(bid, ask),
        "bid_size": None if bid is None else number(sides.bids[bid]),
        "ask_size": None if ask is None else number(sides.asks[ask]),
        "last": number(now.last),
        "last_ts": now.last_ms,
        "volume_24h_usd": None,  # of then, it is not known
        "ts": ms,
        "age_ms": 0,
    }


def _trade(place: Place, trade: Trade, ms: int) -> dict[str, Any]:
    return {
        "id": str(trade.trade_id),
        "market_id": place.market_id,
        "token_id": place.token_id,
        "outcome": place.outcome,
        "price": trade.price / MICRO,
        "size": trade.size / MICRO,
        "value_usd": trade.value_usd / MICRO,
        "side": "BUY" if trade.side > 0 else "SELL",
        "tx_hash": "0x" + trade.tx_hash.hex() if trade.tx_hash else None,
        "ts": ms,
    }
