"""Plays a tape on the exchange: what happened then happens again, from now on."""

from __future__ import annotations

import time
from collections import Counter
from typing import TYPE_CHECKING, Any

from upstream.sandbox.exchange import wire
from upstream.sandbox.exchange.book import BUY, SELL
from upstream.sandbox.exchange.catalogue import Gamma, Market, listed
from upstream.sandbox.exchange.population import Population
from upstream.sandbox.exchange.trades import Trade
from upstream.sandbox.simulation.universe import iso, short
from upstream.sandbox.tape.recording import BookSeen, LevelsChanged, Listing, Printed
from upstream.sandbox.tape.tape import Played, Tape, read_tape
from upstream.transport.micro import ONE, text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from upstream.sandbox.exchange.book import Book, Levels
    from upstream.sandbox.exchange.exchange import Exchange


class Playback:
    """Plays a folder of recordings; each starts when the tape does, and keeps its own pace."""

    source = "tape"

    def __init__(
        self,
        exchange: Exchange,
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
        self.total = sum(len(recording.happenings) for recording in self.tape.recordings)
        self.ended = False
        self.end_ms = 0
        self._summary = self.tape.summary()
        self._listings: list[Listing] = self.tape.listings
        self._stale: set[str] = set()
        self._volume: Counter[str] = Counter()
        self._list()
        self.begin(start_ms)
        exchange.refreshers.append(self.refresh)

    def begin(self, start_ms: int) -> None:
        """Let the tape start at a moment; nothing of it has been played yet."""
        self.start_ms = start_ms
        self.now_ms = float(start_ms)
        self.exchange.now_ms = start_ms
        self._coming: Iterator[Played] = self.tape.play(start_ms, self.speed)
        self._next = next(self._coming, None)
        self._date()
        self._age()

    # --- Playing ---

    def advance(self, until_ms: float, most: int = 1_000_000) -> bool:
        """Play what is due until a moment, or at speed 0 whatever comes next, at most so many things."""
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
        return {
            "speed": self.speed,
            "played": self.played,
            "of": self.total,
            "share": round(self.played / self.total, 4) if self.total else 1.0,
            "ended": self.ended,
            **self._summary,
        }

    def _play(self, played: Played) -> None:
        happening = played.happening
        at = self.exchange.catalogue.find(happening.token)
        if at is None:
            raise LookupError(f"{played.recording.name} names a token without a market: {happening.token}")
        market, outcome = at
        self._stale.add(market.id)
        if isinstance(happening, LevelsChanged):
            self._change(market, outcome, played.ts_ms, happening)
        elif isinstance(happening, BookSeen):
            self._show(market, outcome, played.ts_ms, happening)
        elif isinstance(happening, Printed):
            self._print(market, outcome, played.ts_ms, happening)
        else:
            self._resolve(market, outcome, played.ts_ms)

    def _change(self, market: Market, outcome: int, ts_ms: int, happening: LevelsChanged) -> None:
        book = market.books[outcome][0]
        for side, price, size in happening.changes:
            book.set(side, price, size)
        book.ts_ms = ts_ms
        bid, ask = text(book.best_bid), text(book.best_ask)
        facts = [
            wire.Fact(
                0,
                "level",
                happening.token,
                market.condition_id,
                ts_ms,
                side,
                text(price),
                text(size),
                "",
                happening.hash,
                bid,
                ask,
            )
            for side, price, size in happening.changes
        ]
        message = happening.message(market.condition_id, ts_ms)
        self.exchange.publish(message, "price_change", (happening.token,), facts)

    def _show(self, market: Market, outcome: int, ts_ms: int, happening: BookSeen) -> None:
        book = market.books[outcome][0]
        book.clear()
        bids, asks = happening.read()
        _fill(book, bids, asks)
        book.ts_ms = ts_ms
        message: Any = (
            happening.message(market.condition_id, ts_ms)
            if happening.hash
            else self.exchange.book_message(market, outcome)
        )
        digest = happening.hash or book.hash(happening.token)
        fact = wire.Fact(
            0,
            "book",
            happening.token,
            market.condition_id,
            ts_ms,
            hash=digest,
            best_bid=text(book.best_bid),
            best_ask=text(book.best_ask),
        )
        self.exchange.publish(message, "book", (happening.token,), (fact,))

    def _print(self, market: Market, outcome: int, ts_ms: int, happening: Printed) -> None:
        market.printed(outcome, happening.price)
        self._volume[market.id] += happening.price * happening.size // ONE
        price, size = text(happening.price), text(happening.size)
        fact = wire.Fact(
            0, "trade", happening.token, market.condition_id, ts_ms, happening.side, price, size, happening.tx
        )
        message = happening.message(market.condition_id, ts_ms)
        self.exchange.publish(message, "last_trade_price", (happening.token,), (fact,))
        self.exchange.remember(
            Trade(
                fact.n,
                market.condition_id,
                happening.token,
                outcome,
                happening.side,
                happening.price,
                happening.size,
                ts_ms,
                happening.tx,
                taker=happening.wallet or self._population.of(f"{happening.tx} taker"),
                maker=self._population.of(f"{happening.tx} {fact.n}"),
            )
        )

    def _resolve(self, market: Market, outcome: int, ts_ms: int) -> None:
        if not market.closed:
            self.exchange.resolve(market, ts_ms, outcome, short(ts_ms))
            market.gamma["updatedAt"] = iso(ts_ms)

    def refresh(self) -> None:
        """Write prices and volumes into the made objects of markets that moved; recorded ones stay as they are."""
        stale, self._stale = self._stale, set()
        for market_id in stale:
            market = self.exchange.catalogue.markets[market_id]
            if "sandboxMadeFrom" in market.gamma and not market.closed:
                self._figures(market)

    def _figures(self, market: Market) -> None:
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
        """List the tape's markets; those that are played have a book from the start, an empty one until their first."""
        catalogue = self.exchange.catalogue
        for event in self.tape.events:
            catalogue.add_event(event)
        for listing in self._listings:
            for event in listing.gamma.get("events") or ():
                if str(event["id"]) not in catalogue.events:
                    catalogue.add_event(event)
            market = Market(listing.gamma, mirrored=False, tags=listing.tags)
            catalogue.add(market)
            for one in listing.tags:
                catalogue.tags.setdefault(str(one["id"]), one)
        self._open_books()

    def _open_books(self) -> None:
        """Give a book to each market whose levels were recorded; those recorded once rest in theirs."""
        find = self.exchange.catalogue.find
        shown = {
            one.token
            for recording in self.tape.recordings
            for one in recording.happenings
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
        """Make a book that waits for its first message as old as its recording: nothing that is played may be older."""
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
        """Write the times of played markets into their objects, moved as their recordings are."""
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


def _fill(book: Book, bids: Levels, asks: Levels) -> None:
    for price, size in bids:
        book.set(BUY, price, size)
    for price, size in asks:
        book.set(SELL, price, size)
