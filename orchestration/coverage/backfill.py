"""Backfill of the days before the installation, from the exchange's list and the chain, newest day first.

Trades are filled by the daily reconciliation (`coverage.days`), blocks by the range backfill (`settlement.ranges`), and
signals by the recomputation of a past day (`signals.again`). Completed steps are stored, so an interrupted backfill
continues from there. Books have no history: the exchange does not keep one.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from config.exchanges import POLYMARKET
from orchestration.candles.aggregates import DAY
from orchestration.coverage.days import reconcile_trades
from orchestration.coverage.tape import Reconciliation, Stopped, TradeReconciler
from orchestration.settlement.partitions import BLOCK_S
from orchestration.settlement.ranges import BatchSizer
from orchestration.settlement.writer import FEED
from orchestration.signals import again
from sql.queries import backfill as queries
from sql.queries import coverage as coverage_queries
from sql.queries import settlement as settlement_queries
from sql.queries import signals as signal_queries

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import psycopg

    from orchestration.ingest.exchanges.base import ExchangeClient
    from orchestration.markets.discovery import Discovery
    from orchestration.settlement.ranges import Ranges
    from orchestration.settlement.reading import ChainSource

Kind = Literal["trades", "settlements", "signals"]
MAX_TIME_SHARE = 0.85  # of the time the backfill may use; the rest is for the live feed
LATE_S, WAIT_S, MAX_WAIT_S = 2.0, 0.5, 5.0  # while the live feed is late, the backfill pauses, for this long at most
SAVE_S = 1.0
FIRST_DAYS = 2  # days that are backfilled before all others: the current one, and one whole day
AROUND_BLOCKS = 16
PIECE_BLOCKS = 10_000  # filled from the newest down, so that no hole is left in between
REQUEST_INTERVAL_S = 20.0  # between two wallet passes requested while settlements come in


class BackfillState(msgspec.Struct):
    """Backfill progress, stored in table `settings` under `backfill`."""

    days: int
    until: datetime
    """When the live feed began: later data is its own."""
    catalogued: bool = False
    """Whether the markets that were closed in these days have been listed."""
    done: dict[str, int] = {}
    """Completed steps by kind, in their order."""
    doing: str | None = None
    share: float = 0.0
    """Completed share of the step under way."""
    steps: int = 0
    trades: int = 0
    settlements: int = 0
    signals: int = 0
    finished_at: datetime | None = None

    @classmethod
    def read(cls, conn: psycopg.Connection[Any]) -> BackfillState | None:
        """Read the stored progress."""
        value = queries.state(conn)
        return None if value is None else msgspec.convert(value, cls)

    def save(self, conn: psycopg.Connection[Any]) -> None:
        """Store the progress."""
        queries.remember(conn, value=msgspec.json.encode(self).decode())


@dataclass(frozen=True)
class BackfillStep:
    """One step: a kind of data for a day, or for the part of a day before the live feed began."""

    kind: Kind
    start: datetime
    end: datetime
    last: bool = False
    """For settlements: the last step, up to where the live feed began."""

    @property
    def name(self) -> str:
        """Return the step's name, for logs and progress."""
        return f"{self.kind} of {self.start:%Y-%m-%d}"


@dataclass
class Pause:
    """Pauses after each piece of work, to limit the backfill to its share of the time."""

    behind: Callable[[], float | None]
    share: float = MAX_TIME_SHARE
    sleep: Callable[[float], None] = time.sleep
    clock: Callable[[], float] = time.monotonic
    since: float = field(default=0.0, init=False)

    def __post_init__(self) -> None:
        self.since = self.clock()

    def __call__(self) -> None:
        """Sleep; longer while the live feed is late."""
        worked = self.clock() - self.since
        if worked > 0.01:
            self.sleep(worked * (1 / self.share - 1))
        until = self.clock() + MAX_WAIT_S
        while (self.behind() or 0.0) > LATE_S and self.clock() < until:
            self.sleep(WAIT_S)
        self.since = self.clock()


@dataclass
class Backfill:
    """One backfill run. Takes an autocommit connection."""

    conn: psycopg.Connection[Any]
    exchange: ExchangeClient
    state: BackfillState
    books_kept: timedelta
    rpc: ChainSource | None = None
    ranges: Ranges | None = None
    should_stop: Callable[[], bool] = lambda: False
    share: float = MAX_TIME_SHARE
    report: Callable[[str], None] = lambda _: None

    def __post_init__(self) -> None:
        self.pause = Pause(lambda: queries.behind_s(self.conn), self.share)
        self._pace = BatchSizer()
        self._lowest: tuple[datetime, int] | None = None
        self._saved_at = 0.0
        self._asked_at = time.monotonic()

    def run(self, discovery: Callable[[], Any]) -> bool:
        """Do the remaining steps; return whether all are done. `discovery` opens a `Discovery` for a block."""
        steps = list(self.steps())
        self.state.steps = len(steps)
        if not self.state.catalogued:
            self._note("markets that were closed", 0.0)
            with discovery() as walks:
                self._catalogue(walks, steps[-1].start)
            self.state.catalogued = True
        passed: dict[str, int] = {}
        for step in steps:
            passed[step.kind] = passed.get(step.kind, 0) + 1
            if passed[step.kind] <= self.state.done.get(step.kind, 0):
                continue
            self._note(step.name, 0.0)
            try:
                if not getattr(self, f"_{step.kind}")(step):
                    return False
            except Stopped:
                return False
            self.state.done[step.kind] = passed[step.kind]
            self.report(step.name)
            self._after(step, passed[step.kind])
        self._ask("wallets")
        self.state.doing, self.state.finished_at = None, datetime.now(UTC)
        self.state.save(self.conn)
        return True

    def steps(self) -> Iterator[BackfillStep]:
        """Yield the steps in their order.

        The newest days come first, with all their data. For the others trades come before settlements: charts and
        rankings need nothing else, while profit is complete only with all days. Signals need both.
        """
        spans = list(spans_of(self.state.until, self.state.days))
        kinds: tuple[Kind, ...] = ("trades",) if self.ranges is None else ("trades", "settlements")
        for start, end in spans[:FIRST_DAYS]:
            yield from (BackfillStep(kind, start, end) for kind in kinds)
        for kind in kinds:
            yield from (BackfillStep(kind, start, end) for start, end in spans[FIRST_DAYS:])
        if self.ranges is not None:  # by now the blocks that were the newest when it began are final
            yield BackfillStep("settlements", *spans[0], last=True)
        yield from (BackfillStep("signals", start, end) for start, end in spans)

    def _catalogue(self, walks: Discovery, since: datetime) -> None:
        walks.scan_closed_since(since)

    # --- Kinds of steps ---

    def _trades(self, step: BackfillStep) -> bool:
        began = time.monotonic()

        def look() -> bool:
            self._rest()
            return self.should_stop()

        if step.end - step.start == DAY:
            reconciled = reconcile_trades(self.conn, self.exchange, step.start.date(), should_stop=look)
            self.state.trades += reconciled.added
        else:
            found = Reconciliation()
            tape = TradeReconciler(self.conn, self.exchange, should_stop=look)
            tape.compare(_ms(step.start), _ms(step.end), found)
            self.state.trades += found.total("added")
        self.report(f"{step.name} in {time.monotonic() - began:.1f} s")
        return True

    def _settlements(self, step: BackfillStep) -> bool:
        assert self.ranges is not None
        assert self.rpc is not None
        held = settlement_queries.heads(self.conn, feed=FEED)
        if held is None:  # the chain is not followed yet
            return False
        heads = self.rpc.heads()
        start = int(held[3].get("start", held[2] + 1))
        if step.last and heads.finalized < start - 1:
            return False
        low = block_from(self.rpc, step.start, heads.finalized)
        known = self._lowest is not None and self._lowest[0] == step.end
        end = self._lowest[1] if known and self._lowest else block_from(self.rpc, step.end, heads.finalized)
        self._lowest = step.start, low
        high = min(end, start) - 1
        top = high
        while top >= low:
            bottom = max(low, top - PIECE_BLOCKS + 1)
            written = 0
            for progress in self.ranges.fill(bottom, top, self._pace):
                self.state.settlements += progress.written.settlements - written
                written = progress.written.settlements
                self._rest()
            if self.should_stop():
                return False
            top = bottom - 1
            self._note(step.name, (high - top) / (high - low + 1))
        return True

    def _signals(self, step: BackfillStep) -> bool:
        until = signal_queries.analysed_until(self.conn)
        if until is None:
            return False
        end = min(step.end, until)
        if step.start - DAY < datetime.now(UTC) - self.books_kept or end <= step.start:
            return True

        def pause(at: datetime) -> None:
            self.state.share = (at - step.start) / (end - step.start)
            self._rest()

        found = again.recompute(self.conn, step.start, span=end - step.start, report=pause)
        self.state.signals += found.added
        return not self.should_stop()

    # --- Between steps ---

    def _after(self, step: BackfillStep, nth: int) -> None:
        """Request the recomputation of what depends on a step."""
        if step.kind == "trades" and (nth in {FIRST_DAYS, self.state.days + 1}):
            queries.forget_weeks(self.conn)
            self._ask("aggregates")
        if step.kind != "settlements":
            return
        first = nth == FIRST_DAYS  # leaderboards should not wait for the trades of all the other days
        if first or step.last or time.monotonic() - self._asked_at > REQUEST_INTERVAL_S:
            self._ask("wallets")

    def _ask(self, job: str) -> None:
        self._asked_at = time.monotonic()
        queries.ask(self.conn, job=job)

    def _rest(self) -> None:
        self.pause()
        self._note(self.state.doing or "", self.state.share)

    def _note(self, doing: str, share: float) -> None:
        """Log progress now and then."""
        now = time.monotonic()
        if doing == self.state.doing and now - self._saved_at < SAVE_S:
            return
        self.state.doing, self.state.share, self._saved_at = doing, round(share, 4), now
        self.state.save(self.conn)


def begun(conn: psycopg.Connection[Any], days: int) -> BackfillState | None:
    """Return the stored progress, or start; None while the live feed has received nothing."""
    state = BackfillState.read(conn)
    if state is not None and state.days >= days:
        return state
    coverage_queries.remember_since(conn)
    since_ms = coverage_queries.recorded_since(conn, exchange=POLYMARKET.name)
    if since_ms is None:
        return None
    state = BackfillState(days, datetime.fromtimestamp(since_ms / 1000, UTC))
    state.save(conn)
    return state


def spans_of(until: datetime, days: int) -> Iterator[tuple[datetime, datetime]]:
    """Split the days before an instant at midnight (UTC), newest first.

    >>> until = datetime(2026, 11, 21, 6, tzinfo=UTC)
    >>> [f"{start:%d %H}-{end:%d %H}" for start, end in spans_of(until, 2)]
    ['21 00-21 06', '20 00-21 00', '19 00-20 00']
    """
    start, end = until.replace(hour=0, minute=0, second=0, microsecond=0), until
    for _ in range(days + 1):
        if start < end:
            yield start, end
        start, end = start - DAY, start


def block_from(source: ChainSource, instant: datetime, most: int) -> int:
    """Find the first block at or after an instant; at most one more than `most`."""
    wanted = instant.timestamp()
    low, high = 0, most + 1
    newest = source.blocks(most, most)[0].ts_s
    at = most - int((newest - wanted) / BLOCK_S)  # start with an estimate and some blocks around it, then bisect
    for guess in (at - AROUND_BLOCKS, at + AROUND_BLOCKS):
        if low < guess < high:
            low, high = (guess + 1, high) if source.blocks(guess, guess)[0].ts_s < wanted else (low, guess)
    while low < high:
        middle = (low + high) // 2
        if source.blocks(middle, middle)[0].ts_s < wanted:
            low = middle + 1
        else:
            high = middle
    return low


def _ms(instant: datetime) -> int:
    return round(instant.timestamp() * 1000)
