"""Fills gaps afterwards: with what another run received, and from the exchange's settled trades (Data API)."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from time import monotonic
from typing import Any

import msgspec

from orchestration.feeds.shards import WHOLE, Shard
from orchestration.ingest.exchanges.base import ExchangeClient
from orchestration.ingest.gaps.naming import TokenResolver
from orchestration.ingest.gaps.starts import LISTED, READING
from orchestration.ingest.progress import settled_ms
from orchestration.ingest.storage.rows import TradeRow, WriteBatch
from orchestration.ingest.storage.writer import Writer
from sql import database
from sql.queries import feed as queries
from upstream.transport.errors import UpstreamError

MARGIN_MS = 1_000  # margin on both sides of a gap: rows already stored stay unchanged
MAX_NAMED_MARKETS = 200  # requested by name; with more, all trades of the span are read
MAX_TRADES_PER_COMMIT = 5_000
MAX_SPAN_MS = 600_000
RETRY_S = 30.0
MAX_UNKNOWN = 200  # stored with a gap, so that the next attempt requests only their trades


class CoverageGap(msgspec.Struct, frozen=True):
    """Rows of `coverage_gaps` that share their span."""

    gap_ids: tuple[int, ...]
    market_keys: frozenset[int] | None  # None: every market of the shard
    shard: Shard
    from_ms: int
    to_ms: int | None  # None: still open
    unknown: frozenset[str] = frozenset()  # condition ids left by an earlier attempt: all else is filled


def group_gaps(rows: Iterable[Sequence[Any]]) -> list[CoverageGap]:
    """Group rows (id, market, shard, shards, from, to[, unknown markets]) by shard and span.

    A loss is written as a row per market and kind.
    """
    spans: dict[tuple[Any, ...], list[Sequence[Any]]] = defaultdict(list)
    for row in rows:
        number, shards, from_ms, to_ms, *unknown = row[2:]
        shard = WHOLE if number is None else Shard(number, shards)
        spans[shard, from_ms, to_ms, frozenset(unknown[0] or ()) if unknown else frozenset()].append(row)
    gaps = []
    for (shard, from_ms, to_ms, left), members in spans.items():
        keys = {row[1] for row in members}
        gap_ids = tuple(row[0] for row in members)
        gaps.append(CoverageGap(gap_ids, None if None in keys else frozenset(keys), shard, from_ms, to_ms, left))
    return gaps


def unknown_markets_fault(unknown: Counter[str]) -> str:
    """Return the fault text for trades of markets that no catalogue knows."""
    sample = ", ".join(market or "no market" for market, _ in unknown.most_common(3))
    return f"{unknown.total()} trades of {len(unknown)} markets that the catalogue does not know: {sample}"


class GapFiller:
    """Writes missed rows, over a connection of its own; every call blocks."""

    def __init__(self, url: str, family: str, run_id: str, exchange: ExchangeClient, shard: Shard = WHOLE) -> None:
        self.run_id = run_id
        self._family, self._shard = family, shard
        self._url = url
        self._exchange = exchange
        self._writer: Writer | None = None
        self.stopped = False  # set to end a fill early

    @property
    def writer(self) -> Writer:
        """The writer, on a new connection if the last one was lost."""
        if self._writer is None or self._writer.conn.closed:
            conn = database.connect(
                self._url, autocommit=True, name=f"presage feed {self._shard.feed(self._family)}: gaps"
            )
            self._writer = Writer(conn, has_trade_ids=self._exchange.exchange.has_trade_ids)
        return self._writer

    def gaps_of_others(self) -> list[CoverageGap]:
        """List recent gaps that another run left."""
        return group_gaps(
            queries.gaps_to_fill(
                self.writer.conn,
                run_id=self.run_id,
                besides=[LISTED, READING],
                exchange=self._exchange.exchange.name,
            )
        )

    def from_ring(self, gap: CoverageGap, received: WriteBatch, to_ms: int, *, whole: bool) -> None:
        """Write what our own sockets received within a gap; mark it filled if they missed nothing."""
        written = self.writer.write(received, fill=True)
        if whole:
            detail = {"trades": written.trades, "events": written.events}
            self._mark(gap.gap_ids, to_ms, f"run {self.run_id}", detail)

    def from_data_api(self, settle_s: float, asked_at: float, ended_before_ms: int | None = None) -> int:
        """Fetch trades of unfilled gaps that ended a while before a monotonic instant; return how many were added.

        The instant is when the caller found out what is committed: until the database answers, nothing more may be.
        `ended_before_ms` is by the exchange's timestamps, which may lie far behind the database's clock.
        """
        added = 0
        attempts: dict[int, int] = {}
        rows = []
        conn = self.writer.conn
        settled = settled_ms(conn, self._family, self._shard)
        exchange = self._exchange.exchange.name
        found = list(
            queries.trade_gaps_to_fill(
                conn, settle_s=settle_s, settled_ms=settled, exchange=exchange, **self._shard.columns()
            )
        )
        waited_s = monotonic() - asked_at
        for *row, age_s, tried in found:
            ended_ms = row[5]
            if age_s - waited_s > settle_s and (ended_before_ms is None or ended_ms < ended_before_ms):
                attempts[row[0]] = tried
                rows.append(row)
        resolver = TokenResolver(self._exchange)
        for gap in group_gaps(rows):
            next_s = RETRY_S * 2 ** attempts[gap.gap_ids[0]]
            try:
                added += self._fetch(gap, resolver, next_s)
            except UpstreamError as fault:
                fault_text = f"{type(fault).__name__}: {fault}"
                queries.mark_attempt(
                    self.writer.conn, gap_ids=list(gap.gap_ids), next_s=next_s, fault=fault_text, detail="{}"
                )
        if refusals := self._exchange.take_refusals():
            self.writer.write(WriteBatch(refusals=refusals), fill=True)
        return added

    def _fetch(self, gap: CoverageGap, resolver: TokenResolver, next_s: float) -> int:
        conn, gap_ids = self.writer.conn, list(gap.gap_ids)
        named = set(gap.unknown)
        if not named and gap.market_keys is not None:
            named = {row[0] for row in queries.markets_of(conn, market_keys=sorted(gap.market_keys))}
        markets = named if len(named) <= MAX_NAMED_MARKETS else ()
        from_ms, end_ms = gap.from_ms - MARGIN_MS, (gap.to_ms or gap.from_ms) + MARGIN_MS
        listed = added = 0
        unknown: Counter[str] = Counter()
        queries.count_added(conn, gap_ids=gap_ids, trades=0)  # 0 is recorded, too
        # A long gap is read in short spans, to bound memory and the span of a commit.
        while (named or gap.market_keys is None) and from_ms < end_ms and not self.stopped:
            to_ms = min(from_ms + MAX_SPAN_MS, end_ms)
            found = self._exchange.listed(markets, from_ms, to_ms)
            found = [trade for trade in found if (trade.market in named if named else gap.shard.holds(trade.market))]
            tokens = resolver.tokens(conn, found)
            unknown.update(trade.market for trade in found if trade.token_id not in tokens)
            listed += len(found)
            added += self._add(self._exchange.rows(tokens, found), gap_ids)
            from_ms = to_ms
        if self.stopped:
            return added
        if unknown:
            few = len(unknown) <= MAX_UNKNOWN and "" not in unknown
            detail: dict[str, Any] = {"unknown_markets": sorted(unknown) if few else None}
            if few:
                detail["filled_to_ms"] = end_ms
            queries.mark_attempt(
                conn, gap_ids=gap_ids, next_s=next_s, fault=unknown_markets_fault(unknown), detail=_json(detail)
            )
        else:
            self._mark(gap_ids, end_ms, self._exchange.exchange.trades_source, {"listed": listed})
        return added

    def _add(self, trades: list[TradeRow], gap_ids: Sequence[int] = ()) -> int:
        added, writer = 0, self.writer
        for start in range(0, len(trades), MAX_TRADES_PER_COMMIT):
            with writer.conn.transaction():
                new = writer.write(WriteBatch(trades=trades[start : start + MAX_TRADES_PER_COMMIT]), fill=True).trades
                if gap_ids and new:
                    queries.count_added(writer.conn, gap_ids=list(gap_ids), trades=new)
            added += new
        return added

    def _mark(self, gap_ids: Iterable[int], to_ms: int, filled_by: str, detail: dict[str, Any]) -> None:
        queries.mark_filled(
            self.writer.conn,
            gap_ids=list(gap_ids),
            to_ms=to_ms,
            filled_by=filled_by,
            detail=_json(detail),
        )

    def close(self) -> None:
        """Close the connection."""
        if self._writer is not None:
            self._writer.conn.close()


def _json(detail: dict[str, Any]) -> str:
    return msgspec.json.encode(detail).decode()
