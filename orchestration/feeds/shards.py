"""Shards: parts of a feed's markets, each followed by runs of its own; SQL has the same `shard_of` and `feed_of`."""

from __future__ import annotations

import math
import re
from typing import NamedTuple

MAX_SHARDS = 64

_HEX = re.compile(r"[0-9a-f]{7}\Z")


def shard_of(market_id: str, shards: int) -> int:
    """Return the number of the shard, from 1, that a market belongs to: by the last digits of its condition id."""
    digits = _HEX.search(market_id)
    return int(digits[0], 16) % shards + 1 if digits else 1


class Shard(NamedTuple):
    """One of so many parts of a feed's markets."""

    number: int = 1
    of: int = 1

    @classmethod
    def parse(cls, text: str) -> Shard:
        """Parse `2/4`, or `2 of 4` as `str` writes it; raise ValueError for anything else."""
        number, of = map(int, re.split("/| of ", text))
        if not 1 <= number <= of <= MAX_SHARDS:
            raise ValueError(f"{text} is no shard of at most {MAX_SHARDS}")
        return cls(number, of)

    @classmethod
    def all(cls, shards: int) -> list[Shard]:
        """Return every shard of so many."""
        return [cls(number, shards) for number in range(1, shards + 1)]

    def __str__(self) -> str:
        return f"{self.number} of {self.of}"

    def columns(self) -> dict[str, int]:
        """Return the arguments that queries take."""
        return {"shard": self.number, "shards": self.of}

    def feed(self, family: str) -> str:
        """Return the name of the feed of this shard: the family's own while it is the only one."""
        return family if self.of == 1 else f"{family}/{self.number}of{self.of}"

    def holds(self, market_id: str) -> bool:
        """Return whether a market belongs to this shard."""
        return self.of == 1 or shard_of(market_id, self.of) == self.number

    def covers(self, other: Shard) -> bool:
        """Return whether every market of another shard belongs to this one."""
        return other.of % self.of == 0 and (other.number - self.number) % self.of == 0

    def meet(self, other: Shard) -> Shard:
        """Return the shard, of a larger number, of the markets that belong to both; there must be some."""
        of = math.lcm(self.of, other.of)
        return next(both for both in self.all(of) if self.covers(both) and other.covers(both))


WHOLE = Shard()
