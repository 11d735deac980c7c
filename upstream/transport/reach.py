"""Error messages for unreachable upstreams: what failed, and what to check."""

from __future__ import annotations

import socket
import ssl
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_REASON = 300  # characters
WORDS: dict[type[BaseException], str] = {
    socket.gaierror: "name not known",
    ConnectionRefusedError: "connection refused",
    ConnectionResetError: "connection lost",
    BrokenPipeError: "connection lost",
    ssl.SSLError: "no secure connection",
    TimeoutError: "no answer in time",
}


def reach_failure(fault: BaseException, url: str = "") -> str:
    """Return what could not be reached and why: `cannot reach gamma-api.polymarket.com: name not known`."""
    message = str(fault) or type(fault).__name__
    prefix, _, rest = message.partition(": ")
    if not url and rest and " " not in prefix:  # an address, or an endpoint's name
        url, message = prefix, rest
    host = urlsplit(url).netloc.rpartition("@")[2] if "//" in url else url
    known = next(filter(None, map(_known, _chain(fault))), "")
    return f"cannot {'reach' if known else 'read'} {host or 'the exchange'}: {known or message}"[:MAX_REASON]


def _known(fault: BaseException) -> str:
    for kind, words in WORDS.items():
        if isinstance(fault, kind):
            return words
    if "Timeout" in type(fault).__name__:
        return "no answer in time"
    return (fault.strerror or "").lower() if isinstance(fault, OSError) else ""


def _chain(fault: BaseException | None) -> Iterator[BaseException]:
    """Yield an error and its causes, the deepest first."""
    found: list[BaseException] = []
    while fault is not None and fault not in found:
        found.append(fault)
        fault = fault.__cause__ or fault.__context__
    yield from reversed(found)
