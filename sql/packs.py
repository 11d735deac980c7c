"""Book events of one outcome in few bytes: a full book, then its changes, in columns that compress well.

The columnstore does the same on the Community licence. Events are ordered by instant and `seq`; applying them in this
order gives the book of any moment. A snapshot is stored as the levels in which it differs from the book before it, so
most of those that the exchange sends after trades cost a byte or two. The exchange's hashes are noise to a compressor:
they are stored raw, twenty bytes each. `event_id` is not stored: it is the digest of the rest.
"""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    Ints = NDArray[np.int64]

MAX_EVENTS = 1000  # events of a pack: read and applied in half a millisecond
VERSION = 1

_HEAD = struct.Struct("<BBII")  # version, whether a full book came before, its levels, bytes of the columns
_COLUMN = struct.Struct("<IqqB")  # values, the first one, the common divisor of all others, bytes of each
_ORDINAL_BITS = 20
_SAME = 255  # the hash of the event before

Levels = dict[int, int]  # size by key, in micro-units


class BookEvent(NamedTuple):
    """A row of `book_events`, timestamp in microseconds; a change of a level, or with `side` None a full book."""

    ts: int
    seq: int
    side: int | None
    price: int | None
    size: int | None
    bid_prices: Sequence[int] | None
    bid_sizes: Sequence[int] | None
    ask_prices: Sequence[int] | None
    ask_sizes: Sequence[int] | None
    hash: bytes | None


def key(side: int, price: int) -> int:
    """Encode a level's side and price as one number."""
    return price << 1 | (side < 0)


def whole(event: BookEvent) -> Levels:
    """Return the levels of a full book; the last value counts if one is named twice."""
    bids = zip(event.bid_prices or (), event.bid_sizes or (), strict=True)
    asks = zip(event.ask_prices or (), event.ask_sizes or (), strict=True)
    levels = {price << 1: size for price, size in bids if size}
    levels.update((price << 1 | 1, size) for price, size in asks if size)
    return levels


@dataclass
class Pack:
    """Some events of one outcome, unpacked."""

    known: bool  # whether `base` is a full book; otherwise the first snapshot starts one
    base: Levels
    ts: Ints  # microseconds
    seq: Ints
    counts: Ints  # levels of each event; of a snapshot, those that differ: -1 for a change, which is always one
    ends: Ints  # end of each event's levels in the two columns below
    keys: Ints
    sizes: Ints
    lengths: bytes  # of the hashes, concatenated in `noise`
    noise: bytes

    def __len__(self) -> int:
        return len(self.ts)

    def upto(self, ts: int) -> int:
        """Count the events up to an instant."""
        return int(np.searchsorted(self.ts, ts, side="right"))

    def known_at(self, events: int) -> bool:
        """Return whether the book after a number of events is complete."""
        return self.known or bool((self.counts[:events] >= 0).any())

    @cached_property
    def hashes(self) -> list[bytes | None]:
        """Return the exchange's digest of the book after each event."""
        found: list[bytes | None] = []
        at = 0
        for length in self.lengths:
            if length == _SAME:
                found.append(found[-1])
            else:
                found.append(self.noise[at : at + length] or None)
                at += length
        return found

    def hash(self, event: int) -> bytes | None:
        """Return the hash of one event without decoding the others."""
        own = len(self.lengths[: event + 1].rstrip(bytes([_SAME])))  # simultaneous changes share one
        before = self.lengths[: own - 1].replace(bytes([_SAME]), b"")
        start = sum(before)
        return self.noise[start : start + self.lengths[own - 1]] or None

    def book(self, events: int) -> Levels:
        """Build the book after a number of its events."""
        end = int(self.ends[events - 1]) if events else 0
        levels = dict(self.base)
        levels.update(zip(self.keys[:end].tolist(), self.sizes[:end].tolist(), strict=True))
        return {name: size for name, size in levels.items() if size}

    def after(self) -> tuple[Levels, bool]:
        """Return the levels after all events, and whether they are a full book."""
        return self.book(len(self)), self.known_at(len(self))

    def events(self, *, since: int = 0, upto: int | None = None) -> Iterator[BookEvent]:
        """Yield the rows, snapshots best first; only those from index `since` on, before index `upto`."""
        levels, start = dict(self.base), 0
        keys, sizes = self.keys.tolist(), self.sizes.tolist()
        columns = zip(
            self.ts.tolist(), self.seq.tolist(), self.counts.tolist(), self.ends.tolist(), self.hashes, strict=True
        )
        for at, (ts, seq, count, end, hash_) in enumerate(islice(columns, upto)):
            for level in range(start, end):
                if sizes[level]:
                    levels[keys[level]] = sizes[level]
                else:
                    levels.pop(keys[level], None)
            if at < since:
                pass
            elif count < 0:
                name = keys[start]
                yield BookEvent(ts, seq, -1 if name & 1 else 1, name >> 1, sizes[start], None, None, None, None, hash_)
            else:
                yield BookEvent(ts, seq, None, None, None, *sides(levels), hash_)
            start = end


def sides(levels: Levels) -> tuple[list[int], list[int], list[int], list[int]]:
    """Return bid prices, bid sizes, ask prices, ask sizes; best first."""
    bids = sorted((name for name in levels if not name & 1), reverse=True)
    asks = sorted(name for name in levels if name & 1)
    return (
        [name >> 1 for name in bids],
        [levels[name] for name in bids],
        [name >> 1 for name in asks],
        [levels[name] for name in asks],
    )


def pack(events: Sequence[BookEvent], base: Levels, *, known: bool) -> tuple[bytes, Levels]:
    """Pack events on top of the levels before them (`known`: a full book); return pack and levels after them."""
    levels = dict(base)
    names, totals, counts = list(base), list(base.values()), []
    for event in events:
        if event.side is None:
            after = whole(event)
            differing = [name for name, size in after.items() if levels.get(name) != size]
            gone = [name for name in levels if name not in after]
            names += differing + gone
            totals += [*map(after.__getitem__, differing), *(0 for _ in gone)]
            counts.append(len(differing) + len(gone))
            levels = after
        else:
            assert event.price is not None
            assert event.size is not None
            name = event.price << 1 | (event.side < 0)
            names.append(name)
            totals.append(event.size)
            counts.append(-1)
            if event.size:
                levels[name] = event.size
            else:
                levels.pop(name, None)
    ts = np.fromiter((event.ts for event in events), np.int64, len(events))
    seq = np.fromiter((event.seq for event in events), np.int64, len(events))
    lengths, hashes = _hashes(events)
    columns = zlib.compress(
        b"".join(
            (
                _column(np.diff(ts, prepend=ts[:1]), int(ts[0])),
                _column(_folded(seq - (ts // 1000 << _ORDINAL_BITS))),
                _column(np.asarray(counts, np.int64) + 1),
                _column(np.asarray(names, np.int64)),
                _column(np.asarray(totals, np.int64)),
                bytes(lengths),
            )
        ),
        9,
    )
    return _HEAD.pack(VERSION, known, len(base), len(columns)) + columns + hashes, levels


def unpack(data: bytes) -> Pack:
    """Decode a pack."""
    version, known, based, size = _HEAD.unpack_from(data)
    if version != VERSION:
        raise ValueError(f"a pack of version {version}; this release reads {VERSION}")
    columns, at = zlib.decompress(data[_HEAD.size : _HEAD.size + size]), 0
    (steps, first, at) = _values(columns, at)
    (folded, _, at) = _values(columns, at)
    (counts, _, at) = _values(columns, at)
    (keys, _, at) = _values(columns, at)
    (sizes, _, at) = _values(columns, at)
    steps = steps.copy()
    steps[0] += first
    ts = np.cumsum(steps)
    counts = counts - 1
    return Pack(
        known=bool(known),
        base=dict(zip(keys[:based].tolist(), sizes[:based].tolist(), strict=True)),
        ts=ts,
        seq=((folded >> 1) ^ -(folded & 1)) + (ts // 1000 << _ORDINAL_BITS),
        counts=counts,
        ends=np.cumsum(np.where(counts < 0, 1, counts)),
        keys=keys[based:],
        sizes=sizes[based:],
        lengths=columns[at:],
        noise=data[_HEAD.size + size :],
    )


def _column(values: Ints, first: int = 0) -> bytes:
    """Encode a column of integers from 0 up: over their common factors, the low bytes of all, then the next."""
    common = int(np.gcd.reduce(values)) if len(values) else 0
    reduced = values // (common or 1)
    width = (int(reduced.max(initial=0)).bit_length() + 7) // 8
    planes = reduced.astype("<u8").view(np.uint8).reshape(-1, 8)[:, :width]
    return _COLUMN.pack(len(values), first, common or 1, width) + np.ascontiguousarray(planes.T).tobytes()


def _values(data: bytes, at: int) -> tuple[Ints, int, int]:
    """Decode a column; return it with its extra value, and where the next one begins."""
    count, first, common, width = _COLUMN.unpack_from(data, at)
    at += _COLUMN.size
    end = at + count * width
    whole_ = np.zeros((count, 8), np.uint8)
    whole_[:, :width] = np.frombuffer(data, np.uint8, count * width, at).reshape(width, count).T
    values: Ints = whole_.view("<u8").reshape(count).astype(np.int64) * common
    return values, first, end


def _folded(values: Ints) -> Ints:
    """Map signed to unsigned numbers (zigzag)."""
    return (values << 1) ^ (values >> 63)


def _hashes(events: Sequence[BookEvent]) -> tuple[list[int], bytes]:
    lengths, kept = [], []
    before: bytes | None = None
    for event in events:
        if event.hash and event.hash == before:
            lengths.append(_SAME)
        else:
            lengths.append(len(event.hash or b""))
            kept.append(event.hash or b"")
        before = event.hash
    return lengths, b"".join(kept)
