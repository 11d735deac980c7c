"""Losses: spans in which messages may have been missed, written to `coverage_gaps` by the leader."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from time import monotonic
from typing import Any, NamedTuple, Self

import msgspec
import psycopg
from msgspec.structs import replace

from config.exchanges import POLYMARKET, Exchange
from orchestration.feeds.shards import WHOLE, Shard
from orchestration.ingest.storage.rows import KINDS, Token
from sql.queries import feed as queries

MAX_MARKETS_PER_LOSS = 2_000  # a loss of more is written as one of all markets of the shard
MAX_UNSAVED = 1_000  # closed losses waiting to be written; beyond it neighbours are joined
LOSSES_PER_JOIN = 10  # neighbouring losses joined into one
LEFT_S = 60.0  # for so long after its lead a run may find out what it lost then
UNCHANGED = "nothing missed: books unchanged"


class Loss(msgspec.Struct, eq=False):
    """One loss. It is open until every book it concerns is synced again."""

    cause: str
    from_ms: int
    token_ids: frozenset[str] | None  # None: every token of the shard
    market_keys: frozenset[int] | None  # None: every market of `shard`
    kinds: tuple[str, ...] = KINDS
    to_ms: int | None = None
    missed: bool = True  # False: the books were unchanged when they were synced again
    tolerated_ms: int = 0  # a shorter loss is no gap
    shard: Shard | None = None  # None: that of the run
    gap_ids: list[int] = []
    closed_in_database: bool = False
    lasting: bool = False  # of books that do not come: nothing waits for it
    saving: bool = False  # it is being or was written: what was written may not change any more
    part_of: Self | None = None  # what of it this run lost while it led: no other run records that
    created_at: float = msgspec.field(default_factory=monotonic)

    def is_gap(self, to_ms: int) -> bool:
        """Return whether it counts as a gap if it ends at an instant."""
        return self.missed and to_ms - self.from_ms >= self.tolerated_ms

    @classmethod
    def of(
        cls, cause: str, tokens: Iterable[Token], from_ms: int, to_ms: int | None = None, kinds: tuple[str, ...] = KINDS
    ) -> Self:
        """Create a loss of some tokens."""
        concerned = list(tokens)
        return cls(
            cause,
            from_ms,
            frozenset(token.token_id for token in concerned),
            frozenset(token.market_key for token in concerned),
            kinds,
            to_ms,
        )


class Saving(msgspec.Struct):
    """Losses to write, as a snapshot: others may be added while it is written."""

    new: list[tuple[Loss, int | None]] = []  # losses without a row, and their ends
    over: list[tuple[Loss, int]] = []  # losses whose rows are still open, and their ends


class Lead(NamedTuple):
    """When this run last led, in the exchange's time (ms)."""

    from_ms: int = 0  # another run has committed what was before
    to_ms: int = 0  # others take what was before for committed by this run; 0: it leads, or has not led yet
    ended_at: float = 0.0  # monotonic; while it leads, that of the lead before


class Losses:
    """This run's losses that are not fully written yet."""

    def __init__(self, run_id: str, shard: Shard = WHOLE, exchange: Exchange = POLYMARKET) -> None:
        self.run_id = run_id
        self.shard = shard
        self._exchange = exchange
        self.all: list[Loss] = []
        self._lead = Lead()
        self._join_at = MAX_UNSAVED

    def add(self, loss: Loss) -> Loss:
        """Record a loss."""
        loss.from_ms = max(loss.from_ms, self._lead.from_ms)
        self.all.append(loss)
        self._set_aside(loss)
        if len(self.all) > self._join_at:
            self._join()
            self._join_at = max(MAX_UNSAVED, 2 * len(self.all))
        return loss

    def extend(self, cause: str, from_ms: int, to_ms: int) -> None:
        """Record that a whole span was lost, merged into the last such loss while that is not written."""
        for loss in reversed(self.all):
            if loss.cause == cause and loss.token_ids is None and loss.to_ms and not (loss.saving or loss.part_of):
                loss.from_ms = max(min(loss.from_ms, from_ms), self._lead.from_ms)
                loss.to_ms = max(loss.to_ms, to_ms)
                self._set_aside(loss)
                return
        self.add(Loss(cause, from_ms, None, None, to_ms=to_ms))

    def open(self) -> list[Loss]:
        """Return losses whose books are not all synced again, and are waited for."""
        return [loss for loss in self.all if loss.to_ms is None and not loss.lasting]

    def forget(self, before_ms: int) -> None:
        """Drop losses that ended before an instant: another run, the leader, committed that span.

        Those stay whose gaps this run has left open in the database, to be closed, and what it lost while it led.
        """
        self.all = [
            loss
            for loss in self.all
            if loss.saving or loss.gap_ids or loss.part_of or loss.to_ms is None or loss.to_ms > before_ms
        ]

    def leave(self, held_ms: int) -> None:
        """Set aside, as this run leads no longer, what it loses or has lost before an instant.

        Others take what was before for committed by this run: none of them records it.
        """
        self._lead = Lead(self._lead.from_ms, held_ms, monotonic())
        for loss in [*self.all]:
            self._set_aside(loss)
        self.forget(held_ms)

    def begin_at(self, ms: int) -> None:
        """Begin at an instant, as a run that takes the lead where another has ended: what was lost before is no loss.

        The other may have closed gaps that this run has left open: what goes on gets new ones. At 0 nobody has led.
        """
        self.forget(ms)
        self._lead = Lead(ms or self._lead.from_ms, ended_at=self._lead.ended_at)
        for loss in [*self.all]:
            if loss.part_of or (loss.saving and not loss.gap_ids):
                continue
            loss.from_ms = max(loss.from_ms, self._lead.from_ms)
            if ms and loss.gap_ids and loss.to_ms is None:
                self._split(loss, loss.from_ms)

    def _set_aside(self, loss: Loss) -> None:
        """Split off what of a loss was while this run led, if it leads no longer and may still write that."""
        if loss.saving or loss.part_of or loss.from_ms >= self._lead.to_ms or self._lead_is_settled():
            return
        self._split(loss, self._lead.to_ms, part_of=loss)

    def _split(self, loss: Loss, ms: int, *, part_of: Loss | None = None) -> None:
        """Make what of a loss is before an instant a loss of its own, with the gaps that are written."""
        self.all.append(replace(loss, to_ms=ms if loss.to_ms is None else min(loss.to_ms, ms), part_of=part_of))
        loss.from_ms, loss.gap_ids, loss.saving = ms, [], False

    def _lead_is_settled(self) -> bool:
        """Return whether this run finds out no more what it lost while it led."""
        return monotonic() > self._lead.ended_at + LEFT_S

    def begin_saving(self, now_ms: int, *, leading: bool = True, ending: bool = False) -> Saving:
        """Return what to write by now (exchange time); closed losses that are no gap are dropped.

        A run that leads no longer writes what it lost as the leader, once it is known whether that was anything, and
        ends gaps that it left open.
        """
        for loss in self.all:
            if loss.part_of:
                loss.missed = loss.part_of.missed
        self.all = [loss for loss in self.all if loss.gap_ids or loss.to_ms is None or loss.is_gap(loss.to_ms)]
        saving = Saving()
        for loss in self.all:
            if not loss.gap_ids and not (
                self._is_due(loss, leading=leading, ending=ending) and loss.is_gap(loss.to_ms or now_ms)
            ):
                continue
            if not loss.gap_ids:
                loss.saving = True
                saving.new.append((loss, loss.to_ms))
            elif loss.to_ms is not None and not loss.closed_in_database:
                saving.over.append((loss, loss.to_ms))
        return saving

    def _is_due(self, loss: Loss, *, leading: bool, ending: bool) -> bool:
        """Return whether a loss is to be written; of a part that was split off, the books may prove to be unchanged."""
        if loss.part_of is None:
            return leading
        return ending or loss.part_of.to_ms is not None or self._lead_is_settled()

    def write(self, conn: psycopg.Connection[Any], saving: Saving) -> None:
        """Write losses, each kind in one statement; blocks."""
        if saving.new:
            rows = [(nth, *row) for nth, (loss, to_ms) in enumerate(saving.new) for row in self._rows(loss, to_ms)]
            columns = (list(column) for column in zip(*rows, strict=True))
            numbers, kinds, market_keys, of_shard, of_shards, from_ms, to_ms, causes = columns
            written = queries.open_gaps(
                conn,
                losses=numbers,
                kinds=kinds,
                market_keys=market_keys,
                of_shard=of_shard,
                of_shards=of_shards,
                from_ms=from_ms,
                to_ms=to_ms,
                causes=causes,
                run_id=self.run_id,
                exchange=self._exchange.name,
            )
            for nth, gap_id in written:
                saving.new[nth][0].gap_ids.append(gap_id)
            for loss, end_ms in saving.new:
                loss.closed_in_database = end_ms is not None
        if saving.over:
            ends = [(gap_id, to_ms, loss.missed) for loss, to_ms in saving.over for gap_id in loss.gap_ids]
            queries.close_gaps(
                conn,
                gap_ids=[gap_id for gap_id, _, _ in ends],
                to_ms=[to_ms for _, to_ms, _ in ends],
                filled_by=[None if missed else UNCHANGED for _, _, missed in ends],
            )
            for loss, _ in saving.over:
                loss.closed_in_database = True

    def end_saving(self) -> None:
        """Drop losses that are closed and written; the others are retried."""
        self.all = [loss for loss in self.all if not loss.closed_in_database]
        for loss in [*self.all]:
            loss.saving = bool(loss.gap_ids)
            self._set_aside(loss)

    def unsaved_ms(self) -> int | None:
        """Return the start of the earliest loss that is not closed and written; None: all are.

        One that lasts only has to be written: whoever leads next closes it, or has one of its own. A part that was
        split off is of an earlier lead, after which others may have led.
        """
        unsaved = (loss.from_ms for loss in self.all if not (loss.part_of or (loss.lasting and loss.gap_ids)))
        return min(unsaved, default=None)

    def _rows(self, loss: Loss, to_ms: int | None) -> Iterable[tuple[Any, ...]]:
        few = loss.market_keys is not None and len(loss.market_keys) <= MAX_MARKETS_PER_LOSS
        keys: list[int | None] = [*sorted(loss.market_keys)] if few and loss.market_keys else [None]
        shard = loss.shard or self.shard
        of = (None, None) if keys != [None] or shard == WHOLE else shard
        return [(kind, key, *of, loss.from_ms, to_ms, loss.cause) for kind in loss.kinds for key in keys]

    def _join(self) -> None:
        """Join neighbouring unwritten losses of one cause, to bound memory."""
        waiting: dict[tuple[str, tuple[str, ...]], list[Loss]] = defaultdict(list)
        kept = []
        for loss in self.all:
            if loss.to_ms is None or loss.saving or loss.part_of:
                kept.append(loss)
            elif loss.is_gap(loss.to_ms):
                waiting[loss.cause, loss.kinds].append(loss)
        for group in waiting.values():
            group.sort(key=lambda loss: loss.from_ms)
            kept += [_joined(group[start : start + LOSSES_PER_JOIN]) for start in range(0, len(group), LOSSES_PER_JOIN)]
        self.all = kept


def _joined(losses: Sequence[Loss]) -> Loss:
    """Merge several closed losses into one: all their tokens, from the first start to the last end."""
    first = losses[0]
    token_ids: frozenset[str] | None = frozenset()
    market_keys: frozenset[int] | None = frozenset()
    for loss in losses:
        token_ids = None if token_ids is None or loss.token_ids is None else token_ids | loss.token_ids
        market_keys = None if market_keys is None or loss.market_keys is None else market_keys | loss.market_keys
    from_ms, to_ms = first.from_ms, max(loss.to_ms or 0 for loss in losses)
    joined = Loss(first.cause, from_ms, token_ids, market_keys, first.kinds, to_ms)
    joined.shard = first.shard if all(loss.shard == first.shard for loss in losses) else None
    return joined
