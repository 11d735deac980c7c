"""What a run does about gaps of others: it was listening too, and may have heard what they missed."""

from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from typing import Any

import psycopg

from orchestration.ingest.gaps.from_data_api import AROUND_MS, Filler, Gap
from orchestration.ingest.normalizer import Tracker
from orchestration.ingest.sockets.subscriptions import Following
from orchestration.ingest.storage.backlog import Backlog
from orchestration.ingest.token_state import Track

SETTLED_MS = 1_500  # what was sent within a gap has arrived on our sockets by then
GIVE_UP_MS = 60_000
BUSY = 1.0  # messages a second: from such a socket one hears soon whether it still speaks
NEVER = 1 << 62


class Helping:
    """Fills gaps of other runs from the ring."""

    def __init__(
        self,
        tracker: Tracker,
        following: Following,
        backlog: Backlog,
        filler: Filler,
        in_filler: Callable[..., Awaitable[Any]],
    ) -> None:
        self.needed_since_ms = NEVER  # the ring is not to be shortened beyond this
        self._tracker = tracker
        self._following = following
        self._backlog = backlog
        self._filler = filler
        self._in_filler = in_filler
        self._tried: set[tuple[int, ...]] = set()

    async def look(self, now_ms: int) -> None:
        """Fill, as a standby, what the leader missed and has since closed."""
        gaps = [gap for gap in await self._in_filler(self._filler.gaps_of_others) if gap.gap_ids not in self._tried]
        needed = [gap.from_ms - AROUND_MS for gap in gaps if gap.from_ms > now_ms - GIVE_UP_MS]
        self.needed_since_ms = min(needed, default=NEVER)
        for gap in gaps:
            if gap.to_ms is None or now_ms < gap.to_ms + SETTLED_MS:
                continue
            tracks = self._tracks(gap)
            if self._still_listening(tracks, gap.to_ms) or now_ms > gap.to_ms + GIVE_UP_MS:
                await self._fill(gap, tracks, gap.to_ms)

    async def inherit(self, now_ms: int) -> None:
        """Fill, as the new leader, what the last one missed: while the ring still holds it."""
        with suppress(psycopg.Error):  # the lead matters more; trades can still be had from the exchange
            gaps = await self._in_filler(self._filler.gaps_of_others)
            for gap in gaps:
                await self._fill(gap, self._tracks(gap), gap.to_ms or now_ms)
        self.needed_since_ms = NEVER

    async def _fill(self, gap: Gap, tracks: list[Track], to_ms: int) -> None:
        tokens = {track.token.token_id for track in tracks if track.whole_since_ms is not None}
        heard = self._backlog.window(tokens, gap.from_ms - AROUND_MS, to_ms + AROUND_MS)
        our_ms = self._tracker.exchange.ours(gap.from_ms)
        whole = bool(tracks) and self._backlog.since_ms <= our_ms
        whole = whole and all(track.whole_since(our_ms) for track in tracks)
        if whole or len(heard):
            await self._in_filler(self._filler.from_ring, gap, heard, to_ms, whole=whole)
        self._tried.add(gap.gap_ids)

    def _tracks(self, gap: Gap) -> list[Track]:
        tracks = self._tracker.tracks.values()
        return [track for track in tracks if gap.market_keys is None or track.token.market_key in gap.market_keys]

    def _still_listening(self, tracks: Iterable[Track], to_ms: int) -> bool:
        """Tell whether the sockets of these tokens were heard after an instant, as far as they are busy."""
        listeners = {self._following.of_token.get(track.token.token_id) for track in tracks}
        return all(
            listener is not None and listener.open and (listener.newest_ms >= to_ms or listener.pulse.rate < BUSY)
            for listener in listeners
        )
