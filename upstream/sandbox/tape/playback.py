"""Playback of a tape on the exchange, shifted in time to start now."""

from __future__ import annotations

import time
from collections import Counter
from typing import TYPE_CHECKING, Any

from upstream.sandbox.common.book import BUY, SELL
from upstream.sandbox.exchange import wire
from upstream.sandbox.exchange.catalogue import Gamma, SandboxMarket, listed
from upstream.sandbox.exchange.population import Population
from upstream.sandbox.exchange.trades import SandboxTrade
from upstream.sandbox.simulation.universe import iso, short
from upstream.sandbox.tape.recording import BookSeen, LevelsChanged, Printed, TapeListing
from upstream.sandbox.tape.tape import Played, Tape, read_tape
from upstream.transport.micro import ONE, text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from upstream.sandbox.common.book import Levels, SandboxBook
    from upstream.sandbox.exchange.exchange import SandboxExchange


class Playback:
    """Event source that plays a folder of recordings; each starts with the tape, and keeps its own pace."""

    source = "tape"

    def __init__(
        self,
        exchange: SandboxExchange,
        folder: Path,
        *,
        start_ms: int,
        speed: float = 1.0,
        progress: Callable[[str], None] | None = None,
        population: Population | None = None,
    ) -> None:
        if speed < 0:
            raise ValueError("a tape plays forward")
        self.exchange = exchange
        self.speed = speed
        self._population = population or Population(0)
        self.tape: Tape = read_tape(folder, progress)
        self.played = 0
        self.total = sum(len(recording.tape_events) for recording in self.tape.recordings)
        self.ended = False
        self.end_ms = 0
        self._summary = self.tape.summary()
        self._listings: list[TapeListing] = self.tape.listings
        self._stale: set[str] = set()
        self._volume: Counter[str] = Counter()
        self._list()
        self.begin(start_ms)
        exchange.refreshers.append(self.refresh)

    def begin(self, start_ms: int) -> None:
        """Set the tape's start time, before anything is played."""
        self.start_ms = start_ms
        self.now_ms = float(start_ms)
        self.exchange.now_ms = start_ms
        self._coming: Iterator[Played] = self.tape.play(start_ms, self.speed)
        self._next = next(self._coming, None)
        self._date()
        self._age()

    # --- Playing ---

    def advance(self, until_ms: float, most: int = 1_000_000) -> bool:
        """Play events due until a moment, or at speed 0 the next ones, at most `most`."""
        for _ in range(most):
            coming = self._next
            if coming is None:
                self.ended, self.end_ms = True, int(time.time() * 1000)
                return True
            if self.speed and coming.due_ms > until_ms:
                self.now_ms = until_ms
                self.exchange.now_ms = int(until_ms)
                return True
            self.now_ms = coming.due_ms
            self.exchange.now_ms = max(self.exchange.now_ms, coming.due_ms)
            self._play(coming)
            self.played += 1
            self._next = next(self._coming, None)
        return False

    def state(self) -> dict[str, Any]:
        """Return the playback's state as JSON."""
        return {
            "speed": self.speed,
            "played": self.played,
            "of": self.total,
            "share": round(self.played / self.total, 4) if self.total else 1.0,
            "ended": self.ended,
            **self._summary,
        }

    def _play(self, played: Played) -> None:
        tape_event = played.tape_event
        at = self.exchange.catalogue.find(tape_event.token)
        if at is None:
            raise LookupError(f"{played.recording.name} names a token without a market: {tape_event.token}")
        market, outcome = at
        self._stale.add(market.id)
        if isinstance(tape_event, LevelsChanged):
            self._change(market, outcome, played.ts_ms, tape_event)
        elif isinstance(tape_event, BookSeen):
            self._show(market, outcome, played.ts_ms, tape_event)
        elif isinstance(tape_event, Printed):
            self._print(market, outcome, played.ts_ms, tape_event)
        else:
            self._resolve(market, outcome, played.ts_ms)

    def _change(self, market: SandboxMarket, outcome: int, ts_ms: int, tape_event: LevelsChanged) -> None:
        book = market.books[outcome][0]
        for side, price, size in tape_event.changes:
            book.set(side, price, size)
        book.ts_ms = ts_ms
        bid, ask = text(book.best_bid), text(book.best_ask)
        facts = [
            wire.Fact(
                0,
                "level",
                tape_event.token,
                market.condition_id,
                ts_ms,
                side,
                text(price),
                text(size),
                "",
                tape_event.hash,
                bid,
                ask,
            )
            for side, price, size in tape_event.changes
        ]
        message = tape_event.message(market.condition_id, ts_ms)
        self.exchange.publish(message, "price_change", (tape_event.token,), facts)

    def _show(self, market: SandboxMarket, outcome: int, ts_ms: int, tape_event: BookSeen) -> None:
        book = market.books[outcome][0]
        book.clear()
        bids, asks = tape_event.read()
        _fill(book, bids, asks)
        book.ts_ms = ts_ms
        message: Any = (
            tape_event.message(market.condition_id, ts_ms)
            if tape_event.hash
            else self.exchange.book_message(market, outcome)
        )
        digest = tape_event.hash or book.hash(tape_event.token)
        fact = wire.Fact(
            0,
            "book",
            tape_event.token,
            market.condition_id,
            ts_ms,
            hash=digest,
            best_bid=text(book.best_bid),
            best_ask=text(book.best_ask),
        )
        self.exchange.publish(message, "book", (tape_event.token,), (fact,))

    def _print(self, market: SandboxMarket, outcome: int, ts_ms: int, tape_event: Printed) -> None:
        market.printed(outcome, tape_event.price)
        self._volume[market.id] += tape_event.price * tape_event.size // ONE
        price, size = text(tape_event.price), text(tape_event.size)
        fact = wire.Fact(
            0, "trade", tape_event.token, market.condition_id, ts_ms, tape_event.side, price, size, tape_event.tx
        )
        message = tape_event.message(market.condition_id, ts_ms)
        self.exchange.publish(message, "last_trade_price", (tape_event.token,), (fact,))
        self.exchange.remember(
            SandboxTrade(
                fact.n,
                market.condition_id,
                tape_event.token,
                outcome,
                tape_event.side,
                tape_event.price,
                tape_event.size,
                ts_ms,
                tape_event.tx,
                taker=tape_event.wallet or self._population.of(f"{tape_event.tx} taker"),
                maker=self._population.of(f"{tape_event.tx} {fact.n}"),
            )
        )

    def _resolve(self, market: SandboxMarket, outcome: int, ts_ms: int) -> None:
        if not market.closed:
            self.exchange.resolve(market, ts_ms, outcome, short(ts_ms))
            market.gamma["updatedAt"] = iso(ts_ms)

    def refresh(self) -> None:
        """Update prices and volumes in made objects of markets that moved; recorded ones are left unchanged."""
        stale, self._stale = self._stale, set()
        for market_id in stale:
            market = self.exchange.catalogue.markets[market_id]
            if "sandboxMadeFrom" in market.gamma and not market.closed:
                self._figures(market)

    def _figures(self, market: SandboxMarket) -> None:
        bid, ask = market.best(0)
        last = market.last_price[0]
        middle = (bid + ask) // 2 if market.has_book and (bid, ask) != (0, ONE) else last
        volume = self._volume[market.id]
        market.gamma.update(
            bestBid=bid / ONE,
            bestAsk=ask / ONE,
            spread=(ask - bid) / ONE,
            volume=text(volume),
            volumeNum=volume / ONE,
            volume24hr=volume / ONE,
            updatedAt=iso(self.exchange.now_ms),
        )
        if middle is not None:
            market.gamma["outcomePrices"] = listed((text(middle), text(ONE - middle)))
        if last is not None:
            market.gamma["lastTradePrice"] = last / ONE

    # --- Listing ---

    def _list(self) -> None:
        """List the tape's markets; played ones have a book from the start, empty until their first message."""
        catalogue = self.exchange.catalogue
        for event in self.tape.events:
            catalogue.add_event(event)
        for listing in self._listings:
            for event in listing.gamma.get("events") or ():
                if str(event["id"]) not in catalogue.events:
                    catalogue.add_event(event)
            market = SandboxMarket(listing.gamma, mirrored=False, tags=listing.tags)
            catalogue.add(market)
            for one in listing.tags:
                catalogue.tags.setdefault(str(one["id"]), one)
        self._open_books()

    def _open_books(self) -> None:
        """Create books for markets with recorded levels; books recorded once rest unchanged."""
        find = self.exchange.catalogue.find
        shown = {
            one.token
            for recording in self.tape.recordings
            for one in recording.tape_events
            if isinstance(one, LevelsChanged | BookSeen)
        }
        for at in map(find, shown):
            if at is not None:
                at[0].has_book = True
        for still in self.tape.still:
            at = find(still.token)
            if at is not None:
                market, outcome = at
                market.has_book = True
                market.last_price[outcome] = still.last_price
                _fill(market.books[outcome][0], still.bids, still.asks)

    def _age(self) -> None:
        """Give a book awaiting its first message the age of its recording: nothing played may be older."""
        if self.played:
            return
        for recording, timeline in zip(
            self.tape.recordings, self.tape.timelines(self.start_ms, self.speed), strict=True
        ):
            first_ms = min(timeline(recording.first_ms), self.start_ms)
            for token in recording.tokens():
                at = self.exchange.catalogue.find(token)
                if at is not None:
                    book = at[0].books[at[1]][0]
                    book.ts_ms = min(book.ts_ms or first_ms, first_ms)

    def _date(self) -> None:
        """Write the times of played markets into their objects, shifted like their recordings."""
        by_token: dict[str, Gamma] = {}
        moments: dict[str, dict[str, int]] = {}
        for listing in self._listings:
            if listing.played:
                for token in self.exchange.catalogue.markets[str(listing.gamma["id"])].tokens:
                    by_token[token] = listing.gamma
                    moments[token] = listing.moments_ms
        for recording, timeline in zip(
            self.tape.recordings, self.tape.timelines(self.start_ms, self.speed), strict=True
        ):
            for token in recording.tokens():
                gamma = by_token.get(token)
                if gamma is None or "sandboxMadeFrom" not in gamma:
                    continue
                starts, ends = timeline(recording.first_ms), timeline(recording.last_ms)
                gamma |= {
                    "startDate": iso(starts),
                    "createdAt": iso(starts),
                    "updatedAt": iso(starts),
                    "endDate": iso(ends),
                }
                gamma |= {name: iso(timeline(at_ms)) for name, at_ms in moments[token].items()}


def _fill(book: SandboxBook, bids: Levels, asks: Levels) -> None:
    for price, size in bids:
        book.set(BUY, price, size)
    for price, size in asks:
        book.set(SELL, price, size)
