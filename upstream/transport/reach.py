"""Why an upstream cannot be reached, in words that say what to look at."""

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


def trouble(fault: BaseException, url: str = "") -> str:
    """Say what could not be reached and why: `cannot reach gamma-api.polymarket.com: name not known`."""
    said = str(fault) or type(fault).__name__
    told, _, rest = said.partition(": ")
    if not url and rest and " " not in told:  # an address, or the name of an endpoint
        url, said = told, rest
    host = urlsplit(url).netloc.rpartition("@")[2] if "//" in url else url
    known = next(filter(None, map(_known, _chain(fault))), "")
    return f"cannot {'reach' if known else 'read'} {host or 'the exchange'}: {known or said}"[:MAX_REASON]


def _known(fault: BaseException) -> str:
    for kind, words in WORDS.items():
        if isinstance(fault, kind):
            return words
    if "Timeout" in type(fault).__name__:
        return "no answer in time"
    return (fault.strerror or "").lower() if isinstance(fault, OSError) else ""


def _chain(fault: BaseException | None) -> Iterator[BaseException]:
    """Go through an error and those behind it, the deepest first."""
    found: list[BaseException] = []
    while fault is not None and fault not in found:
        found.append(fault)
        fault = fault.__cause__ or fault.__context__
    yield from reversed(found)
