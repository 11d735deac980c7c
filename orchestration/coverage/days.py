"""Days, reconciled one by one: counted against their source, filled in, and kept as figures."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Any

import msgspec
import psycopg
from psycopg.conninfo import make_conninfo

from orchestration.coverage.tape import Found, Tape
from orchestration.settlement.judging import unsettled_at_most
from orchestration.settlement.ranges import Checked
from sql.queries import coverage as queries
from sql.queries import settlement as settlement_queries

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from orchestration.ingest.exchange import Exchange
    from orchestration.settlement.ranges import Ranges
    from upstream.chain.wire import Heads

DAY = timedelta(days=1)
SETTLED = timedelta(hours=2)  # after midnight: by then the exchange lists the whole day, and its blocks are final
DAYS_BACK = 7  # what was not reconciled for longer than that, an operator may still have reconciled
COUNTED = "reconciliation"
MISSED = "not heard, and found by counting"
SAMPLES = 5
log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Day:
    """What a day came to."""

    day: date
    kind: str
    listed: int
    held: int
    added: int
    unlisted: int
    unknown: int = 0
    detail: dict[str, Any] = field(default_factory=dict)
    tolerated: float = 0  # of the unknown

    @property
    def agrees(self) -> bool:
        """Whether we hold exactly what the source has."""
        known = self.unknown <= self.tolerated and not self.detail.get("refused")
        return self.held == self.listed and not self.unlisted and known

    def figures(self) -> dict[str, Any]:
        """Say it as figures."""
        named = ("listed", "held", "added", "unlisted", "unknown")
        return {**{name: getattr(self, name) for name in named}, "agrees": self.agrees}


def reconcile_trades(
    conn: psycopg.Connection[Any], exchange: Exchange, day: date, *, should_stop: Callable[[], bool] = lambda: False
) -> Day:
    """Hold a day's tape against the exchange's list, and write what is missing."""
    queries.remember_since(conn)
    found, address = Found(), make_conninfo(conn.info.dsn, password=conn.info.password)
    try:
        Tape(conn, exchange, should_stop=should_stop).reconcile(day, found)
        told = _told(day, found)
        with conn.transaction():
            _save(conn, told)
            _save_markets(conn, day, found)
            _note_missed(conn, found)
            queries.close_counted(conn, filled_by=COUNTED)
    except BaseException:  # the run being ended, too
        _note_at_least(address, found)
        raise
    return told


def reconcile_settlements(conn: psycopg.Connection[Any], ranges: Ranges, heads: Heads, day: date) -> Day | None:
    """Count the logs of a day's blocks again, and write those that an endpoint had left out; None: not done yet."""
    began = datetime(day.year, day.month, day.day, tzinfo=UTC)
    lowest, highest, _ = queries.blocks_of(conn, since=began, until=began + DAY)
    if lowest is None:  # nothing of it is indexed: noted, or it would be due again every night
        told = Day(day, "settlements", 0, 0, 0, 0, detail={"blocks": 0})
        _save(conn, told)
        return told
    if lowest > heads.finalized:
        return None
    highest = min(highest, heads.finalized)
    filled = 0
    for progress in ranges.fill(lowest, highest):
        filled = progress.written.logs
    checked = Checked()
    for piece in ranges.check_all([(lowest, highest)], heads):
        checked.add(piece)
    if checked.blocks < highest - lowest + 1:
        return None  # there was no time left
    trades, unsettled = _unsettled(conn, began)
    told = Day(
        day,
        "settlements",
        checked.logs,
        checked.logs,
        filled + checked.missing,
        checked.withheld,
        unsettled,
        tolerated=unsettled_at_most(trades),
        detail={
            "trades": trades,
            "from_block": lowest,
            "to_block": highest,
            "replaced_blocks": checked.replaced,
        },
    )
    _save(conn, told)
    return told


def _unsettled(conn: psycopg.Connection[Any], began: datetime) -> tuple[int, int]:
    """Count a day's trades and those without a settlement, hour by hour: a contract may not be followed."""
    hours = [began + timedelta(hours=n) for n in range(24)]
    found = [settlement_queries.unsettled(conn, since=each, until=each + timedelta(hours=1)) for each in hours]
    return sum(trades for trades, _ in found), sum(unsettled for _, unsettled in found)


def due(conn: psycopg.Connection[Any], now: datetime, kinds: Collection[str]) -> list[date]:
    """List the days that are over, in which something was recorded, and that have not been reconciled: oldest first."""
    queries.remember_since(conn)
    since_ms = queries.recorded_since(conn)
    if since_ms is None:
        return []
    last = (now - SETTLED).astimezone(UTC).date() - DAY
    first = max(datetime.fromtimestamp(since_ms / 1000, UTC).date(), last - (DAYS_BACK - 1) * DAY)
    done = set(queries.days_done(conn, since=first))
    days = [first + n * DAY for n in range((last - first).days + 1)]
    return [day for day in days if any((day, kind) not in done for kind in kinds)]


def _told(day: date, found: Found) -> Day:
    listed = found.total("listed")
    detail: dict[str, Any] = {"markets": len(found.markets), "refused": found.refused}
    if found.unknown:
        detail["unknown_tokens"] = [token_id for token_id, _ in found.unknown.most_common(SAMPLES)]
    return Day(
        day,
        "trades",
        listed + found.unknown.total(),
        listed - found.total("nameless"),
        found.total("added"),
        found.total("unlisted"),
        found.unknown.total(),
        detail,
    )


def _save(conn: psycopg.Connection[Any], told: Day) -> None:
    queries.save_day(
        conn,
        day=told.day,
        kind=told.kind,
        **told.figures(),
        detail=msgspec.json.encode(told.detail).decode(),
    )


def _save_markets(conn: psycopg.Connection[Any], day: date, found: Found) -> None:
    keys = list(found.markets)
    markets = [found.markets[key] for key in keys]
    queries.save_market_days(
        conn,
        day=day,
        market_keys=keys,
        listed=[market.listed for market in markets],
        held=[market.listed - market.nameless for market in markets],
        added=[market.added for market in markets],
        unlisted=[market.unlisted for market in markets],
    )


def _note_at_least(address: str, found: Found) -> None:
    """Note what a count found that did not end: whoever counts the day again finds these trades held.

    Over another connection: the count's own may be broken, or still busy with what it was interrupted in. What of this
    was committed all the same is known, and not noted twice.
    """
    if not found.added:
        return
    try:
        with psycopg.connect(address, autocommit=True) as conn:
            _note_missed(conn, found)
    except psycopg.Error:
        log.exception("%s trades were missing and are held now, and no gap says so", len(found.added))


def _note_missed(conn: psycopg.Connection[Any], found: Found) -> None:
    """Note what the feed should have heard: what comes from before it began is no gap."""
    since_ms = queries.recorded_since(conn)
    missed = [(key, ts_ms) for key, ts_ms in found.added if since_ms is not None and ts_ms >= since_ms]
    queries.note_missed(
        conn,
        market_keys=[key for key, _ in missed],
        instants=[datetime.fromtimestamp(ts_ms / 1000, UTC) for _, ts_ms in missed],
        cause=MISSED,
        filled_by=COUNTED,
    )
