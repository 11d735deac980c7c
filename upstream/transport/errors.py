"""What can go wrong with an upstream, as far as a caller can act on it.

    UpstreamError
    ├── Unavailable      no answer, or 5xx, after every retry
    ├── RateLimited      429 after every retry; `retry_after_s` when it was told
    ├── Rejected         another 4xx, or a redirect: the request itself is at fault
    ├── NotFound         404: there is no such thing
    ├── Malformed        an answer that is not what the protocol says (HTML, cut-off JSON, other types)
    ├── TooLarge         an answer beyond the size cap
    ├── Incomplete       a walk that cannot be finished: a page or a cursor came again, or an offset cap was met
    └── SocketLost       a socket that is closed, silent or cannot be opened

One bad object among good ones is no error: it is `Refused`, and goes to quarantine with what came.
"""

# ruff: noqa: N818  # the names say what happened, and read best where they are caught

from __future__ import annotations

import msgspec

FAULTS = (msgspec.MsgspecError, ValueError, ArithmeticError, RecursionError)
"""What one object raises when it is bad JSON, has other types, or impossible numbers (bad UTF-8 is a ValueError)."""

PAYLOAD_CAP = 64 * 1024
"""Characters of a refused payload that are kept."""


class UpstreamError(Exception):
    """The exchange could not be read; every error of the clients is one of these."""


class Unavailable(UpstreamError):
    """No answer, or a server error, after every retry."""

    def __init__(self, message: str, retry_after_s: float | None = None) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class RateLimited(UpstreamError):
    """Too many requests, even after waiting as told."""

    def __init__(self, message: str, retry_after_s: float | None = None) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class Rejected(UpstreamError):
    """The exchange will not answer this request, however often it is sent."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


class NotFound(UpstreamError):
    """The exchange has no such thing."""


class Malformed(UpstreamError):
    """The answer is not what the protocol says."""


class TooLarge(UpstreamError):
    """The answer is larger than anything expected."""


class Incomplete(UpstreamError):
    """The walk could not be finished; what it has yielded so far is real, but not all there is."""


class SocketLost(UpstreamError):
    """The socket is closed or silent; `reason` says which."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class Refused(msgspec.Struct, frozen=True):
    """One object that is not what the protocol says, for quarantine, with what came."""

    source: str
    reason: str
    payload: str


def refused(source: str, reason: object, payload: object) -> Refused:
    """Make a `Refused` whose payload any database can hold: text, cut, and without NUL."""
    if isinstance(payload, bytes | bytearray | memoryview):
        text = bytes(payload[: PAYLOAD_CAP * 4]).decode("utf-8", "replace")
    elif isinstance(payload, str):
        text = payload[:PAYLOAD_CAP].encode("utf-8", "replace").decode("utf-8")
    else:
        text = repr(payload)
    said = str(reason).encode("utf-8", "replace").decode("utf-8")
    return Refused(source, said[:500].replace("\x00", "�"), text[:PAYLOAD_CAP].replace("\x00", "�"))
