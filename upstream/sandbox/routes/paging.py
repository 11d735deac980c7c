"""Pagination in the exchange's formats: keyset cursors, offsets, and the order book API's base64 numbers."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from starlette.datastructures import QueryParams

Item = TypeVar("Item")

END = "LTE="  # base64 of -1: the order book API's last cursor


class RefusedError(ValueError):
    """A request that the exchange answers with an error; the text is its own."""

    def __init__(self, status: int, body: dict[str, Any]) -> None:
        super().__init__(str(body))
        self.status, self.body = status, body


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


def after(
    items: Sequence[Item], key: Callable[[Item], Key], cursor: str | None, limit: int, *, descending: bool
) -> tuple[list[Item], str | None]:
    """Return the page after a cursor in the order of `key`, which must be unique, and the next cursor."""
    ordered = sorted(items, key=key, reverse=descending)
    start = 0
    if cursor:
        last = _read_key(cursor)
        passed = (lambda one: key(one) >= last) if descending else (lambda one: key(one) <= last)
        start = _first_not(ordered, passed)
    page = ordered[start : start + limit]
    more = len(ordered) > start + limit
    return page, _write_key(key(page[-1])) if more and page else None


def _first_not(ordered: Sequence[Item], passed: Callable[[Item], bool]) -> int:
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
