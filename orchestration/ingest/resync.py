"""Books brought back onto the exchange's own: on a new connection, after silence, and when one disagrees."""

import asyncio
from collections.abc import Set as AbstractSet
from time import monotonic

from orchestration.ingest.gaps.losses import Loss, Losses
from orchestration.ingest.normalizer import Tracker
from orchestration.ingest.sockets.listener import Listener
from orchestration.ingest.sockets.subscriptions import Following
from orchestration.ingest.sockets.watchdog import Fetch, Watchdog
from orchestration.ingest.token_state import BOOKLESS, Track
from upstream.transport.errors import UpstreamError

GREETING_S = 3.0  # a new connection sends the books by itself: those that do not come are fetched, if any came
STALL_S = 1.0
FIRST_RETRY_S = 0.25
LAST_RETRY_S = 300.0
AT_ONCE = 100


class Anchoring:
    """Watches sockets, fetches books, and knows which losses are over."""

    def __init__(
        self, tracker: Tracker, following: Following, losses: Losses, fetch: Fetch, *, silence_s: float
    ) -> None:
        self.ready_since: float | None = None  # monotonic, when every book stood for the first time
        self.reconnects = 0
        self._tracker = tracker
        self._following = following
        self._losses = losses
        self._fetch = fetch
        self._watchdog = Watchdog(tracker, fetch, silence_s)
        self._open_losses: dict[Listener, Loss] = {}
        self._settled_at = 0.0
        self._watched_at = 0.0
        self._fetching: asyncio.Task[None] | None = None

    def opened(self, listener: Listener) -> None:
        """A connection was made: its books are on their way."""
        due_at = monotonic() + GREETING_S
        for token_id in listener.tokens:
            if track := self._tracker.astray.get(token_id):
                track.due_at = due_at

    def lost(self, listener: Listener, cause: str) -> None:
        """A connection was lost, or could not be made."""
        if cause == "refused":
            return  # the loss of the last connection is noted; `Starts` and `Recording` tell of tokens that had none
        self.reconnects += 1
        token_ids = frozenset(listener.tokens)
        held = [self._tracker.tracks[token_id] for token_id in token_ids if token_id in self._tracker.tracks]
        self._tracker.lose(token_ids)
        for track in held:
            track.due_at = float("inf")  # until there is a connection again
        if listener in self._open_losses:
            return  # it was lost again before its books stood
        from_ms = listener.newest_ms or self._tracker.exchange.now_ms()
        everything = len(token_ids) >= len(self._tracker.tracks)
        self._open_losses[listener] = self._losses.add(
            Loss(cause, from_ms, None, None) if everything else Loss.of(cause, [track.token for track in held], from_ms)
        )

    def deaf_for_s(self) -> float:
        """Tell for how long some socket could not be brought back, or opened at all."""
        now = monotonic()
        return max([self._deaf_for_s(), *(now - loss.noted_at for loss in self._open_losses.values())])

    def _deaf_for_s(self) -> float:
        now = monotonic()
        return max((listener.deaf_for_s(now) for listener in self._following.listeners), default=0.0)

    def watch(self) -> None:
        """Cut sockets that are open and dead."""
        now, before = monotonic(), self._watched_at
        self._watched_at = now
        if now - before > STALL_S:
            return  # it was us who did not listen: first hear what has come meanwhile
        listeners = [listener for listener in self._following.listeners if listener.open]
        if now - self._settled_at >= 1:
            self._settled_at = now
            for listener in listeners:
                listener.pulse.settle(now)
        for listener in listeners:
            if not listener.greeted and listener.tokens and now - listener.opened_at > GREETING_S:
                listener.cut("silent")
            else:
                self._watchdog.watch(listener, now)

    def turn(self) -> None:
        """Fetch what is due, and settle what is over; called some times a second."""
        self._take_mismatches()
        if self._tracker.astray and (self._fetching is None or self._fetching.done()):
            now = monotonic()
            due = [
                track
                for token_id, track in self._tracker.astray.items()
                if track.due_at <= now and (listener := self._following.of_token.get(token_id)) and listener.greeted
            ]
            if due:
                self._fetching = asyncio.create_task(self._ask(due[:AT_ONCE]), name="fetch books")
        waiting = {token_id: track for token_id, track in self._tracker.astray.items() if track.asked < BOOKLESS}
        self._settle(waiting.keys())
        if self._open_losses or not self._following.loaded or self._deaf_for_s() > GREETING_S:
            self.ready_since = None
        elif self.ready_since is None and not any(track.book.state == "unanchored" for track in waiting.values()):
            self.ready_since = monotonic()

    async def _ask(self, tracks: list[Track]) -> None:
        now = monotonic()
        for track in tracks:
            track.asked += 1
            track.due_at = now + min(FIRST_RETRY_S * 2 ** min(track.asked, 20), LAST_RETRY_S)
        try:
            books = await self._fetch([track.token.token_id for track in tracks])
        except UpstreamError:
            for track in tracks:
                track.asked = min(track.asked, BOOKLESS - 1)  # no answer is not the answer that there is none
            return
        for book in books:
            if self._tracker.anchor(book):
                self._tracker.counts.reanchored += 1

    def _settle(self, waiting: AbstractSet[str]) -> None:
        """Close losses whose books all stand again."""
        now_ms = self._tracker.exchange.now_ms()
        for loss in self._losses.open():
            concerned = waiting if loss.token_ids is None else loss.token_ids & waiting
            if concerned:
                continue
            token_ids = self._tracker.tracks if loss.token_ids is None else loss.token_ids
            tracks = [self._tracker.tracks[token_id] for token_id in token_ids if token_id in self._tracker.tracks]
            loss.missed = loss.cause == "mismatch" or any(track.book.moved for track in tracks)
            # By an estimate of the exchange's time, which delays blur: what a book tells of was said before the book.
            loss.to_ms = max([now_ms, loss.from_ms, *(track.book.anchored_ms for track in tracks)])
        for listener, loss in list(self._open_losses.items()):
            if loss.to_ms is not None:
                del self._open_losses[listener]

    def _take_mismatches(self) -> None:
        """Note what was missed when a book turned out to be wrong; one loss for all of this turn."""
        if not self._tracker.mismatched:
            return
        tracks, self._tracker.mismatched = self._tracker.mismatched, []
        self._losses.add(
            Loss.of(
                "mismatch",
                [track.token for track in tracks],
                min(track.agreed_ms for track in tracks) or self._tracker.exchange.now_ms(),
                kinds=("books",),
            )
        )
