"""Spans in which messages may have been missed: known at once, written to `coverage_gaps` by whoever leads."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from time import monotonic
from typing import Any, Self

import msgspec
import psycopg

from orchestration.ingest.clock import steady
from orchestration.ingest.storage.rows import Token
from sql.queries import feed as queries

KINDS = ("books", "trades")
MANY = 2_000  # markets: a loss of more is written as one of all
MAX_UNSAVED = 1_000  # losses that are over and wait to be written; beyond it neighbours are joined
JOINED = 10  # neighbours joined to one
UNCHANGED = "nothing missed: books unchanged"


class Loss(msgspec.Struct, eq=False):
    """One loss. It is open until every book it concerns stands again."""

    cause: str
    from_ms: int
    token_ids: frozenset[str] | None  # None: every token of the feed
    market_keys: frozenset[int] | None
    kinds: tuple[str, ...] = KINDS
    to_ms: int | None = None
    missed: bool = True  # False: the books, when they came again, were the same
    tolerated_ms: int = 0  # one that is over sooner is no gap
    gap_ids: list[int] = []
    closed_in_database: bool = False
    saving: bool = False  # it is being written, or it is written: what it says then may not change any more
    noted_at: float = msgspec.field(default_factory=monotonic)

    def a_gap(self, to_ms: int) -> bool:
        """Tell whether it is a gap, if it lasts until an instant."""
        return self.missed and to_ms - self.from_ms >= self.tolerated_ms

    @classmethod
    def of(
        cls, cause: str, tokens: Iterable[Token], from_ms: int, to_ms: int | None = None, kinds: tuple[str, ...] = KINDS
    ) -> Self:
        """Make a loss of some tokens."""
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
    """What is to be written of some losses, as they stood: others go on while it is."""

    new: list[tuple[Loss, int | None]] = []  # losses without a row, and their ends
    over: list[tuple[Loss, int]] = []  # losses whose rows are still open, and their ends


class Losses:
    """The losses of this run that are not yet settled."""

    def __init__(self, run_id: str) -> None:
        self.run_id = run_id
        self.all: list[Loss] = []
        self._join_at = MAX_UNSAVED

    def add(self, loss: Loss) -> Loss:
        """Take note of a loss."""
        self.all.append(loss)
        if len(self.all) > self._join_at:
            self._join()
            self._join_at = max(MAX_UNSAVED, 2 * len(self.all))
        return loss

    def extend(self, cause: str, from_ms: int, to_ms: int) -> None:
        """Take note that all of a span was lost, as a part of the last such loss while that is not written."""
        for loss in reversed(self.all):
            if loss.cause == cause and loss.token_ids is None and loss.to_ms is not None and not loss.saving:
                loss.from_ms, loss.to_ms = min(loss.from_ms, from_ms), max(loss.to_ms, to_ms)
                return
        self.add(Loss(cause, from_ms, None, None, to_ms=to_ms))

    def open(self) -> list[Loss]:
        """Losses whose books do not all stand again."""
        return [loss for loss in self.all if loss.to_ms is None]

    def since(self, ms: int) -> list[Loss]:
        """Losses that reach beyond an instant."""
        return [loss for loss in self.all if loss.to_ms is None or loss.to_ms > ms]

    def forget(self, before_ms: int) -> None:
        """Forget, as a standby, what was over before an instant: the leader heard it."""
        self.all = self.since(before_ms)

    def begin_saving(self, now_ms: int | None = None) -> Saving:
        """Give what is to be written by now (of the exchange's time); what is over and was no loss is forgotten."""
        now_ms = int(steady() * 1000) if now_ms is None else now_ms
        self.all = [loss for loss in self.all if loss.gap_ids or loss.to_ms is None or loss.a_gap(loss.to_ms)]
        saving = Saving()
        for loss in self.all:
            if not loss.gap_ids and not loss.a_gap(loss.to_ms or now_ms):
                continue
            if not loss.gap_ids:
                loss.saving = True
                saving.new.append((loss, loss.to_ms))
            elif loss.to_ms is not None and not loss.closed_in_database:
                saving.over.append((loss, loss.to_ms))
        return saving

    def write(self, conn: psycopg.Connection[Any], saving: Saving) -> None:
        """Write it, each kind in one statement; blocks."""
        if saving.new:
            rows = [(nth, *row) for nth, (loss, to_ms) in enumerate(saving.new) for row in _rows(loss, to_ms)]
            numbers, kinds, market_keys, from_ms, to_ms, causes = (list(column) for column in zip(*rows, strict=True))
            written = queries.open_gaps(
                conn,
                losses=numbers,
                kinds=kinds,
                market_keys=market_keys,
                from_ms=from_ms,
                to_ms=to_ms,
                causes=causes,
                run_id=self.run_id,
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
        """Forget what is over and written; what could not be written is tried again."""
        self.all = [loss for loss in self.all if not loss.closed_in_database]
        for loss in self.all:
            loss.saving = bool(loss.gap_ids)

    def save(self, conn: psycopg.Connection[Any]) -> None:
        """Write what is new, as the leader; what is over and written is forgotten."""
        self.write(conn, self.begin_saving())
        self.end_saving()

    def unsaved_ms(self) -> int | None:
        """Tell where the first loss begins that is not over and written; None: all are."""
        return min((loss.from_ms for loss in self.all), default=None)

    def _join(self) -> None:
        """Join neighbours of one cause among those that wait to be written, so that memory is bounded."""
        waiting: dict[tuple[str, tuple[str, ...]], list[Loss]] = defaultdict(list)
        kept = []
        for loss in self.all:
            if loss.to_ms is None or loss.saving:
                kept.append(loss)
            elif loss.a_gap(loss.to_ms):
                waiting[loss.cause, loss.kinds].append(loss)
        for group in waiting.values():
            group.sort(key=lambda loss: loss.from_ms)
            kept += [_joined(group[start : start + JOINED]) for start in range(0, len(group), JOINED)]
        self.all = kept


def _joined(losses: Sequence[Loss]) -> Loss:
    """Make one loss of several that are over: of all their tokens, from the first to the last."""
    first = losses[0]
    token_ids: frozenset[str] | None = frozenset()
    market_keys: frozenset[int] | None = frozenset()
    for loss in losses:
        token_ids = None if token_ids is None or loss.token_ids is None else token_ids | loss.token_ids
        market_keys = None if market_keys is None or loss.market_keys is None else market_keys | loss.market_keys
    from_ms, to_ms = first.from_ms, max(loss.to_ms or 0 for loss in losses)
    return Loss(first.cause, from_ms, token_ids, market_keys, first.kinds, to_ms)


def _rows(loss: Loss, to_ms: int | None) -> Iterable[tuple[str, int | None, int, int | None, str]]:
    few = loss.market_keys is not None and len(loss.market_keys) <= MANY
    market_keys: list[int | None] = [*sorted(loss.market_keys)] if few and loss.market_keys else [None]
    return [(kind, key, loss.from_ms, to_ms, loss.cause) for kind in loss.kinds for key in market_keys]
