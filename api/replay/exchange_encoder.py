"""A replay in the exchange's own words: what its market channel sent, field by field, out of our store."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from api.replay.history import Tick, Trade
from sql.packs import Event
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

    from api.replay.history import Happening, Place, Standing

BOOKS_A_FRAME = 50  # keeps the first frame well below a client's usual limit of 1 MiB
USUAL_TICK = 10_000
USUAL_ORDER = "5"

_encode = msgspec.json.Encoder().encode


class Words:
    """Says what happens as the exchange does. `custom`: the client asked for its further messages too."""

    def __init__(self) -> None:
        self.custom = False

    def greet(self, standing: Sequence[Standing]) -> Iterator[bytes]:
        """Say how outcomes stand that were just subscribed to."""
        known = [_book(each) for each in standing if each.whole]
        for start in range(0, max(len(known), 1), BOOKS_A_FRAME):
            yield _encode(known[start : start + BOOKS_A_FRAME])

    def tell(self, happenings: Iterable[Happening], standing: Mapping[Place, Standing]) -> Iterator[bytes]:
        """Say what happened in one instant; how things stand changes with it."""
        pending: dict[str, list[tuple[Standing, Event]]] = {}
        for happening in happenings:
            now, what = standing[happening.place], happening.what
            if isinstance(what, Event):
                now.hear(what)
                if what.side is not None:
                    if now.whole:
                        pending.setdefault(happening.place.market_id, []).append((now, what))
                    continue
            if any(now is changed for changed, _ in pending.get(happening.place.market_id, ())):
                yield from self._changed(happening.us, pending.pop(happening.place.market_id))
            if isinstance(what, Event):
                yield _encode(_book(now))
                yield from self._best([now])
            elif isinstance(what, Trade):
                now.last, now.last_ms = what.price, happening.us // 1000
                yield _encode(_print(happening, what))
            else:
                now.tick_size = what.tick_size
                yield _encode(_tick(happening, what))
        for changes in pending.values():
            yield from self._changed(happening.us, changes)

    def _changed(self, us: int, changes: list[tuple[Standing, Event]]) -> Iterator[bytes]:
        """Say which levels changed. The best prices are those after all of them, as the exchange's are."""
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

    def _best(self, several: Iterable[Standing]) -> Iterator[bytes]:
        if not self.custom:
            return
        for now in several:
            best = now.sides.best
            if best != now.told:
                now.told = best
                bid, ask = best[0] or 0, ONE if best[1] is None else best[1]
                of = now.place
                yield _encode(BestBidAsk(of.market_id, of.token_id, text(bid), text(ask), text(ask - bid), str(now.ms)))


def _best(now: Standing) -> tuple[str, str]:
    bid, ask = now.sides.best
    return text(bid or 0), text(ONE if ask is None else ask)


def _book(now: Standing) -> BookMessage:
    """Give the whole book, the best level last on both sides."""
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


def _print(happening: Happening, trade: Trade) -> LastTradePrice:
    return LastTradePrice(
        market=happening.place.market_id,
        asset_id=happening.place.token_id,
        price=text(trade.price),
        size=text(trade.size),
        side="BUY" if trade.side > 0 else "SELL",
        timestamp=str(happening.us // 1000),
        transaction_hash="0x" + trade.tx_hash.hex() if trade.tx_hash else "",
    )


def _tick(happening: Happening, tick: Tick) -> TickSizeChange:
    before = USUAL_TICK if tick.before is None else tick.before
    return TickSizeChange(
        market=happening.place.market_id,
        asset_id=happening.place.token_id,
        old_tick_size=text(before),
        new_tick_size=text(tick.tick_size),
        timestamp=str(happening.us // 1000),
    )
