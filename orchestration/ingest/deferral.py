"""Frames that a standby leaves unparsed, by market, until their rows or books are needed (docs/decisions/0040)."""

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from time import time

import msgspec

from orchestration.ingest.books.token_state import TokenState
from orchestration.ingest.clock import ExchangeClock
from orchestration.ingest.normalizer import Normalizer
from orchestration.ingest.plausible import MAX_AHEAD_MS, trade_fault
from orchestration.ingest.sockets.listener import SocketListener
from orchestration.ingest.storage.backlog import Backlog
from orchestration.ingest.storage.rows import Token, WriteBatch
from upstream.polymarket.market_channel.socket import Book, ChannelMessage, LastTrade, RefusedObject, parse

TRADE, CHANGE, BOOK, TICK, BEST = range(5)
KINDS = {b"price_": CHANGE, b'book",': BOOK, b'book"}': BOOK, b"last_t": TRADE, b"tick_s": TICK, b"best_b": BEST}
MARKET, KIND, INSTANT, TOKEN = b'"market":"', b'"event_type":"', b'"timestamp":"', b'"asset_id":"'
MARKET_BYTES, KIND_BYTES, INSTANT_BYTES = 66, 6, 13
FRAME_BYTES = 160  # of a kept frame in memory, besides its text
MAX_AGE_MS = 120_000  # a market without full books for this long is parsed, so that a takeover has little to parse
FRAMES_PER_SETTLE = 5_000  # parsed at once for their age: about 0.1 s
TOKENS_PER_TURN = 50  # caught up in one turn of the event loop


class KeptFrame(msgspec.Struct, frozen=True, gc=False):
    """A frame, and when it was received by our clock."""

    text: bytes
    kind: int
    ts_ms: int
    received_ms: int

    @property
    def token_id(self) -> bytes:
        """The token of a message that has one."""
        begin = self.text.find(TOKEN) + len(TOKEN)
        return self.text[begin : self.text.find(b'"', begin)]


class KeptMarket:
    """The kept frames of one market, in the order received.

    Frames that were received before all of its tokens' latest full books are dropped once their rows are committed.
    """

    __slots__ = ("books", "books_at", "books_ms", "bytes", "frames", "latest", "newest_ms", "shortened", "since_ms")

    def __init__(self) -> None:
        self.books: dict[bytes, TokenState] = {}  # states of its tokens
        self.clear()

    def clear(self) -> None:
        """Keep nothing."""
        self.frames: list[KeptFrame] = []
        self.bytes = 0
        self.since_ms = 0  # our clock: when the first one was received
        self.newest_ms = 0  # newest exchange timestamp of a book or change
        self.latest: dict[bytes, int] = {}  # where each token's latest full book is
        self.books_at, self.books_ms = 0, 0  # where a full book of each token begins, and when the last was received
        self.shortened = False  # frames were dropped: the books are right again after those full books

    def append(self, frame: KeptFrame, settled_ms: int) -> None:
        """Keep a frame. Rows received before `settled_ms` (our clock) are committed."""
        if CHANGE <= frame.kind <= BOOK and frame.ts_ms >= self.newest_ms:  # others are overtaken in transit
            self.newest_ms = frame.ts_ms
            if frame.kind == BOOK and (token_id := frame.token_id) in self.books:
                self.latest[token_id] = len(self.frames)
                if len(self.latest) == len(self.books) and self.books_ms < settled_ms:
                    self._shorten()
                    self.books_at, self.books_ms = min(self.latest.values()), frame.received_ms
                    self.latest = {}
        self.frames.append(frame)
        self.bytes += len(frame.text) + FRAME_BYTES

    def _shorten(self) -> None:
        """Drop what precedes the full books, but for what they do not contain: last trades and steps of prices."""
        if not self.books_at:
            return
        before = self.frames[: self.books_at]
        trades: dict[bytes, KeptFrame] = {}
        for frame in sorted((frame for frame in before if frame.kind == TRADE), key=lambda frame: -frame.ts_ms):
            last = trades.get(frame.token_id)
            if (last is None or frame.ts_ms == last.ts_ms) and _is_trade(frame):
                trades[frame.token_id] = frame
        still = [frame for frame in before if frame.kind == TICK or frame in trades.values()]
        self.since_ms = self.frames[self.books_at].received_ms
        self.frames[: self.books_at] = still
        self.bytes -= sum(len(frame.text) + FRAME_BYTES for frame in before)
        self.bytes += sum(len(frame.text) + FRAME_BYTES for frame in still)
        self.latest = {token_id: at - len(before) + len(still) for token_id, at in self.latest.items()}
        self.shortened = True


class DeferringNormalizer(Normalizer):
    """A normalizer that, while it `defers`, keeps frames unparsed, and parses them before anything needs their effect.

    `max_kept_bytes` bounds the frames: beyond it those of the market that was kept for longest are parsed.
    """

    def __init__(
        self,
        clock: Callable[[], float] = time,
        *,
        exchange: ExchangeClock | None = None,
        oldest_event_days: int = 90,
        max_kept_bytes: int,
    ) -> None:
        super().__init__(clock, exchange=exchange, oldest_event_days=oldest_event_days)
        self._max_kept_bytes = max_kept_bytes
        self._markets: dict[bytes, KeptMarket] = {}
        # Those with frames, longest kept first. Of a plain dict, finding the first takes longer the more were removed.
        self._kept: OrderedDict[bytes, KeptMarket] = OrderedDict()
        self._replayed_ms = 0
        self._then = ExchangeClock(lambda: (self._replayed_ms + 0.5) / 1000)  # ours, when a kept frame was received

    def keep(self, listener: SocketListener, text: bytes, received: float) -> bool:
        """Keep a frame and count it as received; return False if it has to be parsed at once."""
        if not self.defers or text[:1] != b"{":
            return False
        at = text.find(MARKET) + len(MARKET)
        market = text[at : at + MARKET_BYTES]
        kept = self._markets.get(market)
        at = text.rfind(KIND) + len(KIND)
        kind = KINDS.get(text[at : at + KIND_BYTES])
        at = text.rfind(INSTANT) + len(INSTANT)
        instant = text[at : at + INSTANT_BYTES + 1]
        if kept is None or kind is None or instant[-1:] != b'"' or not instant[:-1].isdigit():
            return False
        exchange, ts_ms = self.exchange, int(instant[:-1])
        received_ms = exchange.local_ms()
        if ts_ms > received_ms + MAX_AHEAD_MS:
            return False
        before = kept.bytes
        if not before:
            if not self._may_keep(kept):
                return False
            kept.since_ms = received_ms
            kept.newest_ms = max(max(state.book.ts_ms, state.book_ms) for state in kept.books.values())
            self._kept[market] = kept
        since_ms = kept.since_ms
        kept.append(KeptFrame(text, kind, ts_ms, received_ms), self.settled_ms)
        if kept.since_ms > since_ms:  # shortened
            self._kept.move_to_end(market)
        self.kept_bytes += kept.bytes - before
        while self.kept_bytes > self._max_kept_bytes:
            self._replay(next(iter(self._kept)))
        messages = text.count(TOKEN) if kind == CHANGE else 1
        self.counts.messages += messages
        if kind <= CHANGE:
            exchange.observe(ts_ms, received_ms)
        newest_ms = min(ts_ms, received_ms - exchange.ahead_ms)
        if newest_ms > listener.newest_ms:
            listener.newest_ms = newest_ms
            self._newest_ms = max(self._newest_ms, newest_ms)
        listener.greeted = True
        listener.pulse.beat(received, 0 if kind == BOOK else messages)
        return True

    def _may_keep(self, kept: KeptMarket) -> bool:
        """Return whether nothing waits for this market's next messages: its books are verified and undisputed."""
        return all(
            state.book.state == "verified"
            and state.token.token_id not in self.unsynced
            and state.token.token_id not in self._disagreements
            for state in kept.books.values()
        )

    def settle(self, before_ms: int) -> None:
        """Produce no rows of what was received before an instant of our clock, and parse markets kept for too long."""
        self.settled_ms = max(self.settled_ms, before_ms)
        due_ms, parsed = self.exchange.local_ms() - MAX_AGE_MS, 0
        while self._kept and parsed < FRAMES_PER_SETTLE:
            market, kept = next(iter(self._kept.items()))
            if kept.since_ms > due_ms:
                break
            parsed += len(kept.frames)
            self._replay(market)

    def catch_up(self, token_ids: Iterable[str]) -> None:
        """Parse what is kept of these tokens' markets."""
        if not self._kept:
            return
        for token_id in token_ids:
            if state := self.states.get(token_id):
                self._catch_up(state.token)

    def _catch_up(self, token: Token) -> None:
        market = token.market_id.encode()
        if market in self._kept:
            self._replay(market)

    def follow(self, token: Token, tick_size: int | None = None, *, listed_ms: int = 0) -> TokenState:
        """Follow a token; what is kept of its market came before."""
        self._catch_up(token)
        state = super().follow(token, tick_size, listed_ms=listed_ms)
        self._markets.setdefault(token.market_id.encode(), KeptMarket()).books[token.token_id.encode()] = state
        return state

    def unfollow(self, token_id: str) -> TokenState | None:
        """Stop following a token; what is kept of its market came before."""
        self.catch_up([token_id])
        state = super().unfollow(token_id)
        if state is not None:
            market = state.token.market_id.encode()
            del self._markets[market].books[token_id.encode()]
            if not self._markets[market].books:
                del self._markets[market]
        return state

    def invalidate(self, token_ids: Iterable[str]) -> None:
        """Mark books unsynced; what is kept came before."""
        token_ids = list(token_ids)
        self.catch_up(token_ids)
        super().invalidate(token_ids)

    def apply(self, messages: Sequence[ChannelMessage | RefusedObject]) -> int:
        """Apply the messages of one frame; what is kept of their markets came before."""
        if self._kept:
            self.catch_up({token_id for each in messages if (token_id := getattr(each, "asset_id", None))})
        return super().apply(messages)

    def anchor(self, message: Book) -> bool:
        """Apply a full book; what is kept of its market came before."""
        self.catch_up([message.asset_id])
        return super().anchor(message)

    def _replay(self, market: bytes) -> None:
        """Parse a market's frames: those before `settled_ms` for the books alone."""
        kept = self._kept.pop(market)
        self.kept_bytes -= kept.bytes
        frames, shortened = kept.frames, kept.shortened
        kept.clear()
        settled = sum(frame.received_ms < self.settled_ms for frame in frames)
        messages, now = self.counts.messages, self.exchange
        self.exchange, self._then.ahead_ms = self._then, now.ahead_ms
        try:
            if settled:
                batch, priced = self._batch, self._priced
                self._batch, self._priced = WriteBatch(), {}
                try:
                    self._replay_settled(frames[:settled], [*kept.books.values()] if shortened else [])
                finally:
                    self._batch, self._priced = batch, priced
            for frame in frames[settled:]:
                self._apply_kept(frame)
        finally:
            self.counts.messages, self.exchange = messages, now  # they were counted when they were kept
        if sent_ms := [*self._batch.sent_ms, *(frame.ts_ms for frame in frames[settled:])]:
            self._batch.sent_ms = [min(sent_ms), max(sent_ms)]

    def _replay_settled(self, frames: Iterable[KeptFrame], rebuilt: Sequence[TokenState]) -> None:
        """Parse frames for the books alone; those of `rebuilt` begin with the full books among the frames."""
        moved_at = [state.book.moved_at for state in rebuilt]
        waiting = {state.token.token_id.encode(): state.book for state in rebuilt}
        newest_ms = 0
        for state in rebuilt:
            state.book.invalidate()
        for frame in frames:
            if frame.kind == BOOK:
                book = waiting.get(frame.token_id)
                if book is not None and book.state == "unanchored" and frame.ts_ms < newest_ms:
                    continue  # overtaken in transit: not what the book begins with
                for state in rebuilt:
                    if state.book.state == "unanchored":
                        state.book.pending.clear()  # the token's own full book, this one or a later one, has them
            if CHANGE <= frame.kind <= BOOK:
                newest_ms = max(newest_ms, frame.ts_ms)
            self._apply_kept(frame)
        for state, at in zip(rebuilt, moved_at, strict=True):
            state.book.moved_at = at
            if state.book.state != "verified" and state.token.token_id not in self.unsynced:
                # Its full book could not be read, or is crossed.
                self._mark_mismatched(state)

    def _apply_kept(self, frame: KeptFrame) -> None:
        self._replayed_ms = frame.received_ms
        try:
            super().apply(parse(frame.text))
        except Exception as fault:  # noqa: BLE001 (as where frames are received)
            self.refuse(f"{type(fault).__name__}: {fault}", repr(frame.text))


def _is_trade(frame: KeptFrame) -> bool:
    """Return whether a frame is a trade that would be accepted."""
    return any(isinstance(each, LastTrade) and not trade_fault(each, frame.received_ms) for each in parse(frame.text))


async def catch_up(normalizer: Normalizer, backlog: Backlog, token_ids: Iterable[str]) -> None:
    """Have a run parse what it kept of some tokens, and move the rows to the backlog, in turns of the event loop."""
    if not isinstance(normalizer, DeferringNormalizer):
        return
    waiting = list(token_ids)
    for start in range(0, max(1, len(waiting)), TOKENS_PER_TURN):
        normalizer.catch_up(waiting[start : start + TOKENS_PER_TURN])
        batch = normalizer.cut_batch()  # what was parsed before as well
        batch.withhold_progress()  # no socket's lag is known here
        backlog.kept_bytes = normalizer.kept_bytes
        if len(batch) or batch.prices or batch.quotes:
            backlog.add(batch)
        if not normalizer.kept_bytes:
            break
        await asyncio.sleep(0)
