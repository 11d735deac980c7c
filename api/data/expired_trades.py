"""Trades of days that the database has dropped, by the same queries: they read the lake's rows and the database's."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from api.data import expired
from api.data.expired import beside, too_many
from api.data.lake import array, micro
from api.schemas.requests import EARLIEST
from sql.queries import lake as queries

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import date, datetime

    import pyarrow as pa

    from api.data.expired import Expired
    from api.data.lookup import MarketRef

COLUMNS = ("ts", "outcome", "trade_id", "seq", "side", "price", "size", "value_usd", "tx_hash")
# In place of the table, of which nothing may be doubled: for ten minutes and more, rows are in both.
TRADES = """
    select ts, market_key, outcome, trade_id, seq, side, price, size, value_usd, tx_hash from public.trades
    union all
    select
        'epoch'::timestamptz + lake.us * interval '1 microsecond', %(market_key)s::integer, lake.outcome,
        lake.trade_id, lake.seq, lake.side, lake.price, lake.size, lake.value_usd, decode(lake.tx_hash, 'hex')
    from unnest(
        %(lake_us)s::bigint[], %(lake_outcome)s::smallint[], %(lake_trade_id)s::bigint[], %(lake_seq)s::bigint[],
        %(lake_side)s::smallint[], %(lake_price)s::bigint[], %(lake_size)s::bigint[], %(lake_value_usd)s::bigint[],
        %(lake_tx_hash)s::text[]
    ) as lake (us, outcome, trade_id, seq, side, price, size, value_usd, tx_hash)
    where not exists (
        select from public.trades stored
        where stored.market_key = %(market_key)s and stored.ts < %(lake_until)s::timestamptz
            and stored.trade_id = lake.trade_id
    )"""


class ExpiredTrades:
    """The trades of a market, as far back as the lake has them."""

    def __init__(self, source: Expired) -> None:
        self._expired = source

    def newest(
        self,
        query: Callable[..., Any],
        market: MarketRef,
        outcome: int | None,
        *,
        since: datetime,
        until: datetime,
        limit: int,
        most: int | None = None,
        **arguments: Any,
    ) -> tuple[str, int] | None:
        """Return what a query of the newest rows of a range returns, its text and their number.

        Days are read from the newest on, until they are enough; of each, at most an outcome's `most` newest trades.
        None: the database has all of the range's trades. Problem: it takes more than MAX_ROWS trades.
        """
        days = self._days(market, outcome, since, until)
        if not days:
            return None
        rows, wanted = Rows(), limit
        paths = self._paths(days)
        with self._expired.turns:
            while True:
                while days and len(rows) < wanted and rows.whole_from is None:
                    self._load(rows, paths.get(days.pop(0)), market, outcome, since, until, most)
                asked = {"since": max(since, rows.whole_from or since), "until": until, "limit": limit, **arguments}
                text, count = self._read(query, market, rows, outcome=outcome, **asked)
                if count >= limit or not days or rows.whole_from is not None:
                    break
                wanted = 2 * max(wanted, len(rows))
        if count < limit and rows.whole_from is not None:
            raise too_many("limit", "a smaller one, or a shorter range")
        return text, count

    def whole(
        self,
        query: Callable[..., Any],
        market: MarketRef,
        *,
        outcome: int,
        range_: tuple[datetime, datetime],
        **arguments: Any,
    ) -> Any:
        """Return what a query returns that reads all trades of a range; None: the database has all of them."""
        days = self._days(market, outcome, *range_)
        if not days:
            return None
        rows, paths = Rows(), self._paths(days)
        with self._expired.turns:
            for day in days:
                self._load(rows, paths.get(day), market, outcome, *range_)
                if rows.whole_from is not None:
                    raise too_many("limit", "a smaller one, or a shorter range")
            return self._read(query, market, rows, outcome=outcome, **arguments)

    def last(self, query: Callable[..., Any], market: MarketRef, outcome: int, *, until: datetime) -> Any:
        """Return what a query of the last trade before an instant returns; None: there was none."""
        days = self._days(market, outcome, EARLIEST, until)
        paths = self._paths(days)
        with self._expired.turns:
            for day in days:
                rows = Rows()
                self._load(rows, paths.get(day), market, outcome, EARLIEST, until, 1)
                found = self._read(query, market, rows, outcome=outcome, until=until) if len(rows) else None
                if found is not None:
                    return found
        return None

    def _days(self, market: MarketRef, outcome: int | None, since: datetime, until: datetime) -> list[date]:
        """Return the days of a range on which there were trades that have expired, newest first."""
        hot_from = self._expired.hot_from("trades")
        if hot_from is None or since >= hot_from:
            return []
        asked = {"market_key": market.key, "outcome": outcome, "since": since, "until": min(until, hot_from)}
        return [day for (day,) in self._expired.run(queries.trade_days, asked)]

    def _paths(self, days: list[date]) -> dict[date, list[str]]:
        """Return the files of days, the newest of which comes first."""
        if not days:
            return {}
        return {day: paths for (_, day), paths in self._expired.paths(["trades"], days[-1], days[0]).items()}

    def _load(  # noqa: PLR0917 (a range of one market)
        self,
        rows: Rows,
        paths: list[str] | None,
        market: MarketRef,
        outcome: int | None,
        since: datetime,
        until: datetime,
        most: int | None = None,
    ) -> None:
        """Add a market's trades of a day's files that are in a range; Problem: a file cannot be read."""
        table = self._expired.rows(paths or (), market, COLUMNS)
        if table is not None:
            rows.add(table, outcome, since, until, most)

    def _read(self, query: Callable[..., Any], market: MarketRef, rows: Rows, **arguments: Any) -> Any:
        """Run a query over the database's trades and rows of the lake."""
        place = {"market_key": market.key, "lake_until": self._expired.hot_from("trades")}
        asked = {**arguments, **place, **rows.arguments()}
        return self._expired.run(beside(query, {"trades": TRADES}), asked)


class Rows:
    """Trades in columns, as `TRADES` takes them; at most MAX_ROWS, the newest ones."""

    def __init__(self) -> None:
        self._columns: list[list[Any]] = [[] for _ in COLUMNS]
        self.whole_from: datetime | None = None
        """The start of the first second of which none was left out; None: none was left out at all."""

    def add(self, table: pa.Table, outcome: int | None, since: datetime, until: datetime, most: int | None) -> None:
        """Add a day's rows that are in a range, of one outcome or of all; the `most` newest of each."""
        from pyarrow import compute, concat_tables, scalar  # noqa: PLC0415 (imported once a file was read)

        table = table.filter(
            compute.and_(
                compute.greater_equal(table["ts"], scalar(since, table["ts"].type)),
                compute.less(table["ts"], scalar(until, table["ts"].type)),
            )
        )
        of_outcome = [
            table.filter(compute.equal(table["outcome"], each))
            for each in ([outcome] if outcome is not None else table["outcome"].unique().to_pylist())
        ]
        table = concat_tables([each.slice(max(0, len(each) - (most or len(each)))) for each in of_outcome] or [table])
        if len(self) + len(table) > expired.MAX_ROWS:  # sorted by time, as they are of one outcome, or few
            table = table.sort_by("ts").slice(len(table) - (expired.MAX_ROWS - len(self)))
            first = table["ts"][0].as_py() if len(table) else until
            self.whole_from = first.replace(microsecond=0) + timedelta(seconds=1)
        ts, outcomes, trade_ids, seqs, sides, *amounts, hashes = (table[name] for name in COLUMNS)
        more = [
            ts.cast("int64").to_pylist(),
            outcomes.to_pylist(),
            trade_ids.to_pylist(),
            seqs.to_pylist(),
            [1 if side == "BUY" else -1 for side in sides.to_pylist()],
            *(micro(amount) for amount in amounts),
            [value and value[2:] for value in hashes.to_pylist()],
        ]
        for mine, theirs in zip(self._columns, more, strict=True):
            mine += theirs  # noqa: PLW2901 (in place)

    def __len__(self) -> int:
        return len(self._columns[0])

    def arguments(self) -> dict[str, str]:
        """Return the query's parameters."""
        names = ("us", *COLUMNS[1:])
        return {f"lake_{name}": array(column) for name, column in zip(names, self._columns, strict=True)}
