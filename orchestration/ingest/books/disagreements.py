"""Announced best prices that a book does not show yet: it gets a grace period, as the change may be in transit."""

from collections.abc import Iterator

from orchestration.ingest.books.token_state import TokenState
from upstream.polymarket.market_channel.socket import BestBidAsk

GRACE_MS = 1_000  # exchange time: however late we are, what it sent meanwhile has been received
QUIET_MS = 10_000  # our time, when it sends nothing more


class Disagreements:
    """Announcements still unconfirmed, one per token."""

    def __init__(self) -> None:
        self._open: dict[str, tuple[int, int, TokenState, BestBidAsk]] = {}

    def __contains__(self, token_id: str) -> bool:
        return token_id in self._open

    def compare(self, state: TokenState, announced: BestBidAsk, now_ms: int) -> None:
        """Compare an announcement with the book."""
        token_id = state.token.token_id
        if state.book.state != "verified" or state.book.agrees(announced.best_bid, announced.best_ask):
            self._open.pop(token_id, None)
        else:
            since_ms, first_ms = self._open[token_id][:2] if token_id in self._open else (now_ms, announced.ts_ms)
            self._open[token_id] = (since_ms, first_ms, state, announced)

    def forget(self, token_id: str) -> None:
        """Drop a token's open announcement."""
        self._open.pop(token_id, None)

    def settle(self, now_ms: int, newest_ms: int) -> Iterator[TokenState]:
        """Mark books broken that are still behind after the grace period, and yield them."""
        due = [
            token_id
            for token_id, (since_ms, first_ms, _, _) in self._open.items()
            if newest_ms >= first_ms + GRACE_MS or now_ms >= since_ms + QUIET_MS
        ]
        for token_id in due:
            _, _, state, announced = self._open.pop(token_id)
            behind = state.book.state == "verified" and announced.ts_ms > state.book.ts_ms
            if behind and not state.book.verify(announced.best_bid, announced.best_ask):
                yield state
