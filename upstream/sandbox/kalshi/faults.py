"""Faults of the sandbox Kalshi: their kinds and their targets."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal, TypeAlias, get_args

from upstream.sandbox.common.faults import FaultPlan, HttpFault, PlannedFault, changed_size

if TYPE_CHECKING:
    from collections.abc import Callable

SOCKET = "/trade-api/ws/v2"
MAX_SHARD = 3

MessageFault: TypeAlias = Literal["silent", "drop", "duplicate", "reorder", "late", "cut_frame", "corrupt_size"]
SocketFault: TypeAlias = (
    Literal["close", "refuse", "skip_seq", "repeat_seq", "end_subscription", "reject_signature"] | MessageFault
)


class KalshiFault(PlannedFault, kw_only=True, forbid_unknown_fields=True):
    """One injected fault.

    | kind             | what happens                                                                              |
    |------------------|-------------------------------------------------------------------------------------------|
    | error            | HTTP answers `status` (503) with a CDN's HTML page                                        |
    | rate_limit       | HTTP answers 429, without `Retry-After`                                                   |
    | hang             | HTTP sends no response until the fault ends, then 504                                     |
    | slow             | HTTP answers after `delay_s` (2)                                                          |
    | truncate         | a complete response with half a JSON document                                             |
    | cut              | the connection breaks in the middle of the response                                       |
    | html             | 200 with a page of HTML                                                                   |
    | wrong_json       | 200 with JSON of another shape                                                            |
    | oversized        | the response after a quarter of a gigabyte of blanks                                      |
    | repeat           | the cursor is ignored: the first page again and again                                     |
    | silent           | the socket stays open and pings, but no data comes                                        |
    | close            | open sockets are closed with `status` (1006: without a closing handshake)                 |
    | refuse           | new sockets are refused with HTTP `status` (503)                                          |
    | reject_signature | new sockets and signed requests are refused with 401, whatever their signature            |
    | drop             | a message is withheld, with `probability`: its number is missing                          |
    | duplicate        | a message is sent twice, with `probability`, with the same number                         |
    | reorder          | a message is sent after the one that follows it, with `probability`                       |
    | late             | a message is sent after `delay_s` (2), with `probability`                                 |
    | cut_frame        | the connection breaks in the middle of a frame, with `probability`                        |
    | corrupt_size     | the size of a book's change is another, with `probability`                                |
    | skip_seq         | a number is left out, with `probability`, though no message is                            |
    | repeat_seq       | two messages have the same number, with `probability`                                     |
    | end_subscription | every subscription ends with error `code` (25: buffer overflow), once                     |
    | pause            | trading pauses in `shard` (without one: in all), as `/exchange/status` says               |

    `target` is the prefix of a path (`/trade-api/v2/markets`), or `/trade-api/ws/v2`, or `/trade-api/ws/v2#3` for one
    connection. `at_s` counts from when the fault is submitted, `for_s` from its start; without `for_s` it lasts until
    stopped.
    """

    socket: ClassVar[str] = SOCKET
    message_kinds: ClassVar[tuple[str, ...]] = get_args(MessageFault)
    socket_kinds: ClassVar[tuple[str, ...]] = (*get_args(SocketFault), *get_args(MessageFault))

    kind: HttpFault | SocketFault | Literal["pause"]
    shard: int | None = None
    code: int = 25

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.shard is not None and not 0 <= self.shard <= MAX_SHARD:
            raise ValueError(f"shard is 0 to {MAX_SHARD}")


class KalshiFaults(FaultPlan[KalshiFault]):
    """Faults of HTTP, of the socket and of the exchange itself."""

    def __init__(self, clock: Callable[[], float], seed: int = 0) -> None:
        super().__init__(KalshiFault, clock, seed)

    def corrupted(self, message: bytes) -> bytes:
        """Return a message with the size of a book's change changed, otherwise the same."""
        corrupted = self.corrupt(message, "delta_fp", lambda size, dice: f"{float(changed_size(size, dice)):.2f}")
        return corrupted.rstrip() + b"\n"

    def paused(self) -> frozenset[int]:
        """Return the shards that are paused now."""
        now = self.now()
        return frozenset(
            shard
            for fault in self.planned
            if fault.kind == "pause" and fault.active(now)
            for shard in (range(MAX_SHARD + 1) if fault.shard is None else (fault.shard,))
        )
