"""Reads the stream's messages from their blocks, as subscribers receive them."""

from __future__ import annotations

import logging
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec import Struct

from sql import stream_blocks
from sql.queries import stream as queries
from sql.stream_blocks import BlockError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime

    from sql.stream_blocks import Block, Head

    Watchers = dict[bytes, list[int]]
    Run = Callable[[Any, Any, dict[str, Any]], Any]
    OutcomeKey = tuple[str | int | None, int]  # market key and outcome
    Outcomes = dict[OutcomeKey, "OutcomeIds"]
    ResolvedHead = tuple[bytes, str, str | None, bytes | None, list[int] | None, "OutcomeIds | None"]

log = logging.getLogger("presage.stream")

_MARKET, _TOKEN = stream_blocks.MARKET.encode(), stream_blocks.TOKEN.encode()  # a byte each: the fastest to replace
MAX_OUTCOMES = 50_000  # whose IDs are kept, in some 25 MB
MAX_PAGE_BYTES = 8 << 20  # of the messages read at once, and the rest of the last one's block


class StreamEvent(Struct, frozen=True, order=True, gc=False):
    """A stored event; `watchers` are the accounts that watched its wallet at the time.

    Many are cached; without reference cycles, they are excluded from garbage collection (`gc=False`).
    """

    seq: int
    type: str
    market_id: str | None
    wallet: bytes | None
    watchers: list[int] | None
    message: bytes


class StoredBlock(NamedTuple):
    """A row of `stream_blocks`."""

    seq_from: int
    seq_to: int
    ts: datetime
    data: bytes


class StreamPage(NamedTuple):
    """Events in order, the number that was read up to, and the spans of numbers before it that have no event."""

    events: list[StreamEvent]
    reached: int
    missing: list[tuple[int, int]]


class OutcomeIds(NamedTuple):
    """The exchange's IDs of an outcome."""

    market_id: str
    market: bytes
    token: bytes


def _call(conn: Any, query: Any, arguments: dict[str, Any]) -> Any:
    return query(conn, **arguments)


class _Outcomes:
    """The IDs of outcomes, which never change; those not asked for in a long time are dropped."""

    def __init__(self) -> None:
        self.newer: dict[OutcomeKey, OutcomeIds] = {}
        self._older: dict[OutcomeKey, OutcomeIds] = {}

    def get(self, key: OutcomeKey) -> OutcomeIds | None:
        """Return an outcome's IDs if they are known."""
        if (ids := self.newer.get(key)) is None and (ids := self._older.get(key)) is not None:
            self.newer[key] = ids
        return ids

    def bound(self) -> None:
        """Drop those that were not asked for since the last time, when there are many new ones."""
        if len(self.newer) > MAX_OUTCOMES // 2:
            self.newer, self._older = {}, self.newer


class StreamReader:
    """Reads events; keeps the IDs of the outcomes that it has met. `run` executes a query."""

    def __init__(self, run: Run = _call) -> None:
        self._run = run
        self._outcomes = _Outcomes()

    def read(
        self, conn: Any, after: int, upto: int, limit: int, wanted: Callable[[int, str], bool] | None = None
    ) -> StreamPage:
        """Read the events after one number and up to another, but no further than `limit` numbers.

        Many long ones end it earlier, after at least one event. `wanted` selects by number and type; the others are
        not missing.
        """
        end = min(upto, after + limit)
        rows = [StoredBlock(*row) for row in self._run(conn, queries.between, {"after": after, "upto": end})]
        if not rows and end < upto:  # numbers jump when a database is restored
            first = self._run(conn, queries.first_after, {"seq": end})
            end = upto if first is None else min(upto, first - 1)
        return self.unpack(conn, rows, after, end, wanted)

    def unpack(
        self,
        conn: Any,
        rows: Sequence[StoredBlock],
        after: int,
        upto: int,
        wanted: Callable[[int, str], bool] | None = None,
    ) -> StreamPage:
        """Unpack the events after one number and up to another from their blocks; what cannot be read is missing."""
        missing: list[tuple[int, int]] = []
        events: list[StreamEvent] = []
        reached, size = after, 0
        for row in rows:
            if size > MAX_PAGE_BYTES:
                upto = reached
                break
            if row.seq_from > reached + 1:
                missing.append((reached + 1, row.seq_from - 1))
            numbers = range(max(row.seq_from, after + 1), min(row.seq_to, upto) + 1)
            try:
                block = stream_blocks.unpack(row.data, row.seq_to - row.seq_from + 1)
            except BlockError as error:
                log.warning("the stream's block %d to %d cannot be read: %s", row.seq_from, row.seq_to, error)
                missing.append((numbers.start, numbers.stop - 1))
            else:
                found, lost = self._events(conn, row, block, numbers, wanted)
                size += sum(len(event.message) for event in found)
                events += found
                missing += lost
            reached = numbers.stop - 1
        if reached < upto:
            missing.append((reached + 1, upto))
        return StreamPage(events, upto, _merged(missing))

    def _events(
        self, conn: Any, row: StoredBlock, block: Block, numbers: range, wanted: Callable[[int, str], bool] | None
    ) -> tuple[list[StreamEvent], list[tuple[int, int]]]:
        """Return the events of a block that have these numbers, and those whose outcome the catalogue lacks."""
        outcomes = self._find_outcomes(conn, block)
        watchers = self._watchers(conn, row, block)
        heads = [_resolved(head, outcomes, watchers) for head in block.heads]
        events: list[StreamEvent] = []
        missing: list[tuple[int, int]] = []
        offset = numbers.start - row.seq_from
        for seq, index, rest in zip(numbers, block.indexes[offset:], block.rests()[offset:], strict=False):
            if (head := heads[index]) is None:
                missing.append((seq, seq))
                continue
            begin, type_, market_id, wallet, watching, ids = head
            if wanted is None or wanted(seq, type_):
                text = b"%b%d,%b" % (begin, seq, rest)
                if ids is not None:
                    text = text.replace(_MARKET, ids.market).replace(_TOKEN, ids.token)
                events.append(StreamEvent(seq, type_, market_id, wallet, watching, text))
        self._outcomes.bound()
        return events, missing

    def forget(self) -> None:
        """Forget the IDs, when the database was replaced."""
        self._outcomes = _Outcomes()

    def _find_outcomes(self, conn: Any, block: Block) -> Outcomes:
        """Return the IDs of a block's outcomes: others may drop them from those kept while a query runs."""
        found: Outcomes = {}
        unknown: set[OutcomeKey] = set()
        for _, market, outcome, _ in block.heads:
            if outcome is None:
                continue
            if (ids := self._outcomes.get((market, outcome))) is None:
                unknown.add((market, outcome))
            else:
                found[market, outcome] = ids
        if unknown:
            keys = sorted({market for market, _ in unknown if isinstance(market, int)})
            for market_key, outcome, market_id, token_id in self._run(conn, queries.outcome_ids, {"market_keys": keys}):
                ids = OutcomeIds(market_id, market_id.encode(), token_id.encode())
                found[market_key, outcome] = self._outcomes.newer[market_key, outcome] = ids
                unknown.discard((market_key, outcome))
        if unknown:
            log.warning("the catalogue lacks outcomes of the stream: %s", unknown)
        return found

    def _watchers(self, conn: Any, row: StoredBlock, block: Block) -> Watchers:
        """Return the accounts that watched the block's wallets when it was written."""
        wallets = list({wallet for *_, wallet in block.heads if wallet is not None})
        if not wallets:
            return {}
        rows = self._run(conn, queries.watchers, {"wallets": wallets, "instants": [row.ts] * len(wallets)})
        return {wallet: accounts for wallet, _, accounts in rows}


def _resolved(head: Head, outcomes: Outcomes, watchers: Watchers) -> ResolvedHead | None:
    """Resolve a head; None if the catalogue lacks its outcome."""
    type_, market, outcome, wallet = head
    if outcome is not None:
        ids = outcomes.get((market, outcome))
        return None if ids is None else (_begin(type_), type_, ids.market_id, None, None, ids)
    watching = None if wallet is None else watchers.get(wallet)
    return _begin(type_), type_, None if market is None else str(market), wallet, watching, None


def _merged(spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    merged: list[tuple[int, int]] = []
    for first, last in sorted(spans):
        if merged and first == merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], last)
        else:
            merged.append((first, last))
    return merged


@cache
def _begin(type_: str) -> bytes:
    return b'{"type":"%b","seq":' % type_.encode()
