"""Head follower: indexes block after block, and returns to the common ancestor when a branch is abandoned."""

from __future__ import annotations

from dataclasses import dataclass, field
from time import monotonic
from typing import TYPE_CHECKING, Any

import msgspec

from orchestration.settlement import reading
from orchestration.settlement.ranges import BatchSizer, Ranges, RecountResult
from orchestration.settlement.reading import Inconsistent
from orchestration.settlement.writer import FEED, BlockConflict, Writer, WriteResult
from sql.queries import settlement as queries

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from orchestration.settlement.reading import ChainSource
    from upstream.chain.contracts import Contract
    from upstream.chain.wire import Block, Heads

STEP_BLOCKS = 64
JUMP_BLOCKS = 1_000
BACK_BLOCKS = 64
SHORTER_CHAIN_WAIT_S = 30.0
CHECK_BLOCKS = 16
CHECK_BACK_BLOCKS = 60_000  # about a day; older blocks are left to the daily check
IDLE_LOGS = 5_000  # target size of a piece in spare time: the head does not wait long


class OtherChain(Exception):  # noqa: N818 (it is no fault of ours)
    """A block that was final is another one now: the endpoints belong to another chain than this database."""


@dataclass
class FollowStep:
    """Result of a step."""

    heads: Heads
    indexed: int
    written: WriteResult = field(default_factory=WriteResult)
    revoked: int | None = None
    """Fills revoked by a chain reorganisation."""
    depth: int = 0
    """How many of our blocks were abandoned."""
    checked: RecountResult = field(default_factory=RecountResult)
    newest_s: int | None = None
    """Timestamp of the newest block indexed, if there is a new one."""

    @property
    def behind(self) -> int:
        """Return the number of blocks still to be followed."""
        return max(self.heads.head - self.indexed, 0)

    @property
    def busy(self) -> bool:
        """Return whether there was, or is, work to do."""
        return self.behind > 0 or self.revoked is not None


class Follower:
    """Follows the head over the writer's connection. All its state is in the database: it may end at any instant."""

    def __init__(
        self,
        writer: Writer,
        source: ChainSource,
        contracts: tuple[Contract, ...],
        *,
        second: ChainSource | None = None,
        start: int | None = None,
        patience_s: float = SHORTER_CHAIN_WAIT_S,
        jump: int = JUMP_BLOCKS,
        check_blocks: int = CHECK_BLOCKS,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self._writer = writer
        self._conn = writer.conn
        self._source = source
        self._asked = (source,) if second is None else (source, second)
        self._contracts = contracts
        self._start = start
        self._patience_s = patience_s
        self._jump = jump
        self._check_blocks = check_blocks
        self._clock = clock
        self._shorter_since: float | None = None
        self._doubted = True  # a previous run may have met another chain
        self._ranges = Ranges(writer, source, contracts, second=second)
        self._filling, self._checking = BatchSizer(IDLE_LOGS), BatchSizer(IDLE_LOGS, check_blocks)

    def step(self) -> FollowStep:
        """Do one step: roll back, or index some new blocks; with nothing new, backfill and check."""
        heads = self._source.heads()
        indexed, floor = self._place(heads)
        if heads.head < indexed:
            return self._wait_for_longer_branch(heads, indexed, floor)
        self._shorter_since = None
        blocks = self._headers(indexed, min(heads.head, indexed + STEP_BLOCKS))
        if blocks is None:
            return self._roll_back(heads, indexed, floor)
        if self._doubted:
            self._doubted = False
            queries.mend_all(self._conn, kind="finalized_mismatch")
        if heads.head - indexed > self._jump and heads.finalized > indexed:
            # The newest first: the blocks in between are backfilled when there is time.
            queries.set_heads(self._conn, **_heads(heads), indexed=heads.finalized, detail="{}")
            return FollowStep(heads, heads.finalized)
        if blocks:
            return self._index(heads, indexed, blocks)
        queries.set_heads(self._conn, **_heads(heads), indexed=indexed, detail="{}")
        self._verify(heads, indexed, floor)
        return self._spare(FollowStep(heads, indexed))

    def _place(self, heads: Heads) -> tuple[int, int]:
        """Return the block up to which all is indexed, and the newest one that is certainly final."""
        held = queries.heads(self._conn, feed=FEED)
        if held is not None:
            _, _, indexed, detail = held
            return int(indexed), int(detail.get("verified", int(detail.get("start", 0)) - 1))
        start = heads.head if self._start is None else min(self._start, heads.head)
        indexed = start - 1
        detail = msgspec.json.encode({"start": start}).decode()
        with self._conn.transaction():
            queries.set_heads(self._conn, **_heads(heads), indexed=indexed, detail=detail)
            queries.recount_trades(self._conn, feed=FEED)
        return indexed, indexed

    def _headers(self, indexed: int, to: int) -> Sequence[Block] | None:
        """Return the headers after the last indexed block; None if they do not follow it."""
        tip = {number: bytes(hash_) for number, hash_, _ in self._stored(indexed, indexed)}
        if not tip:
            return reading.linked(self._source.blocks(indexed + 1, to)) if to > indexed else ()
        blocks = reading.linked(self._source.blocks(indexed, to))
        return blocks[1:] if blocks[0].hash == tip[indexed] else None

    def _index(self, heads: Heads, indexed: int, blocks: Sequence[Block]) -> FollowStep:
        batch = reading.at_the_head(self._source, self._contracts, blocks)
        try:
            written = self._writer.write(batch, heads=heads)
        except BlockConflict as fork:
            if fork.numbers[0] > heads.finalized:
                return self._rolled_back(heads, indexed, fork.numbers[0] - 1)
            checked = self._ranges.check(batch.from_block, batch.to_block, heads)
            return FollowStep(heads, indexed, checked=checked)
        return FollowStep(heads, batch.to_block, written, newest_s=blocks[-1].ts_s)

    # --- Reorganisations ---

    def _wait_for_longer_branch(self, heads: Heads, indexed: int, floor: int) -> FollowStep:
        """Wait a while: an endpoint may lag, and another branch is about to grow longer."""
        if heads.head < floor:
            raise Inconsistent(f"the head is block {heads.head}, but block {floor} was final already: endpoints lag")
        now = self._clock()
        if self._shorter_since is None:
            self._shorter_since = now
        if now - self._shorter_since < self._patience_s:
            return FollowStep(heads, indexed)
        self._shorter_since = None
        return self._roll_back(heads, indexed, floor)

    def _roll_back(self, heads: Heads, indexed: int, floor: int) -> FollowStep:
        """Find the common ancestor, and delete the blocks above it."""
        high = min(indexed, heads.head)
        while high >= max(floor, 0):
            low = max(high - BACK_BLOCKS + 1, floor, 0)
            theirs = {block.number: block.hash for block in reading.linked(self._source.blocks(low, high))}
            for number, hash_, _ in self._stored(low, high):
                if theirs.get(number) == bytes(hash_):
                    return self._rolled_back(heads, indexed, number)
                if number <= floor:
                    self._refuse(number, bytes(hash_), theirs.get(number))
            high = low - 1
        # No stored block down to the final one matches: all that was followed is above it.
        return self._rolled_back(heads, indexed, min(floor, heads.head))

    def _rolled_back(self, heads: Heads, indexed: int, ancestor: int) -> FollowStep:
        revoked = self._writer.roll_back(ancestor, heads)
        return FollowStep(heads, ancestor, revoked=revoked, depth=indexed - ancestor)

    def _refuse(self, number: int, ours: bytes, theirs: bytes | None) -> None:
        self._doubted = True
        their_hex = "" if theirs is None else theirs.hex()
        detail = msgspec.json.encode({"ours": ours.hex(), "theirs": their_hex}).decode()
        queries.note_incident(
            self._conn, kind="finalized_mismatch", subject=f"block {number}", mended=False, detail=detail
        )
        raise OtherChain(
            f"block {number} was final and has changed: is this the right chain? A database of another chain is not "
            "touched; give this one its own, or its endpoints"
        )

    def _verify(self, heads: Heads, indexed: int, floor: int) -> None:
        """Verify final blocks: all endpoints must have the same block as we do. One alone may be on a dead branch."""
        final = min(heads.finalized, indexed)
        if final - floor < self._check_blocks:
            return
        newest = next(iter(self._stored(floor + 1, final)), None)
        if newest is None:
            return
        number, ours = newest[0], bytes(newest[1])
        if all(source.blocks(number, number)[0].hash == ours for source in self._asked):
            detail = msgspec.json.encode({"verified": number}).decode()
            queries.remember_heads(self._conn, feed=FEED, detail=detail)

    def _stored(self, low: int, high: int) -> Any:
        return queries.blocks_between(self._conn, from_block=low, to_block=high)

    # --- Spare time ---

    def _spare(self, step: FollowStep) -> FollowStep:
        """Fill a piece of the highest hole, then recount a piece."""
        heads = step.heads
        *_, detail = queries.heads(self._conn, feed=FEED)
        start = max(int(detail.get("start", step.indexed + 1)), int(detail.get("floor", 0)))
        final = min(heads.finalized, step.indexed)
        if start <= final and (holes := list(queries.unindexed(self._conn, from_block=start, to_block=final))):
            low, high = holes[0]
            low = max(low, high - self._filling.blocks + 1)
            step.written = self._ranges.fill_piece(low, high)
            self._filling.took(high - low + 1, step.written.logs)
            return step
        lowest = max(final - CHECK_BACK_BLOCKS, 0)
        for first, last in queries.unchecked(self._conn, to_block=final):
            low = max(first, lowest)
            if last - low + 1 >= self._check_blocks:
                step.checked = self._ranges.check(low, min(last, low + self._checking.blocks - 1), heads)
                self._checking.took(step.checked.blocks, step.checked.logs)
                break
        return step


def _heads(heads: Heads) -> dict[str, Any]:
    return {"feed": FEED, "head": heads.head, "finalized": heads.finalized}
