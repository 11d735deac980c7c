"""Starts of markets: from its listing until its books stood here, what happened in a market may be missing."""

from time import monotonic
from typing import Any

import msgspec
import psycopg

from orchestration.ingest.gaps.losses import KINDS, MANY
from orchestration.ingest.normalizer import Tracker
from orchestration.ingest.token_state import BOOKLESS, Track
from sql.queries import feed as queries

LISTED = "listed before it was followed"
READING = "the catalogue was being read for the first time"
NEVER_FOLLOWED_S = 60.0  # the catalogue is looked at every few seconds: what is not followed by then has closed
MAX_ANNOUNCED = 10_000


class Start(msgspec.Struct, eq=False):
    """A gap of one market, or of all (None); open until the books of its tokens stand."""

    market_key: int | None
    token_ids: list[str]
    from_ms: int
    to_ms: int | None
    gap_ids: list[int] = []
    noted_at: float = msgspec.field(default_factory=monotonic)


class Starts:
    """Notes and closes them, as the leader. Which markets have been seen to is kept in the database, for any leader."""

    def __init__(self, run_id: str, tracker: Tracker) -> None:
        self.announced: dict[str, int] = {}  # by market id, when the exchange told of its listing
        self.begun: set[int] = set()  # markets that were followed since the last look
        self._run_id = run_id
        self._tracker = tracker
        self._open: list[Start] = []
        self._reading: Start | None = None  # while discovery walks the catalogue for the first time: one of all markets
        self._read: set[int | None] = set()  # the markets that were found meanwhile
        self._was_reading = False  # at the last look

    def announce(self, market_id: str, ts_ms: int) -> None:
        """Take note of a listing that was heard."""
        if len(self.announced) >= MAX_ANNOUNCED:
            del self.announced[next(iter(self.announced))]
        self.announced[market_id] = ts_ms

    def look(self, conn: psycopg.Connection[Any], first: tuple[int, int], *, since_ms: int) -> None:
        """Note markets that are new since any run last looked, and close what is over; blocks.

        `first` is how far the catalogue was when this run began: it counts where no run has looked yet. What this run
        heard before `since_ms` may not be stored.
        """
        begun = self.begun.copy()
        market_key, change_id, last_key, last_change, reading = queries.starts_seen(conn)
        seen, last = (first if market_key is None else (market_key, change_id)), (last_key, last_change)
        known = self._read.union(start.market_key for start in self._open)
        again = [key for key in begun if key <= seen[0] and key not in known]
        found: list[Start] = []
        if seen != last or again:
            rows = queries.new_markets(
                conn,
                after_key=seen[0],
                after_change=seen[1],
                upto_key=last_key,
                upto_change=last_change,
                market_keys=again,
                since_ms=since_ms,
            )
            found = [Start(key, ids, self.announced.get(name, ms), to_ms) for key, name, ids, ms, to_ms in rows]
        walked = reading or self._was_reading  # what the first look after the walk finds, the walk has found
        noted = [] if walked else self._judged(found, since_ms)
        if reading and self._reading is None:
            noted = [Start(None, [], since_ms, None)]
        with conn.transaction():
            if noted:
                self._write(conn, noted, READING if reading else LISTED)
            if market_key is None or seen != last:
                queries.note_seen(conn, market_key=last_key, change_id=last_change)
        self.begun -= begun
        self._was_reading = reading
        if walked:
            self._reading = self._reading or noted[0]
            self._read.update(start.market_key for start in found)
            self._reading.token_ids += [name for start in found if start.to_ms is None for name in start.token_ids]
            self._reading.noted_at = monotonic()
        else:
            self._open += [start for start in noted if start.gap_ids and start.to_ms is None]
        self._close(conn, reading=reading)

    def _judged(self, found: list[Start], since_ms: int) -> list[Start]:
        """Leave out what began with the first book we have, and end what has ended; of very many make one of all."""
        starts = []
        for start in found:
            if start.to_ms is None and not self._left(start):
                exchange, held = self._tracker.exchange, [track for track in self._tracks(start) if track]
                stood = [exchange.theirs(track.whole_since_ms or exchange.our_ms()) for track in held]
                start.to_ms = max([since_ms, self._first_ms(start), *stood])
                if self._unchanged(start) or start.to_ms <= start.from_ms:
                    continue
            starts.append(start)
        if len(starts) <= MANY:
            return starts
        ends = [start.to_ms for start in starts]
        token_ids = [token_id for start in starts if start.to_ms is None for token_id in start.token_ids]
        to_ms = None if None in ends else max(end or 0 for end in ends)
        return [Start(None, token_ids, min(start.from_ms for start in starts), to_ms)]

    def _write(self, conn: psycopg.Connection[Any], starts: list[Start], cause: str) -> None:
        rows = queries.open_starts(
            conn,
            kinds=list(KINDS),
            market_keys=[start.market_key for start in starts],
            from_ms=[start.from_ms for start in starts],
            to_ms=[start.to_ms for start in starts],
            cause=cause,
            run_id=self._run_id,
        )
        of_market = {start.market_key: start for start in starts}
        for gap_id, market_key in rows:
            of_market[market_key].gap_ids.append(gap_id)

    def _close(self, conn: psycopg.Connection[Any], *, reading: bool) -> None:
        over = [start for start in self._open if not self._left(start)]
        if self._reading is not None:
            self._reading.token_ids = self._left(self._reading)
            if not (reading or self._reading.token_ids):
                over.append(self._reading)
        if not over:
            return
        if unchanged := [gap_id for start in over if self._unchanged(start) for gap_id in start.gap_ids]:
            queries.forget_gaps(conn, gap_ids=unchanged)
        gap_ids = [gap_id for start in over for gap_id in start.gap_ids]
        now_ms = self._tracker.exchange.now_ms()
        ends = [max(now_ms, self._first_ms(start)) for start in over for _ in start.gap_ids]
        queries.close_gaps(conn, gap_ids=gap_ids, to_ms=ends, filled_by=[None] * len(gap_ids))
        self._open = [start for start in self._open if start not in over]
        if self._reading in over:
            self._reading, self._read = None, set()

    def _left(self, start: Start) -> list[str]:
        """List the tokens whose books are still to come."""
        astray, tracks = self._tracker.astray, self._tracker.tracks
        patient = monotonic() - start.noted_at < NEVER_FOLLOWED_S
        left = []
        for token_id in start.token_ids:
            track = astray.get(token_id)
            if track is not None and track.asked < BOOKLESS if token_id in tracks else patient:
                left.append(token_id)
        return left

    def _unchanged(self, start: Start) -> bool:
        """Tell whether the first books are as old as the listing: then nothing had happened before them."""
        return start.market_key is not None and all(
            track is not None and track.first_ms is not None and track.first_ms <= start.from_ms
            for track in self._tracks(start)
        )

    def _first_ms(self, start: Start) -> int:
        """Give the latest instant of the first books: what was said before is in them, and not heard."""
        return max((track.first_ms or 0 for track in self._tracks(start) if track), default=0)

    def _tracks(self, start: Start) -> list[Track | None]:
        return [self._tracker.tracks.get(token_id) for token_id in start.token_ids]
