"""Gaps filled after all: by a run that heard what another missed, and from the exchange's settled trades."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from orchestration.live.exchange import Exchange
from orchestration.live.rows import Batch, Token, Trade
from orchestration.live.writer import Writer
from sql import database
from sql.queries import feed as queries
from upstream.errors import UpstreamError

AROUND_MS = 1_000  # looked at on both sides of a gap: what is there already stays as it is
MANY_MARKETS = 200  # asked for by name; beyond it all trades of the span are walked
AT_ONCE = 5_000
SPAN_MS = 600_000
RETRY_S = 30.0


class Gap(msgspec.Struct, frozen=True):
    """Rows of `coverage_gaps` that share their span."""

    gap_ids: tuple[int, ...]
    market_keys: frozenset[int] | None  # None: every market
    from_ms: int
    to_ms: int | None  # None: still open


def together(rows: Iterable[Sequence[Any]]) -> list[Gap]:
    """Join rows (id, market, from, to, …) of one span: a loss is written as a row a market and kind."""
    spans: dict[tuple[Any, ...], list[Sequence[Any]]] = defaultdict(list)
    for row in rows:
        spans[tuple(row[2:])].append(row)
    gaps = []
    for (from_ms, to_ms), members in spans.items():
        keys = {row[1] for row in members}
        gap_ids = tuple(row[0] for row in members)
        gaps.append(Gap(gap_ids, None if None in keys else frozenset(keys), from_ms, to_ms))
    return gaps


class Filler:
    """Writes what was missed, over a connection of its own; every call blocks."""

    def __init__(self, url: str, feed: str, run_id: str, exchange: Exchange) -> None:
        self.run_id = run_id
        self._url = url
        self._feed = feed
        self._exchange = exchange
        self._writer: Writer | None = None
        self.stopped = False  # somebody waits for this to end

    @property
    def writer(self) -> Writer:
        """The writer, on a new connection when the last one was lost."""
        if self._writer is None or self._writer.conn.closed:
            conn = database.connect(self._url, autocommit=True, name=f"presage feed {self._feed}: gaps")
            self._writer = Writer(conn)
        return self._writer

    def gaps_of_others(self) -> list[Gap]:
        """List recent gaps that another run left."""
        return together(queries.gaps_to_fill(self.writer.conn, run_id=self.run_id))

    def close_abandoned(self, to_ms: int) -> None:
        """Close gaps left open by runs that are no more."""
        queries.close_abandoned_gaps(self.writer.conn, to_ms=to_ms)

    def from_ring(self, gap: Gap, heard: Batch, to_ms: int, *, whole: bool) -> None:
        """Write what our own sockets heard within a gap; it is filled when they missed nothing."""
        written = self.writer.write(heard, fill=True)
        if whole:
            detail = {"trades": written.trades, "events": written.events}
            self._mark(gap.gap_ids, to_ms, f"run {self.run_id}", detail)

    def from_data_api(self, settle_s: float) -> int:
        """Fetch the trades of gaps that are over and unfilled; return how many were added."""
        added = 0
        attempts: dict[int, int] = {}
        rows = []
        for gap_id, market_key, from_ms, to_ms, tried in queries.trade_gaps_to_fill(
            self.writer.conn, settle_s=settle_s
        ):
            attempts[gap_id] = tried
            rows.append((gap_id, market_key, from_ms, to_ms))
        for gap in together(rows):
            try:
                added += self._fetch(gap)
            except UpstreamError as fault:
                next_s = RETRY_S * 2 ** attempts[gap.gap_ids[0]]
                queries.mark_attempt(
                    self.writer.conn, gap_ids=list(gap.gap_ids), next_s=next_s, fault=f"{type(fault).__name__}: {fault}"
                )
        if refusals := self._exchange.take_refusals():
            self.writer.write(Batch(refusals=refusals), fill=True)
        return added

    def catch_up(self, tokens: Iterable[Token], from_ms: int, to_ms: int) -> int:
        """Fetch the trades of new markets from before we listened to them; return how many were added."""
        known = {token.token_id: token for token in tokens}
        markets = {token.market_id for token in known.values()}
        return self._add(self._exchange.trades(known, markets, from_ms, to_ms)) if known else 0

    def _fetch(self, gap: Gap) -> int:
        keys = None if gap.market_keys is None else sorted(gap.market_keys)
        tokens = {row[0]: Token(*row) for row in queries.tokens_of(self.writer.conn, market_keys=keys)}
        named = {token.market_id for token in tokens.values()}
        markets = named if len(named) <= MANY_MARKETS else ()
        from_ms, end_ms = gap.from_ms - AROUND_MS, (gap.to_ms or gap.from_ms) + AROUND_MS
        listed = added = 0
        gap_ids = list(gap.gap_ids)
        queries.count_added(self.writer.conn, gap_ids=gap_ids, trades=0)  # 0 is said, too
        # A long gap is walked in short spans: what is held in memory, and what one commit spans, stays small.
        while tokens and from_ms < end_ms and not self.stopped:
            to_ms = min(from_ms + SPAN_MS, end_ms)
            trades = self._exchange.trades(tokens, markets, from_ms, to_ms)
            listed += len(trades)
            added += self._add(trades, gap_ids)
            from_ms = to_ms
        if not self.stopped:
            self._mark(gap_ids, end_ms, "data_api", {"listed": listed})
        return added

    def _add(self, trades: list[Trade], gap_ids: Sequence[int] = ()) -> int:
        added, writer = 0, self.writer
        for start in range(0, len(trades), AT_ONCE):
            with writer.conn.transaction():
                new = writer.write(Batch(trades=trades[start : start + AT_ONCE]), fill=True).trades
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
            detail=msgspec.json.encode(detail).decode(),
        )

    def close(self) -> None:
        """Let go of the connection."""
        if self._writer is not None:
            self._writer.conn.close()
