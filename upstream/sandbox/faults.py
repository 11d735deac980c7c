"""Faults of the sandbox Polymarket: their kinds and their targets."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal, TypeAlias, get_args

from upstream.sandbox.chain.refusals import REFUSALS
from upstream.sandbox.common.faults import FaultPlan, HttpFault, PlannedFault, changed_size

if TYPE_CHECKING:
    from collections.abc import Callable

MessageFault: TypeAlias = Literal["silent", "drop", "duplicate", "reorder", "corrupt_hash", "corrupt_size"]
SocketFault: TypeAlias = Literal["close", "refuse"] | MessageFault
ChainFault: TypeAlias = Literal["reorg", "lag", "rpc_error", "range_limit", "missing_logs"]

CHAIN_KINDS: tuple[str, ...] = get_args(ChainFault)
SOCKET = "/ws/market"
RPC = "/rpc"


class Fault(PlannedFault, kw_only=True, forbid_unknown_fields=True):
    """One injected fault.

    | kind         | what happens                                                                                |
    |--------------|---------------------------------------------------------------------------------------------|
    | error        | HTTP answers `status` (503) with a CDN's HTML page                                          |
    | rate_limit   | HTTP answers 429 with `Retry-After: retry_after_s` (1)                                      |
    | hang         | HTTP sends no response until the fault ends, then 504                                         |
    | slow         | HTTP answers after `delay_s` (2)                                                            |
    | truncate     | a complete response with half a JSON document                                                    |
    | cut          | the connection breaks in the middle of the response                                         |
    | html         | 200 with a page of HTML                                                                     |
    | wrong_json   | 200 with JSON of another shape                                                              |
    | oversized    | the response after a quarter of a gigabyte of blanks                                        |
    | repeat       | cursor and offset are ignored: the first page again and again                               |
    | silent       | the socket stays open and answers PING, but no data comes                                   |
    | close        | open sockets are closed with `status` (1006: without a closing handshake)                   |
    | refuse       | new sockets are refused with HTTP `status` (503)                                            |
    | drop         | a message is not sent, with `probability`                                                   |
    | duplicate    | a message is sent twice, with `probability`                                                 |
    | reorder      | a message is sent after the one that follows it, with `probability`                         |
    | corrupt_hash | a hash in a message is changed, with `probability`                                         |
    | corrupt_size | a size in a message is changed, with `probability`                                         |
    | reorg        | the chain's newest `depth` (3) blocks are replaced, once; final ones (16 deep) never        |
    | lag          | the node knows nothing of the newest `depth` (3) blocks                                     |
    | rpc_error    | a call of `method` ("": any) is refused by `error`, a name in `chain.refusals.REFUSALS`      |
    | range_limit  | eth_getLogs refuses more than `blocks` blocks or `logs` logs, by `error`                    |
    | missing_logs | a log is missing from eth_getLogs, with `probability`; always the same ones                 |

    `target` is the prefix of a path (`/gamma/markets`, `/clob`, `/data/v2`, `/rpc`), or `/ws/market`, or
    `/ws/market#3` for one connection. `at_s` counts from when the fault is submitted, `for_s` from its start; without
    `for_s` it lasts until stopped.
    """

    socket: ClassVar[str] = SOCKET
    message_kinds: ClassVar[tuple[str, ...]] = get_args(MessageFault)
    socket_kinds: ClassVar[tuple[str, ...]] = ("close", "refuse", *get_args(MessageFault))

    kind: HttpFault | SocketFault | ChainFault
    depth: int = 3
    method: str = ""
    error: str = ""
    blocks: int | None = None
    logs: int | None = None

    def __post_init__(self) -> None:
        if not self.target and self.kind in CHAIN_KINDS:
            self.target = RPC
        super().__post_init__()
        if not self.error:
            self.error = "too_many_results" if self.kind == "range_limit" else "internal"
        if self.error not in REFUSALS:
            raise ValueError(f"error is one of {', '.join(REFUSALS)}")
        if self.depth < 1:
            raise ValueError("depth is 1 or more")


class Faults(FaultPlan[Fault]):
    """Faults of HTTP, of the market socket and of the chain's node."""

    def __init__(self, clock: Callable[[], float], seed: int = 0) -> None:
        super().__init__(Fault, clock, seed)

    def on_call(self, kind: ChainFault, method: str = "") -> Fault | None:
        """Return the fault of a kind that applies to a call to the chain's node."""
        if not self.planned:
            return None
        now = self.now()
        for fault in self.planned:
            if fault.kind == kind and fault.active(now) and fault.method in ("", method):
                if kind != "missing_logs" and not self.strikes(fault):  # its probability applies per log
                    continue
                return fault
        return None

    def corrupted(self, kind: str, message: bytes) -> bytes:
        """Return a message with one hash or one size changed, otherwise the same."""
        if kind == "corrupt_hash":
            return self.corrupt(message, "hash", lambda _hash, dice: f"{dice.getrandbits(160):040x}")
        return self.corrupt(message, "size", changed_size)
