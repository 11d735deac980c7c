"""What can go wrong beyond what the client mends by itself.

StreamError
├── Refused       the key or a wish is not accepted: trying again changes nothing
├── Unavailable   no connection for longer than `patience_s`
└── Lost          events are no longer kept; go on iterating for what there is
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from presage.client.events import Gap


class StreamError(Exception):
    """The stream ended, or has a hole."""


class Refused(StreamError):  # noqa: N818 (says what happened)
    """The service does not accept the key, the origin or what was asked for."""

    def __init__(self, code: str, detail: str) -> None:
        super().__init__(f"{code}: {detail}")
        self.code, self.detail = code, detail


class Unavailable(StreamError):  # noqa: N818
    """The service could not be reached for as long as one was ready to wait."""


class Lost(StreamError):  # noqa: N818
    """Some events between two that were had cannot be had any more."""

    def __init__(self, gap: Gap) -> None:
        super().__init__(f"events after {gap.after} and up to {gap.upto} may be missing")
        self.gap = gap


class Interrupted(Exception):  # noqa: N818
    """The connection is of no use any more; another will be. Never leaves the client."""

    def __init__(self, why: str, wait_s: float | None = None) -> None:
        super().__init__(why)
        self.wait_s = wait_s
