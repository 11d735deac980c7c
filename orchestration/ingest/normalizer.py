"""From the exchange's messages to rows: order, identity, best prices, and what must be looked at again."""

from collections.abc import Callable, Iterable, Sequence
from time import time

import msgspec

from orchestration.ingest.clock import ExchangeClock
from orchestration.ingest.disagreements import Disagreements
from orchestration.ingest.order_book import EMPTY_ASK
from orchestration.ingest.plausible import AHEAD_MS, instant_fault, trade_fault
from orchestration.ingest.storage import ids
from orchestration.ingest.storage.rows import Batch, Change, Quote, Refusal, Snapshot, Tick, Token, Trade, value_usd
from orchestration.ingest.token_state import Track
from upstream.polymarket.market_channel.socket import (
    BestBidAsk,
    Book,
    LastTrade,
    LevelChange,
    Message,
    NewMarket,
    Refused,
    Resolved,
    TickSize,
    Unknown,
)

SOURCE = "market_socket"
REFRESH_MS = 1_000  # a live price that does not change is still confirmed this often
STRANGERS = 10_000
AWAITED = 5_000  # messages kept of one token
REFUSALS = 1_000  # kept of one batch; the rest is counted


class Counts(msgspec.Struct):
    """What came in, and what was done about it."""

    messages: int = 0
    repeats: int = 0
    unknown_tokens: int = 0
    unknown_kinds: int = 0
    refused: int = 0
    mismatches: int = 0
    reanchored: int = 0


class Tracker:
    """Follows tokens; takes messages in the order they came; gives a batch of rows at each tick."""

    def __init__(
        self,
        clock: Callable[[], float] = time,
        *,
        exchange: ExchangeClock | None = None,
        oldest_event_days: int = 90,
    ) -> None:
        self.exchange = exchange or ExchangeClock()
        self.tracks: dict[str, Track] = {}
        self.counts = Counts()
        self.astray: dict[str, Track] = {}  # books that wait for a snapshot
        self.mismatched: list[Track] = []  # books that were found to disagree
        self.strangers: set[str] = set()  # tokens that were spoken of and are not followed
        self.awaited: dict[str, list[Message]] = {}  # of tokens that the catalogue does not know yet
        self.news: list[NewMarket | Resolved] = []
        self.touched: dict[str, Track] = {}  # live books to write
        self._clock = clock
        self._oldest_event_ms = oldest_event_days * 86_400_000
        self._priced: dict[str, Track] = {}
        self._disagreements = Disagreements()
        self._batch = Batch()
        self._now_ms = int(clock() * 1000)
        self._heard_ms = 0  # the newest instant of the exchange

    def follow(self, token: Token, tick_size: int | None = None, *, fresh: bool = False) -> Track:
        """Begin to follow a token, or go on; a fresh one was listed while we were listening."""
        track = self.tracks.get(token.token_id)
        if track is None:
            track = Track(token, tick_size, fresh=fresh)
            self.astray[token.token_id] = track  # first: other threads take what is followed and not astray as standing
            self.tracks[token.token_id] = track
            self.strangers.discard(token.token_id)
            awaited = self.awaited.pop(token.token_id, ())
            self.take(awaited)
            if len(awaited) >= AWAITED:  # more may have come
                self.lose([token.token_id])
                track.first_ms = self._now_ms
        return track

    def leave(self, token_id: str) -> Track | None:
        """Follow a token no longer; its live book, if it has one, is no longer vouched for."""
        track = self.tracks.pop(token_id, None)
        if track is not None:
            self.astray.pop(token_id, None)
            self._disagreements.forget(token_id)
            track.book.lose()
            self.touched[token_id] = track
        return track

    def lose(self, token_ids: Iterable[str]) -> None:
        """Take note that messages of these tokens may have been missed."""
        for token_id in token_ids:
            if track := self.tracks.get(token_id):
                track.book.lose()
                track.whole_since_ms = None
                track.fresh = False
                track.asked = 0
                self.astray[token_id] = self.touched[token_id] = track

    def take(self, messages: Sequence[Message | Refused]) -> int:
        """Take what one frame said; return the newest instant in it, not beyond the exchange's own time, or 0."""
        self._now_ms = int(self._clock() * 1000)
        newest = pushed = 0
        groups: dict[str, list[LevelChange]] = {}
        for message in messages:
            if type(message) is LevelChange:
                ts_ms = pushed = message.ts_ms
                group = groups.setdefault(message.asset_id, [])
                if group and group[-1].ts_ms != ts_ms:
                    self._changes(group)
                    group = groups[message.asset_id] = []
                group.append(message)
            else:
                for group in groups.values():
                    self._changes(group)
                groups.clear()
                ts_ms = self._other(message)
                if type(message) is LastTrade:
                    pushed = ts_ms
            newest = max(newest, ts_ms)
        for group in groups.values():
            self._changes(group)
        exchange = self.exchange
        our_ms = exchange.our_ms()
        if 0 < pushed < self._now_ms + AHEAD_MS:
            exchange.hear(pushed, our_ms)
        newest = min(newest, our_ms - exchange.ahead_ms)
        self._heard_ms = max(self._heard_ms, newest)
        return newest

    def cut(self) -> Batch:
        """Close the batch: everything since the last one, with the live prices as they stand."""
        now_ms = self._now_ms = int(self._clock() * 1000)
        for track in self._disagreements.settle(now_ms, self._heard_ms):
            self.touched[track.token.token_id] = track
            self._stray(track)
        batch, self._batch = self._batch, Batch()
        batch.received_ms = self.exchange.our_ms()
        self.exchange.settle(batch.received_ms)
        batch.said_ms = self.exchange.theirs(batch.received_ms)
        batch.prices = {token_id: track.price() for token_id, track in self._priced.items()}
        self._priced = {}
        return batch

    def refuse(self, reason: str, payload: str) -> None:
        """Put what was said into quarantine as a whole."""
        self._refuse(SOURCE, reason, payload)

    def _other(self, message: Message | Refused) -> int:
        if isinstance(message, Book | LastTrade | BestBidAsk | TickSize):
            track = self.tracks.get(message.asset_id)
            if track is None:
                self._stranger(message.asset_id, [message])
                return message.ts_ms
            self.counts.messages += 1
            if isinstance(message, LastTrade):
                self._trade(track, message)
            elif isinstance(message, Book):
                self.anchor(message)
            elif isinstance(message, BestBidAsk):
                self._disagreements.compare(track, message, self._now_ms)
            elif fault := instant_fault(message.ts_ms, self._now_ms):
                self._refuse(SOURCE, fault, message)
            else:
                track.tick_size = message.new
                self.touched[message.asset_id] = track
                self._batch.ticks.append(Tick(track.token, message.ts_ms, message.old, message.new))
            return message.ts_ms
        if isinstance(message, NewMarket | Resolved):
            self.news.append(message)
            return message.ts_ms
        if isinstance(message, Refused):
            self._refuse(message.source, message.reason, message.payload)
        elif isinstance(message, Unknown):
            self.counts.unknown_kinds += 1
        return 0

    def _changes(  # noqa: C901 (one flat run through: this is the busiest code there is)
        self, group: list[LevelChange]
    ) -> None:
        """Take changes of one token from one message; the best prices sent along hold after the last of them."""
        first, final = group[0], group[-1]
        track = self.tracks.get(first.asset_id)
        if track is None:
            self._stranger(first.asset_id, group)
            return
        counts, ts_ms = self.counts, first.ts_ms
        counts.messages += len(group)
        if fault := instant_fault(ts_ms, self._now_ms):
            for change in group:
                self._refuse(SOURCE, fault, change)
            return
        contents = [(change.hash, change.side, change.price, change.size) for change in group]
        if ts_ms == track.latest_ms and contents == track.latest:
            counts.repeats += len(group)
            return
        track.latest, track.latest_ms = contents, ts_ms

        book, token = track.book, track.token
        placed: list[tuple[LevelChange, int, int, bool]] = []
        previous: object = None
        for change, what in zip(group, contents, strict=True):
            if what == previous:
                counts.repeats += 1
                continue
            previous = what
            n = track.nth(what, ts_ms)
            event_id = ids.change_id(token.token_id, ts_ms, *what, n)
            track.seq = track.next_seq(ts_ms)
            applied = book.change(change.side, change.price, change.size, ts_ms, change.hash)
            placed.append((change, event_id, track.seq, applied))
        track.book_ms = max(track.book_ms, ts_ms)
        if book.state == "verified":
            self.touched[token.token_id] = track
            if book.verify(final.best_bid, final.best_ask):
                track.agreed_ms = ts_ms
            else:
                self._stray(track)
        told = book.state == "verified"
        bid, ask, depth = book.best_bid, book.best_ask, book.depth
        add = self._batch.changes.append
        for change, event_id, seq, applied in placed:
            add(
                Change(
                    token,
                    ts_ms,
                    event_id,
                    seq,
                    change.side,
                    change.price,
                    change.size,
                    change.hash,
                    told and applied,
                    bid,
                    ask,
                    depth,
                    track.tick_size,
                )
            )
        self._batch.newest_ms = max(self._batch.newest_ms, ts_ms)
        if told:
            self._quote(track, ts_ms, bid, ask, book.bid_size, book.ask_size)
        elif final.best_bid is not None or final.best_ask is not None:
            # The exchange's own best prices hold, whatever has become of our book.
            ask = None if final.best_ask == EMPTY_ASK else final.best_ask
            self._quote(track, ts_ms, final.best_bid or None, ask or None, None, None)

    def anchor(self, message: Book) -> bool:
        """Take the exchange's whole book of a token, from socket or REST; say whether ours stands on it now."""
        track = self.tracks.get(message.asset_id)
        if track is None:
            return False
        ts_ms, book = message.ts_ms, track.book
        if fault := instant_fault(ts_ms, self._now_ms):
            self._refuse(SOURCE, fault, message)
            return False
        waited = book.state != "verified"
        overtaken = not waited and ts_ms < book.ts_ms
        told = book.snapshot(message.bids, message.asks, ts_ms, message.hash)
        if told:
            track.jumped = True
            self.touched[message.asset_id] = track
        anchored = book.state == "verified"
        if overtaken and (dict(message.bids), dict(message.asks)) != (book.bids, book.asks):
            self.astray[message.asset_id] = track  # older than what we hold, and not the same: ask again
        elif anchored:
            self.astray.pop(message.asset_id, None)
            track.asked = 0
            track.agreed_ms = ts_ms
            track.whole_since_ms = track.whole_since_ms or self.exchange.our_ms()
            track.first_ms = track.first_ms or ts_ms
        elif not waited:
            self._stray(track)  # a crossed book: the exchange itself must be wrong for a moment
        if message.tick_size:
            track.tick_size = message.tick_size
        if track.last is None:
            track.last = message.last_trade_price
        self._keep(track, message)
        if anchored:
            self._quote(track, book.ts_ms, book.best_bid, book.best_ask, book.bid_size, book.ask_size)
        return anchored

    def _keep(self, track: Track, message: Book) -> None:
        """Keep a snapshot as a row, unless it is the exact repeat of what came just before, or too old to be stored."""
        ts_ms, content = message.ts_ms, message.hash or str((message.bids, message.asks))
        if ts_ms == track.latest_ms and content == track.latest:
            self.counts.repeats += 1
            return
        if ts_ms >= track.book_ms:
            track.latest, track.latest_ms, track.book_ms = content, ts_ms, ts_ms
            seq = track.seq = track.next_seq(ts_ms)
        else:
            seq = ids.seq(ts_ms, ids.LAST)  # overtaken: behind all of its own instant, before what came later
            track.seq = track.seq or seq
        if ts_ms < self._now_ms - self._oldest_event_ms:
            return
        # The same book at the same instant is one event, however often a new connection is greeted with it.
        event_id = ids.snapshot_id(message.asset_id, ts_ms, content)
        self._batch.snapshots.append(
            Snapshot(track.token, ts_ms, event_id, seq, message.bids, message.asks, message.hash)
        )

    def _trade(self, track: Track, message: LastTrade) -> None:
        ts_ms, price, size = message.ts_ms, message.price, message.size
        fault = trade_fault(message, self._now_ms)
        if fault:
            self._refuse(SOURCE, fault, message)
            return
        token = track.token
        trade_id = ids.trade_id(token.token_id, message.tx_hash, ts_ms, message.side, price, size)
        if track.latest_trade == (ts_ms, trade_id):
            self.counts.repeats += 1
            return
        track.latest_trade = (ts_ms, trade_id)
        seq, value = track.next_seq(ts_ms), value_usd(price, size)
        tx_hash = ids.transaction(message.tx_hash)
        self._batch.trades.append(Trade(token, ts_ms, trade_id, seq, message.side, price, size, value, tx_hash))
        self._batch.newest_ms = max(self._batch.newest_ms, ts_ms)
        if track.last_ms is None or ts_ms >= track.last_ms:
            track.last, track.last_ms = price, ts_ms
            track.priced_ms = max(track.priced_ms, ts_ms)
            self._priced[token.token_id] = track

    def _quote(  # noqa: PLR0917 (called for each message)
        self, track: Track, ts_ms: int, bid: int | None, ask: int | None, bid_size: int | None, ask_size: int | None
    ) -> None:
        token_id = track.token.token_id
        if bid != track.bid or ask != track.ask:
            track.bid, track.ask = bid, ask
            if ts_ms > self._now_ms - self._oldest_event_ms:
                self._batch.quotes[token_id, ts_ms] = Quote(track.token, ts_ms, bid, ask, bid_size, ask_size)
        elif bid_size == track.bid_size and ask_size == track.ask_size and ts_ms < track.priced_ms + REFRESH_MS:
            return
        track.bid_size, track.ask_size = bid_size, ask_size
        track.priced_ms = max(track.priced_ms, ts_ms)
        self._priced[token_id] = track

    def _stray(self, track: Track) -> None:
        self.counts.mismatches += 1
        track.whole_since_ms = None
        track.fresh = False
        track.asked, track.due_at = 0, 0.0
        self.astray[track.token.token_id] = track
        self.mismatched.append(track)

    def _stranger(self, token_id: str, messages: Sequence[Message]) -> None:
        awaited = self.awaited.get(token_id)
        if awaited is not None and len(awaited) < AWAITED:
            awaited.extend(messages)
            return
        self.counts.unknown_tokens += len(messages)
        if len(self.strangers) < STRANGERS:
            self.strangers.add(token_id)

    def _refuse(self, source: str, reason: str, payload: object) -> None:
        self.counts.refused += 1
        if len(self._batch.refusals) < REFUSALS:
            text = payload if isinstance(payload, str) else msgspec.json.encode(payload).decode()
            self._batch.refusals.append(Refusal(source, reason, text[:65536]))
