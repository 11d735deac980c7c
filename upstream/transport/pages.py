"""Pagination by cursor: pages with what was refused on them, and a walk that ends loudly where pages repeat."""

from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

import msgspec

from upstream.transport.errors import Incomplete, RefusedObject

MAX_PAGES = 100_000
MAX_EMPTY_PAGES = 3

T = TypeVar("T")


class CursorPage(msgspec.Struct, Generic[T]):
    """One page: readable items, refused ones, and the cursor of the next page."""

    items: list[T]
    refused: list[RefusedObject]
    skipped: int
    """Valid objects that are not kept, for a reason that the client states."""
    next_cursor: str | None
    """None after the last page; opaque, and valid for resuming later."""


def walk(
    page_after: Callable[[str | None], CursorPage[T]], cursor: str | None, identity: Callable[[T], str]
) -> Iterator[CursorPage[T]]:
    """Follow cursors to the end; raise Incomplete as soon as cursors or pages repeat.

    A page repeats if it came before, or if most of its items are most of the first page's or of those of the page
    before it: to an invalid cursor some exchanges answer with the first page again, to which new items may have been
    added meanwhile.
    """
    seen = {cursor}
    seen_pages: set[int] = set()
    first: frozenset[str] = frozenset()
    previous: frozenset[str] = frozenset()
    empty = 0
    for _ in range(MAX_PAGES):
        page = page_after(cursor)
        ids = tuple(identity(item) for item in page.items)
        if ids and (hash(ids) in seen_pages or _mostly(first, ids) or _mostly(previous, ids)):
            raise Incomplete(f"the page after cursor {cursor!r:.80} came before")
        yield page
        if page.next_cursor is None:
            return
        if page.next_cursor in seen:
            raise Incomplete(f"cursor {page.next_cursor!r:.80} came again")
        empty = 0 if page.items or page.refused or page.skipped else empty + 1
        if empty >= MAX_EMPTY_PAGES:
            raise Incomplete(f"{empty} empty pages, and still a further cursor")
        seen.add(page.next_cursor)
        seen_pages.add(hash(ids))
        previous = frozenset(ids) or previous
        first = first or previous
        cursor = page.next_cursor
    raise Incomplete(f"more than {MAX_PAGES} pages")


def _mostly(known: frozenset[str], ids: tuple[str, ...]) -> bool:
    return 2 * len(known.intersection(ids)) > max(len(known), len(ids))
