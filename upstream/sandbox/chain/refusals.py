"""RPC errors by name, as Polygon's public and paid endpoints send them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

Error = dict[str, Any]


def refusal(name: str, first: int = 0, last: int = 0) -> Error:
    """Return the error of a call for the logs of a range of blocks."""
    return REFUSALS[name](first, last)


def _too_many_results(first: int, last: int) -> Error:
    start, end = hex(first), hex((first + last) // 2)
    message = f"query returned more than 10000 results. Try with this block range [{start}, {end}]."
    return {"code": -32005, "message": message, "data": {"from": start, "limit": 10000, "to": end}}


def _response_size(first: int, last: int) -> Error:
    message = (
        "Log response size exceeded. You can make eth_getLogs requests with up to a 2K block range and no limit on"
    )
    message += " the response size, or you can request any block range with a cap of 10K logs in the response. Based on"
    message += " your parameters and the response size limit, this block range should work:"
    return {"code": -32602, "message": f"{message} [{hex(first)}, {hex((first + last) // 2)}]"}


def _says(code: int, message: str) -> Callable[[int, int], Error]:
    return lambda _first, _last: {"code": code, "message": message}


REFUSALS: dict[str, Callable[[int, int], Error]] = {
    "too_many_results": _too_many_results,
    "response_size": _response_size,
    "range_too_large": _says(-32000, "block range too large"),
    "range_limited": _says(-32614, "eth_getLogs is limited to a 5 range"),
    "tier_limited": _says(35, "ranges over 10000 blocks are not supported on freetier"),
    "query_timeout": _says(-32000, "query timeout exceeded"),
    "over_capacity": _says(429, "Your app has exceeded its compute units per second capacity."),
    "internal": _says(-32603, "Internal error"),
    "header_not_found": _says(-32000, "header not found"),
    "no_such_method": _says(-32601, "the method does not exist/is not available"),
}
