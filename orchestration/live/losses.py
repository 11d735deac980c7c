"""Spans in which messages may have been missed: known at once, written to `coverage_gaps` by whoever leads."""

from collections.abc import Iterable
from time import time
from typing import Any, Self

import msgspec
import psycopg

from orchestration.live.rows import Token
from sql.queries import feed as queries

KINDS = ("books", "trades")
MANY = 2_000  # markets: a loss of more is written as one of all
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
    gap_ids: list[int] = []
    closed_in_database: bool = False
    noted_ms: int = msgspec.field(default_factory=lambda: int(time() * 1000))

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


class Losses:
    """The losses of this run that are not yet settled."""

    def __init__(self, run_id: str) -> None:
        self.run_id = run_id
        self.all: list[Loss] = []

    def add(self, loss: Loss) -> Loss:
        """Take note of a loss."""
        self.all.append(loss)
        return loss

    def open(self) -> list[Loss]:
        """Losses whose books do not all stand again."""
        return [loss for loss in self.all if loss.to_ms is None]

    def since(self, ms: int) -> list[Loss]:
        """Losses that reach beyond an instant."""
        return [loss for loss in self.all if loss.to_ms is None or loss.to_ms > ms]

    def forget(self, before_ms: int) -> None:
        """Forget, as a standby, what was over before an instant: the leader heard it."""
        self.all = self.since(before_ms)

    def save(self, conn: psycopg.Connection[Any]) -> None:
        """Write what is new, as the leader; what is over and written is forgotten."""
        for loss in list(self.all):
            over = loss.to_ms is not None
            if not loss.gap_ids and not (over and not loss.missed):
                few = loss.market_keys is not None and len(loss.market_keys) <= MANY
                rows = queries.open_gaps(
                    conn,
                    kinds=list(loss.kinds),
                    market_keys=sorted(loss.market_keys) if few and loss.market_keys else [None],
                    from_ms=loss.from_ms,
                    to_ms=loss.to_ms,
                    cause=loss.cause,
                    run_id=self.run_id,
                )
                loss.gap_ids = [gap_id for (gap_id,) in rows]
                loss.closed_in_database = over
            if over and loss.gap_ids and not loss.closed_in_database:
                filled_by = None if loss.missed else UNCHANGED
                queries.close_gaps(conn, gap_ids=loss.gap_ids, to_ms=loss.to_ms, filled_by=filled_by)
                loss.closed_in_database = True
            if over:
                self.all.remove(loss)
