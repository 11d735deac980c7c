"""Parameters, pages and errors of the REST API. Kalshi has three shapes of errors, and all three are used."""

from __future__ import annotations

import base64
import binascii
from itertools import islice
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from upstream.sandbox.common.answers import RefusedError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from starlette.datastructures import QueryParams
    from starlette.requests import Request


class Numbered(Protocol):
    """What is listed by number, the highest first."""

    @property
    def number(self) -> int:
        """Return the number."""


Item = TypeVar("Item", bound=Numbered)


def not_found() -> RefusedError:
    """Return the error of something that is not listed."""
    return RefusedError(404, {"error": {"code": "not_found", "message": "not found"}})


def invalid(message: str, details: str = "") -> RefusedError:
    """Return the error of parameters that make no sense together, or are beyond a limit."""
    return RefusedError(400, {"code": "invalid_parameters", "message": message, "details": details})


def malformed(name: str, given: str) -> RefusedError:
    """Return the error of one parameter that cannot be read."""
    return RefusedError(400, {"msg": f"Invalid format for parameter {name}: error binding string parameter: {given!r}"})


def whole(query: QueryParams, name: str, default: int | None = None) -> int | None:
    """Return a whole number."""
    given = query.get(name)
    if given is None or given == "":
        return default
    if not given.removeprefix("-").isdecimal() or len(given) > 15:
        raise malformed(name, given)
    return int(given)


def needed(query: QueryParams, name: str) -> int:
    """Return a whole number that has to be given."""
    found = whole(query, name)
    if found is None:
        raise RefusedError(400, {"msg": f"Query argument {name} is required, but not found"})
    return found


def flag(query: QueryParams, name: str) -> bool:
    """Return a switch, off when it is not given."""
    given = query.get(name, "").lower()
    if given not in ("", "true", "false", "1", "0"):
        raise malformed(name, given)
    return given in ("true", "1")


def limit_of(query: QueryParams, default: int, most: int) -> int:
    """Return the size of a page: beyond the maximum is refused, never reduced."""
    limit = whole(query, "limit", default)
    assert limit is not None
    if not 1 <= limit <= most:
        raise invalid("invalid limit", f"limit is 1 to {most}")
    return limit


def page(request: Request, items: Iterable[Item], limit: int, wanted: Callable[[Item], bool]) -> tuple[list[Item], str]:
    """Return a page of items, which come by falling number, and the next cursor; "" after the last page."""
    before = None if getattr(request.state, "repeat", False) else _number(request.query_params.get("cursor"))
    left = (item for item in items if (before is None or item.number < before) and wanted(item))
    found = list(islice(left, limit + 1))
    more = len(found) > limit
    found = found[:limit]
    return found, _cursor(found[-1].number) if more else ""


def _cursor(number: int) -> str:
    return base64.b64encode(f"n{number}".encode()).decode()


def _number(cursor: str | None) -> int | None:
    """Return the number in a cursor; None for garbage, which starts anew."""
    try:
        text = base64.b64decode(cursor or "", validate=True).decode()
    except (binascii.Error, ValueError):
        return None
    return int(text[1:]) if text.startswith("n") and text[1:].isdecimal() and len(text) < 16 else None


def several(query: QueryParams, name: str) -> list[str]:
    """Return a list that is written with commas."""
    return [part for part in query.get(name, "").split(",") if part]


Times = dict[str, tuple[int | None, int | None]]


def time_filters(query: QueryParams) -> Times:
    """Return the time filters that are given, in seconds: `created`, `close`, `settled`, `updated`."""
    found: Times = {}
    for name in ("created", "close", "settled", "updated"):
        least, most = whole(query, f"min_{name}_ts"), whole(query, f"max_{name}_ts")
        if least is not None or most is not None:
            found[name] = least, most
    return found


def within(ms: int, times: tuple[int | None, int | None]) -> bool:
    """Return whether a moment is within two times in seconds."""
    least, most = times
    return (least is None or ms >= least * 1000) and (most is None or ms <= most * 1000)


Json = dict[str, Any]
