"""Encodes a replay as messages of our own stream."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import msgspec

from api.replay.history import TickChange, TradeRecord
from api.replay.past_books import mid, number, spread
from api.schemas.records import BookMessage, Level, Price, Trade
from sql.database import MICRO

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from api.replay.history import HistoricEvent, OutcomeRef, OutcomeState
    from sql.packs import BookEvent

TYPES = ("trade", "orderbook", "price")  # the types that are stored for ever

_encode = msgspec.json.Encoder().encode


class StreamEncoder:
    """Encodes events as stream messages; `seq` counts all messages, including those skipped by `after`."""

    def __init__(self) -> None:
        self.types = frozenset(TYPES)
        self.seq = 0
        self.after = 0  # messages up to this seq are skipped

    def encode_initial(self, states: Sequence[OutcomeState]) -> Iterator[bytes]:
        """Encode the current state of newly subscribed outcomes."""
        for now in states:
            if now.whole:
                now.published_best = now.sides.best
                yield from self._say("orderbook", now, now.ms, _book(now, "snapshot", *now.sides.levels()))
                yield from self._say("price", now, now.ms, _price(now, now.ms))

    def encode_events(
        self, events: Iterable[HistoricEvent], states: Mapping[OutcomeRef, OutcomeState]
    ) -> Iterator[bytes]:
        """Encode the events of one instant: trades, then each changed book, then changed prices."""
        changed: dict[OutcomeRef, dict[int, int] | None] = {}  # totals by level, bids above 0; None: the whole book
        moved: dict[OutcomeRef, OutcomeState] = {}
        ms = 0
        for event in events:
            place, what, ms = event.place, event.what, event.us // 1000
            now = states[place]
            if isinstance(what, TradeRecord):
                now.last, now.last_ms = what.price, ms
                moved[place] = now
                yield from self._say("trade", now, ms, _trade(place, what, ms))
            elif isinstance(what, TickChange):
                now.tick_size = what.tick_size
            else:
                _apply(now, what, changed)
        for place, totals in changed.items():
            now = states[place]
            if not now.whole:
                continue
            if totals is None:
                yield from self._say("orderbook", now, ms, _book(now, "snapshot", *now.sides.levels()))
            else:
                yield from self._say("orderbook", now, ms, _delta(now, totals))
            if now.sides.best != now.published_best:
                now.published_best = now.sides.best
                moved[place] = now
        for now in moved.values():
            yield from self._say("price", now, ms, _price(now, ms))

    def _say(self, kind: str, now: OutcomeState, ms: int, data: Trade | Price | BookMessage) -> Iterator[bytes]:
        if kind in self.types:
            self.seq += 1
            if self.seq > self.after:
                market_id = now.place.market_id
                yield _encode({"type": kind, "seq": self.seq, "ts": ms, "market_id": market_id, "data": data})


def _apply(now: OutcomeState, event: BookEvent, changed: dict[OutcomeRef, dict[int, int] | None]) -> None:
    if event.side is None:
        before = (now.sides.bids, now.sides.asks, now.whole)
        now.apply(event)
        if before != (now.sides.bids, now.sides.asks, True):
            changed[now.place] = None
        return
    now.apply(event)
    totals = changed.setdefault(now.place, {})
    if totals is not None:
        totals[event.side * (event.price or 0)] = event.size or 0


def _delta(now: OutcomeState, totals: dict[int, int]) -> BookMessage:
    bids = [Level(at / MICRO, totals[at] / MICRO) for at in sorted(totals, reverse=True) if at > 0]
    asks = [Level(-at / MICRO, totals[at] / MICRO) for at in sorted(totals, reverse=True) if at < 0]
    return _book(now, "delta", bids, asks)


def _book(now: OutcomeState, kind: Literal["snapshot", "delta"], bids: list[Level], asks: list[Level]) -> BookMessage:
    best = now.sides.best
    return BookMessage(
        market_id=now.place.market_id,
        outcome=now.place.outcome,
        token_id=now.place.token_id,
        kind=kind,
        bids=bids,
        asks=asks,
        best_bid=number(best[0]),
        best_ask=number(best[1]),
        mid=mid(*best),
        spread=spread(*best),
        depth_usd=now.sides.value // MICRO / MICRO,
        tick_size=number(now.tick_size),
        hash=now.hash,
        seq=str(now.seq),
        ts=now.ms,
    )


def _price(now: OutcomeState, ms: int) -> Price:
    (bid, ask), sides = now.sides.best, now.sides
    return Price(
        market_id=now.place.market_id,
        outcome=now.place.outcome,
        token_id=now.place.token_id,
        mid=mid(bid, ask),
        bid=number(bid),
        ask=number(ask),
        spread=spread(bid, ask),
        bid_size=None if bid is None else number(sides.bids[bid]),
        ask_size=None if ask is None else number(sides.asks[ask]),
        last=number(now.last),
        last_ts=now.last_ms,
        volume_24h_usd=None,  # unknown for the past
        ts=ms,
        age_ms=0,
    )


def _trade(place: OutcomeRef, trade: TradeRecord, ms: int) -> Trade:
    return Trade(
        id=str(trade.trade_id),
        market_id=place.market_id,
        token_id=place.token_id,
        outcome=place.outcome,
        price=trade.price / MICRO,
        size=trade.size / MICRO,
        value_usd=trade.value_usd / MICRO,
        side="BUY" if trade.side > 0 else "SELL",
        tx_hash="0x" + trade.tx_hash.hex() if trade.tx_hash else None,
        ts=ms,
    )
