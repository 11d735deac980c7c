"""Gaps at the start of markets: from its listing until its books are synced, a market's data may be missing."""

from time import monotonic
from typing import Any

import msgspec
import psycopg

from config.exchanges import POLYMARKET, Exchange
from orchestration.feeds.shards import WHOLE, Shard
from orchestration.ingest.books.token_state import NO_BOOK_ATTEMPTS, TokenState
from orchestration.ingest.gaps.losses import MAX_MARKETS_PER_LOSS
from orchestration.ingest.normalizer import Normalizer
from orchestration.ingest.storage.rows import KINDS
from sql.queries import feed as queries

LISTED = "listed before it was followed"
READING = "the catalogue was being read for the first time"
NEVER_FOLLOWED_S = 60.0  # the catalogue is read every few seconds: a market not followed by then has closed
MAX_ANNOUNCED = 10_000


class StartGap(msgspec.Struct, eq=False):
    """A gap of one market, or of all (None); open until the books of its tokens are synced."""

    market_key: int | None
    token_ids: list[str]
    from_ms: int
    to_ms: int | None
    least_to_ms: int = 0  # of one that was merged of several: the ends that some had already
    gap_ids: list[int] = []
    created_at: float = msgspec.field(default_factory=monotonic)


class StartGaps:
    """Opens and closes start gaps, as the leader. Which markets are handled is kept in the database, for any leader."""

    def __init__(
        self, run_id: str, normalizer: Normalizer, shard: Shard = WHOLE, exchange: Exchange = POLYMARKET
    ) -> None:
        self.announced: dict[str, int] = {}  # listing times announced by the exchange, by market id
        self.begun: set[int] = set()  # markets followed since the last update
        self._run_id = run_id
        self._shard = shard
        self._exchange = exchange
        self._normalizer = normalizer
        self._open: list[StartGap] = []
        self._reading: StartGap | None = None  # of all markets, while discovery reads the catalogue for the first time
        self._read: set[int | None] = set()  # the markets found meanwhile
        self._was_reading = False  # at the last update
        self._since_ms = self._written_ms = 0  # of the last update

    def announce(self, market_id: str, ts_ms: int) -> None:
        """Record an announced listing."""
        if len(self.announced) >= MAX_ANNOUNCED:
            del self.announced[next(iter(self.announced))]
        self.announced[market_id] = ts_ms

    def update(self, conn: psycopg.Connection[Any], first: tuple[int, int], *, since_ms: int, written_ms: int) -> None:
        """Open gaps of markets that are new since any run last checked, and close finished ones; blocks.

        `first` is the catalogue's cursor when this run began, used if no run has checked yet. What this run received
        before `since_ms` may not be stored. What it received before `written_ms` (our clock) is committed.
        """
        self._written_ms = written_ms
        if since_ms != self._since_ms:
            self._begin(since_ms)
        begun = self.begun.copy()
        market_key, change_id, last_key, last_change, reading = queries.starts_seen(
            conn,
            name=self._exchange.own("followed"),
            discovery=self._exchange.own("discovery"),
            **self._shard.columns(),
        )
        seen, last = (first if market_key is None else (market_key, change_id)), (last_key, last_change)
        known = self._read.union(start.market_key for start in self._open)
        again = [key for key in begun if key <= seen[0] and key not in known]
        found: list[StartGap] = []
        if seen != last or again:
            rows = queries.new_markets(
                conn,
                after_key=seen[0],
                after_change=seen[1],
                upto_key=last_key,
                upto_change=last_change,
                market_keys=again,
                since_ms=since_ms,
                exchange=self._exchange.name,
                **self._shard.columns(),
            )
            found = [StartGap(key, ids, self.announced.get(name, ms), to_ms) for key, name, ids, ms, to_ms in rows]
        reading_catalogue = (
            reading or self._was_reading
        )  # the first update after the read still finds the read's markets
        opened = [] if reading_catalogue else self._merged(found, since_ms)
        if reading and self._reading is None:
            opened = [StartGap(None, [], since_ms, None)]
        with conn.transaction():
            if opened:
                self._write(conn, opened, READING if reading else LISTED)
            if market_key is None or seen != last:
                queries.note_seen(
                    conn,
                    name=self._exchange.own("followed"),
                    market_key=last_key,
                    change_id=last_change,
                    **self._shard.columns(),
                )
        self.begun -= begun
        self._was_reading = reading
        if reading_catalogue:
            self._reading = self._reading or opened[0]
            self._read.update(start.market_key for start in found)
            self._reading.token_ids += [name for start in found if start.to_ms is None for name in start.token_ids]
            self._reading.created_at = monotonic()
        else:
            self._open += [start for start in opened if start.gap_ids and start.to_ms is None]
        self._close(conn, reading=reading)

    def close(self, conn: psycopg.Connection[Any], *, written_ms: int) -> None:
        """Close finished gaps, as a leader that leaves; what it received before `written_ms` is committed."""
        self._written_ms = written_ms
        self._close(conn, reading=self._was_reading)

    def _begin(self, since_ms: int) -> None:
        """Begin a new lead: another run may have led since the last update, and seen the end of the first read."""
        if self._reading is not None:
            self._open.append(self._reading)
        self._reading, self._read, self._was_reading = None, set(), False
        self._since_ms = since_ms

    def _merged(self, found: list[StartGap], since_ms: int) -> list[StartGap]:
        """Drop gaps that our first book covers, end finished ones, and merge very many into one of all markets."""
        starts = []
        for start in found:
            if start.to_ms is None and not self._left(start):
                start.to_ms = max(since_ms, self._end_ms(start))
                if self._unchanged(start) or start.to_ms <= start.from_ms:
                    continue
            starts.append(start)
        if len(starts) <= MAX_MARKETS_PER_LOSS:
            return starts
        ends = [start.to_ms for start in starts]
        token_ids = [token_id for start in starts if start.to_ms is None for token_id in start.token_ids]
        least_ms = max(end or 0 for end in ends)
        to_ms = None if None in ends else least_ms
        return [StartGap(None, token_ids, min(start.from_ms for start in starts), to_ms, least_ms)]

    def _write(self, conn: psycopg.Connection[Any], starts: list[StartGap], cause: str) -> None:
        rows = queries.open_starts(
            conn,
            kinds=list(KINDS),
            market_keys=[start.market_key for start in starts],
            from_ms=[start.from_ms for start in starts],
            to_ms=[start.to_ms for start in starts],
            cause=cause,
            run_id=self._run_id,
            exchange=self._exchange.name,
            **self._shard.columns(),
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
        ends = [max(self._since_ms, self._end_ms(start)) for start in over for _ in start.gap_ids]
        queries.close_gaps(conn, gap_ids=gap_ids, to_ms=ends, filled_by=[None] * len(gap_ids))
        self._open = [start for start in self._open if start not in over]
        if self._reading in over:
            self._reading, self._read = None, set()

    def _left(self, start: StartGap) -> list[str]:
        """Return the tokens whose books are still missing, or received but not committed: a leader may end before."""
        unsynced, states = self._normalizer.unsynced, self._normalizer.states
        patient = monotonic() - start.created_at < NEVER_FOLLOWED_S
        left = []
        for token_id in start.token_ids:
            state = states.get(token_id)
            if state is None:
                waits = patient
            elif token_id in unsynced:
                waits = state.fetch_attempts < NO_BOOK_ATTEMPTS
            else:
                waits = state.complete_since_ms is None or state.complete_since_ms >= self._written_ms
            if waits:
                left.append(token_id)
        return left

    def _unchanged(self, start: StartGap) -> bool:
        """Return whether the first books are as old as the listing: then nothing happened in an earlier millisecond.

        What happened in the same one is in the books.
        """
        return start.market_key is not None and all(
            state is not None and state.first_ms is not None and state.first_ms <= start.from_ms
            for state in self._states(start)
        )

    def _end_ms(self, start: StartGap) -> int:
        """Return when the last of the books was synced (exchange time), now if one is not, or not known any more.

        It is no earlier than any of the first books: earlier messages are included in them, but were not received.
        """
        exchange = self._normalizer.exchange
        now_ms, ends = exchange.now_ms(), [start.least_to_ms]
        for state in (states := self._states(start)):
            since_ms = None if state is None else state.complete_since_ms
            # By the least delay known, and not today's: it may have grown since.
            ends.append(
                now_ms if since_ms is None else min(now_ms, exchange.to_exchange_ms(since_ms) + exchange.lag_ms)
            )
            ends.append((state and state.first_ms) or 0)
        return max(ends) if states else max(now_ms, start.least_to_ms)

    def _states(self, start: StartGap) -> list[TokenState | None]:
        return [self._normalizer.states.get(token_id) for token_id in start.token_ids]
