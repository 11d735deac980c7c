"""A Bloom filter of the valid keys' digests: tells without a query that a key is not valid."""

from __future__ import annotations

import struct

BITS = 1 << 23  # one megabyte; of 100,000 keys, one unknown key in 200,000 passes, of 1,000,000 one in 48
_places = struct.Struct(">4I").unpack_from


class KeyFilter:
    """A set of digests that never misses a member; a few others pass. A digest is uniform, so it is its own hash."""

    def __init__(self) -> None:
        self._bits = bytearray(BITS // 8)

    def add(self, digest: bytes) -> None:
        """Add a digest."""
        for place in _places(digest):
            self._bits[place % BITS >> 3] |= 1 << (place & 7)

    def __contains__(self, digest: bytes) -> bool:
        """Return whether the digest may be a member."""
        return all(self._bits[place % BITS >> 3] & 1 << (place & 7) for place in _places(digest))
