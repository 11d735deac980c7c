"""Book events of one outcome in few bytes: a full book, then its changes, in columns that compress well.

The columnstore does the same on the Community licence. Events are ordered by instant and `seq`; applying them in this
order gives the book of any moment. A snapshot is stored as the levels in which it differs from the book before it, so
most of those that the exchange sends after trades cost a byte or two. The exchange's hashes are noise to a compressor:
twenty bytes each, unless they can be computed again from the book (`sql/book_hashes.py`). `event_id` is not stored: it
is the digest of the rest.
"""

from __future__ import annotations

import json
import struct
import zlib
from bisect import bisect_right
from dataclasses import dataclass
from operator import itemgetter
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import zstandard

from sql.book_hashes import MAX_LAG_MS, BookText, book_hash

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from sql.book_hashes import HashSearch

    Ints = NDArray[np.int64]

MAX_EVENTS = 1000  # events of a pack: read and applied in half a millisecond
VERSION = 2
ZLIB_VERSION = 1  # of earlier releases: compressed by zlib, no hash is computed
LEVEL = 12  # of zstd; 19 takes three times as long and saves a hundredth

_HEAD = struct.Struct("<BBII")  # version, whether a full book came before, its levels, bytes of the columns
_COLUMN = struct.Struct("<IqqB")  # values, the first one, the common divisor of all others, bytes of each
_ORDINAL_BITS = 20
_ZLIB_SAME = 255  # `ZLIB_VERSION` has a byte for each hash: its length, or this for `_SAME`
_SAME = 0  # a hash is that of the event before
_COMPUTED = 1  # plus milliseconds: it is computed from the book, so long before the event's instant
_STORED = _COMPUTED + MAX_LAG_MS + 1  # plus bytes: it is stored

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
    kinds: Ints  # of the hashes: `_SAME`, `_COMPUTED` or `_STORED`
    noise: bytes  # those stored
    head: str = ""  # what computed hashes are computed from, beside the book
    fields: Sequence[tuple[int, str]] = ()  # each from an event on

    def __len__(self) -> int:
        return len(self.ts)

    def upto(self, ts: int) -> int:
        """Count the events up to an instant."""
        return int(np.searchsorted(self.ts, ts, side="right"))

    def known_at(self, events: int) -> bool:
        """Return whether the book after a number of events is complete."""
        return self.known or bool((self.counts[:events] >= 0).any())

    @property
    def hashes(self) -> list[bytes | None]:
        """Return the exchange's digest of the book after each event."""
        return self._hashes(0, len(self))

    def hash(self, event: int) -> bytes | None:
        """Return the hash of one event without computing the others."""
        return self._hashes(event, event + 1)[0]

    def _hashes(self, since: int, upto: int) -> list[bytes | None]:
        """Return the hashes of some events. Simultaneous changes share one: that of the book after the last of them."""
        kinds = self.kinds.tolist()
        first = since
        while first and kinds[first] == _SAME:
            first -= 1
        at = sum(kind - _STORED for kind in kinds[:first] if kind >= _STORED)
        text: BookText | None = None
        applied = 0
        found: list[bytes | None] = []
        while first < upto:
            kind, end = kinds[first], first + 1
            while end < len(kinds) and kinds[end] == _SAME:
                end += 1
            if kind >= _STORED:
                hash_ = self.noise[at : at + kind - _STORED] or None
                at += kind - _STORED
            else:
                if text is None:
                    text = BookText(self.book(end))
                else:
                    levels = slice(int(self.ends[applied - 1]), int(self.ends[end - 1]))
                    for name, size in zip(self.keys[levels].tolist(), self.sizes[levels].tolist(), strict=True):
                        text.set(name, size)
                applied = end
                fields = self.fields[bisect_right(self.fields, first, key=itemgetter(0)) - 1][1]
                hash_ = book_hash(text, self.head, int(self.ts[end - 1]) // 1000 - (kind - _COMPUTED), fields)
            found += [hash_] * (min(end, upto) - max(first, since))
            first = end
        return found

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
        upto = len(self) if upto is None else min(upto, len(self))
        hashes = [None] * min(since, upto) + self._hashes(since, upto)
        columns = zip(self.ts.tolist(), self.seq.tolist(), self.counts.tolist(), self.ends.tolist(), strict=True)
        for at, ((ts, seq, count, end), hash_) in enumerate(zip(columns, hashes, strict=False)):
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


def pack(
    events: Sequence[BookEvent], base: Levels, *, known: bool, search: HashSearch | None = None
) -> tuple[bytes, Levels]:
    """Pack events on top of the levels before them (`known`: a full book); return pack and levels after them.

    `search`: finds the hashes that need not be stored.
    """
    levels = dict(base)
    names, totals, counts = list(base), list(base.values()), []
    hashes = _Hashes(base, search, known=known)
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
        hashes.add(event, levels)
    hashes.end()
    ts = np.fromiter((event.ts for event in events), np.int64, len(events))
    seq = np.fromiter((event.seq for event in events), np.int64, len(events))
    columns = zstandard.ZstdCompressor(level=LEVEL).compress(
        b"".join(
            (
                _column(np.diff(ts, prepend=ts[:1]), int(ts[0])),
                _column(_folded(seq - (ts // 1000 << _ORDINAL_BITS))),
                _column(np.asarray(counts, np.int64) + 1),
                _column(np.asarray(names, np.int64)),
                _column(np.asarray(totals, np.int64)),
                _column(np.asarray(hashes.kinds, np.int64)),
                json.dumps([hashes.head, hashes.fields], separators=(",", ":")).encode() if hashes.fields else b"",
            )
        )
    )
    return _HEAD.pack(VERSION, known, len(base), len(columns)) + columns + b"".join(hashes.kept), levels


def unpack(data: bytes) -> Pack:
    """Decode a pack."""
    version, known, based, size = _HEAD.unpack_from(data)
    if version not in {ZLIB_VERSION, VERSION}:
        raise ValueError(f"a pack of version {version}; this release reads up to {VERSION}")
    compressed = data[_HEAD.size : _HEAD.size + size]
    columns = zlib.decompress(compressed) if version == ZLIB_VERSION else zstandard.decompress(compressed)
    at = 0
    (steps, first, at) = _values(columns, at)
    (folded, _, at) = _values(columns, at)
    (counts, _, at) = _values(columns, at)
    (keys, _, at) = _values(columns, at)
    (sizes, _, at) = _values(columns, at)
    steps = steps.copy()
    steps[0] += first
    ts = np.cumsum(steps)
    counts = counts - 1
    if version == ZLIB_VERSION:
        lengths = np.frombuffer(columns, np.uint8, offset=at).astype(np.int64)
        kinds, at = np.where(lengths == _ZLIB_SAME, _SAME, _STORED + lengths), len(columns)
    else:
        (kinds, _, at) = _values(columns, at)
    head, fields = json.loads(columns[at:]) if at < len(columns) else ("", [])
    return Pack(
        known=bool(known),
        base=dict(zip(keys[:based].tolist(), sizes[:based].tolist(), strict=True)),
        ts=ts,
        seq=((folded >> 1) ^ -(folded & 1)) + (ts // 1000 << _ORDINAL_BITS),
        counts=counts,
        ends=np.cumsum(np.where(counts < 0, 1, counts)),
        keys=keys[based:],
        sizes=sizes[based:],
        kinds=kinds,
        noise=data[_HEAD.size + size :],
        head=head,
        fields=fields,
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


class _Hashes:
    """The hashes of a pack's events: whether each is stored or computed."""

    def __init__(self, base: Levels, search: HashSearch | None, *, known: bool) -> None:
        self.kinds: list[int] = []
        self.kept: list[bytes] = []
        self.head = search.head if search else ""
        self.fields: list[tuple[int, str]] = []
        self._search = None if search and search.hopeless else search
        self._whole = False
        self._text = BookText(base) if self._search and known else None
        self._run: BookEvent | None = None  # the last event with the current hash
        self._first = 0  # of the events with it

    def add(self, event: BookEvent, levels: Levels) -> None:
        """Add an event, and the levels after it."""
        if self._run is not None and event.hash and event.hash == self._run.hash:
            self.kinds.append(_SAME)
        else:
            self.end()
            self._first = len(self.kinds)
            self.kinds.append(_STORED)
        self._run, self._whole = event, event.side is None
        if self._search is None:
            return
        if event.side is None:
            self._text = BookText(levels)
        elif self._text is not None:
            assert event.price is not None
            self._text.set(key(event.side, event.price), event.size or 0)

    def end(self) -> None:
        """End the events that share a hash."""
        if self._run is None or not self._run.hash:
            return
        hash_, search = self._run.hash, self._search
        if search and self._text and search.find(self._text, self._run.ts // 1000, hash_, whole=self._whole):
            if not self.fields or self.fields[-1][1] != search.fields:
                self.fields.append((self._first, search.fields))
            self.kinds[self._first] = _COMPUTED + search.lag_ms
        else:
            self.kinds[self._first] = _STORED + len(hash_)
            self.kept.append(hash_)
            if search and search.hopeless:
                self._search = self._text = None
