"""Pagination in the exchange's formats: keyset cursors, offsets, and the order book API's base64 numbers."""

from __future__ import annotations

import base64
import json
from heapq import merge
from itertools import islice
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from upstream.sandbox.common.answers import RefusedError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from starlette.datastructures import QueryParams

Item = TypeVar("Item")

END = "LTE="  # base64 of -1: the order book API's last cursor


def invalid(message: str) -> RefusedError:
    """Return a 422 error with the exchange's text."""
    return RefusedError(422, {"type": "validation error", "error": message})


def whole(query: QueryParams, name: str, default: int, most: int | None = None) -> int:
    """Return a non-negative integer parameter; values above the maximum are reduced to it."""
    given = query.get(name)
    if given is None or not given:
        return default
    if not given.isdecimal():
        raise invalid(f"{name} is invalid")
    return int(given) if most is None else min(int(given), most)


def flag(query: QueryParams, name: str) -> bool | None:
    """Return `true` or `false` as a bool; None when not given."""
    given = query.get(name)
    if given is None or not given:
        return None
    if given.lower() not in ("true", "false", "1", "0"):
        raise invalid(f"{name} is invalid")
    return given.lower() in ("true", "1")


def several(query: QueryParams, name: str) -> list[str]:
    """Return a repeated key, with or without brackets, or a comma list."""
    given = query.getlist(name) + query.getlist(f"{name}[]")
    return [part for value in given for part in value.split(",") if part]


Key = tuple[Any, ...]


class Sought(Generic[Item]):
    """What a query finds, in the order of `key`, which must be unique: `found`, and those of the `quiet` numbers.

    The quiet ones are in ascending order, and made and tested only as far as a page needs them.
    """

    def __init__(
        self,
        found: Iterable[Item],
        key: Callable[[Item], Key],
        *,
        descending: bool,
        quiet: Sequence[int] = (),
        make: Callable[[int], Item],
        wanted: Callable[[Item], bool],
    ) -> None:
        self._found = sorted(found, key=key, reverse=descending)
        self._key, self._descending = key, descending
        self._quiet = quiet[::-1] if descending else quiet
        self._make, self._wanted = make, wanted

    def page(self, cursor: str | None, limit: int) -> tuple[list[Item], str | None]:
        """Return the page after a cursor, and the next cursor."""
        found, quiet = self._found, self._quiet
        if cursor:
            last = _read_key(cursor)

            def passed(item: Item) -> bool:
                return self._key(item) >= last if self._descending else self._key(item) <= last

            found = found[_first_not(found, passed) :]
            quiet = quiet[_first_not(quiet, lambda number: passed(self._make(number))) :]
        page = list(islice(self._merged(found, quiet), limit + 1))
        more = len(page) > limit
        page = page[:limit]
        return page, _write_key(self._key(page[-1])) if more and page else None

    def part(self, start: int, limit: int) -> list[Item]:
        """Return the page from an offset."""
        return list(islice(self._merged(self._found, self._quiet), start, start + limit))

    def _merged(self, found: list[Item], quiet: Sequence[int]) -> Iterable[Item]:
        made = filter(self._wanted, map(self._make, quiet))
        return merge(found, made, key=self._key, reverse=self._descending)


def _first_not(ordered: Sequence[Any], passed: Callable[[Any], bool]) -> int:
    low, high = 0, len(ordered)
    while low < high:
        middle = (low + high) // 2
        if passed(ordered[middle]):
            low = middle + 1
        else:
            high = middle
    return low


def _write_key(key: Key) -> str:
    return base64.urlsafe_b64encode(json.dumps(key).encode()).decode()


def _read_key(cursor: str) -> Key:
    try:
        return tuple(json.loads(base64.urlsafe_b64decode(cursor)))
    except (ValueError, TypeError) as error:
        raise invalid("after_cursor is invalid") from error


def offset_of(cursor: str | None) -> int:
    """Decode the order book API's cursor: base64 of an offset."""
    if not cursor:
        return 0
    try:
        return int(base64.b64decode(cursor))
    except ValueError as error:
        raise RefusedError(400, {"error": "Invalid next_cursor"}) from error


def cursor_of(offset: int) -> str:
    """Encode an offset as the order book API's cursor."""
    return base64.b64encode(str(offset).encode()).decode()
