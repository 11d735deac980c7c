"""Huge pages for state that takes gigabytes and stays: with small ones, each access may miss the address cache."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

SIZE = 2 << 20  # of a huge page on x86-64, and with pages of 4 KB on arm64
MADV_COLLAPSE = 25  # Linux 6.1; see madvise(2)
MAPS = Path("/proc/self/maps")


def collapse() -> None:
    """Move this process's private memory into huge pages, as far as the kernel can; an older one leaves it as it is.

    Takes seconds for a gigabyte, in which other threads run. Memory that is allocated later is not moved.
    """
    if not MAPS.exists():  # not Linux
        return
    madvise = ctypes.CDLL(None, use_errno=True).madvise
    madvise.argtypes = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int
    for begin, end in regions(MAPS.read_text().splitlines()):
        madvise(begin, end - begin, MADV_COLLAPSE)  # what cannot be moved stays as it is


def regions(maps: Iterable[str]) -> Iterator[tuple[int, int]]:
    """Yield where whole huge pages fit into private memory that may be written, from the lines of /proc/self/maps."""
    for line in maps:
        span, rights, _, _, inode, *name = line.split(maxsplit=5)
        if not (rights.startswith("rw") and rights.endswith("p") and inode == "0"):
            continue
        if name and name[0] != "[heap]" and not name[0].startswith("[anon"):
            continue
        first, last = (int(edge, 16) for edge in span.split("-"))
        begin, end = -(-first // SIZE) * SIZE, last // SIZE * SIZE
        if begin < end:
            yield begin, end
