"""Encodes a replay as the exchange's market channel messages, field by field, from stored data."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from api.replay.history import TickChange, TradeRecord
from sql.packs import BookEvent
from upstream.polymarket.market_channel.outgoing import (
    BestBidAsk,
    BookMessage,
    LastTradePrice,
    LevelChange,
    PriceChange,
    TickSizeChange,
    levels,
)
from upstream.transport.micro import ONE, text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from api.replay.history import HistoricEvent, OutcomeRef, OutcomeState

BOOKS_A_FRAME = 50  # keeps the first frame well below the usual client limit of 1 MiB
USUAL_TICK = 10_000
USUAL_ORDER = "5"

_encode = msgspec.json.Encoder().encode


class ExchangeEncoder:
    """Encodes events as the exchange does. `custom`: the client requested the optional messages too."""

    def __init__(self) -> None:
        self.custom = False

    def encode_initial(self, states: Sequence[OutcomeState]) -> Iterator[bytes]:
        """Encode the current state of newly subscribed outcomes."""
        known = [_book(each) for each in states if each.whole]
        for start in range(0, max(len(known), 1), BOOKS_A_FRAME):
            yield _encode(known[start : start + BOOKS_A_FRAME])

    def encode_events(
        self, events: Iterable[HistoricEvent], states: Mapping[OutcomeRef, OutcomeState]
    ) -> Iterator[bytes]:
        """Encode the events of one instant and update the outcomes' state."""
        pending: dict[str, list[tuple[OutcomeState, BookEvent]]] = {}
        for event in events:
            now, what = states[event.place], event.what
            if isinstance(what, BookEvent):
                now.apply(what)
                if what.side is not None:
                    if now.whole:
                        pending.setdefault(event.place.market_id, []).append((now, what))
                    continue
            if any(now is changed for changed, _ in pending.get(event.place.market_id, ())):
                yield from self._changed(event.us, pending.pop(event.place.market_id))
            if isinstance(what, BookEvent):
                yield _encode(_book(now))
                yield from self._best([now])
            elif isinstance(what, TradeRecord):
                now.last, now.last_ms = what.price, event.us // 1000
                yield _encode(_print(event, what))
            else:
                now.tick_size = what.tick_size
                yield _encode(_tick(event, what))
        for changes in pending.values():
            yield from self._changed(event.us, changes)

    def _changed(self, us: int, changes: list[tuple[OutcomeState, BookEvent]]) -> Iterator[bytes]:
        """Encode level changes. The best prices are those after all changes, as at the exchange."""
        best = {now.place: _best(now) for now, _ in changes}
        said = [
            LevelChange(
                now.place.token_id,
                text(event.price or 0),
                text(event.size or 0),
                "BUY" if (event.side or 0) > 0 else "SELL",
                event.hash.hex() if event.hash else "",
                *best[now.place],
            )
            for now, event in changes
        ]
        yield _encode(PriceChange(changes[0][0].place.market_id, said, str(us // 1000)))
        yield from self._best({now.place: now for now, _ in changes}.values())

    def _best(self, several: Iterable[OutcomeState]) -> Iterator[bytes]:
        if not self.custom:
            return
        for now in several:
            best = now.sides.best
            if best != now.published_best:
                now.published_best = best
                bid, ask = best[0] or 0, ONE if best[1] is None else best[1]
                of = now.place
                yield _encode(BestBidAsk(of.market_id, of.token_id, text(bid), text(ask), text(ask - bid), str(now.ms)))


def _best(now: OutcomeState) -> tuple[str, str]:
    bid, ask = now.sides.best
    return text(bid or 0), text(ONE if ask is None else ask)


def _book(now: OutcomeState) -> BookMessage:
    """Return the full book, with the best level last on both sides."""
    of = now.place
    return BookMessage(
        market=of.market_id,
        asset_id=of.token_id,
        timestamp=str(now.ms),
        hash=now.hash or "",
        bids=levels(sorted(now.sides.bids.items())),
        asks=levels(sorted(now.sides.asks.items(), reverse=True)),
        min_order_size=of.least_order or USUAL_ORDER,
        tick_size=text(now.tick_size or USUAL_TICK),
        neg_risk=of.neg_risk,
        last_trade_price=msgspec.UNSET if now.last is None else text(now.last),
    )


def _print(event: HistoricEvent, trade: TradeRecord) -> LastTradePrice:
    return LastTradePrice(
        market=event.place.market_id,
        asset_id=event.place.token_id,
        price=text(trade.price),
        size=text(trade.size),
        side="BUY" if trade.side > 0 else "SELL",
        timestamp=str(event.us // 1000),
        transaction_hash="0x" + trade.tx_hash.hex() if trade.tx_hash else "",
    )


def _tick(event: HistoricEvent, tick: TickChange) -> TickSizeChange:
    before = USUAL_TICK if tick.before is None else tick.before
    return TickSizeChange(
        market=event.place.market_id,
        asset_id=event.place.token_id,
        old_tick_size=text(before),
        new_tick_size=text(tick.tick_size),
        timestamp=str(event.us // 1000),
    )
