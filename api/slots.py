"""What each key has left to spend on this host: one slot of shared memory a key, the same for all workers."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, NamedTuple

from api.shared import Shared

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager

PROBES = 8  # places in which a key may be
_SHAPE = struct.Struct("=10q")


class Slot(NamedTuple):
    """One key's state; times are Unix, months named by their first second."""

    key_id: int = 0
    month: int = 0
    left: int = 0  # leased from the database and not spent
    used: int = 0  # what the database had at the latest lease, that lease included
    second: int = 0  # the burst's window
    spent: int = 0  # in that window
    lease_id: int = 0  # a lease under way; asked for again by another if its asker died
    lease_until_ms: int = 0
    dry_until_ms: int = 0  # the database had no more: not asked again before
    known: int = 0  # whether the month's account has been read


class Slots:
    """The slots of one host."""

    def __init__(self, count: int = 1 << 16) -> None:
        self._count = count
        self._shared = Shared(count * _SHAPE.size)

    def locked(self) -> AbstractContextManager[None]:
        """Keep the other workers out."""
        return self._shared.locked()

    def find(self, key_id: int) -> tuple[int, Slot]:
        """Give a key's place and slot. When all its places are taken, the longest unused gives way. Under the lock."""
        oldest, freed = 0, Slot()
        for probe in range(PROBES):
            place = (key_id + probe) % self._count * _SHAPE.size
            slot = self.read(place)
            if slot.key_id == key_id:
                return place, slot
            if not slot.key_id:
                return place, Slot(key_id)
            if not probe or slot.second < freed.second:
                oldest, freed = place, slot
        return oldest, Slot(key_id)

    def read(self, place: int) -> Slot:
        """Give the slot at a place."""
        return Slot(*_SHAPE.unpack_from(self._shared.memory, place))

    def write(self, place: int, slot: Slot) -> None:
        """Store a slot at its place."""
        _SHAPE.pack_into(self._shared.memory, place, *slot)

    def unspent(self) -> Iterator[tuple[int, Slot]]:
        """Give every slot with credits left, and its place."""
        for place in range(0, self._count * _SHAPE.size, _SHAPE.size):
            if self._shared.memory[place : place + 8] != EMPTY and (slot := self.read(place)).left:
                yield place, slot


EMPTY = bytes(8)
