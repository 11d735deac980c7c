"""Normalizes the exchange's messages into rows: order, identity, best prices, and which books need a new snapshot."""

# ruff: noqa: PLR1730 (a call of max costs as much as applying a change to a book)

from collections.abc import Callable, Iterable, Sequence
from time import time

import msgspec

from config.exchanges import POLYMARKET
from orchestration.ingest.books.disagreements import Disagreements
from orchestration.ingest.books.live_books import LiveBookQueue
from orchestration.ingest.books.order_book import EMPTY_ASK
from orchestration.ingest.books.token_state import TokenState
from orchestration.ingest.clock import ExchangeClock
from orchestration.ingest.plausible import EPOCH_MS, MAX_AHEAD_MS, instant_fault, trade_fault
from orchestration.ingest.storage import ids
from orchestration.ingest.storage.rows import (
    Change,
    Quote,
    Refusal,
    Snapshot,
    Tick,
    Token,
    TradeRow,
    WriteBatch,
    value_usd,
)
from upstream.polymarket import identity
from upstream.polymarket.market_channel.socket import (
    BestBidAsk,
    Book,
    ChannelMessage,
    LastTrade,
    LevelChange,
    NewMarket,
    RefusedObject,
    Resolved,
    TickSize,
    Unknown,
)

REFRESH_MS = 60_000  # a live price that does not change is confirmed at most this often, when something is received
MAX_UNKNOWN_TOKENS = 10_000  # remembered until the catalogue is read again
MAX_PENDING_MESSAGES = 5_000  # buffered for one token
MAX_REFUSALS_PER_BATCH = 1_000  # stored; the rest are only counted
OF_A_TOKEN = BestBidAsk, Book, LastTrade, TickSize


class NormalizerCounts(msgspec.Struct):
    """Counters of received messages and their outcome."""

    messages: int = 0
    repeats: int = 0
    unknown_tokens: int = 0
    unknown_kinds: int = 0
    refused: int = 0
    mismatches: int = 0
    reanchored: int = 0


class Normalizer:
    """Follows tokens, applies messages in arrival order, and returns a batch of rows at each tick."""

    def __init__(
        self,
        clock: Callable[[], float] = time,
        *,
        exchange: ExchangeClock | None = None,
        oldest_event_days: int = 90,
        sequenced: bool = False,
        source: str = POLYMARKET.socket_source,
    ) -> None:
        self.exchange = exchange or ExchangeClock()
        self.states: dict[str, TokenState] = {}
        self.volumes_24h_usd: dict[int, int] = {}  # by market key: price messages carry them
        self.counts = NormalizerCounts()
        self.unsynced: dict[str, TokenState] = {}  # books that wait for a snapshot
        self.mismatched: list[TokenState] = []  # books found to disagree with the exchange
        self.unknown_tokens: set[str] = set()  # tokens named in messages but not followed
        self.pending: dict[str, list[ChannelMessage]] = {}  # messages of tokens that the catalogue does not know yet
        self.interrupted: set[str] = set()  # those of these tokens of which something may have been missed since
        self.news: list[NewMarket | Resolved] = []
        self.defers = False  # frames are kept unparsed (docs/decisions/0040)
        self.kept_bytes = 0  # of these frames in memory
        self.settled_ms = 0  # our clock: no rows are made of what was kept before
        self.live_books = LiveBookQueue()
        self._clock = clock
        self.sequenced = sequenced  # the order of arrival is the exchange's, whatever the timestamps
        self._source = source
        self._oldest_event_ms = oldest_event_days * 86_400_000
        self._priced: dict[str, TokenState] = {}
        self._disagreements = Disagreements()
        self._batch = WriteBatch()
        self._now_ms = int(clock() * 1000)
        self._local_ms = self.exchange.local_ms()
        self._newest_ms = 0  # newest exchange timestamp received

    def follow(self, token: Token, tick_size: int | None = None, *, listed_ms: int = 0) -> TokenState:
        """Start following a token if it is not followed yet; `listed_ms`: when, if it was listed as we listened."""
        state = self.states.get(token.token_id)
        if state is None:
            interrupted = token.token_id in self.interrupted
            state = TokenState(token, tick_size, listed_ms=0 if interrupted else listed_ms)
            state.book.numbered = self.sequenced
            # First: other threads treat a followed token that is not in `unsynced` as synced.
            self.unsynced[token.token_id] = state
            self.states[token.token_id] = state
            self.unknown_tokens.discard(token.token_id)
            self.interrupted.discard(token.token_id)
            pending = self.pending.pop(token.token_id, ())
            self.apply(pending)
            if len(pending) >= MAX_PENDING_MESSAGES:  # some may have been dropped
                self.invalidate([token.token_id])
                state.first_ms = self._now_ms
        return state

    def unfollow(self, token_id: str) -> TokenState | None:
        """Stop following a token; its live book, if any, is marked unverified."""
        state = self.states.pop(token_id, None)
        if state is not None:
            self.unsynced.pop(token_id, None)
            self._disagreements.forget(token_id)
            state.book.invalidate()
            self.live_books.add(state)
        return state

    def invalidate(self, token_ids: Iterable[str]) -> None:
        """Mark these tokens' books unsynced: messages may have been missed. Pending ones from before are dropped."""
        for token_id in token_ids:
            if token_id in self.pending:
                self.pending[token_id] = []
                self.interrupted.add(token_id)
            elif state := self.states.get(token_id):
                state.book.invalidate()
                state.complete_since_ms = None
                state.listed_ms = 0
                state.fetch_attempts = 0
                self.unsynced[token_id] = state
                self.live_books.add(state)

    def doubt(self, token_ids: Iterable[str]) -> None:
        """Take these tokens for listed before they were received: something sent since then may not have been."""
        for token_id in token_ids:
            if token_id in self.pending:
                self.interrupted.add(token_id)
            elif state := self.states.get(token_id):
                state.listed_ms = 0

    def catch_up(self, token_ids: Iterable[str]) -> None:
        """Parse what is kept unparsed of these tokens' markets: here nothing is."""

    def settle(self, before_ms: int) -> None:
        """Produce no rows of what was kept before an instant of our clock."""

    def apply(  # noqa: C901, PLR0912 (kept flat, like `_changes`)
        self, messages: Sequence[ChannelMessage | RefusedObject]
    ) -> int:
        """Apply the messages of one frame; return their newest timestamp, capped at the exchange's time, or 0."""
        exchange = self.exchange
        self._now_ms, self._local_ms = int(self._clock() * 1000), exchange.local_ms()
        newest = pushed = 0
        groups: dict[str, list[LevelChange]] = {}
        for message in messages:
            if type(message) is LevelChange:
                ts_ms = pushed = message.ts_ms
                asset_id = message.asset_id
                if asset_id not in groups:
                    groups[asset_id] = [message]
                elif (group := groups[asset_id])[-1].ts_ms == ts_ms:
                    group.append(message)
                else:
                    self._changes(group)
                    groups[asset_id] = [message]
            else:
                for group in groups.values():
                    self._changes(group)
                groups.clear()
                ts_ms = self._other(message)
                if type(message) is LastTrade:
                    pushed = ts_ms
            if ts_ms > newest:
                newest = ts_ms
        for group in groups.values():
            self._changes(group)
        if 0 < pushed < self._now_ms + MAX_AHEAD_MS:
            exchange.observe(pushed, self._local_ms)
        latest = self._local_ms - exchange.ahead_ms
        if newest > latest:
            newest = latest
        if newest > self._newest_ms:
            self._newest_ms = newest
        return newest

    def cut_batch(self) -> WriteBatch:
        """Return the batch of everything since the last one, with the current live prices."""
        now_ms = self._now_ms = int(self._clock() * 1000)
        for state in self._disagreements.settle(now_ms, self._newest_ms):
            self._mark_mismatched(state)
        batch, self._batch = self._batch, WriteBatch()
        batch.received_ms = self.exchange.local_ms()
        self.exchange.update(batch.received_ms)
        batch.exchange_ms = self.exchange.to_exchange_ms(batch.received_ms)
        volume_of = self.volumes_24h_usd.get
        batch.prices = {
            token_id: state.price(volume_of(state.token.market_key)) for token_id, state in self._priced.items()
        }
        self._priced = {}
        return batch

    def refuse(self, reason: str, payload: str) -> None:
        """Quarantine a whole payload."""
        self._refuse(self._source, reason, payload)

    def _other(self, message: ChannelMessage | RefusedObject) -> int:
        if isinstance(message, OF_A_TOKEN):
            state = self.states.get(message.asset_id)
            if state is None:
                self._unknown_token(message.asset_id, [message])
                return message.ts_ms
            self.counts.messages += 1
            if isinstance(message, BestBidAsk):
                self._disagreements.compare(state, message, self._now_ms)
            elif isinstance(message, Book):
                self.anchor(message)
            elif isinstance(message, LastTrade):
                self._trade(state, message)
            elif fault := instant_fault(message.ts_ms, self._now_ms):
                self._refuse(self._source, fault, message)
            else:
                state.tick_size = message.new
                self.live_books.add(state)
                self._batch.ticks.append(Tick(state.token, message.ts_ms, message.old, message.new))
            return message.ts_ms
        if isinstance(message, NewMarket | Resolved):
            self.news.append(message)
            return message.ts_ms
        if isinstance(message, RefusedObject):
            self._refuse(message.source, message.reason, message.payload)
        elif isinstance(message, Unknown):
            self.counts.unknown_kinds += 1
        return 0

    def _changes(  # noqa: C901, PLR0912, PLR0915 (kept flat: this is the busiest code in the project)
        self, group: list[LevelChange]
    ) -> None:
        """Apply one token's changes from one message; its best prices hold after the last change."""
        final = group[-1]
        state = self.states.get(final.asset_id)
        if state is None:
            self._unknown_token(final.asset_id, group)
            return
        counts, ts_ms = self.counts, final.ts_ms
        counts.messages += len(group)
        if not EPOCH_MS < ts_ms < self._now_ms + MAX_AHEAD_MS:
            for change in group:
                self._refuse(self._source, instant_fault(ts_ms, self._now_ms), change)
            return
        contents = [(final.hash, final.side, final.price, final.size)]
        if len(group) > 1:
            contents = [(change.hash, change.side, change.price, change.size) for change in group]
        if ts_ms == state.latest_ms and contents == state.latest:
            counts.repeats += len(group)
            return
        state.latest, state.latest_ms = contents, ts_ms

        book, token, batch = state.book, state.token, self._batch
        book_ms = ts_ms
        if self.sequenced and ts_ms < book.ts_ms:
            if ts_ms < book.anchored_ms and book.state == "verified":
                self._before_snapshot(state, group)
                return
            book_ms = book.ts_ms  # a numbered message is not older than the one before it
        placed: list[tuple[tuple[str, int, int, int], int, int, bool]] = []
        previous = None
        for what in contents:
            if what == previous:
                counts.repeats += 1
                continue
            previous = what
            hash_, side, price, size = what
            if ts_ms > state.eff_ms:
                nth, seq = 0, state.begin(what, ts_ms)
            else:
                nth, seq = state.nth(what, ts_ms), state.next_seq(ts_ms)
            placed.append((what, nth, seq, book.change(side, price, size, book_ms, hash_)))
        state.seq = seq
        if ts_ms > state.book_ms:
            state.book_ms = ts_ms
        bid, ask = book.best_bid, book.best_ask
        publish = book.state == "verified"
        if publish:
            publish = book.verify(final.best_bid, final.best_ask)
            if publish:
                state.verified_ms = ts_ms
                self.live_books.changed(state, len(group), self._local_ms)
            else:
                self._mark_mismatched(state)
        depth, tick_size, add = book.depth, state.tick_size, batch.changes.append
        for (hash_, side, price, size), nth, seq, applied in placed:
            shown = publish and applied
            add(Change(token, ts_ms, nth, seq, side, price, size, hash_, shown, bid, ask, depth, tick_size))
        if ts_ms > batch.newest_ms:
            batch.newest_ms = ts_ms
        if publish:
            bid_size = None if bid is None else book.bids[bid]
            ask_size = None if ask is None else book.asks[ask]
            self._quote(state, book_ms, bid, ask, bid_size, ask_size)
        elif final.best_bid is not None or final.best_ask is not None:
            # The exchange's own best prices hold, whatever the state of our book.
            ask = None if final.best_ask == EMPTY_ASK else final.best_ask
            self._quote(state, ts_ms, final.best_bid or None, ask or None, None, None)

    def anchor(self, message: Book) -> bool:
        """Apply a full book from socket or REST; return whether our book is verified now."""
        state = self.states.get(message.asset_id)
        if state is None:
            return False
        book = state.book
        if fault := instant_fault(message.ts_ms, self._now_ms):
            self._refuse(self._source, fault, message)
            return False
        message = self._in_order(state, message)
        ts_ms = message.ts_ms
        waited = book.state != "verified"
        overtaken = not waited and ts_ms < book.ts_ms
        changed = book.snapshot(message.bids, message.asks, ts_ms, message.hash)
        if changed:
            state.needs_snapshot = True
            self.live_books.add(state)
        anchored = book.state == "verified"
        if overtaken and (dict(message.bids), dict(message.asks)) != (book.bids, book.asks):
            self.unsynced[message.asset_id] = state  # older than ours and different: fetch it again
        elif anchored:
            self.unsynced.pop(message.asset_id, None)
            state.fetch_attempts = 0
            state.verified_ms = ts_ms
            state.complete_since_ms = state.complete_since_ms or self.exchange.local_ms()
            state.first_ms = state.first_ms or ts_ms
        elif not waited:
            self._mark_mismatched(state)  # a crossed book: a transient error of the exchange itself
        if message.tick_size:
            state.tick_size = message.tick_size
        if state.last is None:
            state.last = message.last_trade_price
        self._add_snapshot(state, message)
        if anchored:
            self._quote(state, book.ts_ms, book.best_bid, book.best_ask, book.bid_size, book.ask_size)
        return anchored

    def _before_snapshot(self, state: TokenState, group: list[LevelChange]) -> None:
        """Apply numbered changes that followed a snapshot, but have earlier times: they become a snapshot of their own.

        Stored books are rebuilt in the order of time. What precedes the first snapshot lies in a gap.
        """
        book, token = state.book, state.token
        for change in group:
            book.change(change.side, change.price, change.size, book.ts_ms)
        bid_prices, bid_sizes, ask_prices, ask_sizes = book.arrays()
        bids, asks = list(zip(bid_prices, bid_sizes, strict=True)), list(zip(ask_prices, ask_sizes, strict=True))
        self.anchor(Book(token.token_id, token.market_id, book.ts_ms, "", bids, asks))
        state.needs_snapshot = True
        self.live_books.add(state)

    def _in_order(self, state: TokenState, message: Book) -> Book:
        """Return a numbered snapshot at the time of the message before it, if its own is earlier."""
        late = self.sequenced and message.ts_ms < state.book_ms
        return msgspec.structs.replace(message, ts_ms=state.book_ms) if late else message

    def _add_snapshot(self, state: TokenState, message: Book) -> None:
        """Add a snapshot row, unless it exactly repeats the previous message or is too old to store."""
        ts_ms, content = message.ts_ms, message.hash or str((message.bids, message.asks))
        if ts_ms == state.latest_ms and content == state.latest:
            self.counts.repeats += 1
            return
        if ts_ms >= state.book_ms:
            state.latest, state.latest_ms, state.book_ms = content, ts_ms, ts_ms
            seq = state.seq = state.next_seq(ts_ms)
        else:
            seq = ids.seq(ts_ms, ids.LAST)  # overtaken: last of its own instant, before later ones
            state.seq = state.seq or seq
        if ts_ms < self._now_ms - self._oldest_event_ms:
            return
        # The same book at the same instant is one event, however often new connections receive it.
        event_id = ids.snapshot_id(message.asset_id, ts_ms, content)
        self._batch.snapshots.append(
            Snapshot(state.token, ts_ms, event_id, seq, message.bids, message.asks, message.hash)
        )

    def _trade(self, state: TokenState, message: LastTrade) -> None:
        ts_ms, price, size = message.ts_ms, message.price, message.size
        fault = trade_fault(message, self._now_ms)
        if fault:
            self._refuse(self._source, fault, message)
            return
        token = state.token
        trade_id = message.trade_id
        if trade_id is None:
            trade_id = identity.trade_id(token.token_id, message.tx_hash, ts_ms, message.side, price, size)
        if state.latest_trade == (ts_ms, trade_id):
            self.counts.repeats += 1
            return
        state.latest_trade = (ts_ms, trade_id)
        seq, value = state.next_seq(ts_ms), value_usd(price, size)
        tx_hash = ids.transaction(message.tx_hash)
        self._batch.trades.append(TradeRow(token, ts_ms, trade_id, seq, message.side, price, size, value, tx_hash))
        self._batch.newest_ms = max(self._batch.newest_ms, ts_ms)
        if not message.is_block and (state.last_ms is None or ts_ms >= state.last_ms):
            state.last, state.last_ms = price, ts_ms
            state.priced_ms = max(state.priced_ms, ts_ms)
            self._priced[token.token_id] = state

    def _quote(  # noqa: PLR0917 (called for each message)
        self,
        state: TokenState,
        ts_ms: int,
        bid: int | None,
        ask: int | None,
        bid_size: int | None,
        ask_size: int | None,
    ) -> None:
        token_id = state.token.token_id
        if bid != state.bid or ask != state.ask:
            state.bid, state.ask = bid, ask
            if ts_ms > self._now_ms - self._oldest_event_ms:
                self._batch.quotes[token_id, ts_ms] = Quote(state.token, ts_ms, bid, ask, bid_size, ask_size)
        elif bid_size == state.bid_size and ask_size == state.ask_size and ts_ms < state.priced_ms + REFRESH_MS:
            return
        state.bid_size, state.ask_size = bid_size, ask_size
        if ts_ms > state.priced_ms:
            state.priced_ms = ts_ms
        self._priced[token_id] = state

    def _mark_mismatched(self, state: TokenState) -> None:
        self.counts.mismatches += 1
        state.complete_since_ms = None
        state.listed_ms = 0
        state.fetch_attempts, state.due_at = 0, 0.0
        self.unsynced[state.token.token_id] = state
        self.mismatched.append(state)
        self.live_books.add(state)

    def _unknown_token(self, token_id: str, messages: Sequence[ChannelMessage]) -> None:
        pending = self.pending.get(token_id)
        if pending is not None and len(pending) < MAX_PENDING_MESSAGES:
            pending.extend(messages)
            return
        self.counts.unknown_tokens += len(messages)
        if len(self.unknown_tokens) < MAX_UNKNOWN_TOKENS:
            self.unknown_tokens.add(token_id)

    def _refuse(self, source: str, reason: str, payload: object) -> None:
        self.counts.refused += 1
        if len(self._batch.refusals) < MAX_REFUSALS_PER_BATCH:
            text = payload if isinstance(payload, str) else msgspec.json.encode(payload).decode()
            self._batch.refusals.append(Refusal(source, reason, text[:65536]))
