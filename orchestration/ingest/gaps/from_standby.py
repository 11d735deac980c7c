"""Fills gaps of other runs from this run's ring: it was listening too, and may have received what they missed."""

from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from functools import partial
from typing import Any

import psycopg

from orchestration.feeds.shards import WHOLE, Shard
from orchestration.ingest.books.token_state import TokenState
from orchestration.ingest.deferral import catch_up
from orchestration.ingest.gaps.from_data_api import MARGIN_MS, CoverageGap, GapFiller
from orchestration.ingest.normalizer import Normalizer
from orchestration.ingest.sockets.subscriptions import Subscriptions
from orchestration.ingest.storage.backlog import Backlog
from orchestration.ingest.storage.rows import Token

SETTLED_MS = 1_500  # by then, messages sent within a gap have arrived on our sockets
MAX_WAIT_MS = 60_000
BUSY_RATE = 1.0  # messages a second: at this rate a dead socket is noticed soon
NEVER = 1 << 62


class StandbyGapFiller:
    """Fills gaps of other runs from the ring."""

    def __init__(
        self,
        normalizer: Normalizer,
        subscriptions: Subscriptions,
        backlog: Backlog,
        filler: GapFiller,
        in_filler: Callable[..., Awaitable[Any]],
        *,
        shard: Shard = WHOLE,
    ) -> None:
        self.needed_since_ms = NEVER  # the ring must keep everything since then
        self._normalizer = normalizer
        self._subscriptions = subscriptions
        self._backlog = backlog
        self._filler = filler
        self._in_filler = in_filler
        self._shard = shard
        self._tried: set[tuple[int, ...]] = set()

    async def fill_closed_gaps(self, now_ms: int) -> None:
        """Fill, as a standby, gaps that the leader has since closed."""
        gaps = [gap for gap in await self._in_filler(self._filler.gaps_of_others) if gap.gap_ids not in self._tried]
        needed = [gap.from_ms - MARGIN_MS for gap in gaps if gap.from_ms > now_ms - MAX_WAIT_MS]
        self.needed_since_ms = min(needed, default=NEVER)
        for gap in gaps:
            if gap.to_ms is None or now_ms < gap.to_ms + SETTLED_MS:
                continue
            states = self._states(gap)
            if self._still_listening(states, gap.to_ms) or now_ms > gap.to_ms + MAX_WAIT_MS:
                await self._fill(gap, states, gap.to_ms)

    async def fill_on_takeover(self, now_ms: int) -> None:
        """Fill, as the new leader, the last leader's gaps while the ring still holds the data."""
        with suppress(psycopg.Error):  # taking the lead matters more; trades can still be fetched from the exchange
            gaps = await self._in_filler(self._filler.gaps_of_others)
            for gap in gaps:
                await self._fill(gap, self._states(gap), gap.to_ms or now_ms)
        self.needed_since_ms = NEVER

    async def _fill(self, gap: CoverageGap, states: list[TokenState], to_ms: int) -> None:
        await catch_up(self._normalizer, self._backlog, [state.token.token_id for state in states])
        received = self._backlog.window(partial(self._received, gap), gap.from_ms - MARGIN_MS, to_ms + MARGIN_MS)
        local_ms = self._normalizer.exchange.to_local_ms(gap.from_ms)
        if gap.market_keys is None:
            whole = bool(states) and self._shard.covers(gap.shard)
        else:  # some may be another shard's, or have ended
            whole = gap.market_keys <= {state.token.market_key for state in states}
        whole = whole and self._backlog.since_ms <= local_ms
        whole = whole and all(state.complete_since(local_ms) or _listed_since(gap, state) for state in states)
        if whole or len(received):
            await self._in_filler(self._filler.from_ring, gap, received, to_ms, whole=whole)
        self._tried.add(gap.gap_ids)

    def _received(self, gap: CoverageGap, token: Token) -> bool:
        """Return whether a token is in a gap and its book here is in step, or was until its market ended."""
        state = self._normalizer.states.get(token.token_id)
        if state is not None and state.complete_since_ms is None:
            return False
        return _concerns(gap, token)

    def _states(self, gap: CoverageGap) -> list[TokenState]:
        return [state for state in self._normalizer.states.values() if _concerns(gap, state.token)]

    def _still_listening(self, states: Iterable[TokenState], to_ms: int) -> bool:
        """Return whether the busy sockets among those of these tokens received data after an instant."""
        listeners = {self._subscriptions.of_token.get(state.token.token_id) for state in states}
        return all(
            listener is not None and listener.open and (listener.newest_ms >= to_ms or listener.pulse.rate < BUSY_RATE)
            for listener in listeners
        )


def _listed_since(gap: CoverageGap, state: TokenState) -> bool:
    """Return whether this run heard a token's market listed after a gap had begun, and has missed nothing since."""
    return state.complete_since_ms is not None and state.listed_ms >= gap.from_ms


def _concerns(gap: CoverageGap, token: Token) -> bool:
    return gap.shard.holds(token.market_id) if gap.market_keys is None else token.market_key in gap.market_keys
