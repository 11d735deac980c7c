"""Errors of the stream that reconnecting does not solve.

StreamError
├── Refused       the key or a command is rejected: a retry changes nothing
├── Unavailable   no connection for longer than `patience_s`
└── Lost          events are no longer stored; continue to iterate for the rest
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from presage_client.stream.events import StreamGap


class StreamError(Exception):
    """The stream ended, or has a gap."""


class Refused(StreamError):  # noqa: N818 - says what happened
    """The service rejects the key, the origin or a command.

    The client adds the codes `invalid_address` (a redirect, or no valid address) and `invalid_certificate`.
    """

    def __init__(self, code: str, detail: str) -> None:
        super().__init__(code, detail)
        self.code, self.detail = code, detail

    def __str__(self) -> str:
        return f"{self.code}: {self.detail}"


class Unavailable(StreamError):  # noqa: N818
    """The service could not be reached within `patience_s`."""


class Lost(StreamError):  # noqa: N818
    """Events between two received ones are no longer available."""

    def __init__(self, gap: StreamGap) -> None:
        super().__init__(gap)
        self.gap = gap

    def __str__(self) -> str:
        return f"events after {self.gap.after} and up to {self.gap.upto} may be missing"


class Interrupted(Exception):  # noqa: N818
    """The connection failed and a new one is due. Internal: never raised to the caller."""

    def __init__(self, why: str, wait_s: float | None = None) -> None:
        super().__init__(why)
        self.wait_s = wait_s
