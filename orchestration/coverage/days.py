"""Days, reconciled one by one: counted against their source, filled in, and stored as figures."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec

from config.exchanges import EXCHANGES
from orchestration.coverage.tape import Reconciliation, TradeReconciler
from orchestration.settlement.judging import unsettled_at_most
from orchestration.settlement.ranges import RecountResult
from sql.queries import coverage as queries
from sql.queries import settlement as settlement_queries

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    import psycopg

    from config.exchanges import Exchange
    from orchestration.ingest.exchanges.base import ExchangeClient
    from orchestration.ingest.storage.rows import TradeRow
    from orchestration.settlement.ranges import Ranges
    from upstream.chain.wire import Heads

DAY = timedelta(days=1)
SETTLE_TIME = timedelta(hours=2)  # after midnight: by then the exchange lists the whole day, and its blocks are final
DAYS_BACK = 7  # older days are reconciled only when an operator asks for it
COUNTED = "reconciliation"
MISSED = "not heard, and found by counting"
SAMPLES = 5


@dataclass(frozen=True)
class DayResult:
    """Result of a day's reconciliation."""

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
        """Return whether we hold exactly what the source has."""
        known = self.unknown <= self.tolerated and not self.detail.get("refused")
        return self.held == self.listed and not self.unlisted and known

    def figures(self) -> dict[str, Any]:
        """Return the counts as a dictionary."""
        named = ("listed", "held", "added", "unlisted", "unknown")
        return {**{name: getattr(self, name) for name in named}, "agrees": self.agrees}


def reconcile_trades(
    conn: psycopg.Connection[Any],
    exchange: ExchangeClient,
    day: date,
    *,
    should_stop: Callable[[], bool] = lambda: False,
) -> DayResult:
    """Compare a day's stored trades with the exchange's list, and write those that are missing."""
    name = exchange.exchange.name
    queries.remember_since(conn)
    found, note = Reconciliation(), partial(_note_missed, conn, name, queries.recorded_since(conn, exchange=name))
    TradeReconciler(conn, exchange, should_stop=should_stop, note=note).reconcile(day, found)
    result = _result(day, exchange.exchange, found)
    with conn.transaction():
        _save(conn, result)
        _save_markets(conn, day, found)
        queries.close_counted(conn, exchange=name, filled_by=COUNTED)
    return result


def reconcile_settlements(conn: psycopg.Connection[Any], ranges: Ranges, heads: Heads, day: date) -> DayResult | None:
    """Recount the logs of a day's blocks, and write those that an endpoint had left out; None if not finished yet."""
    began = datetime(day.year, day.month, day.day, tzinfo=UTC)
    if queries.is_unindexed(conn, since=began, until=began + DAY):
        return None
    lowest, highest, _ = queries.blocks_of(conn, since=began, until=began + DAY)
    if lowest is None:  # nothing is indexed: recorded, or the day would be due again every night
        result = DayResult(day, "settlements", 0, 0, 0, 0, detail={"blocks": 0})
        _save(conn, result)
        return result
    if lowest > heads.finalized:
        return None
    highest = min(highest, heads.finalized)
    filled = 0
    for progress in ranges.fill(lowest, highest):
        filled = progress.written.logs
    checked = RecountResult()
    for piece in ranges.check_all([(lowest, highest)], heads):
        checked.add(piece)
    if checked.blocks < highest - lowest + 1:
        return None  # time ran out
    trades, unsettled = _unsettled(conn, began)
    result = DayResult(
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
    _save(conn, result)
    return result


def _unsettled(conn: psycopg.Connection[Any], began: datetime) -> tuple[int, int]:
    """Count a day's trades and those without a settlement, hour by hour: a contract may not be followed."""
    hours = [began + timedelta(hours=n) for n in range(24)]
    found = [settlement_queries.unsettled(conn, since=each, until=each + timedelta(hours=1)) for each in hours]
    return sum(trades for trades, _ in found), sum(unsettled for _, unsettled in found)


def due(
    conn: psycopg.Connection[Any], now: datetime, kinds: Mapping[str, Collection[str]]
) -> dict[date, set[tuple[str, str]]]:
    """Return past days with recorded data that has not been reconciled, oldest first, with its exchanges and kinds."""
    queries.remember_since(conn)
    found: dict[date, set[tuple[str, str]]] = {}
    for exchange, wanted in kinds.items():
        for day, kind in _due(conn, now, exchange, wanted):
            found.setdefault(day, set()).add((exchange, kind))
    return dict(sorted(found.items()))


def _due(conn: psycopg.Connection[Any], now: datetime, exchange: str, kinds: Collection[str]) -> list[tuple[date, str]]:
    since_ms = queries.recorded_since(conn, exchange=exchange)
    if since_ms is None:
        return []
    last = (now - SETTLE_TIME).astimezone(UTC).date() - DAY
    first = max(datetime.fromtimestamp(since_ms / 1000, UTC).date(), last - (DAYS_BACK - 1) * DAY)
    done = set(queries.days_done(conn, since=first))
    days = [first + n * DAY for n in range((last - first).days + 1)]
    return [(day, kind) for day in days for kind in kinds if (day, EXCHANGES[exchange].own(kind)) not in done]


def _result(day: date, exchange: Exchange, found: Reconciliation) -> DayResult:
    listed = found.total("listed")
    detail: dict[str, Any] = {"markets": len(found.markets), "refused": found.refused}
    if found.unknown:
        detail["unknown_tokens"] = [token_id for token_id, _ in found.unknown.most_common(SAMPLES)]
    return DayResult(
        day,
        exchange.own("trades"),
        listed + found.unknown.total(),
        listed - found.total("hashless"),
        found.total("added"),
        found.total("unlisted"),
        found.unknown.total(),
        detail,
    )


def _save(conn: psycopg.Connection[Any], result: DayResult) -> None:
    queries.save_day(
        conn,
        day=result.day,
        kind=result.kind,
        **result.figures(),
        detail=msgspec.json.encode(result.detail).decode(),
    )


def _save_markets(conn: psycopg.Connection[Any], day: date, found: Reconciliation) -> None:
    keys = list(found.markets)
    markets = [found.markets[key] for key in keys]
    queries.save_market_days(
        conn,
        day=day,
        market_keys=keys,
        listed=[market.listed for market in markets],
        held=[market.listed - market.hashless for market in markets],
        added=[market.added for market in markets],
        unlisted=[market.unlisted for market in markets],
    )


def _note_missed(conn: psycopg.Connection[Any], exchange: str, since_ms: int | None, added: list[TradeRow]) -> None:
    """Record what the feed should have received: trades from before it began are no gap."""
    missed = [row for row in added if since_ms is not None and row.ts_ms >= since_ms]
    if missed:
        queries.note_missed(
            conn,
            exchange=exchange,
            market_keys=[row.token.market_key for row in missed],
            instants=[datetime.fromtimestamp(row.ts_ms / 1000, UTC) for row in missed],
            cause=MISSED,
            filled_by=COUNTED,
        )
