"""Playback of recordings of Kalshi, shifted in time to start now.

Books are played as changes of their levels: a recorded snapshot sends what differs from the book as it is. A market's
book follows one recorded subscription at a time, the one that sent its last snapshot. Openings and closings, of which
the socket does not tell, happen at the recorded times.
"""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING, Any

from upstream.sandbox.common.book import BUY, SELL
from upstream.sandbox.kalshi.exchange.entries import KalshiTrade
from upstream.sandbox.kalshi.tape.listings import Lister, grid_of, ticker_of
from upstream.sandbox.kalshi.tape.recording import read_recordings
from upstream.sandbox.tape.files import MAX_SIZE, moment, price, size
from upstream.transport.micro import ONE, parse

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from upstream.sandbox.common.book import Levels, Side
    from upstream.sandbox.kalshi.exchange.exchange import KalshiExchange
    from upstream.sandbox.kalshi.exchange.listings import KalshiMarket, Status
    from upstream.sandbox.kalshi.tape.recording import KalshiTape, RecordedFrame

MAX_LEVELS = 20_000
MAX_ID = 100
SIDES: dict[str, Side] = {"yes": BUY, "no": SELL}
STATUSES: dict[str, Status] = {
    "activated": "active",
    "deactivated": "inactive",
    "determined": "determined",
    "settled": "finalized",
}
SHIFTED = ("open_ts", "close_ts", "determination_ts", "settled_ts", "strike_date", "expected_expiration_ts")


class KalshiPlayback:
    """Event source that plays a folder of recordings."""

    source = "tape"

    def __init__(
        self, exchange: KalshiExchange, folder: Path, *, start_ms: int, speed: float, progress: Callable[[str], None]
    ) -> None:
        if speed < 0:
            raise ValueError("a tape plays forward")
        self.exchange = exchange
        self.speed = speed
        self.tape: KalshiTape = read_recordings(folder, progress)
        self.played = 0
        self.ended = False
        self.start_ms = start_ms
        self.now_ms = float(start_ms)
        first = self.tape.frames[0].at_ms if self.tape.frames else start_ms
        self._first_ms, self._shift_ms = first, start_ms - first
        self._sources: dict[str, tuple[str, int, int]] = {}
        self._trades: set[str] = set()
        self._due: list[tuple[int, str, Status]] = []
        exchange.now_ms, exchange.figures_follow = start_ms, False
        self._lister = Lister(exchange, self._shift_ms)
        self._lister.list_all(self.tape)
        self._state_at_start()
        for line in self.tape.lines():
            progress(line)

    def begin(self, start_ms: int) -> None:
        """Set the start time, before anything is played. What is listed keeps the times of when the tape was read."""
        self.start_ms = start_ms
        self.now_ms = float(start_ms)
        self.exchange.now_ms = start_ms
        self._shift_ms = start_ms - self._first_ms

    def state(self) -> dict[str, Any]:
        """Return the playback's state as JSON."""
        return {"speed": self.speed, "played": self.played, "of": len(self.tape.frames), "ended": self.ended}

    # --- Playing ---

    def advance(self, until_ms: float, most: int = 1_000_000) -> bool:
        """Play frames due until a moment, or at speed 0 the next ones, at most `most`."""
        for _ in range(most):
            if self.played == len(self.tape.frames):
                self.ended = True
                return True
            coming = self.tape.frames[self.played]
            due_ms = self.start_ms + (coming.at_ms - self._first_ms) / (self.speed or 1)
            if self.speed and due_ms > until_ms:
                self._turn(until_ms)
                return True
            self._turn(due_ms)
            self.played += 1
            try:
                used = self._play(coming)
            except (ValueError, KeyError, TypeError, AttributeError) as error:
                reason = str(error) if str(error).startswith("malformed ") else "malformed message"
                coming.file.leave(reason, coming.row)
                continue
            if used:
                coming.file.leave(used, coming.row)
            else:
                coming.file.used += 1
        return False

    def _turn(self, ms: float) -> None:
        """Move the clock, and open and close markets on the way."""
        self.now_ms = max(self.now_ms, ms)
        while self._due and self._due[0][0] <= self.now_ms:
            at, ticker, status = heapq.heappop(self._due)
            market = self.exchange.markets[ticker]
            expected = "initialized" if status == "active" else "active"
            if market.status == expected and (status == "active" or market.close_ms <= at):
                self.exchange.now_ms = max(self.exchange.now_ms, at)
                self.exchange.set_status(market, status)
        self.exchange.now_ms = max(self.exchange.now_ms, int(self.now_ms))

    def _play(self, frame: RecordedFrame) -> str:
        """Play a frame; return why it is not used, "" if it is."""
        if frame.kind in ("event_lifecycle", "event_fee_update"):
            return self._event(frame)
        if frame.kind in ("market_lifecycle_v2", "multivariate_market_lifecycle"):
            return self._lifecycle(frame)
        return self._of_market(frame)

    def _of_market(self, frame: RecordedFrame) -> str:
        market = self.exchange.markets.get(ticker_of(frame.msg.get("market_ticker")))
        if market is None:
            return "of a market that nothing describes"
        if frame.kind == "orderbook_snapshot":
            self._sources[market.ticker] = frame.source
            bids, asks = _sides(frame.msg, "yes_dollars_fp", "no_dollars_fp", yes=frame.yes)
            self.exchange.replace_book(market, self.exchange.now_ms, bids, asks)
            return ""
        if frame.kind == "orderbook_delta":
            return self._delta(market, frame)
        if frame.kind == "trade":
            return self._trade(market, frame)
        return self._ticker(market, frame.msg)

    # --- Books and trades ---

    def _delta(self, market: KalshiMarket, frame: RecordedFrame) -> str:
        msg = frame.msg
        if self._sources.get(market.ticker) != frame.source:
            return "a change without its snapshot"
        side = SIDES.get(msg["side"])
        if side is None:
            raise ValueError("malformed side")
        at = price(msg["price_dollars"])
        at = ONE - at if side == SELL and not frame.yes else at
        delta = parse(msg["delta_fp"])
        if abs(delta) > MAX_SIZE:
            raise ValueError("malformed delta")
        after = market.book.size(side, at) + delta
        if after < 0:
            self._sources.pop(market.ticker)
            return "out of step: a level below 0; the market waits for its next snapshot"
        self.exchange.change(market, self.exchange.now_ms, ((side, at, after),))
        return ""

    def _trade(self, market: KalshiMarket, frame: RecordedFrame) -> str:
        msg = frame.msg
        trade_id = str(msg["trade_id"])[:MAX_ID]
        if trade_id in self._trades:
            return "a trade that was played already"
        self._trades.add(trade_id)
        self.exchange.print(
            market,
            self.exchange.now_ms,
            price(msg["yes_price_dollars"]),
            size(msg["count_fp"]),
            trade_id,
            takes_yes=msg.get("taker_outcome_side", msg.get("taker_side")) == "yes",
            block=msg.get("is_block_trade") is True,
        )
        return ""

    def _ticker(self, market: KalshiMarket, msg: dict[str, Any]) -> str:
        market.last_price = price(msg["price_dollars"])
        market.volume, market.open_interest = size(msg["volume_fp"]), size(msg["open_interest_fp"])
        market.last_size = size(msg.get("last_trade_size_fp") or 0)
        market.top = (
            price(msg["yes_bid_dollars"]),
            size(msg.get("yes_bid_size_fp") or 0),
            price(msg["yes_ask_dollars"]),
            size(msg.get("yes_ask_size_fp") or 0),
        )
        self.exchange.tick(market, self.exchange.now_ms)
        return ""

    # --- Lives ---

    def _event(self, frame: RecordedFrame) -> str:
        ticker = ticker_of(frame.msg.get("event_ticker"))
        if frame.kind == "event_lifecycle":
            self._lister.event(frame.msg)
        event = self.exchange.events.get(ticker)
        if event is None:
            return "of an event that nothing describes"
        if frame.kind == "event_fee_update":
            event.fee_override = frame.msg.get("fee_type_override"), frame.msg.get("fee_multiplier_override")
        self.exchange.notify(event, frame.kind, self._shifted(frame.msg))
        return ""

    def _lifecycle(self, frame: RecordedFrame) -> str:
        msg = self._shifted(frame.msg)
        ticker, kind = ticker_of(msg.get("market_ticker")), msg.get("event_type")
        if kind == "created" and ticker not in self.exchange.markets:
            self._create(ticker, msg)
        market = self.exchange.markets.get(ticker)
        if market is None:
            return "of a market that nothing describes"
        if "close_ts" in msg:
            market.close_ms = msg["close_ts"] * 1000
            self._plan(market)
        if kind == "price_level_structure_updated":
            market.grid = grid_of(msg)
        elif kind == "determined":
            market.result = str(msg.get("result", ""))[:MAX_ID]
            market.settlement = price(msg["settlement_value"]) if msg.get("settlement_value") else None
        elif kind == "settled":
            market.settled_ms = self.exchange.now_ms
        elif kind == "metadata_updated" and msg.get("yes_sub_title"):
            market.yes_sub_title = str(msg["yes_sub_title"])
        market.status = STATUSES.get(str(kind), market.status)
        market.updated_ms = self.exchange.now_ms
        self.exchange.notify(market.event, frame.kind, msg)
        return ""

    def _create(self, ticker: str, msg: dict[str, Any]) -> None:
        more = msg.get("additional_metadata") or {}
        row = {**more, **msg, "ticker": ticker, "status": "initialized"}
        row = {name: value for name, value in row.items() if not name.endswith("_ts")}
        self._lister.market(row | {"additional_metadata": None})
        market = self.exchange.markets[ticker]
        market.created_ms = self.exchange.now_ms
        market.open_ms = market.expected_ms = msg["open_ts"] * 1000
        market.close_ms = msg["close_ts"] * 1000
        self._plan(market)

    def _shifted(self, msg: dict[str, Any]) -> dict[str, Any]:
        """Return a message with its times, in seconds, as they are played."""
        found = dict(msg)
        for name in SHIFTED:
            if name in found and found[name] is not None:
                found[name] = (moment(found[name]) + self._shift_ms) // 1000
        if isinstance(found.get("additional_metadata"), dict):
            found["additional_metadata"] = self._shifted(found["additional_metadata"])
        return found

    def _plan(self, market: KalshiMarket) -> None:
        """Plan a market's silent opening and closing."""
        for at, status in ((market.open_ms, "active"), (market.close_ms, "closed")):
            if at > self.exchange.now_ms:
                heapq.heappush(self._due, (at, market.ticker, "active" if status == "active" else "closed"))

    # --- The start ---

    def _state_at_start(self) -> None:
        """Set the books and trades that REST told, without messages."""
        exchange = self.exchange
        for market in exchange.markets.values():
            self._plan(market)
        for file, row in self.tape.orderbooks:
            try:
                market = exchange.markets[ticker_of(row.get("ticker"))]
                bids, asks = _sides(row["orderbook_fp"], "yes_dollars", "no_dollars", yes=False)
            except KeyError:
                file.leave("of a market that nothing describes")
                continue
            except (ValueError, TypeError, AttributeError) as error:
                file.leave(str(error) if str(error).startswith("malformed ") else "malformed book")
                continue
            market.book.clear()
            for side, levels in ((BUY, bids), (SELL, asks)):
                for at, resting in levels:
                    market.book.set(side, at, resting)
            market.top = market.best_quote()
            file.used += 1
        self._past_trades()

    def _past_trades(self) -> None:
        found: list[KalshiTrade] = []
        for file, row in self.tape.trades:
            try:
                trade = self._past_trade(row)
            except KeyError:
                file.leave("of a market that nothing describes")
                continue
            except (ValueError, TypeError) as error:
                file.leave(str(error) if str(error).startswith("malformed ") else "malformed trade")
                continue
            if trade.id in self._trades:
                file.leave("a trade that another row has")
                continue
            self._trades.add(trade.id)
            found.append(trade)
            file.used += 1
        found.reverse()  # answers have the newest first, which counts within a millisecond
        for trade in sorted(found, key=lambda one: one.ts_ms):
            self.exchange.record(trade)

    def _past_trade(self, row: dict[str, Any]) -> KalshiTrade:
        return KalshiTrade(
            ts_ms=min(moment(row["created_time"]) + self._shift_ms, self.start_ms),
            market=self.exchange.markets[ticker_of(row.get("ticker"))],
            id=str(row["trade_id"])[:MAX_ID],
            price=price(row["yes_price_dollars"]),
            size=size(row["count_fp"]),
            takes_yes=row.get("taker_outcome_side", row.get("taker_side")) == "yes",
            block=row.get("is_block_trade") is True,
        )


def _sides(book: dict[str, Any], yes_key: str, no_key: str, *, yes: bool) -> tuple[Levels, Levels]:
    """Return YES bids, and NO bids as offers of YES; with `yes` they are recorded as such."""
    bids, others = ([(price(at), size(many)) for at, many in book.get(key) or ()] for key in (yes_key, no_key))
    if len(bids) + len(others) > MAX_LEVELS:
        raise ValueError("malformed book: too many levels")
    return bids, [(at if yes else ONE - at, many) for at, many in others]
