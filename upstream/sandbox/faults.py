"""Fault injection: kinds of faults, their targets, start and duration."""

from __future__ import annotations

import random
from itertools import count
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

import msgspec

from upstream.sandbox.chain.refusals import REFUSALS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

HttpFault: TypeAlias = Literal[
    "error", "rate_limit", "hang", "slow", "truncate", "cut", "html", "wrong_json", "repeat", "oversized"
]
SocketFault: TypeAlias = Literal[
    "silent", "close", "refuse", "drop", "duplicate", "reorder", "corrupt_hash", "corrupt_size"
]

ChainFault: TypeAlias = Literal["reorg", "lag", "rpc_error", "range_limit", "missing_logs"]

HTTP_KINDS: tuple[str, ...] = get_args(HttpFault)
SOCKET_KINDS: tuple[str, ...] = get_args(SocketFault)
CHAIN_KINDS: tuple[str, ...] = get_args(ChainFault)
SOCKET = "/ws/market"
RPC = "/rpc"


class Fault(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
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

    kind: HttpFault | SocketFault | ChainFault
    at_s: float = 0
    for_s: float | None = None
    target: str = ""
    probability: float = 1.0
    status: int | None = None
    retry_after_s: float = 1
    delay_s: float = 2
    depth: int = 3
    method: str = ""
    error: str = ""
    blocks: int | None = None
    logs: int | None = None
    id: int = 0
    hits: int = 0
    starts: float = 0
    began: bool = False

    def __post_init__(self) -> None:
        if not self.target:
            self.target = SOCKET if self.kind in SOCKET_KINDS else RPC if self.kind in CHAIN_KINDS else "/"
        if not self.error:
            self.error = "too_many_results" if self.kind == "range_limit" else "internal"
        if self.error not in REFUSALS:
            raise ValueError(f"error is one of {', '.join(REFUSALS)}")
        if self.depth < 1:
            raise ValueError("depth is 1 or more")
        if not 0 <= self.probability <= 1:
            raise ValueError("probability lies between 0 and 1")

    def active(self, now: float) -> bool:
        """Return whether the fault is in effect."""
        return now >= self.starts and (self.for_s is None or now < self.starts + self.for_s)

    def over(self, now: float) -> bool:
        """Return whether the fault has ended."""
        return self.for_s is not None and now >= self.starts + self.for_s

    def aims_at(self, connection_id: int) -> bool:
        """Return whether the fault targets a socket connection."""
        target = self.target.partition("#")
        return SOCKET.startswith(target[0]) and (not target[2] or target[2] == str(connection_id))


class Faults:
    """Planned and active faults.

    Their random generator is separate from the simulation's: the same events happen with faults and without.
    """

    def __init__(self, clock: Callable[[], float], seed: int = 0) -> None:
        self.now = clock
        self._ids = count(1)
        self._dice = random.Random(f"{seed}/faults")  # noqa: S311 - repeatable randomness is intended
        self.planned: list[Fault] = []
        self.past: list[Fault] = []

    def add(self, script: Iterable[Fault]) -> list[Fault]:
        """Plan faults, and return them with their ids."""
        added = []
        for fault in script:
            fault.id, fault.starts = next(self._ids), self.now() + fault.at_s
            fault.began, fault.hits = False, 0
            self.planned.append(fault)
            added.append(fault)
        return added

    def stop(self, fault_id: int | None = None) -> int:
        """Stop a fault, or all of them, and return how many were active or planned."""
        stopped = [fault for fault in self.planned if fault_id in (None, fault.id)]
        self.planned = [fault for fault in self.planned if fault not in stopped]
        self.past.extend(stopped)
        return len(stopped)

    def begun(self) -> list[Fault]:
        """Return faults that have started since the last call, and remove those that are over."""
        now = self.now()
        fresh = [fault for fault in self.planned if not fault.began and fault.active(now)]
        for fault in fresh:
            fault.began = True
        over = [fault for fault in self.planned if fault.over(now)]
        if over:
            self.past.extend(over)
            self.planned = [fault for fault in self.planned if fault not in over]
        return fresh

    def http(self, path: str) -> Fault | None:
        """Return the fault that applies to a request."""
        now = self.now()
        for fault in self.planned:
            if (
                fault.kind in HTTP_KINDS
                and fault.active(now)
                and path.startswith(fault.target)
                and self._strikes(fault)
            ):
                return fault
        return None

    def on_call(self, kind: ChainFault, method: str = "") -> Fault | None:
        """Return the fault of a kind that applies to a call to the chain's node."""
        if not self.planned:
            return None
        now = self.now()
        for fault in self.planned:
            if fault.kind == kind and fault.active(now) and fault.method in ("", method):
                if kind != "missing_logs" and not self._strikes(fault):  # its probability applies per log
                    continue
                return fault
        return None

    def refuses(self) -> Fault | None:
        """Return the fault that refuses a new socket, if any."""
        now = self.now()
        for fault in self.planned:
            if fault.kind == "refuse" and fault.active(now) and self._strikes(fault):
                return fault
        return None

    def on_message(self, connection_id: int) -> Sequence[Fault]:
        """Return the faults that apply to one message to one connection."""
        if not self.planned:
            return ()
        now = self.now()
        return [
            fault
            for fault in self.planned
            if fault.kind in SOCKET_KINDS
            and fault.kind not in ("close", "refuse")
            and fault.active(now)
            and fault.aims_at(connection_id)
            and self._strikes(fault)
        ]

    def corrupt(self, kind: str, message: bytes) -> bytes:
        """Return a message with one hash or one size changed, otherwise the same."""
        decoded = msgspec.json.decode(message)
        places = list(_holders(decoded, "hash" if kind == "corrupt_hash" else "size"))
        if not places:
            return message
        place = self._dice.choice(places)
        if kind == "corrupt_hash":
            place["hash"] = f"{self._dice.getrandbits(160):040x}"
        else:
            place["size"] = str(round(float(place["size"]) + self._dice.randint(1, 999) / 100, 2))
        return msgspec.json.encode(decoded)

    def state(self) -> list[dict[str, Any]]:
        """Return planned and active faults as JSON."""
        now = self.now()
        return [
            {**msgspec.to_builtins(fault), "active": fault.active(now), "starts_in_s": round(fault.starts - now, 3)}
            for fault in self.planned
        ]

    def _strikes(self, fault: Fault) -> bool:
        if fault.probability < 1 and self._dice.random() >= fault.probability:
            return False
        fault.hits += 1
        return True


def read_script(script: bytes | str) -> list[Fault]:
    """Parse a fault or a list of faults; msgspec.ValidationError describes what is invalid."""
    faults = msgspec.json.decode(script, type=Fault | list[Fault])
    return faults if isinstance(faults, list) else [faults]


def _holders(value: Any, key: str) -> Iterable[dict[str, Any]]:
    if isinstance(value, dict):
        if isinstance(value.get(key), str):
            yield value
        for inner in value.values():
            yield from _holders(inner, key)
    elif isinstance(value, list):
        for inner in value:
            yield from _holders(inner, key)
