"""Best prices that the exchange announced and a book does not show: given a moment, as the change may be on its way."""

from collections.abc import Iterator

from orchestration.ingest.token_state import Track
from upstream.polymarket.market_channel.socket import BestBidAsk

GRACE_MS = 1_000  # of the exchange's time: however late we are, what it sent meanwhile has been heard
QUIET_MS = 10_000  # of ours, when it sends nothing more


class Disagreements:
    """The announcements that are still in question, one a token."""

    def __init__(self) -> None:
        self._open: dict[str, tuple[int, int, Track, BestBidAsk]] = {}

    def compare(self, track: Track, said: BestBidAsk, now_ms: int) -> None:
        """Hold an announcement against the book."""
        token_id = track.token.token_id
        if track.book.state != "verified" or track.book.agrees(said.best_bid, said.best_ask):
            self._open.pop(token_id, None)
        else:
            since_ms, first_ms = self._open[token_id][:2] if token_id in self._open else (now_ms, said.ts_ms)
            self._open[token_id] = (since_ms, first_ms, track, said)

    def forget(self, token_id: str) -> None:
        """Drop what is in question about a token."""
        self._open.pop(token_id, None)

    def settle(self, now_ms: int, heard_ms: int) -> Iterator[Track]:
        """Break the books that had their time and are still behind, and name them."""
        due = [
            token_id
            for token_id, (since_ms, first_ms, _, _) in self._open.items()
            if heard_ms >= first_ms + GRACE_MS or now_ms >= since_ms + QUIET_MS
        ]
        for token_id in due:
            _, _, track, said = self._open.pop(token_id)
            behind = track.book.state == "verified" and said.ts_ms > track.book.ts_ms
            if behind and not track.book.verify(said.best_bid, said.best_ask):
                yield track
