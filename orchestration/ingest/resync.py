"""Resynchronizes books with the exchange: on a new connection, after silence, and when a book disagrees."""

import asyncio
from collections.abc import Set as AbstractSet
from itertools import islice
from time import monotonic

from orchestration.ingest.books.token_state import NO_BOOK_ATTEMPTS, TokenState
from orchestration.ingest.exchanges.base import Missed
from orchestration.ingest.gaps.losses import Loss, Losses
from orchestration.ingest.normalizer import Normalizer
from orchestration.ingest.sockets.listener import SocketListener
from orchestration.ingest.sockets.subscriptions import Subscriptions
from orchestration.ingest.sockets.watchdog import Fetch, Watchdog
from orchestration.ingest.storage.rows import Token
from upstream.transport.errors import UpstreamError

GREETING_S = 3.0  # a new connection pushes the books; missing ones are fetched then, if any data came
STALL_S = 1.0
FIRST_RETRY_S = 0.25
MAX_RETRY_S = 300.0
REQUEST_S = 6.0  # that a book has which was asked for over the socket, twice as long each time
NUMBERED_GREETING_S = 12.0  # that a connection has which asks for its books by itself
MARGIN_MS = 1_000  # by which messages that are numbered may be older than those before them
NO_BOOK = "the exchange sends no book"
MAX_BOOKS_PER_FETCH = 100
PAUSE_PER_SCAN = 10  # of the time that a scan of the missing books took


class BookResync:
    """Watches sockets, fetches books, and closes losses."""

    def __init__(
        self,
        normalizer: Normalizer,
        subscriptions: Subscriptions,
        losses: Losses,
        fetch: Fetch,
        *,
        silence_s: float,
        shards: int = 1,
    ) -> None:
        self.ready_since: float | None = None  # monotonic, since when every book is synced
        self.reconnects = 0
        self._normalizer = normalizer
        self._subscriptions = subscriptions
        self._losses = losses
        self._fetch = fetch
        self._watchdog = Watchdog(normalizer, fetch, silence_s, shards=shards)
        # Of lost sockets, with the tokens that each held; a socket may have several.
        self._open_losses: dict[Loss, tuple[SocketListener, frozenset[str]]] = {}
        self._rates_updated_at = 0.0
        self._watched_at = 0.0
        self._scan_at = 0.0
        self._bookless: dict[int, Loss] = {}  # by market key: of books that do not come
        self._fetching: asyncio.Task[None] | None = None

    def opened(self, listener: SocketListener) -> None:
        """Handle an opened connection: its books are about to arrive."""
        self._normalizer.doubt(listener.tokens)  # what was announced meanwhile was not received since then
        due_at = monotonic() + (NUMBERED_GREETING_S if self._normalizer.sequenced else GREETING_S)
        for token_id in listener.tokens:
            if state := self._normalizer.unsynced.get(token_id):
                state.due_at = due_at

    def lost(self, listener: SocketListener, cause: str) -> None:
        """Handle a connection that was lost or could not be opened."""
        if cause == "refused":
            return  # the last connection's loss is recorded; `StartGaps` and `Committer` cover tokens without one
        self.reconnects += 1
        states = self._normalizer.states
        held = [states[token_id] for token_id in listener.tokens if token_id in states]
        self._normalizer.invalidate(listener.tokens)
        for state in held:
            state.due_at = float("inf")  # until there is a connection again
        # If it is lost again before all of its books are synced, an earlier loss is still open.
        earlier = [loss for loss, (of, _) in self._open_losses.items() if of is listener]
        tokens = [
            state.token
            for state in held
            if not any(loss.token_ids is None or state.token.token_id in loss.token_ids for loss in earlier)
        ]
        if not tokens:
            return
        from_ms = listener.newest_ms or self._normalizer.exchange.now_ms()
        if self._normalizer.sequenced:
            from_ms -= MARGIN_MS
        everything = len(tokens) >= len(states)
        loss = self._losses.add(Loss(cause, from_ms, None, None) if everything else Loss.of(cause, tokens, from_ms))
        self._open_losses[loss] = listener, frozenset(token.token_id for token in tokens)

    def missed(self, missed: Missed) -> None:
        """Record what a connection has missed while it stayed open."""
        forget = self._normalizer.invalidate if missed.books else self._normalizer.doubt
        forget(missed.token_ids)
        states = [state for token_id in missed.token_ids if (state := self._normalizer.states.get(token_id))]
        if not states:
            return
        exchange = self._normalizer.exchange
        tokens = [state.token for state in states]
        if missed.books:
            for state in states:
                state.due_at = monotonic() + NUMBERED_GREETING_S  # the connection has asked for it already
            self._losses.add(Loss.of(missed.cause, tokens, missed.from_ms, kinds=missed.kinds))
            return
        for state in states:
            if state.complete_since_ms is not None:
                state.complete_since_ms = exchange.local_ms()
        to_ms = max(exchange.now_ms(), exchange.local_ms(), missed.from_ms)  # the former is a median of the last while
        self._losses.add(Loss.of(missed.cause, tokens, missed.from_ms, to_ms, missed.kinds))

    def disconnected_s(self) -> float:
        """Return how long some socket has been down or could not be opened."""
        now = monotonic()
        return max([self._disconnected_s(), *(now - loss.created_at for loss in self._open_losses)])

    def _disconnected_s(self) -> float:
        now = monotonic()
        return max((listener.disconnected_s(now) for listener in self._subscriptions.listeners), default=0.0)

    def watch(self) -> None:
        """Disconnect sockets that are open but dead."""
        now, before = monotonic(), self._watched_at
        self._watched_at = now
        if now - before > STALL_S:
            return  # our own loop stalled: first process what has arrived meanwhile
        listeners = [listener for listener in self._subscriptions.listeners if listener.open]
        if now - self._rates_updated_at >= 1:
            self._rates_updated_at = now
            for listener in listeners:
                listener.pulse.settle(now)
        mute = [each for each in listeners if not each.greeted and each.tokens and now - each.opened_at > GREETING_S]
        for listener in mute:
            listener.disconnect("silent")
        self._watchdog.watch((each for each in listeners if each not in mute), now)

    def update(self) -> None:
        """Fetch due books and close finished losses; called several times a second."""
        self._record_mismatches()
        began = monotonic()
        if began < self._scan_at:
            return
        self._start_fetch(began)
        if self._bookless:
            self._end_bookless()
        if self.ready_since is None or self._losses.open() or self._disconnected_s() > GREETING_S:
            self._settle()
        # While very many books are missing, looking at all of them may take only a small share of the time.
        ended = monotonic()
        self._scan_at = ended + (ended - began) * PAUSE_PER_SCAN

    def _start_fetch(self, now: float) -> None:
        if not self._normalizer.unsynced or not (self._fetching is None or self._fetching.done()):
            return
        of_token = self._subscriptions.of_token
        due = (
            state
            for token_id, state in self._normalizer.unsynced.items()
            if state.due_at <= now and (listener := of_token.get(token_id)) and listener.greeted
        )
        states = list(islice(due, MAX_BOOKS_PER_FETCH))
        if states and self._normalizer.sequenced:
            self._request_books(states)
        elif states:
            self._fetching = asyncio.create_task(self._fetch_books(states), name="fetch books")

    def _request_books(self, states: list[TokenState]) -> None:
        """Ask for books over their connections; nothing waits long for one that does not come, but a gap says so."""
        now, now_ms = monotonic(), self._normalizer.exchange.now_ms()
        asked: dict[SocketListener, list[str]] = {}
        for state in states:
            if not state.due_at:  # followed on an open connection, which asks for its books by itself
                state.due_at = now + NUMBERED_GREETING_S
                continue
            token_id = state.token.token_id
            state.fetch_attempts += 1
            state.due_at = now + min(REQUEST_S * 2**state.fetch_attempts, MAX_RETRY_S)
            asked.setdefault(self._subscriptions.of_token[token_id], []).append(token_id)
            if state.fetch_attempts >= NO_BOOK_ATTEMPTS and state.token.market_key not in self._bookless:
                self._bookless[state.token.market_key] = loss = self._losses.add(
                    Loss.of(NO_BOOK, self._of_market(state.token.market_key), now_ms)
                )
                loss.lasting = True
        for listener, token_ids in asked.items():
            listener.request_books(token_ids)

    def _of_market(self, market_key: int) -> list[Token]:
        """Return the tokens of a market whose books are missing."""
        waiting = self._normalizer.unsynced.values()
        return [state.token for state in waiting if state.token.market_key == market_key]

    def _end_bookless(self) -> None:
        """Close losses of books that have come after all, or are not followed any more."""
        states, unsynced = self._normalizer.states, self._normalizer.unsynced
        now_ms = self._normalizer.exchange.now_ms()
        for market_key, loss in [*self._bookless.items()]:
            token_ids = loss.token_ids or frozenset()
            if token_ids.isdisjoint(unsynced):
                books = [states[token_id].book for token_id in token_ids if token_id in states]
                loss.to_ms = max([now_ms, loss.from_ms, *(book.anchored_ms for book in books)])
                del self._bookless[market_key]

    def _settle(self) -> None:
        """Close losses whose books are synced, and tell whether all are."""
        waiting = {
            token_id: state
            for token_id, state in self._normalizer.unsynced.items()
            if state.fetch_attempts < NO_BOOK_ATTEMPTS
        }
        self._close_losses(waiting.keys())
        if self._open_losses or not self._subscriptions.loaded or self._disconnected_s() > GREETING_S:
            self.ready_since = None
        elif self.ready_since is None and not any(state.book.state == "unanchored" for state in waiting.values()):
            self.ready_since = monotonic()

    async def _fetch_books(self, states: list[TokenState]) -> None:
        now = monotonic()
        for state in states:
            state.fetch_attempts += 1
            state.due_at = now + min(FIRST_RETRY_S * 2 ** min(state.fetch_attempts, 20), MAX_RETRY_S)
        try:
            books = await self._fetch([state.token.token_id for state in states])
        except UpstreamError:
            for state in states:
                state.fetch_attempts = min(
                    state.fetch_attempts, NO_BOOK_ATTEMPTS - 1
                )  # a failed request does not mean that there is no book
            return
        for book in books:
            if self._normalizer.anchor(book):
                self._normalizer.counts.reanchored += 1

    def _close_losses(self, waiting: AbstractSet[str]) -> None:
        """Close losses whose books are all synced again."""
        now_ms = self._normalizer.exchange.now_ms()
        states = self._normalizer.states
        for loss in self._losses.open():
            concerned = waiting if loss.token_ids is None else loss.token_ids & waiting
            if concerned:
                continue
            token_ids = states if loss.token_ids is None else loss.token_ids
            books = [states[token_id].book for token_id in token_ids if token_id in states]
            if loss in self._open_losses:  # others reach back before the books were last synced
                _, held = self._open_losses.pop(loss)
                unfollowed = not held <= states.keys()
                loss.missed = unfollowed or any(book.moved_since(loss.created_at) for book in books)
            # Not before the books: `now_ms` only estimates the exchange's time, and a book covers all before it.
            loss.to_ms = max([now_ms, loss.from_ms, *(book.anchored_ms for book in books)])

    def _record_mismatches(self) -> None:
        """Record one loss for all books found to disagree since the last call."""
        if not self._normalizer.mismatched:
            return
        states, self._normalizer.mismatched = self._normalizer.mismatched, []
        self._losses.add(
            Loss.of(
                "mismatch",
                [state.token for state in states],
                min(state.verified_ms for state in states) or self._normalizer.exchange.now_ms(),
                kinds=("books",),
            )
        )
