"""Planned faults: when each is in effect, and what it strikes. An exchange adds the kinds that are its own."""

from __future__ import annotations

import random
from itertools import count
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, TypeAlias, TypeVar, get_args

import msgspec

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

HttpFault: TypeAlias = Literal[
    "error", "rate_limit", "hang", "slow", "truncate", "cut", "html", "wrong_json", "repeat", "oversized"
]
HTTP_KINDS: tuple[str, ...] = get_args(HttpFault)


class PlannedFault(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """One injected fault. A subclass lists its kinds, and documents them.

    `socket` is the path of the exchange's socket, `message_kinds` are the kinds that strike a message, and
    `socket_kinds` all that are aimed at sockets.
    """

    socket: ClassVar[str]
    message_kinds: ClassVar[tuple[str, ...]]
    socket_kinds: ClassVar[tuple[str, ...]]

    kind: str
    at_s: float = 0
    for_s: float | None = None
    target: str = ""
    probability: float = 1.0
    status: int | None = None
    retry_after_s: float = 1
    delay_s: float = 2
    id: int = 0
    hits: int = 0
    starts: float = 0
    began: bool = False

    def __post_init__(self) -> None:
        if not self.target:
            self.target = self.socket if self.kind in self.socket_kinds else "/"
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
        return self.socket.startswith(target[0]) and (not target[2] or target[2] == str(connection_id))


FaultT = TypeVar("FaultT", bound=PlannedFault)


class FaultPlan(Generic[FaultT]):
    """Planned and active faults.

    Their random generator is separate from the simulation's: the same events happen with faults and without.
    """

    def __init__(self, kind: type[FaultT], clock: Callable[[], float], seed: int = 0) -> None:
        self.now = clock
        self._kind = kind
        self._ids = count(1)
        self._dice = random.Random(f"{seed}/faults")  # noqa: S311 - repeatable randomness is intended
        self.planned: list[FaultT] = []
        self.past: list[FaultT] = []

    def read(self, script: bytes) -> list[FaultT]:
        """Parse a script of this exchange's faults."""
        return read_faults(self._kind, script)

    def add(self, script: Iterable[FaultT]) -> list[FaultT]:
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

    def begun(self) -> list[FaultT]:
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

    def http(self, path: str) -> FaultT | None:
        """Return the fault that applies to a request."""
        now = self.now()
        for fault in self.planned:
            if fault.kind in HTTP_KINDS and fault.active(now) and path.startswith(fault.target) and self.strikes(fault):
                return fault
        return None

    def of_kind(self, kind: str, connection_id: int | None = None) -> FaultT | None:
        """Return the active fault of a kind that applies now: to a new socket, say, or to an open connection."""
        now = self.now()
        for fault in self.planned:
            if (
                fault.kind == kind
                and fault.active(now)
                and (connection_id is None or fault.aims_at(connection_id))
                and self.strikes(fault)
            ):
                return fault
        return None

    def on_message(self, connection_id: int) -> Sequence[FaultT]:
        """Return the faults that apply to one message to one connection."""
        if not self.planned:
            return ()
        now = self.now()
        return [
            fault
            for fault in self.planned
            if fault.kind in fault.message_kinds
            and fault.active(now)
            and fault.aims_at(connection_id)
            and self.strikes(fault)
        ]

    def corrupt(self, message: bytes, key: str, changed: Callable[[str, random.Random], str]) -> bytes:
        """Return a message with one value of a key changed; the same if it has none."""
        decoded = msgspec.json.decode(message)
        places = list(_holders(decoded, key))
        if not places:
            return message
        place = self._dice.choice(places)
        place[key] = changed(place[key], self._dice)
        return msgspec.json.encode(decoded)

    def state(self) -> list[dict[str, Any]]:
        """Return planned and active faults as JSON."""
        now = self.now()
        return [
            {**msgspec.to_builtins(fault), "active": fault.active(now), "starts_in_s": round(fault.starts - now, 3)}
            for fault in self.planned
        ]

    def strikes(self, fault: FaultT) -> bool:
        """Draw whether an active fault strikes, and count it if so."""
        if fault.probability < 1 and self._dice.random() >= fault.probability:
            return False
        fault.hits += 1
        return True


def read_faults(kind: type[FaultT], script: bytes | str) -> list[FaultT]:
    """Parse a fault or a list of faults; msgspec.ValidationError describes what is invalid."""
    decode: Any = msgspec.json.decode
    faults: FaultT | list[FaultT] = decode(script, type=kind | list[kind])  # type: ignore[valid-type]
    return faults if isinstance(faults, list) else [faults]


def changed_size(size: str, dice: random.Random) -> str:
    """Return another size than a given one."""
    return str(round(float(size) + dice.randint(1, 999) / 100, 2))


def _holders(value: Any, key: str) -> Iterable[dict[str, Any]]:
    if isinstance(value, dict):
        if isinstance(value.get(key), str):
            yield value
        for inner in value.values():
            yield from _holders(inner, key)
    elif isinstance(value, list):
        for inner in value:
            yield from _holders(inner, key)
