"""Counters of a settlement feed run: observations, the lease's detail, the stage's clock."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import msgspec

from orchestration.settlement.ranges import RecountResult
from orchestration.settlement.writer import ANOMALIES, FEED, UNPUBLISHED, WriteResult
from sql.queries import feed as feed_queries
from sql.queries import settlement as queries
from upstream.transport.errors import UpstreamError
from upstream.transport.reach import MAX_REASON, reach_failure

if TYPE_CHECKING:
    import psycopg

    from orchestration.settlement.follow import FollowStep
    from upstream.chain.wire import Heads


class SettlementFigures:
    """Counters written by the working thread and read by others."""

    def __init__(self) -> None:
        self.role = "standby"
        self.resolved = 0
        self._heads: Heads | None = None
        self._indexed: int | None = None
        self._written, self._since = WriteResult(), WriteResult()
        self._checked = RecountResult()
        self._reorgs = self._revoked = self._deepest = self._faults = 0
        self._fault: str | None = None
        self._hindrance: dict[str, Any] = {}

    def record_heads(self, heads: Heads) -> None:
        """Record the chain's heads."""
        self._heads = heads
        self._fault = None
        self._hindrance = {}

    def record_step(self, step: FollowStep) -> None:
        """Record a step."""
        self.record_heads(step.heads)
        self._indexed = step.indexed
        self._written.add(step.written)
        self._since.add(step.written)
        self._checked.add(step.checked)
        if step.revoked is not None:
            self._reorgs += 1
            self._revoked += step.revoked
            self._deepest = max(self._deepest, step.depth)

    def failed(self, fault: Exception) -> None:
        """Record a fault; it is shown until something succeeds."""
        self._faults += 1
        self._fault = f"{type(fault).__name__}: {fault}"[:500]
        reason = reach_failure(fault) if isinstance(fault, UpstreamError) else str(fault)[:MAX_REASON]
        if self._hindrance.get("reason") != reason:
            self._hindrance = {"reason": reason, "since": int(time.time())}

    def standing(self) -> dict[str, Any]:
        """Return the current state."""
        state: dict[str, Any] = {"faults": self._faults}
        if self._heads is not None:
            state |= {"head": self._heads.head, "finalized": self._heads.finalized}
        if self._indexed is not None:
            state |= {"indexed": self._indexed}
            if self._heads is not None:
                state["behind"] = max(self._heads.head - self._indexed, 0)
                state["provisional"] = max(self._indexed - self._heads.finalized, 0)
        if self._fault is not None:
            state["fault"] = self._fault
        return state

    def totals(self) -> dict[str, Any]:
        """Return the totals of the run."""
        return {
            "role": self.role,
            **self.standing(),
            **self._written.figures(),
            "reorgs": self._reorgs,
            "deepest_reorg": self._deepest,
            "revoked": self._revoked,
            "resolved": self.resolved,
            "checked_blocks": self._checked.blocks,
            "logs_found_missing": self._checked.missing,
            "logs_withheld": self._checked.withheld,
        }

    def observation(self) -> dict[str, Any]:
        """Return the totals, and the difference since the last call."""
        since, self._since = self._since, WriteResult()
        return {**self.totals(), **{f"{name}_since": count for name, count in since.figures().items()}}

    def beat(self, conn: psycopg.Connection[Any], newest_s: int | None) -> None:
        """Touch the stage's clock."""
        opened, lately = queries.incidents(conn)
        held = queries.heads(conn, feed=FEED)
        detail = {
            **self._hindrance,
            **self.standing(),
            **{name: int(held[3].get(name, 0)) if held else 0 for name in (*ANOMALIES, UNPUBLISHED)},
            "incidents_open": opened,
            "incidents_24h": lately,
        }
        newest = None if newest_s is None else datetime.fromtimestamp(newest_s, UTC)
        feed_queries.beat(conn, stage="settlement", last_data_at=newest, detail=msgspec.json.encode(detail).decode())
