"""Progress of a feed over changes of its number of shards: how far each market is committed, and whose turn it is."""

from collections import defaultdict
from collections.abc import Iterable
from typing import Any, NamedTuple

import psycopg

from orchestration.feeds.shards import Shard, shard_of
from sql.queries import feed as queries

Position = tuple[int, int]  # when a leader took the lead (ms; 0: unknown), and up to when what it received is committed
NOTHING = (0, 0)
NOBODY = (NOTHING, Shard())


class Progress:
    """Positions of the last leader of each shard, of every number of shards that there was."""

    def __init__(self, rows: Iterable[tuple[int, int, int, int]]) -> None:
        """Take rows of shard, number of shards, and position."""
        self._positions: dict[int, dict[int, Position]] = defaultdict(dict)
        for number, shards, led_ms, written_ms in rows:
            held = self._positions[shards]
            held[number] = max((led_ms, written_ms), held.get(number, NOTHING))

    def of(self, market_id: str) -> tuple[Position, Shard]:
        """Return the position of the last leader that held a market, and its shard."""
        return max(
            (
                (held[number], Shard(number, shards))
                for shards, held in self._positions.items()
                if (number := shard_of(market_id, shards)) in held
            ),
            default=NOBODY,
        )

    def least_ms(self, shard: Shard) -> int:
        """Return up to when everything of a shard is committed for certain; 0: nothing may be.

        The number of shards of whichever leader was last tells; of its shards, those that never led count as 0.
        """
        last = max(self._positions, key=lambda shards: max(self._positions[shards].values()), default=shard.of)
        held = self._positions.get(last, {})
        numbers = [shard.number] if last == shard.of else range(1, last + 1)
        return min(held.get(number, NOTHING)[1] for number in numbers)


def settled_ms(conn: psycopg.Connection[Any], family: str, shard: Shard) -> int | None:
    """Return up to when all shards have committed, if gaps of other numbers of shards are for this one to handle.

    They are for the first. None: they are not, or a shard has no leader with every book.
    """
    settled: int | None = queries.settled_ms(conn, family=family, shards=shard.of) if shard.number == 1 else None
    return settled


class Turn(NamedTuple):
    """Whether a run may lead, and whether it has to leave, by the number of shards that it belongs to."""

    may_lead: bool
    over: bool
    others_lead: bool = False  # a run of another number leads, or did some seconds ago
    wanted: int | None = None  # the number of shards there is to be


def turn(shards: int, wanted: int | None, *, ready: bool, others: bool, others_lead: bool = False) -> Turn:
    """Return whether it is the turn of runs of one number of shards; `others` of another number are alive.

    The wanted ones lead once a run of each is `ready`, or nobody else is there; until then the present ones do, and
    after that they leave. The lock decides in the end: a wanted run that tries too early would only be in the way.
    """
    if wanted == shards:
        may_lead = ready or not others
    elif wanted is None:
        may_lead = not others
    else:
        may_lead = not ready
    over = ready and wanted != shards
    return Turn(may_lead=may_lead, over=over, others_lead=others_lead, wanted=wanted)
