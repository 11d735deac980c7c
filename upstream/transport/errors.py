"""Upstream errors, as far as a caller can act on them.

    UpstreamError
    ├── Unavailable      no answer, or 5xx, after every retry
    ├── RateLimited      429 after every retry; `retry_after_s` when the server sent one
    ├── Rejected         another 4xx, or a redirect: the request itself is at fault
    ├── NotFound         404: no such object
    ├── Unauthenticated  a call that needs a key, and there is no usable one, or the exchange refuses it
    ├── Malformed        a response that breaks the protocol (HTML, cut-off JSON, wrong types)
    ├── TooLarge         a response beyond the size limit
    ├── Incomplete       pagination that cannot finish: a repeated page or cursor, or the offset cap
    └── SocketLost       a socket that closed, went silent or cannot be opened

One bad object among good ones is not an error: it becomes `RefusedObject` and goes to quarantine with its payload.
"""

# ruff: noqa: N818  # names state what happened and read well in `except`

from __future__ import annotations

import msgspec

FAULTS = (msgspec.MsgspecError, ValueError, ArithmeticError, RecursionError)
"""Raised by one object that is bad JSON, has wrong types or impossible numbers (bad UTF-8 is a ValueError)."""

MAX_PAYLOAD = 64 * 1024
"""Characters kept of a refused payload."""


class UpstreamError(Exception):
    """The upstream could not be read; base class of all client errors."""

    body: bytes = b""
    """The beginning of an HTTP error's body, for clients that know its format."""


class Unavailable(UpstreamError):
    """No response, or a server error, after every retry."""

    def __init__(self, message: str, retry_after_s: float | None = None) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class RateLimited(UpstreamError):
    """Too many requests, even after waiting as instructed."""

    def __init__(self, message: str, retry_after_s: float | None = None) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class Rejected(UpstreamError):
    """The exchange refuses this request, however often it is sent."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


class NotFound(UpstreamError):
    """The requested object does not exist."""


class Unauthenticated(UpstreamError):
    """There is no usable key: the message says what is missing or wrong, and never what the key is."""


class Malformed(UpstreamError):
    """The response does not follow the protocol."""


class TooLarge(UpstreamError):
    """The response exceeds the size limit."""


class Incomplete(UpstreamError):
    """Pagination could not finish; what was yielded so far is valid, but incomplete."""


class SocketLost(UpstreamError):
    """The socket is closed or silent; see `reason`."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class SubscriptionRefused(SocketLost):
    """The exchange refuses what the connection is for: the next one may fare no better soon."""


class RefusedObject(msgspec.Struct, frozen=True):
    """One object that does not follow the protocol, with its payload, for quarantine."""

    source: str
    reason: str
    payload: str


def refused(source: str, reason: object, payload: object) -> RefusedObject:
    """Return a `RefusedObject` whose payload any database can store: text, truncated, and without NUL."""
    if isinstance(payload, bytes | bytearray | memoryview):
        text = bytes(payload[: MAX_PAYLOAD * 4]).decode("utf-8", "replace")
    elif isinstance(payload, str):
        text = payload[:MAX_PAYLOAD].encode("utf-8", "replace").decode("utf-8")
    else:
        text = repr(payload)
    said = str(reason).encode("utf-8", "replace").decode("utf-8")
    return RefusedObject(source, said[:500].replace("\x00", "�"), text[:MAX_PAYLOAD].replace("\x00", "�"))
